"""Rollouts: cores, precision, failed worlds, copies."""

# pyright: reportAttributeAccessIssue=false

import copy
import pickle
import warnings

import pytest
import torch
from physics.articulated.trees import everything, random_state

from physvision import State
from physvision.kernels import launching
from physvision.physics import articulated
from physvision.physics.articulated.compiler.link_parameters import LinkParameters
from physvision.physics.properties import Properties


def test_both_cores_give_what_one_gives():
    engine = everything()
    state = random_state(engine, 0, batch=64)
    results = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            mass = engine.properties.mass.clone().requires_grad_()
            v = state.v.clone().requires_grad_()
            end = engine.rollout(State(state.q, v), 20, properties={"mass": mass}).final
            results.append((end.q, end.v, *torch.autograd.grad(end.v.sum(), (v, mass))))
    finally:
        torch.set_num_threads(threads)
    for result in results[1:]:
        for entry, two in zip(results[0], result, strict=True):
            assert torch.equal(entry, two)


def test_more_than_one_thread_is_used(monkeypatch):
    engine = everything()
    used = []
    original = launching.wp.launch
    monkeypatch.setattr(launching.wp, "launch", lambda *a, **k: (used.append(k["dim"][0]), original(*a, **k)))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    engine.rollout(random_state(engine, 0, batch=65), 50)
    assert sorted(used) == [32, 33]


def test_float32_states_give_float32():
    engine = everything()
    state = random_state(engine, 1, batch=2)
    single = engine.rollout(state.to(torch.float32), 10)
    assert single.q.dtype == torch.float32
    double = engine.rollout(state, 10)
    torch.testing.assert_close(single.q.double(), double.q, rtol=1e-4, atol=1e-4)


def test_a_bad_world_is_named_and_harms_no_other():
    engine = everything()
    state = random_state(engine, 2, batch=4)
    broken = state.v.clone()
    broken[1, 0] = torch.nan
    controls = torch.zeros(4, 6, engine.nu, dtype=torch.float64)
    controls[2, 3, 0] = torch.inf
    mass = engine.properties.mass.clone().requires_grad_()
    v = broken.requires_grad_()
    with pytest.warns(RuntimeWarning, match=r"2 of 4 worlds failed \(world 1, 2; first at step 0"):
        path = engine.rollout(State(state.q, v), 6, controls, {"mass": mass})
    assert path.status is not None
    assert path.status.converged.tolist() == [True, False, False, True]
    assert path.status.first_failed_step.tolist() == [-1, 0, 4, -1]
    assert path.status.failed() == [1, 2]
    assert engine.status is path.status
    gv, gm = torch.autograd.grad(path.v[:, -1].nan_to_num().sum(), (v, mass))

    good = State(state.q[[0, 3]], state.v[[0, 3]].clone().requires_grad_())
    alone_mass = engine.properties.mass.clone().requires_grad_()
    alone = engine.rollout(good, 6, properties={"mass": alone_mass})
    assert torch.equal(path.q[[0, 3]], alone.q)
    alone_gv, alone_gm = torch.autograd.grad(alone.v[:, -1].sum(), (good.v, alone_mass))
    assert torch.equal(gv[[0, 3]], alone_gv)
    torch.testing.assert_close(gm, alone_gm)
    assert bool(torch.isnan(path.q[2, 5:]).all())
    assert bool(torch.isfinite(path.q[2, :4]).all())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.rollout(State(state.q, broken.detach()), 2)  # it is said once an engine


def test_quaternions_are_normalised_on_entry():
    engine = everything()
    state = random_state(engine, 3)
    longer = state.q.clone()
    longer[:, 3:7] *= 1.7
    single, reference = engine.rollout(state, 5), engine.rollout(State(longer, state.v), 5)
    torch.testing.assert_close(single.q, reference.q, rtol=1e-12, atol=1e-12)


def test_control_is_held_over_a_step_and_defaults_to_zero():
    engine = articulated.chain([1.0, 1.0])
    state = engine.initial_state(2, torch.float64)
    nothing = torch.zeros(2, 4, 2, dtype=torch.float64)
    assert torch.equal(engine.rollout(state, 4).q, engine.rollout(state, 4, nothing).q)
    assert torch.equal(engine(state, 4).q, engine.rollout(state, 4).q)


def test_engines_can_be_copied_and_pickled():
    engine = everything()
    state = random_state(engine, 4)
    expected = engine.rollout(state, 3).q
    for entry in (copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))):
        assert torch.equal(entry.rollout(state, 3).q, expected)


def test_moving_an_engine_keeps_float64_properties():
    engine = everything().float()
    assert engine.properties.mass.dtype == torch.float64
    assert engine.half().properties.inertia.dtype == torch.float64


def test_a_new_model_costs_no_compilation():
    """The kernels are in memory after the first rollout of any model; another loads no module."""
    everything().rollout(random_state(everything(), 5), 1)
    engine = articulated.cartpole(links=4)
    loaded = launching.wp.Kernel  # the class whose modules would be built
    assert loaded is not None
    import physvision.physics.articulated.compiler.device_model as program

    kernels = program.precision.load(program.KERNELS, torch.float64)
    before = dict(kernels.rollout.module.execs)
    engine.rollout(engine.initial_state(1, torch.float64), 3)
    assert dict(kernels.rollout.module.execs) == before


def test_properties_are_checked_once(monkeypatch):
    """What `checked` returns is neither checked nor packed again, gives the same bits, and follows its numbers."""
    engine = everything()
    state = random_state(engine, 6, batch=2)
    mass = engine.properties.mass * torch.tensor([[1.0], [2.0]])
    expected = engine.step(state, properties={"mass": mass})
    known = engine.checked({"mass": mass}, 2)
    work = {"validate": 0, "pack": 0}

    def counted(owner, name):
        original = getattr(owner, name)

        def call(*arguments, **options):
            work[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    counted(Properties, "validate")
    counted(LinkParameters, "pack")
    for _ in range(3):
        assert torch.equal(engine.step(state, properties=known).q, expected.q)
    assert work == {"validate": 0, "pack": 1}
    mass.mul_(1.5)
    reference = engine.step(state, properties={"mass": mass}).q
    assert not torch.equal(reference, expected.q)
    assert torch.equal(engine.step(state, properties=known).q, reference)
    learned = mass.clone().requires_grad_()
    known = engine.checked({"mass": learned}, 2)
    for _ in range(2):
        assert float(torch.autograd.grad(engine.step(state, properties=known).v.sum(), learned)[0].abs().max()) > 0


@pytest.mark.gpu
def test_cuda_agrees_with_the_processor():
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    engine = everything()
    state = random_state(engine, 6, batch=33)
    results = []
    for device in ("cpu", "cuda"):
        moved = copy.deepcopy(engine).to(device)
        v = state.v.to(device).requires_grad_()
        mass = moved.properties.mass.clone().requires_grad_()
        end = moved.rollout(State(state.q.to(device), v), 20, properties={"mass": mass}).final
        results.append([x.cpu() for x in (end.q, end.v, *torch.autograd.grad(end.v.sum(), (v, mass)))])
    for value, reference in zip(*results, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-10)
