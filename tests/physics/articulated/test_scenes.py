"""Scenes by name: each loads, and starts as it is meant to stand."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch

from physvision import State
from physvision.core import FileError
from physvision.physics.articulated import scenes

GENERAL = {"gripper": [pytest.mark.extended]}  # its shapes meet by the general pair, which is compiled on demand


@pytest.mark.parametrize("name", [pytest.param(name, marks=GENERAL.get(name, [])) for name in scenes.names()])
def test_a_scene_starts_without_overlap(name):
    engine = scenes.load(name, dt=1e-3)
    status = engine.rollout(engine.initial_state(dtype=torch.float64), 2).status
    assert bool(status.converged.all())
    assert float(status.penetration.max()) < 1e-6


def test_a_scene_that_is_not_there_is_named():
    with pytest.raises(FileError, match=r"ball.*'rocket'"):
        scenes.load("rocket")


def test_ten_quadrupeds_move_as_one_alone():
    ten, single, steps = scenes.load("ten_quadrupeds"), scenes.load("quadruped"), 50
    targets = 0.2 * torch.randn(1, steps, single.nu, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    alone = single.rollout(single.initial_state(dtype=torch.float64), steps, targets).final
    final = ten.rollout(ten.initial_state(dtype=torch.float64), steps, targets.repeat(1, 1, 10)).final
    separation = final.q.reshape(10, -1) - alone.q
    assert float(separation[:, 2:].abs().max()) < 1e-9
    assert separation[[0, 9], :2].round(decimals=9).tolist() == [[0.0, -2.0], [-1.5, 2.0]]


def test_the_racecar_weighs_what_the_paper_says():
    assert float(scenes.load("racecar").properties.mass.sum()) == pytest.approx(5.89, abs=1e-9)


def test_the_ball_bounces_to_a_quarter_of_its_height():
    engine = scenes.load("ball", dt=1e-3)
    start = engine.initial_state(dtype=torch.float64)
    start.q[:, 2] += 1.0
    height = engine.rollout(start, 1000).q[0, 460:, 2].max() - 0.5
    # It is highest at most half a step from a sampled moment.
    assert float(height) == pytest.approx(0.25, abs=9.81 * 5e-4**2)


@pytest.mark.extended
def test_fingers_that_press_on_the_ground_and_on_a_ball_are_held():
    """What each of eight corners of two fingers bears is not determined; of some orders Newton's steps go round."""
    engine = scenes.load("gripper", dt=2e-3)
    q = [-0.010000000000000014, 0.02222588107567634, 0.017774118813733395]
    q += [0.0022258810756763257, 0.0, 0.030000139114340577, 0.9998478511154596, 0.0, 0.01744346925923073, 0.0]
    v = [0.0, -9.97e-17, 3.693287726548255e-08, 7.7e-16, 0.0, -4.5013673360084e-05, 0.0, 2.64e-14, 0.0]
    generator = torch.Generator().manual_seed(0)
    around = torch.tensor([-0.12379365866894185, 0.05498989955815162, 0.02144193370490817], dtype=torch.float64)
    targets = around + 0.01 * torch.randn(4000, 1, 3, generator=generator, dtype=torch.float64)
    start = State(*(torch.tensor([entry], dtype=torch.float64).expand(4000, -1).clone() for entry in (q, v)))
    status = engine.rollout(start, 3, targets.expand(-1, 3, -1).contiguous()).status
    assert bool(status.converged.all())
    assert float(status.residual.max()) < 1e-11
