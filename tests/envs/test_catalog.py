"""Links and the ant: their laws, what is seen and paid, and worlds that fail among others that do not."""

# pyright: reportAttributeAccessIssue=false

import math
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from physvision import State
from physvision.envs import ENVIRONMENTS, VectorEnv


def worlds(name, count, seed=0):
    return VectorEnv(ENVIRONMENTS[name](), count, torch.Generator().manual_seed(seed))


def test_a_link_without_a_motor_falls_as_a_pendulum():
    """Of 1.01 kg at the end of 0.5 m: its speed at the bottom is that of a fall by 0.5 m, as far as the step allows."""
    alone = worlds("Links1", 1)
    fastest = 0.0
    for _ in range(40):
        alone.step(torch.zeros(1, 1))
        fastest = max(fastest, abs(float(alone.state.v)))
    # Semi-implicit Euler keeps an energy that is off by O(dt) of its own size.
    assert fastest == pytest.approx(math.sqrt(2 * 9.8 * 0.5) / 0.5, rel=1 / 60 * math.sqrt(9.8 / 0.5))


def test_links_move_as_in_mujoco():
    """Its explicit steps with the mass matrix at the start of the step are the same as ours."""
    count = 3
    text = ""
    for k in reversed(range(count)):
        mass = (1.0 if k == 0 else 2.16) + (0.01 if k == count - 1 else 0.0)
        inertial = f'<inertial pos="0 .5 0" mass="{mass}" diaginertia="1e-9 1e-9 1e-9"/>'
        text = f'<body pos="0 {0.5 if k else 0} 0"><joint axis="1 0 0"/>{inertial}{text}</body>'
    option = (
        '<option timestep="0.016666666666666666" integrator="Euler" gravity="0 0 -9.8"/><compiler autolimits="true"/>'
    )
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{text}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    ours = worlds("Links3", 1)
    torque = torch.tensor([[10.0, -4.0, 2.0]], dtype=torch.float64)
    for _ in range(20):
        ours.step(torque)
        data.qfrc_applied[:] = torque[0].numpy()
        mujoco.mj_step(model, data)
    torch.testing.assert_close(ours.state.q[0], torch.tensor(data.qpos), rtol=1e-9, atol=1e-9)


def test_rewards_of_links_add_up_to_how_much_nearer_the_tip_is():
    many = worlds("Links2", 4)
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros(4, dtype=torch.float64)
    for step in range(100):
        moves = many.step(10 * (2 * torch.rand(4, 2, generator=generator, dtype=torch.float64) - 1))
        total += moves.reward
        assert bool(moves.truncated.all()) == (step == 99)
        assert bool(many.env.is_terminal(moves.next_obs).all()) == (step == 99)
    angles = many.state.q.cumsum(1)
    ahead, up = 0.5 * angles.cos().sum(1), 0.5 * angles.sin().sum(1)
    torch.testing.assert_close(total, 0.5 * 2**2 - ahead.square() - (up - 1).square())
    torch.testing.assert_close(moves.next_obs[:, 2 + 1], ahead)
    assert float(total.max()) < 0.5 * 2**2


def test_links_that_turn_by_more_than_half_a_turn_in_a_step_have_failed():
    many = worlds("Links2", 3)
    many.state = State(many.state.q, torch.tensor([[100.0, 0.0], [400.0, 0.0], [0.0, -400.0]], dtype=torch.float64))
    moves = many.step(torch.zeros(3, 2))
    assert moves.failed.tolist() == moves.terminated.tolist() == [False, True, True]
    assert moves.reward[1:].tolist() == [0.0, 0.0]
    assert many.failures == 2


def test_a_world_that_fails_is_started_anew_and_counted_and_no_other_is_touched():
    many, alone = worlds("Links2", 3), worlds("Links2", 1)
    many.state.v[1, 0] = float("nan")
    with pytest.warns(RuntimeWarning, match="1 of 3 worlds failed"):
        moves = many.step(torch.full((3, 2), 5.0))
    expected = alone.step(torch.full((1, 2), 5.0))
    assert moves.failed.tolist() == moves.terminated.tolist() == [False, True, False]
    assert many.failures == 1
    assert moves.reward[1] == 0
    for k in (0, 2):
        assert torch.equal(moves.next_obs[k], expected.next_obs[0])
    many.reset(moves.terminated)
    assert many.elapsed_steps.tolist() == [1, 0, 1]
    assert many.observations().isfinite().all()


def test_the_ant_stands_and_falls_and_is_observed_as_documented():
    pytest.importorskip("gymnasium")
    many = worlds("Ant", 3, seed=3)
    assert many.observations().shape == (3, 27)
    still = torch.zeros(3, 8, dtype=torch.float64)
    for _ in range(40):
        moves = many.step(still)
        assert not moves.failed.any()
    assert not moves.terminated.any()
    # At rest: no way along x is paid for, so that what is left is the one for being alive.
    torch.testing.assert_close(moves.reward, torch.ones(3).double(), rtol=0, atol=0.05)
    state = many.state
    action_limit = State(state.q + torch.tensor([0.0, 0.0, 1.0] + [0.0] * 12), state.v)
    assert many.env.step(action_limit, still).terminated.all()
    pushed = many.env.step(many.state, torch.ones(3, 8, dtype=torch.float64)).reward
    assert (pushed < 0).all()  # all motors at full power cost 4


@pytest.mark.extended
def test_the_compliant_ant_is_mujocos():
    """Under random controls of full power, which drive the legs against their stops and the ground, for a second.

    A step of theirs and of ours differs by some 1e-6, for they turn quaternions otherwise between Runge–Kutta's stages.
    """
    gymnasium = pytest.importorskip("gymnasium")
    model = mujoco.MjModel.from_xml_path(f"{Path(gymnasium.__file__).parent}/envs/mujoco/assets/ant.xml")
    model.opt.jacobian, model.opt.tolerance = mujoco.mjtJacobian.mjJAC_DENSE, 0.0
    env, generator, count = ENVIRONMENTS["CompliantAnt"](), torch.Generator().manual_seed(0), 8
    start = env.reset(count, generator)
    start.q[:, 2] -= 0.2  # some begin in the ground, to be pushed out
    controls = 2 * torch.rand(count, 20, 8, generator=generator, dtype=torch.float64) - 1
    states, data = [start], mujoco.MjData(model)
    for control in controls.unbind(1):
        states.append(env.step(states[-1], control).state)
    touched, off = 0, []
    for world in range(count):
        for before, after, control in zip(states[:-1], states[1:], controls[world], strict=True):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = before.q[world].numpy(), before.v[world].numpy()
            data.ctrl[:] = control.numpy()
            mujoco.mj_step(model, data, 5)
            touched += data.nefc > 0
            off.append(float((after.v[world] - torch.from_numpy(data.qvel)).abs().max()))
    print(f"{touched} of {len(off)} touch; off by {np.quantile(off, (0.5, 0.9, 1.0))} rad/s or m/s")
    assert touched > 100
    assert np.median(off) < 1e-3
    assert np.quantile(off, 0.9) < 2e-2


def test_an_environment_that_is_aware_of_time_ends_at_its_limit():
    plain = ENVIRONMENTS["Pendulum"]()
    aware = replace(plain, time_aware=True, max_episode_steps=4)
    start = aware.reset(2, torch.Generator().manual_seed(0))
    obs = aware.observe(start, torch.tensor([1, 4]))
    assert torch.equal(obs[:, :-1], plain.observe(start, torch.tensor([1, 4])))
    assert obs[:, -1].tolist() == [0.25, 1.0]
    assert aware.is_terminal(obs).tolist() == [False, True]
    assert not plain.is_terminal(obs[:, :-1]).any()
