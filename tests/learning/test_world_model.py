"""The learned model of a game."""

import pytest
import torch

from physvision.learning.world_model import WorldModel, WorldModelSettings


def test_a_model_learns_a_noisy_linear_game():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    settings = WorldModelSettings(
        ensemble_size=3, num_elites=2, hidden_sizes=(32, 32), batch_size=128, max_updates=2000, patience=200
    )
    model = WorldModel(2, 1, settings, generator)
    observed, action = torch.randn(1000, 2, generator=generator), torch.randn(1000, 1, generator=generator)
    noise = 0.1 * torch.randn(1000, 2, generator=generator)
    after = observed + torch.cat([action, -observed[:, :1]], 1) + noise
    rows = {"obs": observed, "action": action, "next_obs": after, "reward": action[:, 0]}
    result = model.fit(rows)
    assert result["model_updates"] <= 2008
    place = torch.tensor([[0.5, -0.2]]).repeat(2000, 1)
    later, reward = model.predict(place, torch.full((2000, 1), 0.3))
    # A tenth of what actions move, and half as much again of the noise as there was.
    torch.testing.assert_close(later.mean(0), torch.tensor([0.8, -0.7]), rtol=0, atol=0.1)
    assert 0.05 < float(later.std(0).mean()) < 0.15
    assert float((reward - 0.3).abs().mean()) < 0.1


@pytest.mark.extended
def test_a_model_of_a_few_steps_learns_what_comes_to_them():
    """A hundred steps that go further than the first: all networks are worse at first, and a pass is one update."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(0)
    observed = torch.randn(220, 2, generator=generator) * torch.tensor([1.0] * 120 + [5.0] * 100)[:, None]
    action = 2 * torch.rand(220, 1, generator=generator) - 1
    after = observed + torch.cat([action * observed[:, 1:], 0.2 * observed[:, :1] * observed[:, 1:]], 1)
    rows = {"obs": observed, "action": action, "next_obs": after, "reward": observed[:, 1]}
    model = WorldModel(
        2, 1, WorldModelSettings(ensemble_size=3, num_elites=2, hidden_sizes=(32, 32)), generator.manual_seed(1)
    )
    model.fit({name: value[:120] for name, value in rows.items()})
    # Of the variance of what is to be told.
    assert model.fit(rows)["model_error"] < 0.05


def test_neighbors_of_rows_that_are_held_out_are_not_learned(monkeypatch):
    """A model that has learned from neighbors of a step would be judged by what it knows."""
    settings = WorldModelSettings(
        ensemble_size=2, num_elites=1, hidden_sizes=(4,), max_updates=12, patience=12, batch_size=10
    )
    model = WorldModel(1, 1, settings, torch.Generator().manual_seed(0))
    number, used, epochs = torch.arange(50.0), [], []

    def augmented():
        epochs.append(len(epochs) + 1)
        return dict.fromkeys(("obs", "action", "next_obs"), number[:, None] + 100 * epochs[-1]) | {"reward": number}

    monkeypatch.setattr(model, "_update", lambda inputs, targets: used.append(inputs[..., 0].round()))
    model.fit(dict.fromkeys(("obs", "action", "next_obs"), number[:, None]) | {"reward": number}, augmented)
    assert epochs == [1, 2, 3]
    fresh = torch.tensor([index for index in range(50) if index % 10], dtype=torch.float32)
    for pass_ in epochs:
        learned = torch.cat(used[5 * (pass_ - 1) : 5 * pass_], 1) - 100 * pass_
        for member in learned:
            assert torch.equal(member.sort().values, fresh)


def test_what_lies_far_from_the_record_is_not_known():
    model = WorldModel(
        2,
        1,
        WorldModelSettings(ensemble_size=2, num_elites=1, hidden_sizes=(8,), max_updates=1),
        torch.Generator().manual_seed(0),
    )
    observed = torch.tensor([[0.0, -1.0], [2.0, 3.0], [1.0, 1.0]])
    model.fit({"obs": observed, "action": torch.zeros(3, 1), "reward": torch.zeros(3), "next_obs": observed})
    candidates = torch.tensor(
        [[3.9, 0.0], [4.1, 0.0], [-1.9, -4.9], [0.0, -5.1], [float("nan"), 0.0], [0.0, float("inf")]]
    )
    assert model.in_training_range(candidates).tolist() == [True, False, True, False, False, False]
