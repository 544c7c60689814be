"""Games as gymnasium's environments, by its own checker; gradients through a env's steps; what is missing."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

import physvision.envs  # noqa: E402
from physvision import State  # noqa: E402
from physvision.core import InputError, MissingError  # noqa: E402
from physvision.envs import ENVIRONMENTS, require_package  # noqa: E402
from physvision.envs.gymnasium_env import GymnasiumEnv, GymnasiumVectorEnv  # noqa: E402


# Links start at the same place whatever the seed, which the checker does not allow.
@pytest.mark.parametrize("name", [*list(ENVIRONMENTS)[:4], pytest.param("Ant", marks=pytest.mark.extended)])
def test_gymnasiums_checker_passes(name):
    check_env(gymnasium.make(f"physvision/{name}-v0").unwrapped, skip_render_check=True)


@pytest.mark.filterwarnings("ignore:render_mode 'human'")
@pytest.mark.parametrize("name", ["CartPole", pytest.param("Ant", marks=pytest.mark.extended)])
def test_gymnasiums_checker_passes_with_rendering(name):
    check_env(gymnasium.make(f"physvision/{name}-v0", render_mode="rgb_array").unwrapped)


def test_a_frame_shows_the_cart_where_it_is():
    """The cart moves by a tenth of the picture's width as often as the camera says."""
    env = GymnasiumEnv("CartPole", "rgb_array")
    env.reset(seed=0)
    env._vector_env.worlds.state.q[:] = 0.0
    first = env.render().astype(int)
    assert first.shape == (480, 640, 3)
    env._vector_env.worlds.state.q[0, 0] = 0.2
    second = env.render().astype(int)
    changed = np.abs(second - first).sum(2) > 90
    columns = np.flatnonzero(changed.any(0))
    assert changed.mean() > 0.002
    assert columns.max() - columns.min() > 30


def test_every_environment_has_something_to_show():
    """Mechanisms without shapes are drawn as rods, and no picture is of one color."""
    for name in ("Pendulum", "Links2", "Acrobot"):
        env = GymnasiumEnv(name, "rgb_array")
        env.reset(seed=0)
        frame = env.render().astype(int)
        colorful = np.ptp(frame, axis=2) > 60
        assert colorful.mean() > 0.002, name
    vector = gymnasium.make_vec("physvision/CartPole-v0", 2, "vector_entry_point", render_mode="rgb_array")
    vector.reset(seed=0)
    assert [frame.shape for frame in vector.render()] == [(480, 640, 3)] * 2
    with pytest.raises(InputError, match="render_mode"):
        GymnasiumEnv("Pendulum", "ansi")


def test_stable_baselines_records_a_film(tmp_path):
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    pytest.importorskip("moviepy")
    envs = vec_env.DummyVecEnv([lambda: gymnasium.make("physvision/CartPole-v0", render_mode="rgb_array")])
    recorder = vec_env.VecVideoRecorder(envs, str(tmp_path), lambda step: step == 0, video_length=3)
    recorder.reset()
    for _ in range(4):
        recorder.step(np.zeros((1, 1)))
    recorder.close()
    assert list(tmp_path.glob("*.mp4"))


@pytest.mark.parametrize("name", ["CartPole", "Links2"])
def test_stable_baselines_take_a_game_as_it_is(name):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env = gymnasium.make(f"physvision/{name}-v0")
    checker.check_env(env.unwrapped, warn=True, skip_render_check=True)
    learner = sys.modules["stable_baselines3"].PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1)
    learner.learn(16)
    assert learner.num_timesteps == 16


def test_worlds_of_a_vector_are_those_of_one_environment():
    many = gymnasium.make_vec("physvision/CartPole-v0", num_envs=3, vectorization_mode="vector_entry_point")
    obs, _ = many.reset(seed=4)
    single = GymnasiumEnv("CartPole")
    single.reset(seed=0)
    actions = np.array([[0.5], [-1.0], [0.2]], np.float32)
    start = many.unwrapped.worlds.state
    after, reward, *_ = many.step(actions)
    for k in range(3):
        single._vector_env.worlds.state = State(start.q[k : k + 1], start.v[k : k + 1])
        alone, alone_reward, *_ = single.step(actions[k])
        np.testing.assert_array_equal(after[k], alone)
        assert reward[k] == alone_reward
    assert obs.shape == (3, 5)


def short(max_episode_steps):
    env = ENVIRONMENTS["CartPole"]()
    return replace(env, max_episode_steps=max_episode_steps, frame_skip=1, termination=lambda obs: obs[:, 0] > 0.5)


def test_a_world_that_ended_starts_anew_with_the_step_after():
    worlds = GymnasiumVectorEnv(short(3), 2)
    worlds.reset(seed=1)
    worlds.worlds.state.q[0, 0] = 0.6
    still = np.zeros((2, 1))
    _, _, terminated, truncated, _ = worlds.step(still)
    assert terminated.tolist() == [True, False]
    obs, reward, terminated, truncated, _ = worlds.step(still)
    assert abs(obs[0, 0]) < 0.5
    assert reward[0] == 0
    assert not terminated.any()
    assert not truncated.any()
    *_, truncated, _ = worlds.step(still)
    assert truncated.tolist() == [False, True]


def test_a_world_that_fails_ends_and_is_told():
    environment = GymnasiumEnv("DoublePendulum")
    environment.reset(seed=0)
    environment._vector_env.worlds.state.v[0, 0] = 1e200
    with pytest.warns(RuntimeWarning, match="worlds failed"):
        obs, reward, terminated, _, info = environment.step([0.0, 0.0])
    assert terminated
    assert info["failed"]
    assert np.isfinite(reward)
    assert np.isfinite(obs).all()
    with pytest.raises(InputError, match="expected finite numbers"):
        environment.step([np.nan, 0.0])
    with pytest.raises(InputError, match="reset"):
        GymnasiumEnv("Pendulum").step([0.0])


def test_a_step_has_the_gradient_of_finite_differences():
    env = ENVIRONMENTS["CartPole"]()
    start = env.reset(2, torch.Generator().manual_seed(0))
    control = torch.tensor([[3.0], [-2.0]]).double().requires_grad_()

    def total(u):
        return env.step(env.step(start, u).state, u).reward

    assert torch.autograd.gradcheck(total, control, eps=1e-5, atol=1e-8)


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(MissingError, match=r'pip install "physvision\[atari\]"'):
        require_package("ale_py", "atari")
    assert physvision.envs.require_package("math", "none") is math
