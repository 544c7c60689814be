"""Engines with a learned force: it acts before contact is solved, starts as none, and may never give energy away."""

import pytest
import torch
from torch import nn

from physvision.core import Coordinates, InputError, Placed, ShapeError, Sphere, State, Trajectory, UnsupportedError
from physvision.models import LearnedForce, NetworkEngine, PassiveForce, StateGraph, StatePerceptron
from physvision.physics import Hybrid, PhysicsLayer, articulated, rigid2d

ANGLES = Coordinates(2, (0, 1))
WEIGHT = 0.5 * 9.81  # N, of the ball


class Constant(nn.Module):
    """The same force everywhere."""

    def __init__(self, *force):
        super().__init__()
        self.force = nn.Parameter(torch.tensor(force, dtype=torch.float64))

    def forward(self, state, control=None):
        return self.force.expand(state.batch, -1)


def chain():
    return articulated.chain([0.5, 0.7], dt=0.02, damping=0.01)


def floor():
    """A ball of half a kilogram on a floor."""
    ball = rigid2d.Circle(0.1, (0.0, 0.1), mass=0.5, name="ball")
    ground = rigid2d.Rectangle((20, 1), (0, -0.5), static=True, name="ground")
    return rigid2d.World([ball, ground], gravity=(0, -9.81), dt=0.01)


def motor():
    """A cart that is driven through a gear of two, and pulled back by nothing."""
    return articulated.load(
        """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" type="slide" axis="1 0 0"/>
        <geom type="sphere" size=".1" mass="2"/></body></worldbody>
        <actuator><motor joint="j" gear="2"/></actuator></mujoco>""",
        dt=0.02,
    )


def some(count=4):
    generator = torch.Generator().manual_seed(3)
    q, v = (torch.randn(count, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    return State(q, v)


def test_a_tensor_is_an_initial_value_without_a_warning(recwarn):
    engine, mass = chain(), torch.tensor([0.5, 0.7], dtype=torch.float64)
    layer = PhysicsLayer(engine, {"mass": mass}, positive=())
    assert not recwarn.list
    layer.learned["mass"].data += 1.0
    assert mass.tolist() == [0.5, 0.7]
    assert layer.learned_values["mass"].tolist() == pytest.approx([1.5, 1.7])


@pytest.mark.parametrize(
    "force",
    [
        lambda: LearnedForce(StatePerceptron(ANGLES, outputs=1, hidden=8)),
        lambda: LearnedForce(StateGraph(ANGLES, bodies=2, outputs=1, hidden=8, message_passing_steps=1)),
        lambda: PassiveForce(ANGLES, hidden=8),
    ],
    ids=["perceptron", "graph", "passive"],
)
def test_training_starts_at_the_engine_and_can_leave_it(force):
    hybrid = Hybrid(chain(), force().double())
    run = hybrid.rollout(some(), 5)
    plain = chain().rollout(some(), 5)
    torch.testing.assert_close(run.q, plain.q, rtol=0, atol=1e-14)
    torch.testing.assert_close(run.v, plain.v, rtol=0, atol=1e-14)
    run.v[:, -1].square().sum().backward()
    moved = [
        name for name, entry in hybrid.force.named_parameters() if entry.grad is not None and bool(entry.grad.any())
    ]
    assert moved


def test_a_force_is_what_a_control_of_an_undriven_joint_is():
    push = (0.3, -0.2)
    controls = torch.tensor(push, dtype=torch.float64).expand(4, 5, -1)
    hybrid = Hybrid(chain(), Constant(*push))
    torch.testing.assert_close(hybrid.rollout(some(), 5).q, chain().rollout(some(), 5, controls).q)
    own = torch.full_like(controls, 0.1)
    torch.testing.assert_close(hybrid.rollout(some(), 5, own).q, chain().rollout(some(), 5, controls + own).q)
    assert hybrid.forces(hybrid.rollout(some(), 5)).shape == (4, 5, 2)


def test_a_force_of_another_shape_is_refused():
    hybrid = Hybrid(chain(), Constant(0.3))
    for call in (lambda: hybrid.rollout(some(), 1), lambda: hybrid.forces(chain().rollout(some(), 1))):
        with pytest.raises(ShapeError, match=r"force: expected shape \(4, 2\), got \(4, 1\)"):
            call()


def test_a_force_adds_to_motors_and_to_another_force():
    engine = motor()
    start, controls = engine.initial_state(1, torch.float64), torch.full((1, 3, 1), 0.5, dtype=torch.float64)
    hybrid = Hybrid(Hybrid(engine, Constant(0.25)), Constant(0.75))
    # Two kilograms under 0.5 · 2 + 0.25 + 0.75 N for 0.06 s, and under 1 N without the motor.
    assert float(hybrid.rollout(start, 3, controls).v[0, -1, 0]) == pytest.approx(0.06)
    assert float(hybrid.rollout(start, 3).v[0, -1, 0]) == pytest.approx(0.03)


def test_a_world_of_the_plane_is_pushed_through_its_contacts():
    start = floor().initial_state(1, torch.float64)
    pressed = Hybrid(floor(), Constant(0.0, -20.0, 0.0)).rollout(start, 50)
    assert float((pressed.q[..., 1] - 0.1).abs().max()) < 1e-9
    lifted = Hybrid(floor(), Constant(0.0, WEIGHT + 0.5, 0.0)).rollout(start, 50)
    assert float(lifted.q[0, -1, 1]) == pytest.approx(0.1 + 0.5 * (0.5 / 0.5) * 0.5**2)


def test_a_ball_on_the_ground_stays_on_it_under_a_learned_force():
    engine = articulated.load(
        """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 .1"><freejoint/>
        <geom type="sphere" size=".1" mass=".5"/></body></worldbody></mujoco>""",
        dt=0.01,
    )
    start = engine.initial_state(1, torch.float64)
    pressed = Hybrid(engine, Constant(0.0, 0.0, -20.0, 0.0, 0.0, 0.0)).rollout(start, 50)
    assert float((pressed.q[..., 2] - 0.1).abs().max()) < 1e-9
    lifted = Hybrid(engine, Constant(0.0, 0.0, WEIGHT + 0.5, 0.0, 0.0, 0.0)).rollout(start, 50)
    assert float(lifted.q[0, -1, 2]) == pytest.approx(0.1 + 0.5 * (0.5 / 0.5) * 0.5**2)


def test_what_contact_tells_of_a_step_is_told_of_the_motion():
    """A ball passes another at a tenth of a micrometre, after 0.503 s."""
    joint, sphere = [articulated.Joint("free")], Placed(Sphere(0.1))
    bodies = [
        articulated.Body(name, None, joint, mass=1.0, inertia=(0.004,) * 3, shapes=[sphere]) for name in ("a", "b")
    ]
    engine = articulated.tree(bodies, dt=0.01, gravity=(0, 0, 0), contact=articulated.ContactSettings(restitution=1.0))
    start = engine.initial_state(1, torch.float64)
    q, v = start.q.clone(), start.v.clone()
    q[:, 0], q[:, 1], v[:, 0] = -0.503, 0.2 + 1e-7, 1.0
    run = Hybrid(engine, Constant(*[0.0] * 12)).rollout(State(q, v), 60)
    assert run.status.first_grazing_step.tolist() == [51]
    assert run.status.first_failed_step.tolist() == [-1]


def test_a_layer_inside_learns_through_the_force():
    layer = PhysicsLayer(chain(), {"lengths": [0.6, 0.6]}, articulated.chain_properties)
    hybrid = Hybrid(layer, Constant(0.1, 0.1))
    hybrid.rollout(some(), 3).final.q.sum().backward()
    assert all(bool(parameter.grad.any()) for parameter in hybrid.parameters())


def test_a_passive_force_takes_energy_and_never_gives_any():
    """Its power is −dU/dt − Σ c v², with U's rate by differences along the velocity."""
    torch.manual_seed(1)
    force = PassiveForce(ANGLES, scale=2.0, hidden=16, velocity_scale=3.0).double()
    for network in (force.potential, force.drag):
        nn.init.normal_(network[-1].weight)
    state, move = some(64), 1e-6
    forward, back = (force.energy(state.q + sign * move * state.v) for sign in (1, -1))
    left = (force(state) * state.v).sum(1) + (forward - back) / (2 * move)
    drags = force.drags(state)
    assert bool((drags >= 0).all())
    assert 0 < int((drags == 0).sum()) < drags.numel()
    torch.testing.assert_close(left, -(drags * state.v.square()).sum(1), rtol=1e-6, atol=1e-7)


def test_what_a_force_explains_is_learned_and_what_it_costs_can_be_weighed():
    """A drag that the engine lacks, from single steps; with a weight on the force it stays away."""
    true, start = articulated.chain([0.5, 0.7], dt=0.02, damping=0.05), some(16)
    after = true.step(start)
    added = []
    for weight in (0.0, 1e3):
        torch.manual_seed(0)
        force = LearnedForce(StatePerceptron(ANGLES, outputs=1, hidden=16), scale=0.1).double()
        hybrid = Hybrid(articulated.chain([0.5, 0.7], dt=0.02), force)
        optimizer = torch.optim.Adam(force.parameters(), 0.02)
        for _ in range(60):
            optimizer.zero_grad()
            run = hybrid.rollout(start, 1)
            loss = (run.final.v - after.v).square().mean() + weight * hybrid.forces(run).square().mean()
            loss.backward()
            optimizer.step()
        separation = (hybrid.step(start).v - after.v).norm() / (hybrid.engine.step(start).v - after.v).norm()
        added.append(float(separation))
    assert added[0] < 0.2
    assert added[1] > 0.9


def test_bad_parts_are_refused():
    with pytest.raises(UnsupportedError, match="NetworkEngine takes no generalized force"):
        Hybrid(NetworkEngine(StatePerceptron(ANGLES), 0.02), Constant(0.0, 0.0))
    with pytest.raises(InputError, match="expected one output for each velocity, got 2"):
        LearnedForce(StatePerceptron(ANGLES))
    with pytest.raises(InputError, match="expected one number, or 2, got 3"):
        LearnedForce(StatePerceptron(ANGLES, outputs=1), scale=(1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="expected two outputs for each velocity, got 1"):
        NetworkEngine(StatePerceptron(ANGLES, outputs=1), 0.02)
    assert isinstance(Hybrid(chain(), Constant(0.0, 0.0)).rollout(some(), 2), Trajectory)
