"""Worlds too busy for events: bounded work, no energy from nowhere, no overlap, the gradient of the step taken."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

from copy import copy

import pytest
import torch
from physics.rigid2d import scenes
from physics.rigid2d.scenes import start

from physvision.core import State
from physvision.physics import rigid2d
from physvision.physics.rigid2d.penetration import penetration
from physvision.physics.rigid2d.rollout import Kernels
from physvision.physics.rigid2d.world import planar_poses, points_in_world


def max_penetration(world, state):
    poses = [world.model.pose(i) for i in range(len(world.model.bodies))]
    for slot, number in enumerate(world.model.moving):
        poses[number] = tuple(state.q[0, 3 * slot : 3 * slot + 3].tolist())
    bodies = world.model.bodies
    return max(penetration(bodies[a], poses[a], bodies[b], poses[b])[0] for a, b in world.model.pairs)


@pytest.mark.parametrize(("count", "seed"), [(10, 0), (14, 1), (20, 2)])
def test_piles_come_to_rest_without_gaining_energy_or_penetrating(count, seed):
    world = scenes.pile(count, seed)
    trajectory = world.rollout(start(world), 600)
    assert trajectory.status.converged.all()
    assert trajectory.status.fallback_steps > 0
    total = sum(world.energy(trajectory))[0]
    # Position correction lifts bodies by what they overlap; the bar of the whole is a thousandth of the start's energy.
    assert total.diff().clamp(min=0).sum() < 1e-3 * total[0]
    assert trajectory.v[0, -1].abs().max() < 0.1
    assert max_penetration(world, trajectory.final) < 1e-2 * world.model.smallest


def test_a_pile_of_forty_stands_still_in_the_end():
    # Contacts that are solved only nearly let it creep by millimetres a second for ever.
    world = scenes.pile(40, 30)
    trajectory = world.rollout(start(world), 600)
    assert trajectory.v[0, -60:].abs().max() == 0


@pytest.mark.parametrize("ground", ["static", "driven"])
def test_what_sleeps_is_woken_and_does_what_it_would_have_done_awake(ground):
    # Two pyramids at rest, more contacts each than can be followed; a ball that rolls strikes the first after a while.
    surface = {"friction": 0.5, "restitution": 0.0}
    bodies = []
    for center in (0.0, 15.0):
        for row in range(4):
            for i in range(4 - row):
                place = (center + 1.2 * (i - (3 - row) / 2), 0.5 + row)
                bodies.append(rigid2d.Rectangle((1, 1), place, **surface))
    ball = rigid2d.Circle(0.5, (-3.5, 0.5), velocity=(3, 0), spin=-6, **surface)
    floor = rigid2d.Rectangle((60, 1), (0, -0.5), static=ground == "static", kinematic=ground == "driven", **surface)
    world = rigid2d.World([*bodies, ball, floor], gravity=(0, -9.81), dt=1 / 60)
    trajectory = world.rollout(start(world), 40)
    assert trajectory.status.fallback_steps == 40
    # 0.7 m at 3 m/s take 14 steps.
    assert (trajectory.v[0, :13, :30] == 0).all()
    assert trajectory.v[0, 14:20, :30].abs().max() > 0.5
    assert (trajectory.v[0, :, 30:60] == 0).all()
    for k in range(40):
        # A rollout of one step begins with all awake.
        torch.testing.assert_close(
            world.rollout(trajectory.state(k), 1).final.q, trajectory.q[:, k + 1], rtol=0, atol=1e-9
        )


@pytest.mark.parametrize("seed", [0, 34, 37])
def test_what_contacts_do_in_a_pile_is_found(seed):
    # In each of these the way to the answer ends early in some steps, and another leads there.
    world = scenes.pile(10 + seed % 31, seed)
    trajectory = world.rollout(start(world), 130)
    assert trajectory.status.residual < 1e-8
    assert trajectory.status.iterations <= 150
    # What contacts did in the step before is but a guess: without it, steps end where they did. With friction a problem
    # may have several answers: what is wedged may stay so or slip, and a rollout goes on with what was. That begins in
    # one step in fifty at most.
    elsewhere = ends_elsewhere(world, trajectory)
    assert (elsewhere & ~elsewhere.roll(1)).sum() <= 130 // 50


def ends_elsewhere(world, trajectory):
    """Which steps of a rollout end elsewhere when they are taken alone."""
    alone = world.rollout(State(trajectory.q[0, :-1], trajectory.v[0, :-1]), 1)
    return (alone.q[:, 1] - trajectory.q[0, 1:]).abs().amax(1) > 1e-9


def test_the_gradient_of_a_step_with_several_answers_is_that_of_the_answer_taken():
    confirmed = 0
    for seed in (19, 22):
        world, generator = scenes.pile(10 + seed % 31, seed), torch.Generator().manual_seed(seed)
        trajectory = world.rollout(start(world), 130)
        dq, dv, weights = torch.randn(3, 1, world.nq, generator=generator, dtype=torch.float64)
        for second in ends_elsewhere(world, trajectory).nonzero().flatten().tolist():
            # A step that takes another answer alone than after the one before it.
            before = trajectory.state(second - 1)

            def value(change, world=world, before=before, dq=dq, dv=dv, weights=weights):
                return world.rollout(State(before.q + change * dq, before.v + change * dv), 2).final.q[0] @ weights[0]

            change = torch.zeros((), dtype=torch.float64, requires_grad=True)
            (actual,) = torch.autograd.grad(value(change), change)
            # Most contacts of a pile change what they do within 1e-7: only what another difference confirms counts.
            wide, narrow = ((value(x) - value(-x)) / (2 * x) for x in (1e-9, 1e-10))
            if abs(wide - narrow) < 1e-4 * abs(wide):
                confirmed += 1
                torch.testing.assert_close(actual, wide, rtol=1e-4, atol=0)
    assert confirmed > 0


def test_the_gradient_of_a_relaxed_step_is_that_of_the_step_taken():
    # So much friction that in some steps the ways to an answer end before it, and a relaxed problem's stands.
    bodies = [copy(body) for body in scenes.pile(10, 11).model.bodies]
    for body in bodies:
        body.friction = 3.0
    world = rigid2d.World(bodies, gravity=(0, -9.81), dt=1 / 60, settings=rigid2d.StepSettings(max_contacts=1))
    trajectory = world.rollout(start(world), 60)
    missed = world.rollout(State(trajectory.q[0, :-1], trajectory.v[0, :-1]), 1).status.residual
    fallen = trajectory.state(int((missed > 1e-3).nonzero()[0]))
    generator = torch.Generator().manual_seed(0)
    dq, dv, weights = torch.randn(3, 1, world.nq, generator=generator, dtype=torch.float64)
    own = world.properties

    def value(change):
        changed = {"friction": own.friction + change, "mass": own.mass * (1 + 0.3 * change)}
        ahead = world.rollout(State(fallen.q + change * dq, fallen.v + change * dv), 1, properties=changed)
        assert ahead.status.residual > 1e-3
        return ahead.final.q[0] @ weights[0]

    change = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (actual,) = torch.autograd.grad(value(change), change)
    # Answers are exact to 1e-9 of speeds, so that a difference over 2e-7 is to a few 1e-5.
    torch.testing.assert_close(actual, (value(1e-7) - value(-1e-7)) / 2e-7, rtol=1e-4, atol=0)


def test_a_world_that_stayed_as_it_was_is_not_computed_again_until_something_changes(monkeypatch):
    boxes = [rigid2d.Rectangle((1, 1), (0, 0.5 + i), friction=0.5, restitution=0.0) for i in range(3)]
    world = rigid2d.World([rigid2d.Rectangle((9, 1), (0, -0.5), static=True), *boxes], gravity=(0, -9.81), dt=1 / 60)
    launches, run = [], Kernels.run
    monkeypatch.setattr(Kernels, "run", lambda *given: (launches.append(1), run(*given)))
    state = world.rollout(start(world), 60).final
    first = world.rollout(state, 1)
    assert (first.final.q == state.q).all()
    count = len(launches)
    again = world.rollout(first.final, 1)
    assert len(launches) == count
    assert (again.q == first.q).all()
    assert again.status.iterations == first.status.iterations
    # What was returned is the caller's own.
    again.q.zero_()
    assert (world.rollout(first.final, 1).q == first.q).all()
    assert len(launches) == count
    push = torch.zeros(1, world.nu, dtype=torch.float64)
    push[0, 6] = 20.0
    assert world.step(first.final, push).v[0, 6] > 0
    heavier = {"gravity": 2 * world.properties.gravity}
    assert (world.rollout(first.final, 1, properties=heavier).final.q == state.q).all()
    assert len(launches) == count + 2


def test_a_platform_carries_a_pile_at_its_own_velocity():
    surface = {"friction": 0.5, "restitution": 0.2}
    lift = rigid2d.Rectangle((40, 1), (0, -0.5), kinematic=True, velocity=(0.5, 1.0), name="lift", **surface)
    boxes = [rigid2d.Rectangle((1, 1), (2.0 * i, 0.5), velocity=(0.5, 1.0), **surface) for i in range(-5, 6)]
    world = rigid2d.World([lift, *boxes], gravity=(0, -9.81), dt=1 / 60)
    trajectory = world.rollout(start(world), 60)
    assert trajectory.status.fallback_steps == 60
    expected = torch.tensor([0.5, 1.0, 0.0], dtype=torch.float64).expand(12, 3)
    for actual in (trajectory.final.v, trajectory.final.q - trajectory.q[:, 0]):
        torch.testing.assert_close(actual.reshape(-1, 3), expected, rtol=0, atol=1e-5)


def busy_world():
    """Boxes, a jointed pair of balls and a box alone on a floor; whatever touches is more than is followed."""
    surface = {"restitution": 0.3, "friction": 0.4}
    bodies = [
        rigid2d.Rectangle((20, 1), (0, -0.5), static=True, **surface),
        rigid2d.Rectangle((1, 0.6), (0, 0.3), **surface),
        rigid2d.Rectangle((0.8, 0.5), (0.1, 0.86), mass=2.0, **surface),
        rigid2d.Circle(0.3, (2, 0.3005), **surface),
        rigid2d.Circle(0.2, (2.505, 0.25), **surface),
        rigid2d.Rectangle((0.5, 0.5), (5, 0.2501), **surface),
    ]
    joints = [rigid2d.Revolute(4, 5, (3.0, 0.3))]
    return rigid2d.World(
        bodies,
        joints,
        gravity=(0, -9.81),
        dt=1 / 60,
        settings=rigid2d.StepSettings(max_contacts=1),
        initial_penetration="separate",
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_of_a_fallback_step_is_that_of_the_step_taken(seed):
    world, generator = busy_world(), torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    state = start(world)
    # Overlaps by thousandths, so that a contact's kind does not hang on the direction of a difference.
    shift = torch.stack([torch.zeros(5), -1e-3 - 1e-3 * draw(5).abs(), 1e-3 * draw(5)], 1).reshape(1, -1)
    state = State(state.q + shift, draw(1, world.nv) * torch.tensor([1, 0.3, 0.3] * 5))
    weights, moves = draw(2, world.nq), draw(2, 1, world.nq)
    own, masses = world.properties, 0.1 * draw(5)

    def value(change):
        changed = {
            "mass": own.mass + change * masses,
            "friction": own.friction + 0.3 * change,
            "restitution": own.restitution + 0.2 * change,
            "radius": own.radius + 0.1 * change * (own.radius > 0),
            "anchors": own.anchors + 0.2 * change,
            "gravity": own.gravity + change,
        }
        moved = State(state.q + change * moves[0], state.v + change * moves[1])
        trajectory = world.rollout(moved, 1, properties=changed)
        assert trajectory.status.fallback_steps == 1
        return trajectory.final.q[0] @ weights[0] + 0.1 * trajectory.final.v[0] @ weights[1]

    change = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (actual,) = torch.autograd.grad(value(change), change)
    difference = (value(1e-6) - value(-1e-6)) / 2e-6
    # The adjoint is that of the exact solution; where joints and contacts alternate, sweeps end some 1e-5 from it.
    torch.testing.assert_close(actual, difference, rtol=1e-4, atol=1e-6)


def test_another_order_of_bodies_and_a_mirror_change_nothing():
    world = busy_world()
    state = world.rollout(start(world), 5).final
    ahead = world.rollout(state, 1).final
    flip = torch.tensor([-1.0, 1.0, -1.0] * 5, dtype=torch.float64)
    surface = {"restitution": 0.3, "friction": 0.4}
    order = [4, 2, 0, 3, 1]
    bodies = [rigid2d.Rectangle((20, 1), (0, -0.5), static=True, **surface)]
    shapes = [
        rigid2d.Rectangle((1, 0.6), (0, 0.3), **surface),
        rigid2d.Rectangle((0.8, 0.5), (-0.1, 0.86), mass=2.0, **surface),
        rigid2d.Circle(0.3, (-2, 0.3005), name="large", **surface),
        rigid2d.Circle(0.2, (-2.505, 0.25), name="small", **surface),
        rigid2d.Rectangle((0.5, 0.5), (-5, 0.2501), name="alone", **surface),
    ]
    bodies += [shapes[i] for i in order]
    joints = [rigid2d.Revolute("small", "alone", (-3.0, 0.3))]
    rotated = rigid2d.World(
        bodies,
        joints,
        gravity=(0, -9.81),
        dt=1 / 60,
        settings=rigid2d.StepSettings(max_contacts=1),
        initial_penetration="separate",
    )

    def turned(values):
        return (values * flip).reshape(1, 5, 3)[:, order].reshape(1, -1)

    same = rotated.rollout(State(turned(state.q), turned(state.v)), 1).final
    torch.testing.assert_close(same.q, turned(ahead.q), rtol=0, atol=1e-9)
    torch.testing.assert_close(same.v, turned(ahead.v), rtol=0, atol=1e-9 * 60)


def test_stiff_damping_and_springs_are_stable_at_any_step():
    damped = rigid2d.Circle(1, (0, 0), velocity=(1, 0), velocity_decay=50.0, name="damped")
    hung = rigid2d.Circle(1, (5, 0), mass=0.1, name="hung")
    spring = rigid2d.Spring("hung", None, to=(5, 10), stiffness=50.0, length=9.0)
    world = rigid2d.World([damped, hung], [spring], gravity=(0, 0), dt=0.1)
    trajectory = world.rollout(start(world), 100)
    total = sum(world.energy(trajectory))[0] - 0.5 * trajectory.v[0, :, 0] ** 2
    assert trajectory.v[0, 1:, 0].abs().max() < 0.05
    # Half a radian of the spring's phase a flow: the energy of the leapfrog oscillates by (ωh)²/4 = 6 %.
    assert total.max() < 1.07 * total[0]
    assert total.min() > 0.93 * total[0]


def test_velocities_that_violate_joints_are_put_right_without_gaining_energy():
    bar = rigid2d.Rectangle((2, 0.1), (1, 0), velocity=(3.0, -1.0), spin=4.0, name="bar")
    world = rigid2d.World([bar], [rigid2d.Revolute("bar", None, (0, 0))], gravity=(0, 0), dt=1 / 60)
    trajectory = world.rollout(start(world), 60)
    # What is left is the angular momentum about the pin: I ω = (m r v + I₀ ω₀).
    about_pin = 1.0 + float(world.properties.gyration) ** 2
    spin = (-1.0 + float(world.properties.gyration) ** 2 * 4.0) / about_pin
    torch.testing.assert_close(trajectory.v[0, 1:, 2], torch.full((60,), spin, dtype=torch.float64))
    kinetic = world.energy(trajectory)[0][0]
    assert kinetic.max() <= kinetic[0]


def test_a_rope_of_twenty_links_holds_at_a_sixtieth_of_a_second():
    links = 20
    rods = [
        rigid2d.Rectangle((1 / links, 0.02), ((i + 0.5) / links, 0), mass=1 / links, name=f"{i}") for i in range(links)
    ]
    pins = [rigid2d.Revolute("0", None, (0, 0))]
    pins += [rigid2d.Revolute(f"{i}", f"{i - 1}", (i / links, 0)) for i in range(1, links)]
    exempt = [(f"{i}", f"{j}") for i in range(links) for j in range(i)]
    world = rigid2d.World(rods, pins, gravity=(0, -9.81), dt=1 / 60, exempt=exempt)
    trajectory = world.rollout(start(world), 300)
    assert trajectory.status.converged.all()
    place = planar_poses(world.model, trajectory.flatten(), world.properties)
    ends = [[ends[side] for _, ends in world.model.joints] for side in range(2)]
    sides = [points_in_world(place[:, ends[side]], world.properties.anchors[:, side]) for side in range(2)]
    assert (sides[0] - sides[1]).norm(dim=-1).max() < 1e-8
    total = sum(world.energy(trajectory))[0]
    # Its last links whip round at three hundred radians a second; nothing takes energy, so that none is lost.
    assert (total - total[0]).abs().max() < 0.02 * 9.81


@pytest.mark.parametrize("seed", [2, 24])
def test_bodies_frozen_in_a_fallback_step_have_the_gradient_of_staying(seed):
    # Part of the pile lies still already: it stays where it is, wherever that is.
    world = scenes.pile(10 + seed, seed)
    trajectory = world.rollout(start(world), 130)
    alone = world.rollout(State(trajectory.q[0], trajectory.v[0]), 1)
    still = ((alone.q[:, 1] == alone.q[:, 0]) & (alone.v[:, 1] == 0)).reshape(131, -1, 3).all(2).any(1)
    fallen = trajectory.state(int((still & (alone.status.fallback_steps == 1)).nonzero()[0]))
    generator = torch.Generator().manual_seed(seed)
    dq, dv, weights = torch.randn(3, 1, world.nq, generator=generator, dtype=torch.float64)
    change = torch.zeros((), dtype=torch.float64, requires_grad=True)
    trajectory = world.rollout(State(fallen.q + change * dq, fallen.v + change * dv), 1)
    assert trajectory.status.fallback_steps == 1
    stays = (trajectory.q[0, 0] == trajectory.q[0, 1]) & (trajectory.v[0, 1] == 0)
    stays = stays.reshape(-1, 3).all(1).repeat_interleave(3)
    assert stays.any()
    (actual,) = torch.autograd.grad(trajectory.final.q[0] @ (weights[0] * stays), change)
    torch.testing.assert_close(actual, (dq[0] * stays) @ weights[0], rtol=1e-12, atol=1e-12)
