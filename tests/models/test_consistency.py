"""Of all motions of an engine, the one that comes closest to what was read is found, and its derivative."""

import math
from dataclasses import replace

import pytest
import torch

from physvision.core import Coordinates, InputError, ShapeError, State
from physvision.estimation import MotionResidual
from physvision.models import Encoder, MlpDecoder, MlpEncoder, NetworkEngine, PredictiveAutoencoder, StatePerceptron
from physvision.models.consistency import consistent_state
from physvision.physics import articulated

ANGLES = Coordinates(2, (0, 1))
TRUST = 20.0


def chain():
    return articulated.chain([1.0, 2.0], dt=0.05, integrator="runge_kutta_4")


def moving(batch, engine, steps=2):
    """Motions that turn past π, as they are read without error."""
    torch.manual_seed(2)
    start = State(6 * torch.rand(batch, 2).double(), 8 * torch.rand(batch, 2).double() - 4)
    return engine.rollout(start, steps)


def misread(motion, noise):
    """Its positions, and its last velocity, each with an error of the size that the other has in its measure."""
    q = motion.q + noise * torch.randn_like(motion.q)
    return q, motion.v[:, -1] + TRUST * noise * torch.randn_like(motion.v[:, -1])


def wrapped(q):
    return ANGLES.decode(ANGLES.encode(q))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_what_was_read_without_error_stays(steps):
    engine = chain()
    motion = moving(50, engine, steps)
    state = consistent_state(engine, ANGLES, wrapped(motion.q), motion.v[:, -1], TRUST)
    torch.testing.assert_close(state.q, wrapped(motion.q[:, -1]), rtol=0, atol=1e-7)
    torch.testing.assert_close(state.v, motion.v[:, -1], rtol=0, atol=1e-6)


def test_it_is_the_minimum():
    """No state beside it has a past that comes closer; the past is that of the pendulum played backwards."""
    engine = chain()
    q, v = misread(moving(20, engine), 0.01)
    result = consistent_state(engine, ANGLES, q, v, TRUST)

    def cost(state):
        back = engine.rollout(State(state.q, -state.v), 2)
        away = ANGLES.difference(q, back.q.flip(1)).square().sum((1, 2))
        return away + ((state.v - v) / TRUST).square().sum(1)

    minimum = cost(result)
    for unit in torch.eye(4).double():
        for size in (1e-3, -1e-3):
            moved = State(result.q + size * unit[:2], result.v + TRUST * size * unit[2:])
            assert bool((cost(moved) > minimum).all())


def test_velocities_are_nearer_to_the_truth_than_those_that_were_read():
    engine, noise = chain(), 0.005
    motion = moving(400, engine)
    q, v = misread(motion, noise)
    result = consistent_state(engine, ANGLES, q, v, TRUST)
    # Of the three positions alone a velocity is known to about 0.005 / 0.05 / √2, of itself to 0.1 rad/s.
    off, before = (value - motion.v[:, -1] for value in (result.v, v))
    assert off.square().mean() < 0.5 * before.square().mean()
    assert ANGLES.difference(result.q, motion.q[:, -1]).square().mean() < 0.9 * noise**2


def test_its_derivative_is_that_of_the_minimum():
    engine = chain()
    motion = moving(3, engine)
    q = (motion.q + 1e-3 * torch.randn_like(motion.q)).requires_grad_()
    v = (motion.v[:, -1] + 1e-3 * torch.randn_like(motion.v[:, -1])).requires_grad_()

    def estimates(q, v):
        state = consistent_state(engine, ANGLES, q, v, TRUST)
        return torch.cat([state.q, state.v / TRUST], 1)

    assert torch.autograd.gradcheck(estimates, (q, v), eps=1e-5, atol=5e-3, rtol=5e-3)


def test_where_no_motion_is_found_what_was_read_stays_and_teaches_no_nonsense():
    engine = chain()
    motion = moving(3, engine)
    q, v = motion.q.clone(), motion.v[:, -1].clone()
    v[1] = math.inf
    q[2] = 1e9
    v.requires_grad_()
    state = consistent_state(engine, ANGLES, q, v, TRUST)
    assert torch.isinf(state.v[1]).all()
    torch.testing.assert_close(state.v[0], motion.v[0, -1], rtol=0, atol=1e-6)
    state.v[0].sum().backward()
    assert bool(torch.isfinite(v.grad).all())


def test_what_makes_no_motion_is_not_replaced_by_one_that_is_further_off_than_rest():
    q, v = 3 * torch.randn(300, 3, 2).double(), torch.randn(300, 2).double()
    result = consistent_state(chain(), ANGLES, q, v, TRUST)
    rest = ANGLES.unwind(q - q[:, -1:]).square().sum((1, 2)) + (v / TRUST).square().sum(1)
    assert bool((((result.v - v) / TRUST).square().sum(1) <= rest).all())
    some = (result.v != v).any(1).float().mean()
    assert 0.1 < float(some) < 0.9


def test_a_motion_whose_neighbors_failed_is_not_taken(monkeypatch):
    """The last of four derivatives is taken at the motion found; that of one world is not finite."""
    engine, calls = chain(), []
    q, v = misread(moving(3, engine), 0.01)
    expected = consistent_state(engine, ANGLES, q, v, TRUST)
    linearize = MotionResidual.linearize

    def failing(problem, z):
        missed, slopes = linearize(problem, z)
        calls.append(len(z))
        if len(calls) == 4:
            slopes[1, 1:] = torch.inf
        return missed, slopes

    monkeypatch.setattr(MotionResidual, "linearize", failing)
    q, v = q.requires_grad_(), v.requires_grad_()
    result = consistent_state(engine, ANGLES, q, v, TRUST)
    assert len(calls) == 4
    torch.testing.assert_close(result.v[[0, 2]], expected.v[[0, 2]])
    torch.testing.assert_close(result.v[1], v[1])
    result.v.square().sum().backward()
    assert bool(torch.isfinite(q.grad).all())
    assert bool(torch.isfinite(v.grad).all())


def test_one_frame_is_refused():
    with pytest.raises(InputError, match="one frame holds no motion"):
        consistent_state(chain(), ANGLES, torch.zeros(4, 1, 2), torch.zeros(4, 2), TRUST)


def test_predictions_start_on_it():
    torch.manual_seed(0)
    encoder, decoder = MlpEncoder((1, 4, 4), ANGLES, dt=0.05), MlpDecoder((1, 4, 4), ANGLES)
    frames = torch.rand(5, 3, 1, 4, 4)
    for engine in (chain(), NetworkEngine(StatePerceptron(ANGLES), 0.05)):
        plain = PredictiveAutoencoder(encoder, engine, decoder)
        model = PredictiveAutoencoder(encoder, engine, decoder, consistency=TRUST)
        observed = encoder.observe(frames)
        expected = consistent_state(engine, ANGLES, observed.positions, observed.velocities[:, -1], TRUST)
        assert torch.equal(model(frames, 1).trajectory.q[:, 0], expected.q)
        assert torch.equal(model.initial_state(model.observe(frames)).v, expected.v)
        assert not torch.allclose(plain.initial_state(plain.observe(frames)).v, expected.v)
        # The encoder itself learns from what it says by itself.
        assert torch.equal(model.observe(frames).velocities, plain.observe(frames).velocities)
    with pytest.raises(InputError, match=r"reads no positions in single frames.*leave consistency out \(null\)"):
        PredictiveAutoencoder(Encoder(), chain(), decoder, consistency=TRUST)


def test_an_observation_of_another_shape_is_named():
    class Flat(MlpEncoder):
        def observe(self, frames, context=None):
            read = super().observe(frames)
            return replace(read, positions=read.positions[..., :1])

    model = PredictiveAutoencoder(Flat((1, 4, 4), ANGLES, dt=0.05), chain(), MlpDecoder((1, 4, 4), ANGLES))
    with pytest.raises(ShapeError, match=r"Flat.observe: positions: expected shape \(5, any, 2\), got \(5, 3, 1\)"):
        model(torch.rand(5, 3, 1, 4, 4), 1)
