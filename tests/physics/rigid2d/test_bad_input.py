"""Bad input is refused with the body's name; a world that fails is named and harms no other."""

import copy
import math
import pickle
import signal
import threading

import pytest
import torch
from physics.rigid2d.scenes import THREE, ball, billiard, start, walls

from physvision.core import DtypeError, InputError, ModelError, ShapeError, State
from physvision.physics import rigid2d
from physvision.physics.rigid2d import penetration

SQUARE = [(-10, -10), (10, -10), (10, 10), (-10, 10)]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: rigid2d.Circle(5, (0, 0), mass=0, name="ball"), InputError, "ball: mass: expected a positive"),
        (lambda: rigid2d.Circle(-5, (0, 0), name="ball"), InputError, "ball: radius: expected a positive"),
        (lambda: rigid2d.Circle(5, (0, math.nan), name="ball"), InputError, "ball: position: expected 2 finite"),
        (lambda: rigid2d.Circle(5, (0, 0), angle=math.inf, name="ball"), InputError, "ball: angle: expected a finite"),
        (lambda: rigid2d.Circle(5, (0, 0), friction=-0.1, name="ball"), InputError, "ball: friction: expected"),
        (lambda: rigid2d.Circle(5, (0, 0), restitution=1.2, name="ball"), InputError, "ball: restitution: expected"),
        (lambda: rigid2d.Circle(5, (0, 0), restitution=math.nan, name="b"), InputError, "b: restitution: expected"),
        (lambda: rigid2d.Polygon(SQUARE[::-1], name="box"), ModelError, "box: the vertices run clockwise"),
        (lambda: rigid2d.Polygon([*SQUARE, (0, 0)], name="dart"), ModelError, "dart: the polygon is not strictly"),
        (lambda: rigid2d.Polygon(SQUARE[:2], name="line"), ModelError, "line: expected at least 3 vertices, got 2"),
        (lambda: rigid2d.Polygon([(0, 0), (1, 0), (2, 0)], name="flat"), ModelError, "flat: the polygon is not"),
        (lambda: rigid2d.Rectangle((0, 5), (0, 0), name="box"), InputError, "box: size: expected a positive"),
        (lambda: rigid2d.Revolute("a", None, (0, 0), limits=(0.1, 0.2)), InputError, "Revolute: limits: expected"),
        (lambda: rigid2d.Spring("a", None), InputError, "Spring: to: a spring to the world needs"),
        (lambda: rigid2d.Spring("a", None, to=(0, 0), stiffness=-1), InputError, "Spring: stiffness: expected"),
    ],
)
def test_bad_bodies_and_joints_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_star_whose_edges_cross_is_refused():
    star = [(math.cos(4 * math.pi * k / 5), math.sin(4 * math.pi * k / 5)) for k in range(5)]
    with pytest.raises(ModelError, match="star: the edges of the polygon cross each other"):
        rigid2d.Polygon(star, name="star")


def test_joints_to_unknown_bodies_are_refused():
    body = ball((0, 0), name="ball")
    with pytest.raises(ModelError, match="Revolute: no body is called 'bal'; there are 'ball'"):
        rigid2d.World([body], [rigid2d.Revolute("bal", None, (0, 0))])
    with pytest.raises(ModelError, match="pin: the body 'other' is not one of the world's bodies"):
        rigid2d.World([body], [rigid2d.Revolute(ball((9, 9), name="other"), name="pin")])
    with pytest.raises(ModelError, match="expected a body, its name, or a number below 1, got 3"):
        rigid2d.World([body], [rigid2d.Revolute(3)])
    with pytest.raises(ModelError, match="joins the body 'ball' to itself"):
        rigid2d.World([body], [rigid2d.Weld("ball", "ball")])
    with pytest.raises(ModelError, match="2 bodies are called 'ball'"):
        rigid2d.World([body, ball((100, 0), name="ball")])


def test_bodies_far_apart_are_not_compared_at_the_start(monkeypatch):
    """Comparing all of them took most of the time in which a world of 500 bodies was made."""
    compared = []
    monkeypatch.setattr(penetration, "penetration", lambda *bodies: compared.append(bodies) or (-1.0, (1.0, 0.0)))
    rigid2d.World([ball((50 * k, 0), name=f"{k}") for k in range(30)])
    assert not compared
    rigid2d.World([ball((39 * k, 0), name=f"{k}") for k in range(30)])
    assert len(compared) == 29


def test_penetrating_starts_raise_or_are_separated():
    def bodies():
        return [ball((0, 0), name="first"), ball((30, 0), name="second"), ball((60, 10), name="third", mass=3)]

    with pytest.raises(ModelError, match="'first' and 'second' penetrate by 10 at the start"):
        rigid2d.World(bodies())
    world = rigid2d.World(bodies(), initial_penetration="separate")
    place = start(world).q.reshape(3, 3)[:, :2]
    assert torch.pdist(place).min() > 40 - 1e-5
    between = [rigid2d.Rectangle((20, 100), (x, 0), static=True, name=f"wall {x}") for x in (-25, 25)]
    with pytest.raises(ModelError, match="there is no room to separate them"):
        rigid2d.World([*between, ball((0, 0))], initial_penetration="separate")


def test_bad_properties_name_the_body():
    world = rigid2d.World([ball((0, 0), name="left"), ball((100, 0), name="right")])
    state = start(world)
    with pytest.raises(InputError, match=r"properties\.mass of 'right': expected numbers above zero, got -1"):
        world.rollout(state, 1, properties={"mass": torch.tensor([1.0, -1.0])})
    with pytest.raises(InputError, match=r"properties\.restitution of 'left': expected numbers in \[0, 1\], got 2"):
        world.rollout(state, 1, properties={"restitution": torch.tensor([2.0, 0.0])})
    with pytest.raises(InputError, match=r"properties\.friction of 'left': expected numbers of at least zero"):
        world.rollout(state, 1, properties={"friction": torch.tensor([math.nan, 0.0])})
    with pytest.raises(InputError, match="properties: no property 'masses'; there are mass, gyration"):
        world.rollout(state, 1, properties={"masses": torch.ones(2)})
    with pytest.raises(ShapeError, match=r"properties\.mass: expected shape \(2,\)"):
        world.rollout(state, 1, properties={"mass": torch.ones(3)})
    with pytest.raises(ShapeError, match=r"properties\.mass: expected .* \(1, 2\) per world, got \(4, 2\)"):
        world.rollout(state, 1, properties={"mass": torch.ones(4, 2)})


def test_bad_states_and_controls_are_refused():
    world = billiard(*THREE)
    state = start(world)
    with pytest.raises(ShapeError, match=r"state\.q"):
        world.rollout(State(state.q[:, :8], state.v), 1)
    with pytest.raises(ShapeError, match="controls"):
        world.rollout(state, 5, torch.zeros(1, 4, 9, dtype=torch.float64))
    with pytest.raises(DtypeError, match="controls"):
        world.rollout(state, 4, torch.zeros(1, 4, 9))
    with pytest.raises(InputError, match="steps"):
        world.rollout(state, 0)


def test_a_world_that_fails_is_named_warns_once_and_harms_no_other():
    world = billiard(*THREE)
    state = start(world, 3)
    v = state.v.clone()
    v[1, 4] = math.nan
    with pytest.warns(RuntimeWarning, match=r"1 of 3 worlds failed \(world 1; first at step 1"):
        trajectory = world.rollout(State(state.q, v), 20)
    assert trajectory.status.failed() == [1]
    assert not torch.isfinite(trajectory.q[1, -1]).all()
    alone = billiard(*THREE).rollout(start(world), 20)
    assert torch.equal(trajectory.q[0], alone.q[0])
    assert torch.equal(trajectory.q[2], alone.q[0])


def test_more_events_than_a_step_allows_end_in_a_fallback_step():
    # A ball of 30,000 px/s in a gap of 4 px bounces 250 times in a step.
    walls = [rigid2d.Rectangle((20, 100), (x, 0), static=True, restitution=1, friction=0) for x in (-32, 32)]
    world = rigid2d.World(
        [*walls, ball((0, 0), (30_000, 0))], gravity=(0, 0), settings=rigid2d.StepSettings(max_events=64)
    )
    trajectory = world.rollout(start(world), 2)
    assert trajectory.status.converged.all()
    assert trajectory.status.fallback_steps.tolist() == [1]
    # A crowded step leaves overlaps of two ten-thousandths of the smallest body.
    assert trajectory.q[:, :, 0].abs().max() <= 2 + 2e-4 * world.model.smallest
    assert trajectory.v[0, -1, 0].abs() <= 30_000
    roomy = rigid2d.World(
        [*walls, ball((0, 0), (30_000, 0))], gravity=(0, 0), settings=rigid2d.StepSettings(max_events=1024)
    )
    assert roomy.rollout(start(roomy), 2).status.fallback_steps.tolist() == [0]


def test_a_failed_world_is_nan_from_its_first_bad_step_on():
    world = billiard(*THREE)
    controls = torch.zeros(2, 6, world.nu, dtype=torch.float64)
    controls[1, 3, 0] = math.inf
    with pytest.warns(RuntimeWarning, match=r"(?s)first at step 4.*not finite.*smaller dt"):
        trajectory = world.rollout(start(world, 2), 6, controls)
    assert torch.isfinite(trajectory.q[1, :4]).all()
    assert torch.isnan(trajectory.q[1, 4:]).all()
    assert torch.isnan(trajectory.v[1, 4:]).all()


def test_a_static_body_that_moves_is_refused_and_a_driven_one_is_not():
    with pytest.raises(ModelError, match=r"lift: a static body stands still, but its velocity is .* kinematic=True"):
        rigid2d.Rectangle((10, 1), (0, 0), static=True, velocity=(0, 1), name="lift")
    lift = rigid2d.Rectangle((10, 1), (0, -0.5), kinematic=True, velocity=(0.5, 1), name="lift", friction=1.0)
    box = rigid2d.Rectangle((1, 1), (0, 0.5), velocity=(0.5, 1), friction=1.0, restitution=0.0)
    world = rigid2d.World([lift, box], gravity=(0, -9.81), dt=1 / 60)
    final = world.rollout(start(world), 60).final
    torch.testing.assert_close(final.q[0], torch.tensor([0.5, 0.5, 0, 0.5, 1.5, 0], dtype=torch.float64))
    torch.testing.assert_close(final.v[0, 3:], torch.tensor([0.5, 1, 0], dtype=torch.float64))


def test_a_world_says_what_is_in_it():
    assert repr(billiard(*THREE)) == (
        "World(4 Rectangles, 3 Circles, 4 of them static; gravity=(0, 0), dt=0.0333333, nq=9, nu=9)"
    )


def rolled_in_a_worker(world):
    return world.rollout(start(world), 3).final.q


def test_a_world_is_copied_and_pickled_after_use_and_works_in_a_spawned_worker():
    world = billiard(*THREE)
    expected = world.rollout(start(world), 3).final.q
    for same in (copy.deepcopy(world), pickle.loads(pickle.dumps(world))):
        assert torch.equal(same.rollout(start(same), 3).final.q, expected)
    with torch.multiprocessing.get_context("spawn").Pool(1) as pool:
        assert torch.equal(pool.apply(rolled_in_a_worker, (world,)), expected)


@pytest.fixture
def _interruptible():
    """As in a terminal: a process that a shell starts in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_is_taken_in_the_middle_of_a_rollout_and_the_world_works_on():
    world = billiard(*THREE)
    world.rollout(start(world), 1)
    # To the thread that waits, as a terminal does: one that another thread takes would not wake it.
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    state, steps = start(world, 16), 100_000
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        world.rollout(state, steps)
    alone = billiard(*THREE).rollout(start(world), 20)
    assert torch.equal(world.rollout(start(world), 20).q, alone.q)


@pytest.mark.parametrize("speed", [1e11, 1e16])
def test_a_body_of_absurd_speed_is_named_and_passes_no_wall_unsaid(speed):
    box = rigid2d.Rectangle((40, 30), (200, 200), angle=0.4, velocity=(speed, 0.3 * speed), restitution=0.5)
    world = rigid2d.World([*walls(), box], gravity=(0, 0))
    with pytest.warns(RuntimeWarning, match="crosses the world"):
        trajectory = world.rollout(start(world), 3)
    assert trajectory.status.first_failed_step.tolist() == [1]
