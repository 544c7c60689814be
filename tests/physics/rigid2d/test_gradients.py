"""Gradients to states, controls and every property: against differences, and by the rules that gradients obey."""

# pyright: reportAttributeAccessIssue=false

import pytest
import torch
from physics.rigid2d.scenes import THREE, billiard, push, start, struck_chain

from physvision.core import State
from physvision.physics import rigid2d
from physvision.physics.rigid2d.properties import WorldProperties


def machine():
    """Every joint, spring and motor at once, nothing touching."""
    bodies = [
        rigid2d.Rectangle((40, 20), (0, 0), name="base", mass=3, angle=0.2, spin=0.4, velocity_decay=0.1),
        rigid2d.Rectangle((60, 10), (40, 5), name="arm", mass=1.5, angle=-0.1),
        rigid2d.Circle(8, (90, 20), name="tip", velocity=(0, 3)),
        rigid2d.Polygon([(0, 0), (20, 0), (10, 15)], (0, 80), name="slider", mass=2, velocity=(5, 0)),
        rigid2d.Circle(6, (60, 90), name="guided", velocity=(2, 0)),
        rigid2d.Circle(5, (120, 90), name="rider", spin=1.0),
    ]
    joints = [
        rigid2d.Revolute("base", None, (0, 0), stiffness=300, damping=20),
        rigid2d.Revolute("arm", "base", (15, 3), motor=True, limits=(-2, 2), stiffness=50),
        rigid2d.Weld("tip", "arm", (70, 10)),
        rigid2d.HoldY("slider", None),
        rigid2d.HoldX("guided", "slider", (60, 90)),
        rigid2d.HoldAngle("rider", "guided"),
        rigid2d.Spring("rider", "guided", at=(121, 92), to=(62, 88), stiffness=8, length=50, damping=0.7),
        rigid2d.Spring("slider", None, to=(-60, 100), stiffness=5, damping=0.3),
    ]
    return rigid2d.World(bodies, joints, gravity=(1, 30), dt=1 / 30)


def sliding_box():
    floor = rigid2d.Rectangle((4000, 20), (0, 110), static=True, friction=0.3, restitution=0)
    box = rigid2d.Rectangle((40, 20), (0, 90), velocity=(80, 0), friction=0.5, restitution=0, mass=2)
    return rigid2d.World([floor, box], gravity=(0, 100), dt=1 / 30)


def tumbling_box():
    floor = rigid2d.Rectangle((4000, 20), (0, 110), static=True, friction=0.3, restitution=0.6)
    box = rigid2d.Rectangle((40, 20), (0, 40), velocity=(30, 0), spin=1.1, angle=0.5, friction=0.5, restitution=0.8)
    return rigid2d.World([floor, box], gravity=(0, 100), dt=1 / 30)


def chain_and_ball():
    return struck_chain(3)


def bumped_limit():
    rods = [rigid2d.Rectangle((10, 60), (0, 25 + 50 * i), name=f"rod {i}") for i in range(2)]
    joints = [
        rigid2d.Revolute("rod 0", None, (0, 0)),
        rigid2d.Revolute("rod 1", "rod 0", (0, 50), limits=(-0.3, 0.3), motor=True),
    ]
    return rigid2d.World(rods, joints, gravity=(60, 100), dt=1 / 30)


# Scene, steps, events within them, and whether properties matter to the end.
SCENES = {
    "machine": (machine, 4),
    "slip that ends": (sliding_box, 75),
    "corner that bounces": (tumbling_box, 45),
    "chain that is struck": (chain_and_ball, 75),
    "limit": (bumped_limit, 15),
}


def inputs_of(world, steps):
    """A perturbed start, controls and all leaves that are finite and not empty, as vectors of one world."""
    generator = torch.Generator().manual_seed(0)
    state = start(world)
    controls = 0.3 * torch.randn(1, steps, world.nu, generator=generator, dtype=torch.float64)
    if "ball" in world.model.names:
        controls = controls + push(world, steps)
    # Bodies that joints hold do not slide freely; `test_sliding` has that leaf.
    names = set(WorldProperties.leaves()) - {"sliding_deceleration"}
    leaves = {name: getattr(world.properties, name) for name in WorldProperties.leaves() if name in names}
    leaves = {name: leaf.clone() for name, leaf in leaves.items() if leaf.numel() and torch.isfinite(leaf).all()}
    for name in (
        "velocity_decay",
        "sliding_deceleration",
        "joint_stiffness",
        "joint_damping",
        "spring_damping",
        "radius",
        "friction",
    ):
        if name in leaves:
            # What may not be negative has room on both sides.
            leaves[name] = torch.where(leaves[name] == 0, 0.05, leaves[name])
    leaves["restitution"] = leaves["restitution"].clamp(0.05, 0.95)
    return {"q": state.q, "v": state.v, "controls": controls, **leaves}


def loss_of(world, steps, values):
    leaves = {name: leaf for name, leaf in values.items() if name not in ("q", "v", "controls")}
    trajectory = world.rollout(State(values["q"], values["v"]), steps, values["controls"], leaves)
    assert trajectory.status.converged.all()
    weights = torch.cos(torch.arange(trajectory.q.numel(), dtype=torch.float64)).reshape(trajectory.q.shape)
    return (weights * trajectory.q).sum() + (weights * trajectory.v).sum() * 0.1


@pytest.mark.parametrize("name", SCENES)
def test_gradients_agree_with_differences(name):
    make, steps = SCENES[name]
    world = make()
    values = inputs_of(world, steps)
    for value in values.values():
        value.requires_grad_()
    gradients = torch.autograd.grad(loss_of(world, steps, values), list(values.values()))
    generator = torch.Generator().manual_seed(1)
    for key, gradient in zip(values, gradients, strict=True):
        # Along a random direction; states that leave the joints are put right by the first step, differentiably too.
        way = torch.randn(values[key].shape, generator=generator, dtype=torch.float64)
        if name == "slip that ends" and key in ("q", "v", "static_pose"):
            way[:, 1:] = 0  # into the floor, or off it, there is no derivative
        way = way * values[key].detach().abs().amax().clamp(min=1e-3) / way.norm()
        exact = (gradient * way).sum()
        actual = []
        for size in (1e-5, 1e-6):
            ends = []
            for sign in (1, -1):
                moved = {k: v.detach() for k, v in values.items()}
                moved[key] = moved[key] + sign * size * way
                ends.append(loss_of(world, steps, moved))
            actual.append((ends[0] - ends[1]) / (2 * size))
        # Rounding of the loss, 1e-12 of about 1e4 and enlarged by impacts, over the step; curvature over its square.
        closest = min((value - exact).abs() for value in actual)
        assert closest < 1e-4 * exact.abs() + 1e-3, (key, actual, exact)


def test_a_shared_leaf_has_the_sum_of_the_worlds_gradients():
    world = sliding_box()
    state = start(world, 3)
    state = State(state.q, state.v * torch.tensor([[1.0], [0.8], [1.3]], dtype=torch.float64))

    def gradient(friction):
        friction = friction.clone().requires_grad_()
        q = world.rollout(state, 60, properties={"friction": friction}).q
        return torch.autograd.grad(q[..., 0].square().mean(1).sum(), friction)[0]

    base = world.properties.friction
    torch.testing.assert_close(gradient(base), gradient(base.expand(3, -1)).sum(0))


def test_a_rollout_is_its_steps_chained():
    world = chain_and_ball()
    controls = push(world, 60)
    mass = world.properties.mass.clone().requires_grad_()
    whole = world.rollout(start(world), 60, controls, {"mass": mass}).final
    state = start(world)
    for k in range(60):
        state = world.step(state, controls[:, k], {"mass": mass})
    torch.testing.assert_close(state.q, whole.q, rtol=1e-12, atol=1e-12)
    chained = torch.autograd.grad(state.q.sum(), mass)[0]
    torch.testing.assert_close(chained, torch.autograd.grad(whole.q.sum(), mass)[0], rtol=1e-9, atol=1e-12)


def test_truncation_cuts_the_gradient_and_leaves_the_states():
    world = billiard(*THREE)
    v = start(world).v.requires_grad_()
    cut = world.rollout(State(start(world).q, v), 30, truncate=10)
    assert torch.equal(cut.q, world.rollout(start(world), 30).q)
    assert torch.autograd.grad(cut.q[:, 10].sum(), v, retain_graph=True)[0].abs().sum() > 0
    assert torch.autograd.grad(cut.q[:, 11].sum(), v, allow_unused=True, materialize_grads=True)[0].abs().sum() == 0


def test_jacrev_and_vmap_agree_with_loops():
    world = billiard(*THREE)
    state = start(world)

    def end(v):
        return world.rollout(State(state.q, v), 40).q[0, -1]

    # The state is checked for its values by no branch of Python, so that vmap may pass.
    rows = torch.func.jacrev(end)(state.v)[:, 0]
    v = state.v.clone().requires_grad_()
    q = end(v)
    looped = torch.stack([torch.autograd.grad(q[i], v, retain_graph=True)[0][0] for i in range(len(q))])
    torch.testing.assert_close(rows, looped)


def test_linearization_of_a_bounce():
    # The ball turns round at the wall within the step: both diagonal entries of x are −1.
    world = billiard([(378, 200)], [(150, 0)])
    a, b = world.linearize(start(world))
    expected = torch.eye(6, dtype=torch.float64)
    expected[:3, 3:] = torch.eye(3) / 30
    expected[0] *= -1
    expected[3] *= -1
    torch.testing.assert_close(a[0], expected, rtol=1e-6, atol=1e-9)
    # A force acts over the whole step: outwards before the impact, inwards after it.
    before = 2 / 150
    left = 1 / 30 - before
    by_force = (before**2 / 2) * -1 + left * -before + left**2 / 2
    torch.testing.assert_close(b[0, 0, 0].item(), by_force, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0])
def test_a_bounce_by_differences_of_every_size(size):
    # A step this long carries the impact to another step of the grid, where a wrong gradient would be confirmed.
    world = billiard([(100, 200)], [(150, 0)])
    state = start(world)
    ends = []
    for sign in (1, -1):
        q = state.q.clone()
        q[0, 0] += sign * size
        ends.append(world.rollout(State(q, state.v), 100).final.q[0, 0])
    torch.testing.assert_close((ends[0] - ends[1]) / (2 * size), torch.tensor(-1.0).double(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("late", "expected"), [(0.0, -0.5), (0.1, 1.0), (0.5, 1.0)])
def test_an_impact_on_the_grid_moves_with_its_gap_and_one_that_was_due_before_does_not(late, expected):
    # With restitution e and unit speed, y₁ = e (dt − gap) where the gap closes on the grid: −e. What overlaps already,
    # as contacts do that a crowded step left so, strikes at once wherever it is: y₁ = y₀ + e dt.
    surface = {"restitution": 0.5, "friction": 0.0}
    floor = rigid2d.Rectangle((10, 2), (0, -1), static=True, **surface)
    ball = rigid2d.Circle(1, (0, 1), velocity=(0, -1), **surface)
    world = rigid2d.World([floor, ball], gravity=(0, 0), dt=1 / 60)
    state = start(world)
    q = (state.q - torch.tensor([0, late * world._limits["tolerance"], 0])).requires_grad_()
    (actual,) = torch.autograd.grad(world.rollout(State(q, state.v), 1).final.q[0, 1], q)
    torch.testing.assert_close(actual[0, 1], torch.tensor(expected, dtype=torch.float64))
