"""The camera of a film keeps what moves in the picture, from a side that shows the motion."""

import math

import numpy as np
import pytest
import torch

from physvision.core import State
from physvision.physics import articulated
from physvision.rendering import FollowingCamera, Renderer, choose_framing, film_frames
from physvision.rendering.framing import film_views

SIZE = (90, 120)


def load(world):
    return articulated.load(f"<mujoco><worldbody>{world}</worldbody></mujoco>", ignore=("contact",), dt=0.02)


CAR = (
    '<geom type="plane" size="0 0 1"/><body pos="0 0 .3"><freejoint/><geom type="box" size=".3 .2 .1" rgba="1 0 0 1"/>'
    '<body pos=".3 0 0"><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".05"/>'
    "</body></body>"
)


def test_a_body_that_moves_far_stays_in_the_picture_and_keeps_its_size():
    engine = load(CAR)
    start = engine.initial_state(dtype=torch.float64)
    steps = 120
    q = start.q.repeat(steps, 1)
    q[:, 0] = torch.linspace(0, 40, steps).double()
    q[:, 1] = 2 * torch.sin(torch.linspace(0, 6, steps).double())
    frames = list(film_frames(engine, State(q[::15], torch.zeros(8, engine.nv).double()), 0.3, SIZE))
    areas = []
    for frame in frames:
        red = np.argwhere(frame[..., 0].astype(int) - frame[..., 1] > 80)
        assert 0.15 < red.mean(0)[0] / SIZE[0] < 0.85
        assert 0.15 < red.mean(0)[1] / SIZE[1] < 0.85
        areas.append(len(red))
    assert min(areas) > 0.02 * SIZE[0] * SIZE[1]


def test_a_short_motion_is_filmed_at_rest():
    engine = load(CAR)
    framing = choose_framing(Renderer(engine), engine.initial_state(dtype=torch.float64), SIZE)
    paths = np.zeros((50, len(framing.movable), 3))
    paths[:, :, 0] = np.linspace(0, 0.5, 50)[:, None]
    eyes = np.array([view.eye for view in film_views(framing, paths, 0.02)])
    assert np.ptp(eyes, axis=0).max() == 0.0


def test_every_point_of_a_wild_motion_is_projected_into_the_picture():
    engine = load(CAR)
    framing = choose_framing(Renderer(engine), engine.initial_state(dtype=torch.float64), SIZE)
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.normal(0, 0.2, (200, len(framing.movable), 3)), 0)
    for views in (film_views(framing, paths, 0.02), _followed(framing, paths)):
        for view, points in zip(views, paths, strict=True):
            x, y, depth = view.project(points).T
            assert (depth > 0).all()
            assert ((x > 0) & (x < SIZE[1]) & (y > 0) & (y < SIZE[0])).all()


def _followed(framing, paths):
    camera = FollowingCamera(framing)
    return [camera.update(points, 0.02) for points in paths]


@pytest.mark.parametrize(("axis", "azimuth"), [((0, 1, 0), math.radians(-90)), ((1, 0, 0), math.radians(0))])
def test_a_flat_motion_is_looked_at_from_its_side(axis, azimuth):
    rod = '<geom type="capsule" fromto="0 0 0 0 0 -1" size=".05"/>'
    engine = load(f'<body><joint type="hinge" axis="{" ".join(map(str, axis))}"/>{rod}</body>')
    framing = choose_framing(Renderer(engine), engine.initial_state(dtype=torch.float64), SIZE)
    assert abs(math.remainder(framing.azimuth - azimuth, 2 * math.pi)) < 0.4


def test_the_ground_is_below_everything_that_a_film_shows():
    engine = load('<body pos="0 0 5"><freejoint/><geom type="sphere" size=".1" rgba="1 0 0 1"/></body>')
    motion = engine.rollout(engine.initial_state(dtype=torch.float64), 50)
    frames = list(film_frames(engine, State(motion.q[0, ::10], motion.v[0, ::10]), 0.2, SIZE))
    for frame in frames:
        assert (frame[..., 0].astype(int) - frame[..., 1] > 80).any()
    # The sky is above and the ground below.
    assert frames[-1][0].mean(0)[2] > frames[-1][0].mean(0)[0]
