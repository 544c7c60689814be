"""A film shows the motion that it is given, in real time and within its picture."""

import numpy as np
import pytest
import torch

from physvision import video
from physvision.core import Coordinates, InputError, State
from physvision.models import NetworkEngine, StatePerceptron
from physvision.physics import articulated, rigid2d
from physvision.report import Canvas, Mark, Panel, render_video


def test_a_ball_is_filmed_where_it_falls(tmp_path):
    ball = rigid2d.Circle(0.5, (0.0, 0.0), color=(1.0, 0.0, 0.0))
    world = rigid2d.World([ball], gravity=(0, -2.0), dt=1 / 100)
    trajectory = world.rollout(world.initial_state(), 100)
    clip = video.read(render_video(world, trajectory, tmp_path / "new" / "fall.mp4"))
    # A hundred steps a second are shown at fifty frames.
    assert clip.fps == pytest.approx(50, rel=1e-3)
    assert len(clip) == 51
    red = (clip.frames[..., 0].double() - clip.frames[..., 1].double()).clamp_min(0).numpy()
    rows = np.arange(clip.height) + 0.5
    heights = (red.sum(2) * rows).sum(1) / red.sum((1, 2))
    # One meter down in a second, from rest: the picture is as tall as the ball's way and size, 2 m, takes nine tenths.
    scale = 0.9 * clip.height / 2.0
    np.testing.assert_allclose((heights - heights[0]) / scale, clip.times.numpy() ** 2, atol=0.01)


def test_everything_that_moves_stays_in_the_picture(tmp_path):
    chain = articulated.chain([1.0, 1.0], dt=0.05)
    trajectory = chain.rollout(State(torch.tensor([[2.0, 1.0]]), torch.zeros(1, 2)), 60)
    frames = video.read(render_video(chain, trajectory, tmp_path / "swing.mp4")).images()
    # The links have colors, the ground and the sky nearly none.
    colorful = frames[:, 0] - frames[:, 2] > 0.2
    edge = torch.cat([colorful[..., 0, :], colorful[..., -1, :], colorful[..., 0], colorful[..., -1]], -1)
    assert not edge.any()
    assert float(colorful.double().mean((1, 2)).min()) > 1e-3


def test_what_stands_still_is_seen_and_not_the_ground_alone(tmp_path):
    ground = '<geom type="plane" size="50 50 1" rgba="0 0 1 1"/>'
    ball = '<body pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" rgba="1 0 0 1"/></body>'
    engine = articulated.load(f"<mujoco><worldbody>{ground}{ball}</worldbody></mujoco>", dt=0.05)
    frames = video.read(
        render_video(engine, engine.rollout(engine.initial_state(), 2), tmp_path / "still.mp4")
    ).images()
    red = frames[:, 0] - frames[:, 2]
    assert float((red > 0.3).double().mean((1, 2)).min()) > 0.1


def test_what_cannot_be_filmed(tmp_path):
    world = rigid2d.World([rigid2d.Circle(0.5, (0.0, 0.0))], dt=0.1)
    trajectory = world.rollout(world.initial_state(), 2)
    with pytest.raises(InputError, match="world: expected a number below 1, got 3"):
        render_video(world, trajectory, tmp_path / "a.mp4", world=3)
    with pytest.raises(InputError, match="has no bodies to render"):
        render_video(NetworkEngine(StatePerceptron(Coordinates(3)), 0.1), trajectory, tmp_path / "a.mp4")


def test_marks_lie_where_the_picture_has_the_thing():
    picture = np.zeros((40, 60, 3), np.uint8)
    ring = Mark((255, 0, 0), np.array([[30.0, 20.0]]), radius=10.0)
    path = Mark((0, 255, 0), path=np.array([[0.0, 5.0], [60.0, 5.0]]))
    canvas = Canvas((60, 40), ["one", "two"], 30, side=600)
    rendered = canvas.draw([Panel(picture, [ring, path]), "nothing yet"], 0.5)
    red = np.argwhere(rendered[..., 0].astype(int) - rendered[..., 1] > 150)
    corner = np.array([34, 16])
    np.testing.assert_allclose(red.mean(0) - corner, [200, 300], atol=1)
    np.testing.assert_allclose(np.linalg.norm(red - corner - [200, 300], axis=1), 100, atol=3)
    green = np.argwhere(rendered[..., 1].astype(int) - rendered[..., 0] > 100)
    assert np.abs(green[:, 0] - corner[0] - 50).max() <= 2


def test_dots_fade_and_a_dimmed_outline_is_thinner():
    picture = np.zeros((40, 60, 3), np.uint8)
    canvas = Canvas((60, 40), ["one"], 30, side=600)
    steps = np.array([[10.0, 10.0], [30.0, 10.0], [50.0, 10.0]])
    rendered = canvas.draw([Panel(picture, [Mark((255, 0, 0), dots=steps)])], 0.0)
    red = rendered[34:, 16:, 0].astype(int) - rendered[34:, 16:, 1]
    shown = [int(red[80:120, 10 * round(x) - 20 : 10 * round(x) + 20].clip(0).sum()) for x, _ in steps]
    assert shown[0] > shown[1] > shown[2] > 0
    outline = np.array([[10.0, 30.0], [50.0, 30.0]])
    marks = (Mark((255, 0, 0), outline), Mark((255, 0, 0), outline, dimmed=True))
    rendered = (canvas.draw([Panel(picture, [mark])], 0.0) for mark in marks)
    wide, narrow = (int((frame[..., 0].astype(int) - frame[..., 1] > 60).sum()) for frame in rendered)
    assert narrow < wide
