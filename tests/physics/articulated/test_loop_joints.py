# ruff: noqa: E501
"""Loops: points that stay together and frames that are welded. Joined inertia, a four-bar linkage, differences, files."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import numpy as np
import pytest
import torch
from physics.articulated.slopes import compare
from scipy.spatial.transform import Rotation

from physvision import State
from physvision.core import InputError, ModelError, Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated import Body, ContactSettings, Joint, LoopJoint, tree

DOUBLE = torch.float64


def pose(point, turn=None):
    result = np.eye(4)
    result[:3, 3] = point
    if turn is not None:
        result[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    return result


def moved(inertia, mass, away):
    """Moments about a point that the center of mass is away from."""
    return inertia + mass * (away @ away * np.eye(3) - np.outer(away, away))


def test_two_welded_bodies_are_one():
    """Their acceleration under a wrench is that of a body with the joined mass, center and moments."""
    rng = np.random.default_rng(0)
    masses, moments = (1.3, 0.7), (np.diag([0.02, 0.03, 0.04]), np.diag([0.03, 0.01, 0.025]))
    separation, turn = np.array([0.3, -0.2, 0.4]), np.array([0.4, 0.9, -0.5])
    rotation = Rotation.from_rotvec(turn).as_matrix()
    free = [
        Body(name, None, [Joint("free")], mass=m, inertia=i) for name, m, i in zip("ab", masses, moments, strict=True)
    ]
    weld = LoopJoint("a", "b", pose(separation, turn), np.eye(4), weld=True)
    dt = 1e-5
    pair = tree(free, dt=dt, contact="event", loop_joints=[weld])
    center = masses[1] * separation / sum(masses)
    whole = moved(moments[0], masses[0], center)
    whole = whole + moved(rotation @ moments[1] @ rotation.T, masses[1], separation - center)
    single = tree([Body("a", None, [Joint("free")], mass=sum(masses), inertia=whole, center_of_mass=center)], dt=dt)
    fixed = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    x, y, z, w = Rotation.from_matrix(fixed).as_quat()
    xb, yb, zb, wb = Rotation.from_matrix(fixed @ rotation).as_quat()
    speed, spin = rng.normal(size=3), rng.normal(size=3)
    of_b = speed + fixed @ np.cross(spin, separation)
    q = torch.tensor([[0, 0, 0, w, x, y, z, *(fixed @ separation), wb, xb, yb, zb]], dtype=DOUBLE)
    v = torch.tensor([[*speed, *spin, *of_b, *(rotation.T @ spin)]], dtype=DOUBLE)
    wrench = torch.tensor(rng.normal(size=(1, 2, 6)))
    # A wrench on a alone; of the joined body it acts at a's origin, not at the common center.
    wrench[:, 1] = 0.0
    force, moment = wrench[0, 0, :3].numpy(), wrench[0, 0, 3:].numpy()
    merged = np.concatenate([force, moment - np.cross(fixed @ center, force)])
    # A step's rows hold where it begins: that frames turn is felt from the second step on, and evenly after some.
    path = pair.rollout(State(q, v), 61, wrenches=wrench.unsqueeze(1).expand(1, 61, 2, 6))
    result = ((path.v[0, 61] - path.v[0, 60]) / dt)[:6]
    late = State(path.q[:, 60, :7], path.v[:, 60, :6])
    expected = single.acceleration(late, wrenches=torch.tensor(merged).reshape(1, 1, 6))[0]
    assert result.tolist() == pytest.approx(expected.tolist(), rel=1e-3, abs=1e-3)  # it turns by 1e-3 in this time


def test_a_weld_holds_and_keeps_momentum_and_energy():
    """Two bodies tumble without weight: momentum to rounding, energy and place to the order of the step."""
    free = [
        Body("a", None, [Joint("free")], mass=1.3, inertia=(0.02, 0.03, 0.04)),
        Body("b", None, [Joint("free")], mass=0.7, inertia=(0.03, 0.01, 0.025)),
    ]
    weld = LoopJoint("a", "b", pose((0.3, -0.2, 0.4)), np.eye(4), weld=True)
    off = []
    for dt in (4e-3, 1e-3):
        engine = tree(free, dt=dt, gravity=(0, 0, 0), contact="event", loop_joints=[weld])
        spin, separation = np.array([1.0, 2.0, -0.5]), np.array([0.3, -0.2, 0.4])
        q = torch.tensor([[0, 0, 0, 1, 0, 0, 0, *separation, 1, 0, 0, 0]], dtype=DOUBLE)
        v = torch.tensor([[0, 0, 0, *spin, *np.cross(spin, separation), *spin]], dtype=DOUBLE)
        path = engine.rollout(State(q, v), round(1.0 / dt))
        assert path.status is not None
        assert bool(path.status.converged)
        momentum = 1.3 * path.v[0, :, :3] + 0.7 * path.v[0, :, 6:9]
        assert float((momentum - momentum[0]).abs().max()) < 1e-10
        energy = sum(part.squeeze() for part in engine.energy(State(path.q[0], path.v[0])))
        poses = engine.poses(State(path.q[0], path.v[0]))
        gap = poses[:, 1, :3, 3] - (poses[:, 0] @ torch.tensor([0.3, -0.2, 0.4, 1.0], dtype=DOUBLE))[:, :3]
        turned = poses[:, 0, :3, :3] - poses[:, 1, :3, :3]
        off.append([float((energy / energy[0] - 1).abs().max()), float(gap.abs().max()), float(turned.abs().max())])
        assert off[-1].pop() < 1e-12
    assert max(off[0]) < 0.02
    assert all(fine < 0.35 * coarse_steps for coarse_steps, fine in zip(*off, strict=True))


def linkage(dt, loop_joints=True):
    """A parallelogram: two cranks of 0.4 m on the world, and a coupler of 0.6 m that hangs on one and meets the other."""
    crank = {"mass": 0.5, "center_of_mass": (0, 0, -0.2), "inertia": (0.5 * 0.4**2 / 12,) * 3}
    bodies = [
        Body("left", None, [Joint("revolute", (0, 1, 0))], **crank),
        Body("coupler", "left", [Joint("revolute", (0, 1, 0))], mass=0.9, position=(0, 0, -0.4), center_of_mass=(0.3, 0, 0), inertia=(0.01,) * 3),
        Body("right", None, [Joint("revolute", (0, 1, 0))], position=(0.6, 0, 0), **crank),
    ]  # fmt: skip
    meets = LoopJoint("coupler", "right", pose((0.6, 0, 0)), pose((0, 0, -0.4)))
    return tree(bodies, dt=dt, contact="event", loop_joints=[meets] if loop_joints else [])


def test_a_parallelogram_is_a_pendulum():
    """(2 m L²/3 + M L²) θ̈ = −(m L + M L) g sin θ: the coupler does not turn. Off by the order of the step."""
    m, big, length, g = 0.5, 0.9, 0.4, 9.81
    inertia = 2 * m * length**2 / 3 + big * length**2
    single = Body("p", None, [Joint("revolute", (0, 1, 0))], mass=4.0, center_of_mass=(0, 0, -(m + big) * length / 4), inertia=(inertia - ((m + big) * length) ** 2 / 4,) * 3)  # fmt: skip
    exact = tree([single], dt=1e-3, integrator="runge_kutta_4")
    assert g == 9.81
    target = float(
        exact.rollout(State(torch.tensor([[0.7]], dtype=DOUBLE), torch.zeros(1, 1, dtype=DOUBLE)), 1000).q[0, -1, 0]
    )
    errors = []
    for dt in (4e-3, 1e-3):
        q = torch.tensor([[0.7, -0.7, 0.7]], dtype=DOUBLE)
        path = linkage(dt).rollout(State(q, torch.zeros(1, 3, dtype=DOUBLE)), round(1.0 / dt))
        errors.append(abs(float(path.q[0, -1, 0]) - target))
        assert float((path.q[0, :, 0] - path.q[0, :, 2]).abs().max()) < 10 * dt * dt
        assert float((path.q[0, :, 0] + path.q[0, :, 1]).abs().max()) < 10 * dt * dt
    assert errors[0] < 0.05
    assert errors[1] < 0.35 * errors[0]


def test_gradients_through_loop_joints():
    """A linkage and a ball welded to a bar, which strikes the ground."""
    bar = {"mass": 0.8, "inertia": (0.02, 0.01, 0.015), "center_of_mass": (0.1, 0, 0)}
    bodies = [
        Body("left", None, [Joint("revolute", (0, 1, 0.1))], **bar),
        Body("middle", "left", [Joint("ball")], position=(0.3, 0, 0), **bar),
        Body("free", None, [Joint("free")], shapes=[Placed(Sphere(0.1))], **bar),
    ]
    engine = tree(
        bodies, dt=0.01, contact=ContactSettings(friction=0.3), static_shapes=[Placed(Plane(), pose=tuple(map(tuple, pose((0, 0, -0.35)).tolist())))],
        loop_joints=[
            LoopJoint("middle", "free", pose((0.3, 0, 0), (0.1, 0.2, 0.3)), pose((0, 0, 0)), weld=True),
        ],
    )  # fmt: skip
    leaves = ("mass", "position", "center_of_mass", "shape_pose", "friction")
    checked = 0
    for seed in range(2):
        rng = torch.Generator().manual_seed(seed)
        x, y, z, w = Rotation.from_rotvec((0.1, 0.2, 0.3)).as_quat()
        q = torch.tensor([[0.0, 1, 0, 0, 0, 0.6, 0, 0, w, x, y, z]], dtype=DOUBLE)
        values = {"q": q, "v": 0.3 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)}
        values |= {name: getattr(engine.properties, name).clone() for name in leaves}
        weights = torch.randn(engine.nq + engine.nv, generator=rng, dtype=DOUBLE)

        def loss(given, weights=weights):
            path = engine.rollout(State(given["q"], given["v"]), 25, properties={name: given[name] for name in leaves})
            assert path.status is not None
            assert path.status.converged.all()
            return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

        def along(name, value, rng=rng):
            result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
            if name == "shape_pose":
                moving = torch.zeros_like(result)
                moving[..., :3, 3] = 0.1 * result[..., :3, 3]
                return moving
            return result if name in ("q", "v", "position", "center_of_mass") else result * value

        checked += compare(loss, values, along)
    assert checked >= 10  # of 14


def test_gradients_of_a_linkage():
    """Two points that stay together, in a plane: one of their three rows says nothing."""
    rng = torch.Generator().manual_seed(0)
    engine = linkage(0.01)
    leaves = ("mass", "position", "center_of_mass", "joint_damping")
    values = {"q": torch.tensor([[0.7, -0.7, 0.7]], dtype=DOUBLE), "v": torch.tensor([[1.0, -1.0, 1.0]], dtype=DOUBLE)}
    values |= {name: getattr(engine.properties, name).clone() for name in leaves}

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), 25, properties={name: given[name] for name in leaves})
        return path.q[:, -1, 0] + 0.3 * path.v[:, -1, 2]

    def along(name, value):
        # What leads out of the plane would pull the points apart for good.
        flat = torch.tensor([1.0, 0.0, 1.0], dtype=DOUBLE) if name in ("position", "center_of_mass") else 1.0
        result = flat * torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        return result.abs() if name == "joint_damping" else result

    values["joint_damping"] = values["joint_damping"] + 0.1
    assert compare(loss, values, along) == 6


FILE = """<mujoco><worldbody>
  <body name="a" pos="0 0 1"><joint axis="0 1 0"/><geom size="0.05" fromto="0 0 0 .4 0 0" type="capsule" contype="0" conaffinity="0"/>
    <site name="end" pos=".4 0 0"/></body>
  <body name="b" pos="0.8 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/><site name="corner" pos="-.4 0 0"/></body>
</worldbody><equality>{}</equality></mujoco>"""


@pytest.mark.parametrize(
    ("equality", "turns"),
    [
        ('<connect body1="a" body2="b" anchor="0.4 0 0"/>', False),
        ('<connect site1="end" site2="corner"/>', False),
        ('<weld body1="a" body2="b"/>', True),
        ('<weld site1="end" site2="corner"/>', True),
        ('<weld body1="a" body2="b" anchor="-.4 .1 0"/>', True),
    ],
)
def test_loop_joints_of_files(equality, turns):
    """What a file connects stays together, as it is at the start."""
    engine = articulated.load(FILE.format(equality), dt=1e-3)
    path = engine.rollout(engine.initial_state(1, DOUBLE), 300)
    poses = engine.poses(State(path.q[0], path.v[0]))
    ends = [
        (poses[:, k] @ torch.tensor(at, dtype=DOUBLE))[:, :3] for k, at in ((0, [0.4, 0, 0, 1]), (1, [-0.4, 0, 0, 1]))
    ]
    # What turns at up to 9 rad/s drifts by ω² L h² / κ, κ = 0.34 of which a step takes back.
    assert float((ends[0] - ends[1]).norm(dim=-1).max()) < 1e-4
    assert float(poses[-1, 0, 0, 0]) < 0.9  # it swings
    assert (float((poses[:, 0, :3, :3] - poses[:, 1, :3, :3]).abs().max()) < 1e-4) == turns


def test_what_is_welded_to_a_mocap_body_follows_it():
    """What moves by d in each step is d (1/κ − 1) ahead at its end, κ of what a weld is off being taken back."""
    engine = articulated.load(
        """<mujoco><worldbody><body name="hand" mocap="true" pos="0 0 1"><geom size="0.02" contype="0"/></body>
        <body name="box" pos="0 0 1"><freejoint/><geom type="box" size="0.05 0.05 0.05" contype="0" mass="0.5"/></body>
        </worldbody><equality><weld body1="box" body2="hand"/></equality></mujoco>""",
        dt=0.005,
    )
    d, kappa, hand = 0.004, 0.34, engine.body_names.index("hand")
    state = engine.initial_state(1, torch.float64)
    for k in range(60):
        position = engine.properties.position.double().clone()
        position[hand, 0] += d * min(k + 1, 40)
        state = engine.step(state, properties={"position": position})
        if k == 39:
            assert float(position[hand, 0] - state.q[0, 0]) == pytest.approx(d * (1 / kappa - 1), abs=1e-9)
    torch.testing.assert_close(state.q[0, :3], position[hand], rtol=0, atol=1e-6)


def test_bad_loop_joints():
    bodies = [Body("a", None, [Joint("revolute")]), Body("b", "a", [Joint("revolute")])]
    with pytest.raises(ModelError, match="there is no body 'c'"):
        tree(bodies, contact="event", loop_joints=[LoopJoint("a", "c", np.eye(4), np.eye(4))])
    with pytest.raises(ModelError, match="expected two bodies"):
        tree(bodies, contact="event", loop_joints=[LoopJoint("a", "a", np.eye(4), np.eye(4))])
    with pytest.raises(InputError, match="contact='event'"):
        tree(bodies, loop_joints=[LoopJoint("a", "b", np.eye(4), np.eye(4))])
