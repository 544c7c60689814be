"""Linearized trajectories and motion under feedback in one launch, against the engine's gradients and its steps."""

import pytest
import torch

from physvision import Trajectory
from physvision.kernels import launching
from physvision.physics import articulated
from physvision.physics.engine import Engine
from physvision.physics.feedback import Bounds, FeedbackPolicy

from .trees import everything, random_state

ACTUATED = """<mujoco><worldbody><body><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/>
<body pos="0 0 -.3"><joint name="turn" axis="0 1 0" damping=".2"/><geom size=".05" pos="0 0 -.5" mass="1"/>
</body></body></worldbody><actuator><motor joint="slide" gear="3" ctrllimited="true" ctrlrange="-1 1"/>
</actuator></mujoco>"""

ENGINES = {
    "every joint": everything,
    "Runge–Kutta": lambda: everything(integrator="runge_kutta_4"),
    "substeps": lambda: everything(substeps=3),
    "in a medium": lambda: everything(fluid=articulated.Fluid(density=40.0, viscosity=0.5)),
    "actuated": lambda: articulated.load(ACTUATED, dt=0.02),
}


@pytest.fixture(params=ENGINES)
def engine(request):
    return ENGINES[request.param]()


def random_controls(engine, *sizes):
    generator = torch.Generator().manual_seed(4)
    return 1.5 * torch.randn(*sizes, engine.nu, generator=generator, dtype=torch.float64)


def heavy(engine):
    """Masses of each of two worlds."""
    return {"mass": engine.properties.mass * torch.tensor([[1.0], [1.3]])}


@pytest.mark.parametrize("properties", [None, heavy])
def test_a_linearised_trajectory_is_what_gradients_give(engine, properties):
    known = None if properties is None else properties(engine)
    controls = random_controls(engine, 2, 4)
    path = engine.rollout(random_state(engine, 3, batch=2), 4, controls, known)
    for value, reference in zip(
        engine.linearize(path, controls, known), Engine.linearize(engine, path, controls, known), strict=True
    ):
        torch.testing.assert_close(value, reference, rtol=1e-9, atol=1e-10)


def plan_of(engine, steps):
    """A motion, gains that are not zero, and a start beside it."""
    controls = 0.5 * random_controls(engine, 2, steps)
    path = engine.rollout(random_state(engine, 3, batch=2), steps, controls)
    generator = torch.Generator().manual_seed(9)
    gains = 0.3 * torch.randn(2, steps, engine.nu, 2 * engine.nv, generator=generator, dtype=torch.float64)
    start, aside = path.state(0), 0.1 * torch.ones(2, engine.nv, dtype=torch.float64)
    return FeedbackPolicy(controls, path, gains), type(start)(engine.integrate(start.q, aside), start.v + aside)


@pytest.mark.parametrize("properties", [None, heavy])
def test_feedback_in_one_launch_is_feedback_step_by_step(engine, properties):
    known = None if properties is None else properties(engine)
    plan, start = plan_of(engine, 5)
    limit = torch.full((engine.nu,), 1.25).double()
    arguments = (
        start,
        plan,
        Bounds(-limit, limit),
        random_controls(engine, 2, 5),
        torch.tensor([1.0, 0.3, 0.0]).double(),
    )
    path, controls = engine.rollout_feedback(*arguments, known)
    target, wanted_controls = Engine.rollout_feedback(engine, *arguments, known)
    assert path.batch == 6
    assert bool((controls.abs() == 1.25).any())
    torch.testing.assert_close(controls, wanted_controls, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(path.q, target.q, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(path.v, target.v, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("step_by_step", [False, True])
def test_bounds_of_feedback_are_numbers_or_tensors(engine, step_by_step):
    plan, start = plan_of(engine, 5)
    rollout = Engine.rollout_feedback if step_by_step else type(engine).rollout_feedback
    limit = torch.full((engine.nu,), 1.25)
    _, bounded = rollout(engine, start, plan, Bounds(-limit, limit))
    assert bool((bounded.abs() == 1.25).any())
    for bounds in ((-1.25, 1.25), Bounds(-limit.double(), limit.double()), (-1.25, limit[:1])):
        assert rollout(engine, start, plan, bounds)[1].equal(bounded)
    assert float(rollout(engine, start, plan, None)[1].abs().max()) > 1.25


def test_a_world_that_fails_spoils_no_other(engine):
    plan, start = plan_of(engine, 3)
    start.v[1, 0] = torch.nan
    limit = torch.full((engine.nu,), 1.25).double()
    path, controls = engine.rollout_feedback(
        start, plan, Bounds(-limit, limit), 0 * plan.feedforward, torch.ones(1).double()
    )
    assert bool(path.v[0].isfinite().all())
    assert bool(path.v[1, 1:].isnan().all())
    assert bool(controls[1].isnan().all())
    spoilt = Trajectory(plan.trajectory.q, plan.trajectory.v.clone(), None, engine.dt)
    spoilt.v[1, 0] = torch.nan
    A, _ = engine.linearize(spoilt, plan.feedforward)
    assert bool(A[0].isfinite().all())


def test_launches_are_the_same_on_several_cores_and_in_new_places(monkeypatch):
    """A launch made again reads and writes where its tensors lie; slices of a batch give the numbers of the whole."""

    def result(threads):
        monkeypatch.setattr(launching, "_threads", lambda *_: threads)
        engine = everything()
        results = []
        for _ in range(2):
            controls = random_controls(engine, 5, 4)
            path = engine.rollout(random_state(engine, 3, batch=5), 4, controls)
            plan = FeedbackPolicy(controls, path, torch.zeros(5, 4, engine.nu, 2 * engine.nv, dtype=torch.float64))
            fixed, _ = engine.rollout_feedback(
                path.state(0), plan, Bounds(*(torch.full((engine.nu,), e).double() for e in (-9, 9)))
            )
            results.append((*engine.linearize(path, controls), fixed.q))
        return results

    first, again = result(1)
    for value, repeated, sliced in zip(first, again, result(3)[1], strict=True):
        assert value.data_ptr() != repeated.data_ptr()
        assert value.equal(repeated)
        assert value.equal(sliced)
