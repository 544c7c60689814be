"""Joints with limits: closed forms through the time at which a stop is reached, differences, loading, bad input."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import Capsule, InputError, ModelError, Placed, Plane
from physvision.physics import articulated
from physvision.physics.articulated import Body, ContactSettings, Joint, tree

DOUBLE = torch.float64


def bar(name, parent, joint, position=(0.0, 0.0, -0.4)):
    return Body(
        name, parent, [joint], mass=0.7, center_of_mass=(0, 0, -0.2), inertia=(0.02, 0.02, 0.003),
        position=(0, 0, 0) if parent is None else position, shapes=[Placed(Capsule(0.05, 0.3))],
    )  # fmt: skip


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
@pytest.mark.parametrize("upper", [False, True])
def test_a_slider_stops_and_is_pulled_away_again(dt, upper):
    """It comes with v0 against a constant pull a, stands still at the stop at t*, and ends a (T − t*)² / 2 away."""
    sign = -1.0 if upper else 1.0
    stop, away, v0, pull, total = 0.3, 0.2, -0.9, 1.5, 0.8
    limits = (-9.0, -stop) if upper else (stop, 9.0)
    engine = tree(
        [Body("slider", None, [Joint("prismatic", (1, 0, 0), limits=limits)], mass=2.0)],
        dt=dt, gravity=(0, 0, 0), contact="event",
    )  # fmt: skip
    q = torch.tensor([[sign * (stop + away)]], dtype=DOUBLE, requires_grad=True)
    v = torch.tensor([[sign * v0]], dtype=DOUBLE, requires_grad=True)
    ranges = engine.properties.joint_limits.clone().requires_grad_()
    steps = round(total / dt)
    push = torch.full((1, steps, 1), sign * 2.0 * pull, dtype=DOUBLE)
    path = engine.rollout(State(q, v), steps, push, {"joint_limits": ranges})
    root = math.sqrt(v0**2 - 2 * pull * away)
    late = total - (-v0 - root) / pull
    assert float(path.q[0, -1, 0].detach()) == pytest.approx(sign * (stop + pull * late**2 / 2), abs=1e-9)
    by_q, by_v, by_limit = torch.autograd.grad(path.q[0, -1, 0], (q, v, ranges))
    # The way to the stop is away = −v0 t − a t² / 2: it takes 1 / root longer a meter, and t / root longer a m/s.
    assert float(by_q[0, 0]) == pytest.approx(-pull * late / root, abs=1e-9)
    assert float(by_v[0, 0]) == pytest.approx(-pull * late * (total - late) / root, abs=1e-9)
    assert float(by_limit[0, int(upper)]) == pytest.approx(1 + pull * late / root, abs=1e-9)
    assert float(by_limit[0, 1 - int(upper)]) == 0.0


def test_a_pendulum_rests_on_its_stop():
    """Its stop holds it at 30 degrees to the vertical, and it does not creep."""
    engine = tree([bar("bar", None, Joint("revolute", (0, 1, 0), limits=(0.5, 2.0)))], dt=0.01, contact="event")
    path = engine.rollout(State(torch.tensor([[1.5]], dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE)), 300)
    assert path.status is not None
    assert bool(path.status.converged)
    assert float(path.q[0, -1, 0]) == pytest.approx(0.5, abs=1e-9)
    assert float(path.q.min()) > 0.5 - 1e-4  # acceleration is held over a step
    assert float(path.v[0, -1, 0]) == pytest.approx(0.0, abs=1e-9)


GROUND = Placed(Plane(), pose=((1.0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, -1.1), (0, 0, 0, 1)))


@pytest.mark.parametrize("scenery", [(), (GROUND,)])
def test_gradients_through_stops(scenery):
    """Three bars that reach their stops, alone and where the last one strikes the ground too."""
    bars = [
        bar("a", None, Joint("revolute", (0, 1, 0.1), damping=0.01, limits=(-0.25, 0.3))),
        bar("b", "a", Joint("revolute", (0.2, 1, 0), damping=0.01, limits=(-0.3, 0.25))),
        bar("c", "b", Joint("revolute", (0, 1, 0), damping=0.01, limits=(-0.35, 0.4))),
    ]
    engine = tree(bars, dt=0.01, contact=ContactSettings(friction=0.5, exclude=[("a", "c")]), static_shapes=scenery)
    own = engine.properties
    checked, stopped = 0, 0
    for seed in range(4):
        rng = torch.Generator().manual_seed(seed)
        values = {
            "q": 0.1 * torch.randn(1, 3, generator=rng, dtype=DOUBLE).clamp(-1, 1),
            "v": 3 * torch.randn(1, 3, generator=rng, dtype=DOUBLE),
        }
        values |= {name: getattr(own, name).clone() for name in ("mass", "position", "joint_limits", "gravity")}
        weights = torch.randn(2, 3, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            leaves = {name: given[name] for name in ("mass", "position", "joint_limits", "gravity")}
            path = engine.rollout(State(given["q"], given["v"]), 30, properties=leaves)
            assert path.status is not None
            assert path.status.converged.all()
            return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1]

        path = engine.rollout(State(values["q"], values["v"]), 30)
        gaps = torch.minimum(path.q - own.joint_limits[:, 0], own.joint_limits[:, 1] - path.q)
        stopped += int((gaps.amin(1) < 1e-3).sum())
        checked += compare(
            loss, values, lambda _, value, rng=rng: torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        )
    assert stopped >= 4
    assert checked >= 20  # of 24


def test_a_ball_joint_stops_as_a_hinge_does():
    """Let go in a plane it swings to its largest angle and rests there under a pull, and so on the other side."""
    start, spin, largest = 0.3, -1.5, 0.5
    pulled = {"gravity": (-6.0, 0.0, -3.0), "dt": 2e-3, "contact": "event"}
    hinge = tree([bar("bar", None, Joint("revolute", (0, 1, 0), limits=(-largest, largest)))], **pulled)
    ball = tree([bar("bar", None, Joint("ball", limits=(-math.inf, largest)))], **pulled)
    path = hinge.rollout(State(torch.tensor([[start]], dtype=DOUBLE), torch.tensor([[spin]], dtype=DOUBLE)), 600)
    q = torch.tensor([[math.cos(start / 2), 0, math.sin(start / 2), 0]], dtype=DOUBLE)
    reference = ball.rollout(State(q, torch.tensor([[0, spin, 0]], dtype=DOUBLE)), 600)
    assert reference.status is not None
    assert bool(reference.status.converged)
    angle = 2 * torch.atan2(reference.q[0, :, 2], reference.q[0, :, 0])
    torch.testing.assert_close(angle, path.q[0, :, 0], rtol=0, atol=1e-9)
    assert float(path.q[0, -1].abs()) == pytest.approx(largest, abs=1e-9)


def test_gradients_of_balls_that_stop():
    """Two bars on ball joints swing about and strike their largest angles, one on the other."""
    engine = tree(
        [
            bar("a", None, Joint("ball", damping=0.01, limits=(-math.inf, 0.35))),
            bar("b", "a", Joint("ball", damping=0.01, limits=(-math.inf, 0.3))),
        ],
        dt=0.01, gravity=(0.5, 0.8, -9.81), contact="event",
    )  # fmt: skip
    rng = torch.Generator().manual_seed(3)
    own, steps, checked = engine.properties, 22, 0
    for _ in range(3):
        start = engine.initial_state(1, DOUBLE)
        values = {"q": start.q.clone(), "v": 2.5 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)}
        values |= {name: getattr(own, name).clone() for name in ("mass", "position", "joint_limits", "gravity")}
        weights = torch.randn(2, 8, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            leaves = {name: given[name] for name in ("mass", "position", "joint_limits", "gravity")}
            path = engine.rollout(State(given["q"], given["v"]), steps, None, leaves)
            assert path.status is not None
            assert path.status.converged.all()
            return path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : engine.nv]

        def direction(name, value):
            along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            return torch.where(value.isinf(), 0.0, along)

        path = engine.rollout(State(values["q"], values["v"]), steps)
        angles = 2 * torch.atan2(
            path.q.reshape(1, -1, 2, 4)[..., 1:].norm(dim=-1), path.q.reshape(1, -1, 2, 4)[..., 0].abs()
        )
        assert bool((angles.amax((0, 1)) > torch.tensor([0.35, 0.3]) - 1e-3).all())
        checked += compare(loss, values, direction)
    assert checked >= 15  # of 18


def test_limits_of_files():
    def file(kind, extra=""):
        return (
            f"<mujoco><compiler angle='radian'/>{extra}<worldbody><body><joint name='j' type='{kind}' axis='0 1 0' "
            "range='0.2 1' ref='0.5'/><geom size='0.1' pos='0 0 -1'/></body></worldbody></mujoco>"
        )

    engine = articulated.load(file("hinge"))
    assert engine.properties.joint_limits.tolist() == [[0.2, 1.0]]
    path = engine.rollout(engine.initial_state(1, DOUBLE), 200)
    # It hangs down at 0.5 and swings there for ever; pushed on, it stays within its limits.
    assert float(path.q.min()) == pytest.approx(0.5)
    path = engine.rollout(engine.initial_state(1, DOUBLE), 200, torch.full((1, 200, 1), 1e3, dtype=DOUBLE))
    assert float(path.q[0, -1, 0]) == pytest.approx(1.0, abs=1e-9)
    for free in (articulated.load(file("hinge"), ignore=("limit",)), articulated.load(
        file("hinge", "<option><flag limit='disable'/></option>")
    )):  # fmt: skip
        assert free.properties.joint_limits.isinf().all()
    ball = articulated.load(file("ball").replace("range='0.2 1'", "range='0 1'"))
    assert ball.properties.joint_limits.tolist() == [[-math.inf, 1.0]]


def test_bad_limits_are_refused():
    with pytest.raises(InputError, match="joint limits are part of the contact problem"):
        tree([bar("bar", None, Joint(limits=(0, 1)))], dt=0.01)
    with pytest.raises(ModelError, match="expected limits \\(-inf, largest angle\\) of a ball joint"):
        tree([bar("bar", None, Joint("ball", limits=(0, 1)))], dt=0.01, contact="event")
    with pytest.raises(ModelError, match="a free joint cannot have limits"):
        tree([bar("bar", None, Joint("free", limits=(0, 1)))], dt=0.01, contact="event")
    with pytest.raises(ModelError, match="joint_limits of 'bar': expected the lower limit first"):
        tree([bar("bar", None, Joint(limits=(1, 0)))], dt=0.01, contact="event")
    engine = tree([bar("bar", None, Joint())], dt=0.01)
    with pytest.raises(
        ModelError, match="joint_limits of 'bar': expected infinite limits of joints that were made without limits"
    ):
        engine.rollout(engine.initial_state(), 1, properties={"joint_limits": torch.tensor([[0.0, 1.0]])})
