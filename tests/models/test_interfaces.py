"""Coordinates, the physics layer, learned engines and the autoencoder do what they say on cases worked out by hand."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import math

import pytest
import torch

from physvision.core import Coordinates, InputError, ShapeError, State
from physvision.models import (
    Encoder,
    LearnedForce,
    MlpDecoder,
    MlpEncoder,
    NetworkEngine,
    Observation,
    PredictiveAutoencoder,
    StateGraph,
    StatePerceptron,
)
from physvision.physics import Hybrid, PhysicsLayer, articulated

MIXED = Coordinates(3, (2, 0))
ANGLES = Coordinates(2, (0, 1))


def chain(**options):
    return articulated.chain([1.0, 1.0], dt=0.05, integrator="runge_kutta_4", **options)


def test_angles_survive_their_features_and_have_no_jump_at_pi():
    q = torch.tensor([[3.0, 7.5, -2.0], [-3.1, -1.0, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(MIXED.decode(MIXED.encode(q)), q)
    turned = q + torch.tensor([2 * math.pi, 0.0, -4 * math.pi], dtype=torch.float64)
    torch.testing.assert_close(MIXED.encode(turned), MIXED.encode(q))
    # The same with a cosine and sine that are not of unit length: the radius is no part of the angle.
    torch.testing.assert_close(MIXED.decode(MIXED.encode(q) * torch.tensor([3.0, 3, 3, 3, 1])), q)


def test_the_difference_of_angles_goes_the_shorter_way():
    q0, q1 = torch.tensor([[3.1, 3.1, 0.0]]), torch.tensor([[-3.1, -3.1, 12.0]], requires_grad=True)
    away = MIXED.difference(q0, q1)
    expected = torch.tensor([[2 * math.pi - 6.2, -6.2, 12.0 - 4 * math.pi]])
    torch.testing.assert_close(away, expected)
    away.sum().backward()
    assert torch.equal(q1.grad, torch.ones(1, 3))


@pytest.mark.parametrize("angles", [(0, 0), (3,), (-1,)])
def test_impossible_angles_are_refused(angles):
    with pytest.raises(InputError, match="different indices below 3"):
        Coordinates(3, angles)


@pytest.mark.parametrize(("frames_in", "pool"), [(1, 1), (2, 1), (3, 1), (3, 2)])
def test_states_along_frames_are_those_of_each_window(frames_in, pool):
    encoder = MlpEncoder((1, 4, 4), ANGLES, dt=0.1, frames_in=frames_in, pool=pool).double()
    frames = torch.rand(2, 7, 1, 4, 4, dtype=torch.float64)
    observed = encoder.observe(frames)
    tracked = observed.trajectory
    assert observed.positions.shape == (2, 7, 2)
    assert tracked.q.shape == (2, 8 - frames_in, 2)
    pieces = frames.unfold(1, frames_in, 1).movedim(-1, 2)
    entry = encoder(pieces.flatten(0, 1))
    torch.testing.assert_close(tracked.flatten().q, entry.q)
    torch.testing.assert_close(tracked.flatten().v, entry.v)
    torch.testing.assert_close(tracked.final.v, observed.state.v, rtol=0, atol=0)


def test_the_encoder_sees_bytes_as_their_brightness_and_squares_as_their_mean():
    encoder = MlpEncoder((1, 7, 6), ANGLES, dt=0.1, pool=2)
    frames = torch.randint(0, 256, (2, 3, 1, 7, 6), dtype=torch.uint8)
    state, light = encoder(frames), frames / 255
    torch.testing.assert_close(encoder(light).q, state.q)
    torch.testing.assert_close(encoder(light).v, state.v)
    small = torch.nn.functional.avg_pool2d(light.flatten(0, 1), 2).unflatten(0, (2, 3))
    encoder.pool, encoder.frame = 1, (1, 3, 3)
    torch.testing.assert_close(encoder(small).v, state.v)


def test_the_encoders_velocity_knows_the_changes_between_frames():
    """With first layers that pass pixels on, the velocity's layer is given value, change and change of change."""
    encoder = MlpEncoder((1, 1, 2), ANGLES, dt=0.1, hidden=2).double()
    encoder.pixels, observed = torch.nn.Identity(), []
    encoder.velocity.register_forward_pre_hook(lambda _, given: observed.append(given[0]))
    encoder(torch.tensor([[[0.0, 1.0]], [[1.0, 1.5]], [[4.0, 2.5]]], dtype=torch.float64)[None, :, None])
    assert observed[0].tolist() == [[[4.0, 2.5, 3.0, 1.0, 2.0, 0.5]]]


def test_with_a_mirror_mirrored_frames_are_mirrored_states():
    encoder = MlpEncoder((1, 4, 4), ANGLES, dt=0.1, pool=2, mirror=True).double()
    frames = torch.rand(6, 5, 1, 4, 4, dtype=torch.float64)

    def read(frames):
        observed = encoder.observe(frames)
        return observed.positions, observed.velocities

    plain, reference = read(frames), read(frames.flip(-1))
    encoder.eval()
    observation, back = read(frames), read(frames.flip(-1))
    for entry, mirrored, before in zip(observation, back, plain, strict=True):
        torch.testing.assert_close(mirrored, -entry)
        assert not torch.allclose(entry, before)
    # In training nothing is added; the mean is then taken of this.
    torch.testing.assert_close(observation[1], 0.5 * (plain[1] - reference[1]))


def test_a_mirror_of_what_is_no_angle_is_refused():
    with pytest.raises(InputError, match="not angles alone"):
        MlpEncoder((1, 4, 4), Coordinates(2, (1,)), dt=0.1, mirror=True)


def test_the_encoder_takes_one_frame_too_and_refuses_other_shapes():
    encoder = MlpEncoder((1, 4, 4), ANGLES, dt=0.1, frames_in=1)
    state = encoder(torch.rand(5, 1, 1, 4, 4))
    assert state.q.shape == state.v.shape == (5, 2)
    with pytest.raises(ShapeError, match=r"\(batch, 1 or more, 1, 4, 4\), got \(5, 2, 1, 4, 5\)"):
        encoder(torch.rand(5, 2, 1, 4, 5))
    with pytest.raises(ShapeError, match=r"\(batch, 3 or more, 1, 4, 4\), got \(5, 2, 1, 4, 4\)"):
        MlpEncoder((1, 4, 4), ANGLES, dt=0.1)(torch.rand(5, 2, 1, 4, 4))


def test_the_physics_layer_is_its_engine_with_the_learned_values():
    layer = PhysicsLayer(chain(), {"lengths": [0.7, 1.9]}, articulated.chain_properties).double()
    reference = articulated.chain([0.7, 1.9], dt=0.05, integrator="runge_kutta_4")
    state = State(torch.randn(4, 2).double(), torch.randn(4, 2).double())
    # The first guesses were given in single precision.
    torch.testing.assert_close(layer.rollout(state, 7).q, reference.rollout(state, 7).q, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(layer.properties.mass, reference.properties.mass)
    override = {"gravity": torch.zeros(3).double()}
    still = State(torch.zeros(1, 2).double() + 1, torch.zeros(1, 2).double())
    assert torch.equal(layer.rollout(still, 3, properties=override).final.q, still.q)


def test_the_gradient_reaches_the_physical_parameters_and_keeps_them_positive():
    layer = PhysicsLayer(chain(), {"lengths": [1.0, 2.0]}, articulated.chain_properties).double()
    state = State(torch.ones(1, 2).double(), torch.zeros(1, 2).double())

    def angle(logarithms):
        leaves = articulated.chain_properties(logarithms.exp())
        return chain().rollout(state, 5, properties=leaves).final.q.sum()

    (raw,) = layer.learned.parameters()
    layer.rollout(state, 5).final.q.sum().backward()
    expected = torch.autograd.functional.jacobian(angle, raw.detach())
    torch.testing.assert_close(raw.grad, expected)
    for step in (1e-4, 1e-5):
        moved = torch.stack([angle(raw.detach() + step * d) - angle(raw.detach() - step * d) for d in torch.eye(2)])
        # A central difference errs by the square of its step and by rounding over the step.
        torch.testing.assert_close(raw.grad, moved / (2 * step), rtol=1e-5, atol=1e-7)
    torch.optim.SGD([raw], 100.0).step()
    assert bool((layer.learned_values["lengths"] > 0).all())


def test_a_parameter_that_is_a_leaf_itself_is_learned_without_a_function():
    layer = PhysicsLayer(
        chain(), {"joint_damping": [0.1, 0.2], "gravity": [0.0, 0.0, -9.0]}, positive=["joint_damping"]
    )
    assert {"joint_damping", "gravity"} == set(layer.learned_values)
    torch.testing.assert_close(layer.properties.gravity, torch.tensor([0.0, 0.0, -9.0]))
    with pytest.raises(InputError, match="initial value above zero"):
        PhysicsLayer(chain(), {"gravity": [0.0, 0.0, -9.0]})


def engines():
    mlp = NetworkEngine(StatePerceptron(ANGLES, hidden=16), 0.05)
    graph = NetworkEngine(StateGraph(ANGLES, bodies=2, hidden=16, message_passing_steps=2), 0.05)
    return [mlp, graph, Hybrid(chain(), LearnedForce(StatePerceptron(ANGLES, outputs=1, hidden=16)))]


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: type(engine).__name__)
def test_learned_engines_keep_the_contract(engine):
    state = State(torch.randn(3, 2), torch.randn(3, 2))
    trajectory = engine.rollout(state, 4)
    assert torch.equal(trajectory.state(0).q, state.q)
    chained = state
    for step in range(1, 5):
        chained = engine.step(chained)
        torch.testing.assert_close(trajectory.q[:, step], chained.q)
    assert trajectory.status.failed() == []
    a, _ = engine.linearize(state)
    moved = State(state.q + torch.tensor([1e-3, 0.0]), state.v)
    result = (engine.step(moved).q - engine.step(state).q) / 1e-3
    # Second derivatives of a step are of order one, rounding of single precision is 1e-7 / 1e-3.
    torch.testing.assert_close(a[:, :2, 0], result, rtol=0, atol=5e-3)


def test_truncation_cuts_the_gradient_where_the_engine_contract_says():
    engine = NetworkEngine(StatePerceptron(ANGLES, hidden=16), 0.05)
    start = State(torch.randn(1, 2, requires_grad=True), torch.randn(1, 2))
    engine.rollout(start, 4, truncate=2).q[:, 2].sum().backward()
    assert bool((start.q.grad != 0).any())
    start.q.grad = None
    engine.rollout(start, 4, truncate=2).q[:, 3].sum().backward()
    assert bool((start.q.grad == 0).all())


def test_a_world_that_leaves_the_numbers_is_marked_alone():
    engine = NetworkEngine(StatePerceptron(ANGLES, hidden=16), 0.05)
    state = State(torch.zeros(2, 2), torch.tensor([[0.0, 0.0], [3e38, 0.0]]))
    with pytest.warns(RuntimeWarning, match="1 of 2 worlds failed"):
        trajectory = engine.rollout(State(state.q, state.v * 10), 3)
    assert trajectory.status.failed() == [1]
    assert trajectory.status.first_failed_step.tolist() == [-1, 0]


def test_a_position_that_does_not_matter_is_not_seen():
    mixed = Coordinates(2, (1,))
    for network in (
        StatePerceptron(mixed, hidden=8, ignored_positions=(0,)),
        StateGraph(mixed, 2, hidden=8, ignored_positions=(0,)),
    ):
        state = State(torch.randn(3, 2), torch.randn(3, 2))
        there, turned = state.q + torch.tensor([5.0, 0.0]), state.q + torch.tensor([0.0, 1.0])
        assert torch.equal(network(State(there, state.v)), network(state))
        assert not torch.allclose(network(State(turned, state.v)), network(state))
    with pytest.raises(InputError, match="indices below 2"):
        StatePerceptron(mixed, ignored_positions=(2,))


def test_a_graph_passes_messages_along_its_links_only():
    """After one round the third body of a chain has not heard of the first, after two it has."""
    for message_passing_steps, heard in ((1, False), (2, True)):
        engine = NetworkEngine(
            StateGraph(Coordinates(3, (0, 1, 2)), bodies=3, hidden=16, message_passing_steps=message_passing_steps),
            0.05,
        ).double()
        for parameter in engine.network.global_update[-1].parameters():
            torch.nn.init.zeros_(parameter)  # the global vector would carry everything everywhere
        v = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
        engine.step(State(torch.zeros(1, 3, dtype=torch.float64), v)).v[0, 2].backward()
        assert bool(v.grad[0, 0] != 0) == heard


class Reading(Encoder):
    """An encoder that reads the state off the first pixels."""

    def observe(self, frames):
        pixels = frames.flatten(2)
        return Observation(pixels[..., :2], pixels[..., 2:4])


def test_the_autoencoder_puts_its_parts_together_and_draws_what_is_asked():
    model = PredictiveAutoencoder(Reading(), chain(), MlpDecoder((1, 2, 2), ANGLES, hidden=8))
    frames = torch.rand(3, 1, 1, 2, 2)
    prediction = model(frames, 6, rendered_steps=[0, 4])
    alone = chain().rollout(State(frames.flatten(1)[:, :2], frames.flatten(1)[:, 2:]), 6)
    torch.testing.assert_close(prediction.trajectory.q, alone.q)
    torch.testing.assert_close(prediction.frames[:, 1], model.decoder(alone.state(4), model.engine.properties))
    assert model(frames, 6).steps == (1, 2, 3, 4, 5, 6)


def test_a_prediction_gone_astray_teaches_nothing_and_spoils_nothing():
    """A thousand radians a second cannot be followed: that world stands still, the others get their own gradients."""
    model = PredictiveAutoencoder(Reading(), chain(), MlpDecoder((1, 2, 2), ANGLES, hidden=8), max_speed=50.0)
    frames = torch.rand(3, 1, 1, 2, 2)
    frames[1, 0, 0, 1, 0] = 1e3
    together, alone = frames.clone().requires_grad_(), frames[:1].clone().requires_grad_()
    prediction = model(together, 5)
    prediction.trajectory.q.square().sum().backward()
    assert prediction.trajectory.status.failed() == [1]
    assert bool(torch.isfinite(prediction.frames).all())
    model(alone, 5).trajectory.q.square().sum().backward()
    torch.testing.assert_close(together.grad[0], alone.grad[0])
    assert bool((together.grad[1] == 0).all())


def test_motion_is_not_computed_in_half_precision():
    """The same state moves alike under mixed precision, though the layers around it round."""
    model = PredictiveAutoencoder(
        Reading(), NetworkEngine(StatePerceptron(ANGLES), 0.05), MlpDecoder((1, 2, 2), ANGLES)
    )
    frames = torch.rand(3, 1, 1, 2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(frames, 5)
    assert mixed.trajectory.q.dtype == torch.float32
    assert mixed.frames.dtype == torch.bfloat16
    assert torch.equal(mixed.trajectory.q, model(frames, 5).trajectory.q)
