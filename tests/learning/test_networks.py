"""Networks side by side against networks one by one, and the density of squashed actions against torch's own."""

import pytest
import torch
from torch import nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from physvision.core import InputError
from physvision.learning.actor import Actor, RunningNormalizer, sample_tanh_normal
from physvision.learning.networks import EnsembleMlp
from physvision.learning.replay_buffer import ReplayBuffer


def alone(layers, member):
    """The same network of torch's layers."""
    parts = []
    for weight, bias in zip(layers.weights, layers.biases, strict=True):
        linear = nn.Linear(*weight.shape[1:])
        linear.weight.data, linear.bias.data = weight[member].T.clone(), bias[member, 0].clone()
        parts += [linear, {"relu": nn.ReLU(), "elu": nn.ELU(), "swish": nn.SiLU()}[layers.named]]
        parts += [nn.LayerNorm(weight.shape[2], elementwise_affine=False)] if layers.layer_norm else []
    return nn.Sequential(*parts[: -2 if layers.layer_norm else -1]).to(layers.weights[0].dtype)


@pytest.mark.parametrize(
    ("activation", "layer_norm"), [("relu", False), ("elu", False), ("swish", False), ("elu", True)]
)
@pytest.mark.parametrize("outputs", [1, 3])
def test_networks_side_by_side_are_those_one_by_one(activation, layer_norm, outputs):
    layers = EnsembleMlp(2, (3, 8, 8, outputs), activation, layer_norm=layer_norm).double()
    layers.named = activation
    inputs = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    result = layers(inputs)
    seeds = torch.randn_like(result)
    gradients = torch.autograd.grad(result, [inputs, *layers.parameters()], seeds)
    of_inputs = torch.zeros_like(inputs)
    for member in range(2):
        reference = alone(layers, member)
        single = reference(inputs)
        torch.testing.assert_close(result[member], single)
        of_input, *rest = torch.autograd.grad(single, [inputs, *reference.parameters()], seeds[member])
        of_inputs += of_input
        count = len(layers.weights)
        for k in range(count):
            torch.testing.assert_close(gradients[1 + k][member], rest[2 * k].T)
            torch.testing.assert_close(gradients[1 + count + k][member, 0], rest[2 * k + 1])
    torch.testing.assert_close(gradients[0], of_inputs)


def test_frozen_networks_have_gradients_to_what_comes_in_alone():
    layers, inputs = EnsembleMlp(2, (3, 8, 1)), torch.randn(5, 3, requires_grad=True)
    (free,) = torch.autograd.grad(layers(inputs).sum(), inputs)
    layers(inputs, frozen_weights=True).sum().backward()
    torch.testing.assert_close(inputs.grad, free)
    assert all(parameter.grad is None for parameter in layers.parameters())


def test_products_of_half_precision_err_by_its_rounding():
    layers, inputs = EnsembleMlp(2, (3, 64, 64, 1)), torch.randn(50, 3)
    single = layers(inputs)
    layers.bf16 = True
    half_precision = layers(inputs)
    # Two factors rounded to 8 bits, 64 of them added up with signs of their own, and the sum rounded.
    assert 0 < float((half_precision - single).abs().max()) < 4 * 2**-8 * float(single.abs().max())


def test_layers_of_rectifiers_are_not_levelled():
    with pytest.raises(InputError, match="with layer_norm, got 'relu'"):
        EnsembleMlp(1, (3, 8, 1), layer_norm=True)


def test_numbers_are_measured_over_all_batches_together():
    normalizer, rows = RunningNormalizer(2), 5 * torch.randn(60, 2, dtype=torch.float64) + 100
    rows[:, 1] = 7.0
    small = torch.tensor([[0.5, -3.0]])
    assert torch.equal(normalizer(small), small)
    for part in rows.split([10, 1, 49]):
        normalizer.update(part)
    result = normalizer(rows)
    torch.testing.assert_close(result[:, 0], (rows[:, 0] - rows[:, 0].mean()) / rows[:, 0].std(correction=0))
    # One that never changes is at its mean, and what is far off is bounded.
    assert result[:, 1].abs().max() < 1e-6
    assert normalizer(torch.tensor([[1e9, -1e9]])).tolist() == [[10.0, -10.0]]


@pytest.mark.parametrize("option", ["normalize_obs", "layer_norm", "state_independent_std"])
def test_options_of_an_actor_work_alone(option):
    """Each option changes what it names and nothing else."""
    actor = Actor(3, (8,), 2, "elu", init_log_std=-1.0, **{option: True})
    obs = torch.randn(50, 3) + 5
    assert (actor.normalizer is not None) == (option == "normalize_obs")
    assert actor.network.layer_norm == (option == "layer_norm")
    log_std = actor.distribution(obs)[:, 2:]
    assert (float(log_std.std(0).max()) < 1e-6) == (option == "state_independent_std")
    before = actor.deterministic_action(obs)
    if actor.normalizer is not None:
        actor.normalizer.update(obs)
    assert torch.equal(actor.deterministic_action(obs), before) == (option != "normalize_obs")


def test_a_steady_actor_tells_the_same_deviations_everywhere():
    actor = Actor(3, (8,), 2, "elu", init_log_std=-1.0, normalize_obs=True, layer_norm=True, state_independent_std=True)
    record, _ = actor(torch.randn(5, 3), torch.zeros(5, 0))
    assert record.shape == (5, 4)
    assert (record[:, 2:] == -1).all()
    record[:, 2:].sum().backward()
    assert actor.log_std.grad.tolist() == [5.0, 5.0]


def test_the_density_is_that_of_a_squashed_normal():
    # Of actions that are all but 1 torch does not find the way back.
    selected = 0.5 * torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    output, noise = selected[:, :4], selected[:, 4:]
    action, density = sample_tanh_normal(output, noise)
    mean, std = output.chunk(2, 1)
    law = TransformedDistribution(Normal(mean, std.exp()), TanhTransform())
    torch.testing.assert_close(density, law.log_prob(action).sum(1))
    far, record = sample_tanh_normal(torch.tensor([[60.0, 0.0]]), torch.zeros(1, 1))
    assert float(far) == 1.0
    assert record.isfinite().all()


def test_a_ring_holds_the_newest_rows():
    ring = ReplayBuffer(5, {"x": 0})
    for obs in (0, 3, 6):
        ring.add({"x": torch.arange(obs, obs + 3.0)})
    assert sorted(ring.contents()["x"].tolist()) == [4, 5, 6, 7, 8]
    assert ring.gather(torch.tensor([2, 0]))["x"].tolist() == [7, 5]
    ring.overwrite(torch.tensor([2, 0]), {"x": torch.tensor([17.0, 15.0])})
    assert sorted(ring.contents()["x"].tolist()) == [4, 6, 8, 15, 17]
    reference = ReplayBuffer(5, {"x": 0})
    reference.load_state_dict(ring.state_dict())
    for entry in (ring, reference):
        entry.add({"x": torch.tensor([9.0])})
    assert torch.equal(ring.contents()["x"], reference.contents()["x"])
    ring.add({"x": torch.arange(100.0, 112.0)})
    assert sorted(ring.contents()["x"].tolist()) == [107, 108, 109, 110, 111]
    rendered = ring.sample(4000, torch.Generator().manual_seed(0))["x"]
    # Each of five in a binomial draw, within five deviations.
    for value in range(107, 112):
        assert abs(int((rendered == value).sum()) - 800) < 5 * (4000 * 0.2 * 0.8) ** 0.5


def test_a_buffer_keeps_the_type_of_each_field():
    exact = 2**40 + 1  # no float32 holds it
    buffer = ReplayBuffer(2, {"q": 0, "steps": 0}, dtypes={"q": torch.float64, "steps": torch.int64})
    buffer.add({"q": torch.tensor([0.1], dtype=torch.float64), "steps": torch.tensor([exact])})
    rows = buffer.contents()
    assert rows["q"].dtype == torch.float64
    assert rows["q"].tolist() == [0.1]
    assert rows["steps"].tolist() == [exact]
