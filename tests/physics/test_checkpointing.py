"""Gradients with few states kept are those of a rollout that keeps all."""

from functools import cache

import pytest
import torch

from physvision import State
from physvision.core import InputError, Placed, Plane, Sphere
from physvision.physics import articulated, checkpointing
from physvision.physics.checkpointing import BinomialCheckpoints, PeriodicCheckpoints, ReversedSteps, rollout_final

DOUBLE = torch.float64
STEPS = 50


@pytest.fixture
def pendulum():
    """Two links and a free body, whose position has a quaternion."""
    chain = [
        articulated.Body("a", None, [articulated.Joint("revolute", (0, 1, 0))], mass=1.0, center_of_mass=(0, 0, -0.5)),
        articulated.Body("b", "a", [articulated.Joint("ball")], position=(0, 0, -1), center_of_mass=(0, 0, -0.5)),
        articulated.Body("c", None, [articulated.Joint("free")], inertia=(0.1, 0.2, 0.3)),
    ]
    return articulated.tree(chain, dt=0.01)


def inputs(engine, batch=2, steps=STEPS):
    torch.manual_seed(0)
    start = engine.initial_state(batch, DOUBLE)
    q = engine.integrate(start.q, 0.5 * torch.randn(batch, engine.nv, dtype=DOUBLE))
    v, controls = torch.randn_like(start.v), torch.randn(batch, steps, engine.nu, dtype=DOUBLE)
    mass = engine.properties.mass.clone()
    return [value.requires_grad_() for value in (q, v, controls, mass)]


def weights(engine):
    torch.manual_seed(1)
    return torch.randn(engine.nq, dtype=DOUBLE), torch.randn(engine.nv, dtype=DOUBLE)


def cost(engine, whole, first):
    """Of each step's states, weighted by its number."""
    numbers = torch.arange(first + 1, first + len(whole), dtype=DOUBLE)
    on_q, on_v = weights(engine)
    return ((whole.q[:, 1:] @ on_q + whole.v[:, 1:] @ on_v) * numbers).sum(-1)


def gradients(engine, keep, steps=STEPS):
    q, v, controls, mass = inputs(engine, steps=steps)
    state, properties = State(q, v), {"mass": mass}
    if keep is None:
        whole = engine.rollout(state, steps, controls, properties)
        final, total = whole.final, cost(engine, whole, 0)
    else:
        final, total, status = rollout_final(
            engine, state, steps, controls, properties, checkpoints=keep, cost=lambda *stretch: cost(engine, *stretch)
        )
        assert status.converged.all()
    loss = (final.q * weights(engine)[0]).sum() + (total**2).sum()
    return loss.detach(), torch.autograd.grad(loss, (q, v, controls, mass))


@pytest.mark.parametrize(
    "keep",
    [
        PeriodicCheckpoints(1),
        PeriodicCheckpoints(7),
        PeriodicCheckpoints(STEPS),
        PeriodicCheckpoints(900),
        BinomialCheckpoints(3, segment=2),
        BinomialCheckpoints(1, segment=9),
        ReversedSteps(segment=8),
    ],
    ids=repr,
)
def test_gradients_are_those_of_a_rollout(pendulum, keep):
    # Undoing a step takes tens of iterations.
    steps = 20 if isinstance(keep, ReversedSteps) else STEPS
    loss, whole = gradients(pendulum, None, steps)
    again, retained = gradients(pendulum, keep, steps)
    # Sums over stretches round in another order, and an undone step leads back to a few units of rounding.
    close = 1e-9 if isinstance(keep, ReversedSteps) else 1e-12
    assert abs(again - loss) <= 1e-13 * abs(loss)
    for got, entry in zip(retained, whole, strict=True):
        assert (got - entry).abs().max() <= close * entry.abs().max()


def test_states_kept_in_half_precision_bend_the_gradient_a_little(pendulum):
    _, whole = gradients(pendulum, None)
    errors = {}
    for stored in (torch.float32, torch.float16):
        _, retained = gradients(pendulum, PeriodicCheckpoints(10, stored))
        errors[stored] = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(retained, whole, strict=True))
    rounding = {kind: torch.finfo(kind).eps for kind in errors}
    for kind, error in errors.items():
        # A state that is off by its rounding is a neighboring motion, whose gradient differs as much, times a factor
        # for how fast motions part in half a second.
        assert 0.01 * rounding[kind] < error < 100 * rounding[kind]


@cache
def minimum(count, slots):
    """Stretches that must be run through ahead, by trying every place for the next state."""
    if count == 1:
        return 0
    if slots == 0:
        return count * (count - 1) // 2
    return min(ahead + minimum(count - ahead, slots - 1) + minimum(ahead, slots) for ahead in range(1, count))


@cache
def needed(count, slots):
    if count == 1:
        return 0
    ahead = checkpointing.split(count, slots)
    return ahead + needed(count - ahead, max(slots - 1, 0)) + needed(ahead, slots)


@pytest.mark.parametrize("slots", range(6))
def test_binomial_places_cost_the_fewest_steps(slots):
    for count in range(1, 60):
        assert needed(count, slots) == minimum(count, slots)


def test_contact_cannot_be_undone():
    ball = articulated.Body("ball", None, [articulated.Joint("free")], inertia=(0.1,) * 3, shapes=[Placed(Sphere(0.1))])
    engine = articulated.tree(
        [ball], dt=0.01, static_shapes=[Placed(Plane())], contact=articulated.ContactSettings(restitution=0.5)
    )
    start = engine.initial_state(dtype=DOUBLE)
    q = (start.q + torch.tensor([0, 0, 0.3, 0, 0, 0, 0])).requires_grad_()
    end = rollout_final(engine, State(q, start.v), 60, checkpoints=ReversedSteps())
    with pytest.raises(InputError, match="cannot be inverted"):
        end.state.q.sum().backward()


def test_how_deep_shapes_overlapped_is_kept():
    ball = articulated.Body("ball", None, [articulated.Joint("free")], inertia=(0.1,) * 3, shapes=[Placed(Sphere(0.1))])
    engine = articulated.tree([ball], dt=0.01, static_shapes=[Placed(Plane())], contact="event")
    start = engine.initial_state(dtype=DOUBLE)
    low = State(start.q + torch.tensor([0, 0, 0.0995, 0, 0, 0, 0], dtype=DOUBLE), start.v)
    end = rollout_final(engine, low, 6, checkpoints=PeriodicCheckpoints(2))
    assert float(end.status.penetration) == pytest.approx(5e-4, rel=1e-9)


def test_bad_input_is_named(pendulum):
    q, v, *_ = inputs(pendulum)
    with pytest.raises(InputError, match="checkpoints"):
        rollout_final(pendulum, State(q, v), 5, checkpoints=PeriodicCheckpoints(0))


def test_a_world_that_fails_is_named_with_its_step(pendulum):
    q, v, *_ = inputs(pendulum)
    controls = torch.zeros(2, STEPS, pendulum.nu, dtype=DOUBLE)
    controls[1, 30] = torch.inf
    with pytest.warns(RuntimeWarning, match="failed"):
        result = rollout_final(pendulum, State(q, v), STEPS, controls, checkpoints=PeriodicCheckpoints(8))
    assert result.status.first_failed_step.tolist() == [-1, 31]
