"""Fluid drag: terminal velocity, MuJoCo's accelerations, differences. Also activations and tendons."""

# pyright: reportAttributeAccessIssue=false

import math

import mujoco  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import pytest
import torch
from physics.articulated.slopes import compare

from physvision import State
from physvision.core import ModelError, UnsupportedError
from physvision.physics import articulated
from physvision.physics.articulated import Body, Fluid, Joint, tree

DOUBLE = torch.float64


def row(*numbers):
    return torch.tensor([numbers], dtype=DOUBLE)


def test_a_falling_box_ends_at_its_terminal_velocity():
    """m g = ½ ρ b c v², with the sizes of the box from its inertia."""
    mass, sizes, density = 2.0, np.array([0.3, 0.4, 0.5]), 60.0
    inertia = mass / 12 * (np.sum(sizes**2) - sizes**2)
    body = Body("box", None, [Joint("free")], mass=mass, inertia=inertia)
    engine = tree([body], dt=1e-3, fluid=Fluid(density))
    assert sorted(engine.properties.drag_size[0].tolist()) == pytest.approx(sizes.tolist())
    end = engine.rollout(engine.initial_state(1, DOUBLE), 5000).final
    assert float(end.v[0, 2]) == pytest.approx(-math.sqrt(2 * mass * 9.81 / (density * 0.3 * 0.4)), rel=1e-6)


SWIMMER = """<mujoco><option density="900" viscosity="0.3"/><worldbody>
  <body name="a"><freejoint/><geom type="capsule" size="0.05 0.2" density="900"/>
    <body name="b" pos="0 0 .3"><joint type="ball"/><geom type="box" size="0.05 0.1 0.2" pos="0 .1 .2" density="900"/>
      <body pos="0 .1 .4" euler="10 20 30"><geom type="ellipsoid" size="0.05 0.1 0.2" density="900"/></body>
    </body></body></worldbody></mujoco>"""


def swimmer(batch, seed=0):
    model, rng = mujoco.MjModel.from_xml_string(SWIMMER), np.random.default_rng(seed)
    data, q, v, a = mujoco.MjData(model), [], [], []
    for _ in range(batch):
        place = model.qpos0.copy()
        mujoco.mj_integratePos(model, place, rng.normal(size=model.nv), 1.0)
        data.qpos[:], data.qvel[:] = place, rng.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        q.append(place)
        v.append(data.qvel.copy())
        a.append(data.qacc.copy())
    return State(torch.tensor(np.array(q)), torch.tensor(np.array(v))), torch.tensor(np.array(a))


def test_drag_is_that_of_mujoco():
    engine = articulated.load(SWIMMER, ignore=("contact",))
    state, target = swimmer(8)
    result = engine.acceleration(state)
    assert torch.allclose(result, target, rtol=1e-9, atol=1e-9)
    # Forward and inverse dynamics agree.
    assert float(engine.inverse_dynamics(state, result).abs().max()) < 1e-8


@pytest.mark.parametrize("contact", ["contact", None])
def test_gradients_of_drag(contact):
    engine = articulated.load(SWIMMER, 0.01, ignore=("contact",) if contact else ())
    leaves = ("fluid", "drag_size", "mass", "center_of_mass", "position", "orientation", "inertia")
    state, _ = swimmer(1, seed=3)
    rng = torch.Generator().manual_seed(1)
    weights = torch.randn(engine.nq + engine.nv, generator=rng, dtype=DOUBLE)
    values = {"q": state.q, "v": state.v} | {name: getattr(engine.properties, name).clone() for name in leaves}

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), 8, properties={name: given[name] for name in leaves})
        return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

    def along(name, value):
        result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name == "inertia":
            return 1e-3 * torch.eye(3, dtype=DOUBLE).expand(value.shape)
        return result * value if name in ("fluid", "drag_size", "mass") else result

    assert compare(loss, values, along) == 9


def test_a_fluid_has_no_negative_density():
    with pytest.raises(ModelError, match="at least zero"):
        tree([Body("a", None, [Joint("free")])], fluid=Fluid(-1.0))
    with pytest.raises(ModelError, match="made without a fluid"):
        tree([Body("a", None, [Joint("free")])]).checked({"fluid": torch.ones(2)})


def test_what_the_boxes_do_not_cover_is_refused():
    with pytest.raises(UnsupportedError, match="fluid: wind"):
        articulated.load(SWIMMER.replace('density="900" viscosity', 'wind="1 0 0" density="900" viscosity'))


ACTUATED = """<mujoco><option gravity="0 0 0" timestep="{dt}"/><worldbody><body>
  <joint name="x" type="slide" axis="1 0 0" damping="0.4"/><geom size="0.1" mass="2"/></body></worldbody>
  <actuator>{actuators}</actuator><keyframe><key name="k" qpos="0.1" qvel="0.2" act="0.3 -0.4"/></keyframe></mujoco>"""
LATE = """<general name="f" joint="x" dyntype="filter" dynprm="0.2" gainprm="3"/>
  <general name="i" joint="x" dyntype="integrator" gainprm="2" biastype="affine" biasprm="0 -5 -0.5"/>
  <motor name="m" joint="x" gear="0.5"/>"""


def test_an_activation_follows_its_control():
    """a = u (1 − e^(−t/τ)), and a = u t, which are the last velocities; the error falls with the step."""
    off = []
    for dt in (4e-3, 1e-3):
        engine = articulated.load(ACTUATED.format(dt=dt, actuators=LATE), dt)
        steps = round(0.5 / dt)
        controls = torch.tensor([0.7, 0.3, 0.0], dtype=DOUBLE).expand(1, steps, 3)
        v = engine.rollout(engine.initial_state(1, DOUBLE), steps, controls).v[0, -1]
        off.append(abs(float(v[1]) - 0.7 * (1 - math.exp(-0.5 / 0.2))))
        assert float(v[2]) == pytest.approx(0.3 * 0.5, abs=1e-12)
    assert off[0] < 4e-3
    assert off[0] / off[1] == pytest.approx(4.0, abs=0.2)


@pytest.mark.parametrize("kind", ["filter", "filterexact"])
@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_steps_with_activations_are_those_of_mujoco(kind, dt):
    """From a keyframe with activations, by semi-implicit Euler and MuJoCo's `implicitfast`."""
    source = ACTUATED.format(dt=dt, actuators=LATE.replace("filter", kind))
    engine, model = articulated.load(source, dt), mujoco.MjModel.from_xml_string(source)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data, steps = mujoco.MjData(model), 200
    mujoco.mj_resetDataKeyframe(model, data, 0)
    assert engine.keyframes["k"].v.tolist() == [[0.2, 0.3, -0.4]]
    data.ctrl[:] = [0.7, 0.3, -1.1]
    controls = torch.tensor(data.ctrl).expand(1, steps, 3)
    end = engine.rollout(engine.keyframes["k"], steps, controls).final
    mujoco.mj_step(model, data, steps)
    assert end.v[0].tolist() == pytest.approx([*data.qvel, *data.act], abs=1e-12)
    assert float(end.q[0, 0]) == pytest.approx(data.qpos[0], abs=1e-12)


def test_an_activation_faster_than_a_step_reaches_its_control():
    source = ACTUATED.format(dt=0.01, actuators=LATE.replace("0.2", "1e-4"))
    engine = articulated.load(source, 0.01)
    end = engine.rollout(engine.initial_state(1, DOUBLE), 1, torch.tensor([[[0.7, 0.0, 0.0]]], dtype=DOUBLE)).final
    assert float(end.v[0, 1]) == pytest.approx(0.7, abs=1e-12)


def test_gradients_through_activations():
    """To states and controls, of an actuator whose limited force is a row, beside one without."""
    pair = LATE.replace('name="i"', 'name="i" forcerange="-2 2"') + '<position name="p" joint="x" kp="3"/>'
    engine = articulated.load(ACTUATED.format(dt=0.01, actuators=pair), 0.01)
    assert engine.properties.transmission_rest_position.shape == (1,)
    rng = torch.Generator().manual_seed(0)
    values = {
        "q": torch.randn(1, 3, generator=rng, dtype=DOUBLE),
        "v": torch.randn(1, 3, generator=rng, dtype=DOUBLE),
        "controls": torch.randn(1, 30, 4, generator=rng, dtype=DOUBLE),
    }

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), 30, given["controls"])
        return path.q[:, -1, 0] + 0.3 * path.v[:, -1, 0]

    assert compare(loss, values, lambda _, value: torch.randn(value.shape, generator=rng, dtype=DOUBLE)) == 3


STRING = """<mujoco><option gravity="0 0 -9.81"/><worldbody><site name="hook" pos="0 0 1" size="0.01"/>
  <body name="ball" pos="0.3 0 1"><freejoint/><geom size="0.05" mass="0.4"/><site name="eye" size="0.01"/></body>
</worldbody><tendon><spatial name="t" limited="true" range="{range}"><site site="hook"/><site site="eye"/></spatial>
</tendon></mujoco>"""


def test_a_ball_falls_until_its_string_is_taut():
    """From 0.3 m beside the hook, on a string of 0.5 m: it falls 0.4 m, keeps what is across, and swings."""
    engine = articulated.load(STRING.format(range="0 0.5"), 1e-3)
    assert engine.geometry[0].name == "hook"
    path = engine.rollout(engine.initial_state(1, DOUBLE), 2000)
    speed, fall = math.sqrt(2 * 9.81 * 0.4), math.sqrt(2 * 0.4 / 9.81)
    after = path.v[0, math.ceil(fall / 1e-3)]
    # Taut at (0.6, −0.8): of (0, −v) it keeps −v · 0.6 across, along (−0.8, −0.6).
    late = math.ceil(fall / 1e-3) * 1e-3 - fall
    assert after[:3].tolist() == pytest.approx([-0.8 * 0.6 * speed, 0.0, -0.36 * speed], abs=2 * 9.81 * late + 1e-6)
    away = (path.q[0, :, :3] - torch.tensor([0.0, 0.0, 1.0], dtype=DOUBLE)).norm(dim=-1)
    assert float(away.max()) < 0.5 + 1e-4
    # It swings to the height of its energy on the other side, less what steps take.
    energy = 0.5 * (0.6 * speed) ** 2 + 9.81 * (1 - 0.4)
    height = float(path.q[0, 500:, 2].max())
    assert height == pytest.approx(min(energy / 9.81, 1.5), abs=0.02)


def test_gradients_of_a_string():
    """Through the time at which it is taut."""
    engine = articulated.load(STRING.format(range="0 0.5"), 0.01)
    rng = torch.Generator().manual_seed(0)
    start = engine.initial_state(1, DOUBLE)
    values = {"q": start.q, "v": start.v, "shape_pose": engine.properties.shape_pose.clone()}
    weights = torch.randn(13, generator=rng, dtype=DOUBLE)

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), 45, properties={"shape_pose": given["shape_pose"]})
        return torch.cat([path.q[:, -1], path.v[:, -1]], 1) @ weights

    def along(name, value):
        result = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name == "shape_pose":
            moved = torch.zeros_like(result)
            moved[..., :3, 3] = result[..., :3, 3]
            return moved
        return result

    assert compare(loss, values, along) == 3


def test_a_strut_keeps_its_ends_apart():
    engine = articulated.load(STRING.format(range="0.25 0.5").replace('-9.81"', '0"'), 1e-3)
    start = engine.initial_state(1, DOUBLE)
    start.v[0, 0] = -1.0
    path = engine.rollout(start, 300)
    assert float(path.q[0, :, 0].min()) == pytest.approx(0.25, abs=1e-9)
    assert float(path.v[0, -1, :3].abs().max()) < 1e-12
