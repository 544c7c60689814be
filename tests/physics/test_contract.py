"""What every engine promises, asked of each: a new engine joins the list and is done when this passes."""

# pyright: reportAttributeAccessIssue=false

import copy
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from physvision import State, Trajectory
from physvision.core import Coordinates, DeviceError, DtypeError, InputError, ModelError, ShapeError
from physvision.models import LearnedForce, NetworkEngine, PassiveForce, StateGraph, StatePerceptron
from physvision.physics import Hybrid, PhysicsLayer, Properties, articulated, fluid, rigid2d, soft

ANGLES = Coordinates(2, (0, 1))


def chain():
    return articulated.chain([0.5, 0.7], dt=0.02, damping=0.01)


def table():
    floor = rigid2d.Rectangle((90, 4), (45, 62), static=True)
    return rigid2d.World([floor, rigid2d.Circle(5, (20, 30)), rigid2d.Rectangle((8, 6), (60, 20))], gravity=(0, 50))


def block():
    ground = soft.Ground((0.0, -0.01), (0.0, 1.0), 0.3)
    return soft.SoftBody(
        soft.rectangle((0.2, 0.1), (2, 1)),
        soft.Material(1e5),
        contact=soft.SoftContact(grounds=[ground]),
        dt=0.01,
        kinematic=(0,),
    )


def plume():
    dye = torch.zeros(3, 4)
    dye[1, 1] = 1.0
    return fluid.Flow(
        (3, 4), (0.3, 0.4), fluid.FluidMaterial(0.01, excess_density=-0.5), dt=0.01, gravity=(0.0, -9.81), dye=dye
    )


def layer(engine=None):
    return PhysicsLayer(engine or chain(), {"lengths": [0.6, 0.6]}, articulated.chain_properties)


def network():
    torch.manual_seed(0)
    return NetworkEngine(StatePerceptron(ANGLES, hidden=8), 0.02)


def force():
    """A force that is no longer zero."""
    torch.manual_seed(0)
    result = LearnedForce(StatePerceptron(ANGLES, outputs=1, hidden=8), scale=0.1)
    torch.nn.init.normal_(result.network.output_layer.weight)
    return result


ENGINES = {
    "chain": chain,
    "cartpole": articulated.cartpole,
    "world": table,
    "soft body": block,
    "flow": plume,
    "layer": layer,
    "network": network,
    "graph": lambda: NetworkEngine(StateGraph(ANGLES, bodies=2, hidden=8), 0.02),
    "hybrid": lambda: Hybrid(chain(), force()),
    "passive hybrid": lambda: Hybrid(chain(), PassiveForce(ANGLES, hidden=8)),
    "hybrid of a world": lambda: Hybrid(table(), LearnedForce(StatePerceptron(Coordinates(6), outputs=1, hidden=8))),
    "hybrid of a layer": lambda: Hybrid(layer(), force()),
    "layer of a hybrid": lambda: layer(Hybrid(chain(), force())),
}


# What `torch.func.grad` says, as the very first call of an engine and of a process, and then what backward says.
FIRST_CALL = """
import torch
from torch import nn
from test_contract import ENGINES
from physvision import State

for name, make in ENGINES.items():
    engine = make()
    start = engine.initial_state(2, torch.float64)
    if any(True for _ in engine.parameters()):
        start = start.to(torch.float32)

    def place(q, properties=None):
        return engine.rollout(State(q, start.v), 3, properties=properties).q[:, -1].sum()

    first = torch.func.grad(place)(start.q)
    given = torch.func.grad(place)(start.q, make().properties)
    q = start.q.clone().requires_grad_()
    place(q).backward()
    torch.testing.assert_close(first, q.grad, msg=name)
    torch.testing.assert_close(given, q.grad, msg=name)
"""


@pytest.mark.extended
def test_a_functional_gradient_may_be_the_first_call_of_all():
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", FIRST_CALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]()


def test_a_rollout_is_a_grid_of_states(engine):
    run = engine.rollout(engine.initial_state(3, torch.float64).to(torch.float32), 5)
    assert (run.batch, run.steps, len(run)) == (3, 5, 6)
    torch.testing.assert_close(run.times, engine.dt * torch.arange(6.0))
    assert run.status.converged.all()
    assert engine.status is not None
    assert torch.equal(engine.status.converged, run.status.converged)
    # A network's step is computed for one time there and for the whole batch of times here.
    torch.testing.assert_close(engine.step(run.state(4)).q, run.final.q, rtol=1e-5, atol=1e-5)
    assert run[2:4].q.shape[1] == 2
    assert "3 worlds" in repr(run)
    assert len(repr(run)) < 200


def test_no_worlds_are_a_batch_too(engine):
    start = State(*(entry[:0].requires_grad_() for entry in (engine.initial_state().q, engine.initial_state().v)))
    run = engine.rollout(start, 3)
    assert (run.batch, run.steps) == (0, 3)
    run.q.sum().backward()
    assert start.q.grad is not None
    assert start.q.grad.shape == (0, engine.nq)


def test_a_step_is_linear_in_small_changes(engine):
    if not engine.nu and not engine.learned_values and engine.mechanics is None:
        engine = engine.double()
    state = engine.initial_state(2, torch.float64)
    engine = engine.double()
    A, B = engine.linearize(state)
    assert A.shape == (2, 2 * engine.nv, 2 * engine.nv)
    assert B.shape == (2, 2 * engine.nv, engine.nu)
    change = 1e-6 * torch.linspace(-1, 1, 2 * engine.nv, dtype=torch.float64).repeat(2, 1)
    dq, dv = change.chunk(2, 1)
    before = engine.step(state)
    after = engine.step(State(engine.integrate(state.q, dq), state.v + dv))
    moved = torch.cat([engine.difference(before.q, after.q), after.v - before.v], 1)
    torch.testing.assert_close(moved, (A @ change[..., None])[..., 0], rtol=1e-4, atol=1e-10)


def test_a_trajectory_is_linearised_at_all_its_steps(engine):
    engine = engine.double()
    state = engine.initial_state(2, torch.float64)
    controls = 0.1 * torch.ones(2, 3, engine.nu, dtype=torch.float64)
    run = engine.rollout(state, 3, controls)
    A, B = engine.linearize(run, controls)
    assert A.shape[:2] == B.shape[:2] == (2, 3)
    for step in range(3):
        alone = engine.linearize(run.state(step), controls[:, step])
        torch.testing.assert_close(A[:, step], alone[0])
        torch.testing.assert_close(B[:, step], alone[1])


def test_properties_are_described_and_checked(engine):
    own, described = engine.properties, type(engine.properties).leaves()
    assert isinstance(own, Properties)
    assert list(described) == [name for name, _ in own.items()]
    assert all(entry.meaning for entry in described.values())
    with pytest.raises(InputError, match="no property 'weight'"):
        engine.rollout(engine.initial_state(), 1, properties={"weight": torch.ones(1)})
    for name, value in own.items():
        assert value.dim() == len(described[name].shape)
        with pytest.raises(ShapeError, match=name):
            engine.checked({name: torch.ones(7, 7, 7, 7, 7)})
        with pytest.raises(DtypeError, match=name):
            engine.checked({name: value.long()})
        with pytest.raises(DeviceError, match=name):
            engine.checked({name: value.to("meta")}, device=torch.device("cpu"))
        if value.numel():
            with pytest.raises(ModelError, match=name):
                engine.checked({name: torch.full_like(value, torch.nan)})
    known = engine.checked(None)
    assert engine.checked(known) is known


def test_what_was_checked_gives_the_same(engine):
    if not type(engine.properties).leaves():
        pytest.skip("a network has no properties")
    start = engine.initial_state(2)
    state = State(engine.integrate(start.q, torch.full_like(start.v, 0.3)), start.v)
    gravity = {"gravity": engine.properties.gravity * 0.5}
    plain = engine.rollout(state, 4, properties=gravity)
    once = engine.rollout(state, 4, properties=engine.checked(gravity, 2))
    assert torch.equal(plain.q, once.q)
    assert not torch.equal(plain.q, engine.rollout(state, 4).q)
    with torch.inference_mode():  # where tensors have no version
        known = engine.checked({"gravity": engine.properties.gravity * 0.5}, 2)
        for _ in range(2):
            assert torch.equal(plain.q, engine.rollout(state, 4, properties=known).q)


def test_mechanics_answer_for_states_and_for_trajectories(engine):
    mechanics = engine.mechanics
    if mechanics is None:
        return
    run = engine.rollout(engine.initial_state(2), 3)
    known = {"gravity": engine.properties.gravity.expand(2, -1) * torch.tensor([[1.0], [2.0]])}
    for given in (None, engine.properties, known):
        for answer in (mechanics.energy, mechanics.poses):
            whole = answer(run, given)
            item = [answer(run.state(k), given) for k in range(4)]
            for entry, parts in zip(whole, zip(*item, strict=True), strict=True) if answer == mechanics.energy else ():
                torch.testing.assert_close(entry, torch.stack(parts, 1))
            if answer == mechanics.poses:
                torch.testing.assert_close(whole, torch.stack(item, 1))
                assert whole.shape[2] == len(mechanics.body_names)
    observed = mechanics.appearance(run, engine.properties)
    assert observed.poses.shape == (2, 4, len(mechanics.geometry), 4, 4)
    assert observed.sizes.shape == (2, 4, len(mechanics.geometry), 3)


def test_an_engine_can_be_copied_and_pickled_after_use(engine):
    state = engine.initial_state()
    end = engine.rollout(state, 3).final
    for again in (copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))):
        assert torch.equal(again.rollout(state, 3).final.q, end.q)


def test_precision_of_the_properties_is_kept(engine):
    before = dict(engine.properties.items()) if engine.mechanics is engine else {}
    coarse_steps = copy.deepcopy(engine).half()
    for name, value in before.items():
        assert torch.equal(getattr(coarse_steps.properties, name), value)


def test_a_wrapper_says_what_is_learned():
    inner = layer()
    for wrapper in (inner, Hybrid(inner, force())):
        assert set(wrapper.learned_values) == {"lengths"}
        assert list(wrapper.physical_parameters()) == list(inner.learned.parameters())
        torch.testing.assert_close(wrapper.properties.position[1, 2], torch.tensor(-0.6))
    outer = PhysicsLayer(inner, {"gravity": [0.0, 0.0, -3.0]}, positive=[])
    assert set(outer.learned_values) == {"lengths", "gravity"}
    assert outer.properties.gravity.tolist() == [0.0, 0.0, -3.0]
    torch.testing.assert_close(outer.properties.position[1, 2], torch.tensor(-0.6))
    run = outer.rollout(outer.initial_state(), 2)
    (run.final.q.sum() + run.final.v.sum()).backward()
    assert all(parameter.grad is not None for parameter in outer.physical_parameters())


def test_a_status_comes_through_hybrids():
    bad = State(torch.full((2, 2), 0.1), torch.tensor([[0.0, 0.0], [torch.nan, 0.0]]))
    hybrid = Hybrid(chain(), force())
    with pytest.warns(RuntimeWarning, match="1 of 2 worlds failed"):
        run = hybrid.rollout(bad, 3)
    assert run.status.failed() == [1]


def test_trajectories_keep_their_step_through_transforms():
    run = chain().rollout(chain().initial_state(), 2)
    doubled = torch.utils._pytree.tree_map(lambda leaf: torch.cat([leaf, leaf]), run)
    assert doubled.batch == 2
    assert doubled.dt == run.dt
    with pytest.raises(InputError, match="construct it with dt"):
        _ = Trajectory(run.q, run.v).times


def test_a_map_repeats_the_worlds_that_properties_tell_apart(engine):
    if not type(engine.properties).leaves():
        pytest.skip("a network has no properties")
    start, own = engine.initial_state(2), engine.properties.gravity.detach()
    rows = torch.linspace(-1, 1, 3 * start.v.numel()).reshape(3, *start.v.shape)
    for gravity in (own, torch.stack([own, 2 * own])):
        properties = engine.checked({"gravity": gravity}, 2, own.device)

        def end(v, properties=properties):
            return engine.rollout(State(start.q, v), 3, properties=properties).q[:, -1]

        torch.testing.assert_close(torch.func.vmap(end)(rows), torch.stack([end(v) for v in rows]))


class Reader(nn.Module):
    """A layer before an engine, and a number of the motion."""

    def __init__(self, engine):
        super().__init__()
        start = engine.initial_state(2, torch.float64 if not list(engine.parameters()) else torch.float32)
        self.engine, self.start = engine, start
        self.layer = nn.Linear(1, start.q.shape[1]).to(start.q.dtype)
        nn.init.normal_(self.layer.weight, std=1e-3)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x):
        motion = self.engine.rollout(State(self.start.q + self.layer(x).to(self.start.q), self.start.v), 3)
        return motion.final.q.square().sum()


@pytest.mark.extended
def test_a_compiled_model_has_the_same_motion_and_gradient(engine):
    model = Reader(engine)
    x = torch.ones(2, 1, dtype=model.start.q.dtype)
    expected = model(x)
    gradient = torch.autograd.grad(expected, model.layer.weight)[0]
    torch.compiler.reset()
    value = torch.compile(model, backend="eager")(x)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, model.layer.weight)[0], gradient)


def test_autocast_stops_at_the_engine(engine):
    """Half-precision states, controls and properties are converted, and what the engine computes is not rounded."""
    state = engine.initial_state(2, torch.float32)
    half = State(state.q.bfloat16(), state.v.bfloat16())
    expected = engine.rollout(State(half.q.float(), half.v.float()), 3)
    with (
        torch.autocast("cpu", torch.bfloat16),
        pytest.warns(UserWarning, match=r": q, v .* is converted"),
    ):
        motion = engine.rollout(half, 3)
    assert motion.q.dtype == torch.float32
    torch.testing.assert_close(motion.q, expected.q)


def test_autocast_names_what_it_converts():
    """A velocity, a control or a property of half precision is named, and one of full precision is silent."""
    engine = chain()
    state = engine.initial_state(1, torch.float32)
    half = torch.zeros(1, 3, engine.nu, dtype=torch.bfloat16)
    own = engine.properties.to(torch.float32)
    cases = [
        ("v", (State(state.q, state.v.bfloat16()), 3), {}),
        ("controls", (state, 3, half), {}),
        ("controls", (state, 3), {"controls": half}),
        ("properties.mass", (state, 3), {"properties": {"mass": own.mass.bfloat16()}}),
        ("properties.mass", (state, 3, None, replace(own, mass=own.mass.bfloat16())), {}),
    ]
    expected = engine.rollout(state, 3).q
    with torch.autocast("cpu", torch.bfloat16):
        for name, given, named in cases:
            with pytest.warns(UserWarning, match=rf"at least: {name} \(torch\.bfloat16\) is converted"):
                motion = engine.rollout(*given, **named)
            torch.testing.assert_close(motion.q, expected)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            engine.rollout(state, 3, None, own)
