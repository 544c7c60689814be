"""Motions of a table fitted to windows of a clip, against the engine's own motions with known noise."""

from __future__ import annotations

from dataclasses import replace

import torch

from physvision.core import State, Trajectory
from physvision.models import Observation, table, tabletop, tabletop_leaves
from physvision.models.object_order import reordered
from physvision.models.table_motion import TableMotion, TableMotionSettings

FRAMES, WORLDS, NOISE, VELOCITY_NOISE = 24, 8, 0.02, 3.0


def starts(worlds: int, balls: int, seed: int = 0) -> State:
    """Balls at rest distances from each other, at up to 1.5 px a frame."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.tensor([[16.0, 16.0], [48.0, 20.0], [20.0, 46.0], [46.0, 46.0]])[:balls]
    q = torch.zeros(worlds, balls, 3)
    q[..., :2] = places + 6.0 * (torch.rand(worlds, balls, 2, generator=generator) - 0.5)
    v = torch.zeros(worlds, balls, 3)
    v[..., :2] = 90.0 * (torch.rand(worlds, balls, 2, generator=generator) - 0.5)
    return State(q.flatten(1), v.flatten(1))


def observed(path: Trajectory, ends: list[int], seed: int = 1, **changes: object) -> list[Observation]:
    """Windows that end at some frames, with normal errors of position and velocity."""
    generator = torch.Generator().manual_seed(seed)
    plane = (torch.arange(path.q.shape[-1]) % 3 < 2).float()

    def noisy(values: torch.Tensor, std: float) -> torch.Tensor:
        return (values + std * plane * torch.randn(values.shape, generator=generator))[:, None]

    ones = torch.ones(len(path.q), 1, path.q.shape[-1])
    return [
        Observation(
            noisy(path.q[:, end], NOISE),
            noisy(path.v[:, end], VELOCITY_NOISE),
            torch.ones(len(path.q), 1, path.q.shape[-1] // 3),
            position_std=NOISE * ones,
            velocity_std=VELOCITY_NOISE * ones,
            **changes,  # pyright: ignore[reportArgumentType]
        )
        for end in ends
    ]


def plane_error(estimated: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    """Distance of each ball from its true place, or velocity."""
    return (estimated - true).unflatten(-1, (-1, 3))[..., :2].norm(dim=-1)


def test_all_windows_tell_velocities_far_better_than_the_last_one():
    world, settings = table(2), TableMotionSettings(max_frames=FRAMES - 2)
    path = world.rollout(starts(WORLDS, 2), FRAMES - 1)
    ends = settings.ends(FRAMES, 3)
    *earlier, latest = observed(path, ends)
    fitted = TableMotion(world, 2, settings)(latest, earlier, ends, {})
    hits = (path.v[:, ends[0] :].diff(dim=1).abs() > 1.0).any(1).any(1)
    assert int(hits.sum()) > WORLDS // 2, "the windows should see impacts"
    error = plane_error(fitted.velocities[:, 0], path.v[:, -1])
    own = plane_error(latest.velocities[:, 0], path.v[:, -1])
    assert float(error.median()) < 0.1 * float(own.median())
    # Errors of positions over some twenty frames tell velocities to about noise × sqrt(12 / n³) a frame.
    assert float(error.median()) < 3.0 * 30.0 * NOISE * (12.0 / len(ends) ** 3) ** 0.5
    assert float(plane_error(fitted.positions[:, 0], path.q[:, -1]).median()) < NOISE
    inside = (fitted.velocities[:, 0] - path.v[:, -1]).abs() < 1.96 * fitted.velocity_std[:, 0]  # pyright: ignore
    assert float(inside[:, [0, 1, 3, 4]].float().mean()) > 0.8


def test_the_order_of_balls_in_earlier_windows_does_not_matter():
    world, settings = table(3), TableMotionSettings(max_frames=12, step=2)
    path = world.rollout(starts(4, 3), FRAMES - 1)
    ends = settings.ends(FRAMES, 3)
    *earlier, latest = observed(path, ends)
    order = torch.tensor([[2, 0, 1]]).expand(4, -1)
    motion = TableMotion(world, 3, settings)
    shuffled = motion(latest, [reordered(window, order) for window in earlier], ends, {})
    torch.testing.assert_close(shuffled.positions, motion(latest, earlier, ends, {}).positions)


def test_motion_that_the_engine_cannot_explain_keeps_the_state_of_the_last_window():
    world, settings = table(2), TableMotionSettings(max_frames=FRAMES - 2)
    path = world.rollout(starts(4, 2), FRAMES - 1)
    ends = settings.ends(FRAMES, 3)
    *earlier, latest = observed(path, ends)
    # In the first world a ball swings to and fro by itself.
    swings = [
        Observation(
            window.positions + torch.tensor([1.0, 0, 0, 0]).reshape(4, 1, 1) * 2.0 * (-1.0) ** (index // 3),
            window.velocities,
            window.confidence,
            position_std=window.position_std,
            velocity_std=window.velocity_std,
        )
        for index, window in enumerate(earlier)
    ]
    fitted = TableMotion(world, 2, settings)(latest, swings, ends, {})
    torch.testing.assert_close(fitted.velocities[0], latest.velocities[0])
    assert bool((fitted.velocities[1:] != latest.velocities[1:]).any(-1).all())


def test_intervals_grow_where_errors_are_larger_than_they_say():
    world, settings = table(2), TableMotionSettings(max_frames=FRAMES - 2, max_cost=20.0)
    path = world.rollout(starts(WORLDS, 2), FRAMES - 1)
    ends = settings.ends(FRAMES, 3)
    windows = observed(path, ends)
    sure = [replace(window, position_std=0.3 * window.position_std) for window in windows]  # pyright: ignore
    stds = [TableMotion(world, 2, settings)(row[-1], row[:-1], ends, {}).position_std for row in (windows, sure)]
    ratio = (stds[1] / stds[0])[..., [0, 1, 3, 4]]  # pyright: ignore
    # Positions three times as sure say so of the state, but a cost that is too high takes most of it back.
    assert 0.5 < float(ratio.median()) < 1.1


def test_friction_of_the_table_and_restitution_of_walls_follow_from_the_motion():
    world, settings = tabletop(4), TableMotionSettings(max_frames=30)
    start, rows = starts(WORLDS, 4, seed=3), torch.ones(WORLDS)
    walls = torch.tensor([2.0, 2.0, 62.0, 62.0]).expand(WORLDS, -1)
    balls = torch.ones(WORLDS, 4)
    true = {
        "radius": 4.0 * balls,
        "mass": balls,
        "restitution": 0.9 * rows,
        "wall_restitution": torch.linspace(0.7, 0.9, WORLDS),
        "sliding_deceleration": torch.linspace(2.0, 10.0, WORLDS),
        "walls": walls,
    }
    path = world.rollout(start, 31, properties=tabletop_leaves(true))
    means = {
        "radius": 4.0 * balls,
        "mass": balls,
        "restitution": 0.87 * rows,
        "wall_restitution": 0.8 * rows,
        "sliding_deceleration": 6.0 * rows,
    }
    stds = {
        "radius": 0.05 * balls,
        "mass": 0.05 * balls,
        "restitution": 0.04 * rows,
        "wall_restitution": 0.06 * rows,
        "sliding_deceleration": 2.3 * rows,
    }
    present = torch.tensor([1.0, 1.0, 1.0, 0.0]).expand(WORLDS, -1)
    ends = settings.ends(32, 3)
    *earlier, latest = observed(path, ends, properties={**means, "present": present}, property_std=stds)
    fitted = TableMotion(world, 4, settings)(latest, earlier, ends, {"walls": walls})
    assert fitted.properties is not None
    for name in ("sliding_deceleration", "wall_restitution"):
        error = (fitted.properties[name] - true[name]).abs().median()
        assert float(error) < 0.25 * float((means[name] - true[name]).abs().median()), name


def test_an_impact_within_the_first_window_does_not_mislead_the_fit():
    """The first window's slope over three frames still points to the wall that the ball has left."""
    world, settings = table(1), TableMotionSettings(max_frames=FRAMES - 2)
    x = 55.0 + torch.linspace(0.0, 3.0, WORLDS)
    start = State(
        torch.stack([x, torch.full_like(x, 30.0), torch.zeros_like(x)], 1), torch.tensor([[66.0, 9.0, 0.0]] * WORLDS)
    )
    path = world.rollout(start, FRAMES - 1)
    first, *between, latest = observed(path, settings.ends(FRAMES, 3))
    slope = (path.q[:, 2] - path.q[:, 0]) / (2.0 * world.dt)
    misled = (slope[:, 0] > 0.0) & (path.v[:, 2, 0] < 0.0)
    assert int(misled.sum()) >= 2
    first = replace(first, velocities=slope[:, None])
    fitted = TableMotion(world, 1, settings)(latest, [first, *between], settings.ends(FRAMES, 3), {})
    assert float(plane_error(fitted.velocities[:, 0], path.v[:, -1]).max()) < 0.2
