"""When and how two pucks meet on a table that soon stops them, filmed at a high rate."""

# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from dataclasses import replace

import numpy as np
import pytest
import torch
from identification.clip_tracks import NOISE, tracks_of

from physvision.datasets.clips import Filming, draw
from physvision.datasets.clips.motion import GRAVITY
from physvision.identification import identify, impacts
from physvision.identification.kind_settings import CollisionSettings
from physvision.identification.kinds import collision
from physvision.identification.model import Evidence
from physvision.identification.view import View

RUBS = 950.0  # px/s²


def decelerated(start, velocity, times):
    speed = np.linalg.norm(velocity)
    moving = np.minimum(times, speed / RUBS)
    return start + velocity / speed * (speed * moving - RUBS * moving**2 / 2)[:, None]


def test_velocities_before_and_after_a_meeting_where_friction_is_strong():
    random = np.random.default_rng(0)
    times, impact_time = np.arange(100) / 240, 30 / 240
    launch, first = np.array([925.0, 390.0]), np.array([9.0, 66.0])
    speed = np.linalg.norm(launch)
    hit, before = decelerated(first, launch, np.array([impact_time]))[0], launch * (1 - RUBS * impact_time / speed)
    normal = np.array([np.cos(-0.05), np.sin(-0.05)])
    impulse = 0.95 * (before @ normal) * normal  # equal masses, restitution 0.9
    late = np.maximum(times - impact_time, 0)
    first_path = np.where(
        (times < impact_time)[:, None], decelerated(first, launch, times), decelerated(hit, before - impulse, late)
    )
    second_path = decelerated(hit + 17 * normal, impulse, late)
    positions = np.concatenate([first_path, second_path], 1) + random.normal(0, 0.1, (100, 4))
    moment, found_before, found_after, _ = impacts.find_impact(times, positions, CollisionSettings())
    assert abs(moment - impact_time) < 1.5 / 240
    # Lines through fifteen samples of a motion that slows down: half of what it loses meanwhile.
    off = RUBS * 15 / 240 / 2 + 10
    np.testing.assert_allclose(found_before, [*before, 0, 0], atol=off)
    np.testing.assert_allclose(found_after, [*(before - impulse), *impulse], atol=off)
    np.testing.assert_allclose(found_before[2:], 0, atol=0.03 * speed)


@pytest.mark.extended
def test_a_disc_that_glides_to_a_standstill_before_it_is_struck_rests():
    clip = draw("collision", 1)
    result = identify(tracks_of(clip, 1), "collision", clip.known, size=clip.filming.size)
    for name in ("mass_ratio", "restitution"):
        assert abs(result.parameters[name].value / clip.truth[name] - 1) < 0.01
    assert result.fit.noise < 1.2 * NOISE


def test_a_table_slows_bodies_against_the_velocities_that_they_part_with():
    """Where they are is right but for what a step in which they meet leaves out: acceleration times its square."""
    clip = draw("collision", 253, Filming(size=(640, 480), fps=60))
    pixels, positions = clip.view.scale, torch.from_numpy(clip.positions())
    tracks = [replace(track, positions=positions[:, body].numpy()) for body, track in enumerate(tracks_of(clip))]
    (model,) = collision.candidate_models(Evidence(tracks, View(640, 480), {}))
    early = clip.times[model.first] + np.array([0, 2e-5])
    velocities = np.diff(clip.motion.poses(early)[..., :2], axis=0)[0] / 2e-5 * [pixels, -pixels]
    slowing = clip.truth["friction"] * GRAVITY * pixels
    truth = {
        "mass_ratio": clip.truth["mass_ratio"], "restitution": clip.truth["restitution"], "friction": 0.0,
        "contact_distance": sum(body.size[0] for body in clip.motion.bodies) / 2 * pixels, "deceleration": slowing,
        "positions": positions[model.first].flatten().tolist(), "velocities": velocities.flatten().tolist(),
    }  # fmt: skip
    setup = model.setup({name: torch.tensor([value], dtype=torch.float64) for name, value in truth.items()})
    assert setup.controls is not None
    steps = 2 * (model.end - 1 - model.first)
    motion = model.engine.rollout(setup.state, steps, setup.controls[:, :steps], setup.properties)
    off = motion.q[0, ::2].unflatten(1, (2, 3))[..., :2] - positions[model.first : model.end]
    assert float(off.abs().max()) < slowing * model.engine.dt**2
