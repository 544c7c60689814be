"""The swinging chain against equations of motion written out here, and its frames against states and poses."""

# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from physvision.camera import Camera, RayCaster
from physvision.core import InputError
from physvision.core.shapes import Capsule
from physvision.datasets import Dataset, PendulumRecipe, SwingRecipe, Windows, WindowShape, generate
from physvision.datasets.rendering import MOMENTS, Sensor
from physvision.datasets.swing.rendering import SwingRenderer, link_points

MOTION_ONLY = {"size": 16, "exposure": (0.0, 0.0), "clutter": 0, "masks": False}


def accelerations(q, v, lengths, masses, damping, gravity):
    """Lagrange's equations of rods of even mass in a chain, in absolute angles θ = cumsum(q).

    Link i has its middle at Σ_k a_ik (−sin θ_k, cos θ_k) with a_ik the length for k < i and half of it for k = i, so
    the mass matrix is Σ_i m_i a_ij a_ik cos(θ_j − θ_k) + δ_jk m_j l_j² / 12. The torque of hinge i acts on links i and
    i − 1.
    """
    theta, rate = np.cumsum(q), np.cumsum(v)
    arms = np.tril(np.broadcast_to(lengths, (len(q), len(q))), -1) + np.diag(0.5 * lengths)
    coupling = np.einsum("i,ij,ik->jk", masses, arms, arms)
    apart = theta[:, None] - theta
    mass = coupling * np.cos(apart) + np.diag(masses * lengths**2 / 12)
    torque = -damping * v
    generalized = torque - np.append(torque[1:], 0.0)
    force = generalized - (coupling * np.sin(apart)) @ rate**2 - gravity * (masses @ arms) * np.sin(theta)
    return np.diff(np.linalg.solve(mass, force), prepend=0.0)


def energy(trial):
    theta, rate = np.cumsum(trial["q"], 1), np.cumsum(trial["v"], 1)
    lengths, masses = trial["length"][0], trial["mass"][0]
    arms = np.tril(np.broadcast_to(lengths, (len(lengths),) * 2), -1) + np.diag(0.5 * lengths)
    velocity = np.stack([rate * -np.cos(theta), rate * -np.sin(theta)], -1)
    middles = np.einsum("ij,fja->fia", arms, velocity)
    kinetic = 0.5 * (masses * (middles**2).sum(-1) + masses * lengths**2 / 12 * rate**2).sum(1)
    return kinetic - trial["gravity"][0] * (np.cos(theta) @ (masses @ arms))


@pytest.mark.parametrize(("links", "number"), [(1, 0), (2, 0), (2, 1), (3, 2)])
def test_states_are_those_of_lagranges_equations(links, number):
    recipe = SwingRecipe(frames=31, links=links, damping=(0.05, 0.3), **MOTION_ONLY)
    trial = recipe.make("train", number)
    values = [trial[name][0] for name in ("length", "mass", "joint_damping", "gravity")]

    def rates(_, state):
        q, v = state[:links], state[links:]
        return np.concatenate([v, accelerations(q, v, *values)])

    start = np.concatenate([trial["q"][0], trial["v"][0]])
    exact = solve_ivp(rates, (0.0, 1.0), start, "DOP853", np.arange(31) / 30, rtol=1e-11, atol=1e-12).y.T
    # Runge and Kutta's method leaves (rate · step)⁵ / 120 a step of 1/600 s, with rates of up to 20 a second.
    np.testing.assert_allclose(trial["q"], exact[:, :links], atol=1e-6)
    np.testing.assert_allclose(trial["v"], exact[:, links:], atol=2e-5)


def test_energy_is_kept_without_damping_and_falls_with_it():
    recipe = SwingRecipe(frames=60, links=2, damping=(0.0, 0.0), **MOTION_ONLY)
    energies = energy(recipe.make("train", 0))
    np.testing.assert_allclose(energies, energies[0], atol=1e-5)
    damped = SwingRecipe(frames=60, links=2, damping=(0.1, 0.2), **MOTION_ONLY).make("train", 0)
    assert (np.diff(energy(damped)) < 0).all()
    assert len(set(damped["joint_damping"][0])) == 2
    # The power of damping is Σ d v²; Simpson's rule over pairs of frames.
    power = (damped["joint_damping"] * damped["v"] ** 2).sum(1)
    work = (power[:-2:2] + 4 * power[1:-1:2] + power[2::2]) / 90
    lost = -np.diff(energy(damped)[::2])
    np.testing.assert_allclose(work, lost[: len(work)], rtol=0.05, atol=0.05 * work.max())


def test_the_gray_pendulum_has_damping_of_each_hinge():
    recipe = PendulumRecipe(lengths=(1.0, 1.0), damping=(0.0, 3.0), frames=60, size=4, samples=1)
    trial = recipe.make("train", 0)
    assert (trial["joint_damping"] == [0.0, 3.0]).all()
    alone = PendulumRecipe(lengths=(1.0, 1.0), damping=0.0, frames=60, size=4, samples=1).make("train", 0)
    assert np.abs(trial["v"][-20:, 1]).max() < 0.5 * np.abs(alone["v"][-20:, 1]).max()
    for damping, match in (((1.0,), "one for each of 2 hinges"), ((0.0, -1.0), r"damping\[1\]")):
        with pytest.raises(InputError, match=match):
            PendulumRecipe(lengths=(1.0, 1.0), damping=damping)


@pytest.mark.parametrize("number", range(3))
def test_masks_are_what_the_ray_caster_sees_at_the_stored_pose(number):
    recipe = SwingRecipe(frames=6, links=3, size=96)
    trial = recipe.make("train", number)
    lengths, half_width = trial["length"][0], float(trial["half_width"][0])
    for frame in (0, 5):
        camera = Camera(
            torch.tensor(recipe.frame_format.intrinsics, dtype=torch.float64),
            torch.from_numpy(trial["extrinsics"][frame]),
            recipe.size,
            recipe.size,
        )
        angles = np.cumsum(trial["q"][frame])
        ends = np.concatenate(
            [np.zeros((1, 2)), np.cumsum(lengths[:, None] * np.stack([-np.sin(angles), np.cos(angles)], 1), 0)]
        )
        for link, length in enumerate(lengths):
            x, y = (ends[link + 1] - ends[link]) / length
            pose = torch.eye(4, dtype=torch.float64)
            # The capsule's axis is its z axis.
            pose[:3, 2], pose[:3, 1] = torch.tensor([x, y, 0.0]), torch.tensor([0.0, 0.0, 1.0])
            pose[:3, 0] = torch.linalg.cross(pose[:3, 1], pose[:3, 2])
            pose[:2, 3] = torch.from_numpy(0.5 * (ends[link] + ends[link + 1]))
            gray = RayCaster(camera, [Capsule(half_width, float(length))])(pose[None, None])[0, 0].numpy()
            observed = gray > 0.5 * gray.max()
            mask = trial["masks"][frame] == link + 1
            later = trial["masks"][frame] > link + 1
            # Hinges are a little wider than links.
            assert (observed & ~mask & ~later).sum() <= 0.08 * observed.sum()
            assert (mask & ~observed).sum() <= 0.2 * observed.sum()


@pytest.mark.parametrize("number", range(3))
def test_light_lies_where_masks_say(number):
    """White links on black without blur: pixels that are lit by half are those of the masks."""
    recipe = SwingRecipe(frames=4, links=2, size=64)
    random = np.random.default_rng(number)
    lengths = np.array([0.7, 0.9])
    looks = recipe._looks(lengths, 0.15, np.arange(4) / 30, random)
    lighting = {**vars(looks.lighting), "ambient": 1.0, "gloss": 0.0, "shadow": 0.0, "flicker": 0.0, "spot": 0.0}
    changes = {
        "surface": np.zeros_like(looks.surface),
        "lighting": type(looks.lighting)(**{**lighting, "gradient": np.zeros(2, np.float32)}),
        "textures": [np.ones((4, 8, 3), np.float32)] * 2,
        "hinges": np.ones((2, 3)),
        "sensor": Sensor(0.0, None),
    }
    points = link_points(random.uniform(-2.0, 2.0, (4, 2)), lengths)
    renderer = SwingRenderer(type(looks)(**{**vars(looks), **changes}), 64, 64, points[:, None].repeat(len(MOMENTS), 1))
    lit = renderer.frames(np.arange(4) / 30, random).max(-1)
    masks = renderer.masks(points) > 0
    # The pins of the hinges are dark.
    edge = (lit > 100) & (lit < 250)
    assert ((lit > 127) ^ masks)[~edge].sum() <= 0.05 * masks.sum()
    assert abs((lit / 255.0).sum() - masks.sum()) < 0.1 * masks.sum()


def test_angles_between_steps_lie_on_the_motion():
    recipe = SwingRecipe(frames=3, links=2, **MOTION_ONLY)
    step, grid = 1 / 600, np.arange(60) / 600
    q, v = (np.stack([function(grid), function(2 * grid)], 1) for function in (np.sin, np.cos))
    v[:, 1] *= 2
    times = np.array([[0.0, 0.25 * step], [0.01, 0.0123]])
    expected = np.stack([np.sin(times + 10 * step), np.sin(2 * (times + 10 * step))], -1)
    np.testing.assert_allclose(recipe._interpolate(q, v, times), expected, atol=1e-11)


def test_samples_carry_lengths_poses_and_masks(tmp_path):
    recipe = SwingRecipe(trials=10, frames=14, size=32)
    out = generate(recipe, tmp_path / "swing", workers=1, progress=False)
    batch = Windows(Dataset(out), WindowShape(3, 10), masks=True).__getitems__([0, 3, 5])
    for row, trial in enumerate(batch.trial.tolist()):
        result = recipe.make("train", trial)
        for name in ("length", "mass", "joint_damping", "gravity", "half_width"):
            np.testing.assert_allclose(batch.properties[name][row], result[name][0], rtol=1e-6)
    assert batch.masks.unique().tolist() == [0, 1, 2]
    assert batch.extrinsics.shape == (3, 13, 4, 4)


def test_marks_follow_the_links():
    recipe = SwingRecipe(frames=3)
    trial = recipe.make("train", 3)
    (line,) = recipe.marks({name: trial[name][2] for name in recipe.fields})
    for (x0, y0), (x1, y1) in zip(line.points[:-1], line.points[1:], strict=True):
        assert trial["masks"][2][int(0.5 * (y0 + y1)), int(0.5 * (x0 + x1))] > 0


def test_trials_differ_within_their_ranges():
    recipe = SwingRecipe(frames=1, **MOTION_ONLY)
    trials = [recipe.make("train", number) for number in range(40)]
    for name, low, high in (("length", 0.6, 1.0), ("mass", 0.5, 2.0), ("joint_damping", 0.0, 0.1)):
        values = np.stack([trial[name][0] for trial in trials])
        assert low <= values.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < values.max() <= high
    angles = np.stack([trial["q"][0] for trial in trials])
    assert 1.0 < np.abs(angles).max() < math.pi


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"links": 4}, "links: expected 1 to 3, got 4"),
        ({"substeps": 3}, "an even number"),
        ({"lengths": (0.0, 1.0)}, r"lengths\[0\]"),
        ({"damping": (-1.0, 1.0)}, r"damping\[0\]"),
        ({"half_width": (0.2, 0.1)}, r"half_width\[1\]"),
    ],
)
def test_bad_recipes_raise(values, match):
    with pytest.raises(InputError, match=match):
        SwingRecipe(**values)
