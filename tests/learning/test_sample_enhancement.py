"""Augmented transitions by the engine's gradients, against its own steps."""

import pytest
import torch
from learning.transitions import random_transitions
from torch.nn.functional import normalize

from physvision import State
from physvision.envs import ENVIRONMENTS
from physvision.learning.off_policy import OffPolicyAgent, OffPolicySettings
from physvision.learning.sample_enhancement import (
    SampleEnhancement,
    SampleEnhancementSettings,
    augmented_transitions,
    has_contact_change,
    step_jacobians,
)


def true_step(env, rows):
    """Next observation and reward by the engine."""
    result = env.step(State(rows["q"], rows["v"]), rows["action"].double() * torch.tensor(env.action_limit))
    return torch.cat([env.observe(result.state, rows["elapsed_steps"] + 1), result.reward[:, None]], 1)


@pytest.mark.parametrize("randomized", ["action", "velocity", "both"])
@pytest.mark.parametrize("name", ["Links2", "Ant"])
def test_neighbors_of_a_step_are_steps_to_first_order(name, randomized):
    """The error falls with the square of the difference, so that each derivative is right."""
    if name == "Ant":
        pytest.importorskip("gymnasium")
    env, action_limit, rows = random_transitions(name, 6, 2)
    rows = {key: value.double() if value.is_floating_point() else value for key, value in rows.items()}
    rows["terminated"] = torch.zeros(6)
    end, jacobian, valid = step_jacobians(env, rows)
    assert valid.all()
    selected = 2 * torch.rand(6, env.engine.nv + len(action_limit), generator=torch.Generator().manual_seed(1)) - 1
    dv, da = selected.double().split([env.engine.nv, len(action_limit)], 1)
    dv, da = (0 if randomized == "action" else 1) * dv, (0 if randomized == "velocity" else 1) * da
    # Of the ant only as far as no contact comes or goes, at which the first order ends.
    sizes = (0.1, 0.05) if name == "Links2" else (4e-3, 2e-3)
    errors = []
    for size in sizes:
        neighbors = rows | augmented_transitions(env, rows, end, jacobian, size * dv, size * da)
        torch.testing.assert_close(
            neighbors["obs"], env.observe(State(neighbors["q"], neighbors["v"]), rows["elapsed_steps"])
        )
        assert torch.equal(neighbors["q"], rows["q"])
        predicted = torch.cat([neighbors["next_obs"], neighbors["reward"][:, None]], 1)
        errors.append((true_step(env, neighbors) - predicted).norm(dim=1))
        assert float(errors[-1].max()) < 0.1 * float((predicted - true_step(env, rows)).norm(dim=1).max())
    if (name, randomized) == ("Links2", "action"):
        assert float(errors[0].max()) < 1e-12  # where a single step ends is linear in the torques
    else:
        assert float((errors[0] / errors[1]).median()) == pytest.approx(4, rel=0.1)


def random_play(settings, steps=48):
    """A replay buffer of random play, and the Jacobians of its steps."""
    env = ENVIRONMENTS["Links2"]()
    learner = OffPolicyAgent(env, OffPolicySettings(num_envs=3, learning_starts=steps, buffer_size=steps), seed=0)
    neighbors = SampleEnhancement(env, settings, steps)
    while learner.env_steps < steps:
        neighbors.add(int((~learner.collect().failed).sum()))
    return learner.replay_buffer, neighbors


def test_nine_of_ten_rows_are_neighbors_drawn_anew():
    buffer, neighbors = random_play(SampleEnhancementSettings(9, action_range=0.2, velocity_range=0.1))
    assert neighbors.compute_jacobians(buffer)[:2] == (0, 0)
    assert neighbors.compute_jacobians(buffer)[:2] == (0, 0)
    generator, indices = torch.Generator().manual_seed(0), torch.arange(buffer.size).repeat(40)
    rows = buffer.gather(indices)
    obs, second = (neighbors.augment(rows, indices, generator) for _ in range(2))
    moved = (obs["v"] != rows["v"]).any(1)
    # Of a binomial draw, within five deviations.
    assert abs(int(moved.sum()) - 0.9 * len(rows["v"])) < 5 * (len(rows["v"]) * 0.09) ** 0.5
    for name, value in rows.items():
        torch.testing.assert_close(obs[name][~moved], value[~moved])
    assert not torch.equal(obs["next_obs"], second["next_obs"])
    assert float((obs["action"] - rows["action"]).abs().max()) <= 0.2 + 1e-6
    assert float(((obs["v"] - rows["v"]) / buffer.contents()["v"].std(0)).abs().max()) == pytest.approx(0.1, rel=0.1)
    wrong = (true_step(neighbors.env, obs)[:, :-1] - obs["next_obs"]).norm(dim=1)
    assert float(wrong.median()) < 0.1 * float((obs["next_obs"] - rows["next_obs"]).norm(dim=1).median())


def test_the_derivatives_of_a_number_are_shortened():
    buffer, whole = random_play(SampleEnhancementSettings(9, max_jacobian_norm=1e9))
    whole.compute_jacobians(buffer)
    less = random_play(SampleEnhancementSettings(9, max_jacobian_norm=1.5, jacobian_batch=7))[1]
    less.compute_jacobians(buffer)
    long, short = (entry.jacobian_buffer.contents()["jacobian"].unflatten(1, (4, 4)) for entry in (whole, less))
    # Of two positions and two velocities, by two velocities and two actions.
    causes = torch.cat([whole.velocity_std, torch.ones(2)])
    units = torch.cat([whole.velocity_std / 60, whole.velocity_std])[:, None]
    norm = (long * causes / units).norm(dim=2)
    assert 1.0 < float(norm.median()) < 1.5 < float(norm.max())
    torch.testing.assert_close((short * causes / units).norm(dim=2), norm.clamp_max(1.5), rtol=1e-5, atol=0)
    # Shortened, not turned.
    torch.testing.assert_close(*(normalize(entry, dim=2) for entry in (long, short)))


def test_steps_without_derivatives_stay(monkeypatch):
    buffer, neighbors = random_play(SampleEnhancementSettings(9, drop_contact_changes=True))
    indices = torch.arange(48)

    def some(env, rows):
        end, jacobian, valid = step_jacobians(env, rows)
        return end, torch.where(indices[:, None, None] < 20, float("nan"), jacobian), valid & (indices >= 20)

    monkeypatch.setattr("physvision.learning.sample_enhancement.step_jacobians", some)
    changed = (indices >= 20) & (indices < 30)
    monkeypatch.setattr("physvision.learning.sample_enhancement.has_contact_change", lambda env, rows: changed)
    assert neighbors.compute_jacobians(buffer)[:2] == (20, 10)
    rows = buffer.gather(indices)
    result = neighbors.augment(rows, indices, torch.Generator().manual_seed(0))
    for name in ("v", "action", "next_obs", "reward"):
        torch.testing.assert_close(result[name][:30], rows[name][:30])
    assert (result["v"][30:] != rows["v"][30:]).any(1).sum() > 10


def test_steps_in_which_a_contact_changes_are_flagged():
    pytest.importorskip("gymnasium")
    env, _, rows = random_transitions("Ant", 4, 1)
    start = State(rows["q"], rows["v"])
    # High in the air nothing touches at either end; in a fall of 0.05 s from just above the ground a foot comes to.
    high_up = rows | {"q": start.q + torch.tensor([0.0, 0.0, 1.0] + [0.0] * 12), "action": torch.zeros(4, 8)}
    assert not has_contact_change(env, high_up).any()
    still = torch.zeros(4, 8, dtype=torch.float64)
    state, touched = start, env.contact_flags(start)
    for _ in range(12):
        retained = rows | {"q": state.q, "v": state.v, "action": torch.zeros(4, 8)}
        state = env.step(state, still).state
        now = env.contact_flags(state)
        assert torch.equal(has_contact_change(env, retained), (now != touched).any(1))
        touched = now
    assert touched.any(1).all()
