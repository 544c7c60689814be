"""Contacts that follow a reference acceleration: MuJoCo's, rest in closed form, gradients, bad input."""

# pyright: reportAttributeAccessIssue=false

from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from physics.articulated.slopes import compare
from physics.articulated.trees import contact_tree, stepping_robot

from physvision import State
from physvision.core import Capsule, InputError, Placed, Plane, Sphere, UnsupportedError
from physvision.physics.articulated import Body, Compliant, Joint, load

pytestmark = pytest.mark.extended
DOUBLE = torch.float64
MASS, GRAVITY, SIZE = 0.8, 10.0, 0.1

# What touches what: balls and capsules each other and level or tilted ground, a box on its corners, with and without
# friction, joints at their stops, the parts of two trees.
SCENES = {
    "ball": """<geom type="plane" size="9 9 1" friction="0.7"/>
        <body pos="0 0 0.09"><freejoint/><geom type="sphere" size="0.1" friction="0.4"/></body>""",
    "tilted": """<geom type="plane" size="9 9 1" euler="20 10 0"/>
        <body pos="0 0 0.09"><freejoint/><geom type="capsule" size="0.1 0.2" euler="70 20 0"/></body>""",
    "slippery": """<geom type="plane" size="9 9 1" condim="1"/>
        <body pos="0 0 0.09"><freejoint/><geom type="capsule" size="0.1 0.2" condim="1" euler="85 0 0"/></body>""",
    "box": """<geom type="plane" size="9 9 1"/>
        <body pos="0 0 0.09"><freejoint/><geom type="box" size="0.2 0.15 0.1" margin="0.01"/></body>""",
    "wheel": """<geom type="plane" size="9 9 1"/>
        <body pos="0 0 0.099"><joint axis="0 1 0"/><geom type="sphere" size="0.1"/></body>""",
    "upright": """<geom type="plane" size="9 9 1"/>
        <body pos="0 0 0.199"><joint type="slide"/><joint type="slide" axis="1 0 0"/><joint axis="1 0 0" pos="0 0 0"/>
        <geom type="capsule" size="0.1 0.1"/></body>""",
    "trees": """<geom type="plane" size="9 9 1"/>
        <body name="one" pos="0 0 0.1"><freejoint/><geom type="capsule" size="0.1 0.2" euler="80 10 0"/></body>
        <body name="two" pos="0.1 0.05 0.25"><freejoint/><geom type="capsule" size="0.1 0.1" euler="30 60 0"/></body>
        <body name="three" pos="-0.1 0.1 0.27"><freejoint/><geom type="sphere" size="0.1"/></body>""",
    "arm": """<geom type="plane" size="9 9 1"/>
        <body pos="0 0 0.3"><joint type="ball" range="0 17" limited="true" armature="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <body pos="0.3 0 0"><joint axis="0 1 0.2" range="-10 10" limited="true" armature="0.05"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 -0.2" size="0.03"/>
        <body pos="0.2 0 -0.2"><joint type="slide" axis="1 0 0" range="-0.02 0.03" limited="true"/>
        <geom type="sphere" size="0.12"/></body></body></body>""",
}  # fmt: skip


OPTIONS = '<option cone="pyramidal" jacobian="dense" tolerance="0" iterations="200"/>'
MODELS = {name: f"<mujoco>{OPTIONS}<worldbody>{scene}</worldbody></mujoco>" for name, scene in SCENES.items()}


@pytest.mark.parametrize("name", MODELS)
def test_accelerations_are_mujocos(name):
    """Of random states in which something overlaps; semi-implicit Euler without drag gives v′ = v + h q̈."""
    model, h = mujoco.MjModel.from_xml_string(MODELS[name]), 0.01
    engine = load(MODELS[name], dt=h, contact="compliant")
    data, random, compared = mujoco.MjData(model), np.random.default_rng(1), 0
    for _ in range(200):
        q, v = np.array(model.qpos0), random.normal(size=model.nv)
        mujoco.mj_integratePos(model, q, 0.05 * random.normal(size=model.nv), 1.0)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        result = engine.step(State(*(torch.from_numpy(entry)[None] for entry in (q, v)))).v[0].numpy()
        compared += data.nefc > 0
        np.testing.assert_allclose((result - v) / h, data.qacc, rtol=0, atol=1e-10 * np.abs(data.qacc).max())
    assert compared > 50


@settings(max_examples=30, deadline=None)
@given(
    time_constant=st.floats(0.02, 0.2),
    damping_ratio=st.floats(0.3, 2.0),
    minimum=st.floats(0.1, 0.9),
    width=st.floats(1e-3, 0.1),
    friction=st.floats(0.05, 2.0),
    seed=st.integers(0, 1000),
)
def test_accelerations_are_mujocos_whatever_the_numbers(time_constant, damping_ratio, minimum, width, friction, seed):
    law = Compliant(time_constant, damping_ratio, (minimum, 0.95), width)
    model = mujoco.MjModel.from_xml_string(MODELS["trees"])
    model.geom_solref[:], model.geom_solimp[:] = (time_constant, damping_ratio), (minimum, 0.95, width, 0.5, 2.0)
    model.geom_friction[:, 0] = friction
    engine = load(MODELS["trees"], dt=0.01, contact=law)
    properties = {"friction": torch.full_like(engine.properties.friction, friction)}
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    q, v = np.array(model.qpos0), random.normal(size=model.nv)
    mujoco.mj_integratePos(model, q, 0.05 * random.normal(size=model.nv), 1.0)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    start = State(*(torch.from_numpy(entry)[None] for entry in (q, v)))
    result = engine.step(start, properties=properties).v[0].numpy()
    np.testing.assert_allclose((result - v) / 0.01, data.qacc, rtol=0, atol=1e-9 * np.abs(data.qacc).max())


def world(bodies, law, **options):
    return contact_tree(bodies, gravity=(0, 0, -GRAVITY), static_shapes=[Placed(Plane())], contact=law, **options)


def ball(damping=0.0):
    return Body("ball", None, [Joint("free", damping=damping)], mass=MASS, inertia=(0.0032,) * 3,
                shapes=[Placed(Sphere(SIZE))])  # fmt: skip


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "runge_kutta_4"])
def test_a_ball_rests_where_its_weight_is_carried(friction, integrator):
    """It stands still where the edges, D of each, push with its weight: D k d(−g) Σ n_e = m G, of both integrators."""
    law = Compliant(0.05, 1.0, (0.5, 0.8), 0.02)
    engine = world([ball(damping=2.0)], law, dt=5e-3, friction=friction, integrator=integrator)
    start = engine.initial_state(dtype=DOUBLE)
    end = engine.rollout(State(start.q + torch.tensor([0, 0, SIZE, 0, 0, 0, 0]), start.v), 4000).final
    assert float(end.v.abs().max()) < 1e-9
    depth = SIZE - float(end.q[0, 2])
    x = depth / law.width
    assert 0 < x < 1
    fraction = 0.5 + 0.3 * (2 * x * x if x < 0.5 else 1 - 2 * (1 - x) ** 2)
    reference = fraction * depth / (0.8 * 0.05) ** 2
    # Four edges of D/(2 μ² (1 + μ²)) each, or one of D.
    edges = 4 / (2 * friction**2 * (1 + friction**2)) if friction else 1
    assert edges * MASS * fraction / (1 - fraction) * reference == pytest.approx(MASS * GRAVITY, rel=1e-6)
    listed = engine.contacts(end, max_separation=1.0)
    torch.testing.assert_close(listed.impulse[0, 0], torch.tensor([0, 0, MASS * GRAVITY * 5e-3], dtype=DOUBLE))


def test_what_slides_is_lifted():
    """As in MuJoCo's own docs: the pyramid's edges away from the motion push up, which Coulomb's law does not."""
    engine = world([ball()], Compliant(), dt=1e-3, friction=1.0)
    start = engine.initial_state(dtype=DOUBLE)
    q, v = start.q + torch.tensor([0, 0, SIZE - 5e-4, 0, 0, 0, 0]), start.v.clone()
    v[0, 0] = 5.0
    path = engine.rollout(State(q, v), 50)
    assert 0.2 < float(path.v[0, :, 2].max()) < 0.8


LEAVES = (
    "mass", "center_of_mass", "inertia", "position", "orientation", "joint_damping", "joint_limits", "gravity",
    "friction", "shape_pose", "shape_size",
)  # fmt: skip


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "runge_kutta_4"])
def test_gradients_of_every_input_and_property(integrator):
    """A robot of three bodies with stops falls on the ground, on its own foot and on a log, and slides."""
    log = Body("log", None, [Joint("free")], mass=0.4, inertia=(0.01, 0.01, 0.002), shapes=[Placed(Capsule(0.06, 0.3))])
    bodies = [*stepping_robot(), log]
    law = Compliant(0.03, 0.8, (0.5, 0.9), 5e-3)
    engine = world(bodies, law, dt=4e-3, friction=0.5, integrator=integrator)
    steps, rng = 25, torch.Generator().manual_seed(2)
    start = engine.initial_state(dtype=DOUBLE)
    q = engine.integrate(start.q, 0.2 * torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE))
    q[0, 2] = 0.3
    q[0, -7:] = torch.tensor([0.1, -0.3, 0.06, 0.7, 0.68, 0.1, 0.2])
    v = torch.randn(1, engine.nv, generator=rng, dtype=DOUBLE)
    v[0, 2] = -1.0
    own = engine.properties
    values = {"q": q, "v": v, "u": 0.3 * torch.randn(1, steps, engine.nu, generator=rng, dtype=DOUBLE)}
    values |= {name: getattr(own, name).clone() for name in LEAVES}
    weights = torch.randn(2, engine.nq, generator=rng, dtype=DOUBLE)
    max_penetration = []

    def loss(given):
        path = engine.rollout(State(given["q"], given["v"]), steps, given["u"], {name: given[name] for name in LEAVES})
        max_penetration.append(float(path.status.penetration.min()))
        return (path.q @ weights[0] + path.v @ weights[1, : engine.nv]).mean(1)

    def direction(name, value):
        along = torch.randn(value.shape, generator=rng, dtype=DOUBLE)
        if name in ("mass", "friction", "shape_size", "joint_damping"):
            along = along * value
        if name == "joint_limits":
            along = torch.where(value.isfinite(), along, 0.0)
        if name == "shape_pose":
            along = 0.1 * along
        return (along + along.mT) * 0.001 if name == "inertia" else along

    assert compare(loss, values, direction) >= 12  # of 14
    assert min(max_penetration) > 1e-3


def test_single_precision_is_near_double():
    engine = load(MODELS["trees"], dt=5e-3, contact="compliant")
    ends = [engine.rollout(engine.initial_state(2, dtype), 40) for dtype in (torch.float32, DOUBLE)]
    assert all(end.status.converged.all() for end in ends)
    torch.testing.assert_close(ends[0].final.q.double(), ends[1].final.q, rtol=0, atol=1e-4)


GAMES = (
    "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum", "pusher_v5", "reacher",
    "swimmer", "walker2d_v5",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", GAMES)
def test_gymnasiums_files_accelerate_as_in_mujoco(name):
    gymnasium = pytest.importorskip("gymnasium")
    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.jacobian, model.opt.tolerance, model.opt.iterations = mujoco.mjtJacobian.mjJAC_DENSE, 0.0, 500
    model.opt.cone, model.opt.integrator = mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtIntegrator.mjINT_EULER
    model.dof_damping[:] = 0.0
    engine = load(file, dt=model.opt.timestep, contact="compliant")
    smooth = {"joint_damping": torch.zeros_like(engine.properties.joint_damping)}
    data, random, errors = mujoco.MjData(model), np.random.default_rng(0), []
    for _ in range(40):
        q = np.array(model.qpos0)
        mujoco.mj_integratePos(model, q, 0.3 * random.normal(size=model.nv), 1.0)
        if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
            q[2] = random.uniform(0.0, 0.6)
        data.qpos[:], data.qvel[:] = q, random.normal(size=model.nv)
        mujoco.mj_forward(model, data)
        start = State(*(torch.from_numpy(np.array(entry))[None] for entry in (q, data.qvel)))
        result = (engine.step(start, properties=smooth).v - start.v)[0].numpy() / engine.dt
        errors.append(np.abs(result - data.qacc).max() / np.abs(data.qacc).max())
    assert max(errors) < 1e-7  # MuJoCo's own solver ends there in the worst of them


def test_an_upright_capsule_has_friction():
    """Its axis is along the normal to rounding, and tells no tangent."""
    model = mujoco.MjModel.from_xml_string(MODELS["ball"].replace('"sphere" size="0.1"', '"capsule" size="0.1 0.1"'))
    engine = load(MODELS["ball"].replace('"sphere" size="0.1"', '"capsule" size="0.1 0.1"'), contact="compliant")
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[0] = 0.199, 1.0
    mujoco.mj_forward(model, data)
    start = State(*(torch.from_numpy(np.array(entry))[None] for entry in (data.qpos, data.qvel)))
    result = (engine.step(start).v - start.v)[0].numpy() / engine.dt
    assert data.qacc[0] < -1
    np.testing.assert_allclose(result, data.qacc, rtol=0, atol=1e-9 * np.abs(data.qacc).max())


@pytest.mark.parametrize(
    ("integrator", "substeps"), [("semi_implicit_euler", 3), ("runge_kutta_4", 1), ("runge_kutta_4", 2)]
)
def test_what_contacts_are_said_to_give_is_what_momentum_gains(integrator, substeps):
    engine = world([ball()], Compliant(0.05), dt=2e-2, friction=0.5, integrator=integrator, substeps=substeps)
    start = engine.initial_state(dtype=DOUBLE)
    q, v = start.q + torch.tensor([0, 0, SIZE - 1e-3, 0, 0, 0, 0]), start.v.clone()
    v[0, :3] = torch.tensor([0.7, 0.2, -1.0])
    gained = MASS * (engine.step(State(q, v)).v - v)[0, :3] + torch.tensor([0, 0, MASS * GRAVITY * engine.dt])
    torch.testing.assert_close(engine.contacts(State(q, v), max_separation=1.0).impulse[0, 0], gained.double())


def test_a_file_has_numbers_of_its_own_for_each_contact_and_stop():
    """Mixed by weight and by priority, of explicit pairs, of stops; time constants are at least two steps."""
    file = MODELS["arm"].replace(
        '<geom type="plane" size="9 9 1"/>', '<geom name="floor" type="plane" size="9 9 1" solref="0.03 1" solmix="3"/>'
    )
    file = file.replace('size="0.03"/>', 'size="0.03" solref="0.09 0.7" solimp="0.5 0.8 0.01"/>')
    file = file.replace('size="0.12"/>', 'name="tip" size="0.12" solref="0.004 0.8" priority="1"/>')
    file = file.replace(
        'axis="0 1 0.2"', 'axis="0 1 0.2" margin="0.05" solreflimit="0.06 0.5" solimplimit="0.6 0.7 0.02"'
    )
    paired = file.replace(
        "</worldbody>", '</worldbody><contact><pair geom1="floor" geom2="tip" solref="0.07 1.2"/></contact>'
    )
    for entry in (file, paired):
        model = mujoco.MjModel.from_xml_string(entry)
        model.opt.timestep = 0.01
        engine, data, random = load(entry, dt=0.01, contact="compliant"), mujoco.MjData(model), np.random.default_rng(3)
        for _ in range(100):
            q, v = np.array(model.qpos0), random.normal(size=model.nv)
            mujoco.mj_integratePos(model, q, 0.1 * random.normal(size=model.nv), 1.0)
            data.qpos[:], data.qvel[:] = q, v
            mujoco.mj_forward(model, data)
            result = engine.step(State(*(torch.from_numpy(entry)[None] for entry in (q, v)))).v[0].numpy()
            np.testing.assert_allclose((result - v) / 0.01, data.qacc, rtol=0, atol=1e-10 * np.abs(data.qacc).max())
    with pytest.raises(UnsupportedError, match="anisotropic friction"):
        load(paired.replace('solref="0.07 1.2"', 'friction="1 0.2"'), contact="compliant")
    fine, cut = load(file, dt=0.01, contact="compliant"), load(file, dt=0.04, contact="compliant", substeps=4)
    here = State(fine.initial_state(dtype=DOUBLE).q + 0.3, torch.zeros(1, fine.nv, dtype=DOUBLE))
    torch.testing.assert_close(cut.step(here).q, fine.rollout(here, 4).final.q, rtol=0, atol=1e-12)


def test_bad_numbers_are_refused():
    with pytest.raises(InputError, match="time_constant"):
        Compliant(time_constant=0.0)
    with pytest.raises(InputError, match="impedance_range"):
        Compliant(impedance_range=(0.9, 1.0))
    with pytest.raises(InputError, match="width"):
        Compliant(width=-1.0)
    with pytest.raises(InputError, match="restitution"):
        world([ball()], "compliant", restitution=0.5)
    engine = world([ball()], "compliant")
    with pytest.raises(InputError, match="restitution"):
        engine.step(engine.initial_state(), properties={"restitution": torch.tensor([0.0, 0.5])})
