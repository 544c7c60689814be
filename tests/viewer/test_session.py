"""A viewer's simulation can be paused, steered and pulled, whatever the engine."""

import numpy as np
import pytest
import torch

from physvision.core import InputError, State
from physvision.core.coordinates import Coordinates
from physvision.models import NetworkEngine, StatePerceptron
from physvision.physics import articulated, rigid2d, soft
from physvision.viewer.session import Pull, Session

BALL = '<body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".1" mass="2"/></body>'


def load(world, gravity="0 0 0"):
    return articulated.load(
        f'<mujoco><option gravity="{gravity}"/><worldbody>{world}</worldbody></mujoco>', dt=0.01, ignore=("contact",)
    )


def test_time_passes_only_while_it_runs():
    session = Session(load(BALL, "0 0 -9.81"))
    assert session.advance(1.0) == 0
    session.running = True
    assert session.advance(0.505) == 50
    assert session.advance(0.505) == 51
    assert session.time == pytest.approx(1.01)
    assert float(session.state.v[0, 2]) == pytest.approx(-9.81 * 1.01)
    session.reset()
    assert session.time == 0.0
    assert float(session.state.q[0, 2]) == 1.0


@pytest.mark.parametrize("target", [(1.0, 0.5, 2.0), (-0.3, 0.0, 1.0)])
def test_a_spring_brings_a_free_body_to_its_other_end_without_overshoot(target):
    session = Session(load(BALL))
    target = np.array(target)
    session.pull, session.running = Pull(0, np.zeros(3), target), True
    start = np.linalg.norm(target - session.body_point(session.pull))
    distances = []
    for _ in range(100):
        session.advance(0.01)
        distances.append(np.linalg.norm(target - session.body_point(session.pull)))
    assert distances[-1] < 0.01 * start
    assert max(np.diff(distances)) < 0.02 * start


def test_a_pulled_rod_turns_about_its_hinge():
    """The response of a hinge to an impulse at its end is l f dt / I."""
    rod = '<body><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -1" size=".02"/></body>'
    session = Session(load(rod))
    pull = Pull(0, np.array([0.0, 0.0, -1.0]), np.array([1.0, 0.0, -1.0]))
    direction = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    row = session._point_gradient(session.state, pull, direction)
    assert float(row[0]) == pytest.approx(-1.0)
    inertia = float(session.engine.mass_matrix(session.state)[0, 0, 0])  # pyright: ignore[reportCallIssue]
    assert float(session._solve_mass(session.state, row)[0]) == pytest.approx(-1.0 / inertia)
    session.pull, session.running = pull, True
    session.advance(1.0)
    assert session.body_point(pull)[0] > 0.5


def test_planar_worlds_and_cloth_are_pulled_too():
    world = rigid2d.World([rigid2d.Circle(0.5, (0.0, 0.0), mass=3.0)], gravity=(0, 0), dt=0.01)
    cloth = soft.SoftBody(
        soft.cloth((1.0, 1.0), (2, 2)),
        soft.Material(1e4, thickness=1e-2, viscous_time=0.05),
        gravity=(0, 0, 0),
        dt=0.01,
    )
    for engine in (world, cloth):
        session = Session(engine)
        first = session.body_point(Pull(0, np.zeros(3), np.zeros(3)))
        target = first + np.array([0.5, 0.25, 0.0])
        session.pull, session.running = Pull(0, np.zeros(3), target), True
        session.advance(1.0)
        assert np.linalg.norm(session.body_point(session.pull) - target) < 0.1


def test_controls_and_properties_change_the_motion():
    slider = '<body name="cart"><joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="2"/></body>'
    session = Session(load(slider))
    session.control[0], session.running = 4.0, True
    session.advance(0.5)
    assert float(session.state.v[0, 0]) == pytest.approx(1.0)
    session.set_property("mass", 0, 4.0)
    session.advance(0.5)
    assert float(session.state.v[0, 0]) == pytest.approx(1.5)
    with pytest.raises(InputError):
        session.set_property("mass", 0, -1.0)
    assert float(session.overrides["mass"].reshape(-1)[0]) == 4.0


def test_sliders_have_the_ranges_of_the_actuators():
    slide = '<body><joint name="x" type="slide"/><geom size=".1" mass="1"/></body>'
    motors = '<motor name="a" joint="x" ctrlrange="-2 0.5" ctrllimited="true"/><motor name="b" joint="x"/>'
    engine = articulated.load(
        f"<mujoco><worldbody>{slide}</worldbody><actuator>{motors}</actuator></mujoco>", dt=0.01, ignore=("contact",)
    )
    session = Session(engine)
    assert list(session.engine.control_names) == ["a", "b"]
    assert [session.control_bounds(k, ()) for k in range(2)] == [(-2.0, 0.5), (-1.0, 1.0)]
    assert [session.control_bounds(k, (1.0, 3.0)) for k in range(2)] == [(-1.0, 0.5), (-3.0, 3.0)]
    world = Session(rigid2d.World([rigid2d.Circle(0.5, (0.0, 0.0))], dt=0.01))
    assert world.control_bounds(0, ()) == (-1.0, 1.0)


def test_a_recording_is_played_and_searched():
    engine = load(BALL, "0 0 -9.81")
    motion = engine.rollout(engine.initial_state(dtype=torch.float64), 20)
    session = Session(engine, recording=motion)
    session.running = True
    assert session.advance(0.1) == 10
    assert torch.equal(session.state.q, motion.q[:, 10])
    assert session.seek(20)
    assert not session.step()
    assert not session.running
    with pytest.raises(InputError, match="expected states of 7 positions"):
        Session(
            engine, recording=load(BALL.replace("<freejoint/>", "<joint/>")).rollout(State(*torch.zeros(2, 1, 1)), 1)
        )


def test_a_step_that_fails_stops_and_keeps_the_state():
    engine = load(BALL)
    session = Session(engine, State(engine.initial_state().q.double(), torch.full((1, 6), float("nan")).double()))
    session.running = True
    with pytest.warns(RuntimeWarning, match="failed"):
        session.advance(0.01)
    assert session.failed
    assert not session.running
    assert session.time == 0.0


def test_what_has_no_bodies_is_refused():
    with pytest.raises(InputError, match="has no bodies"):
        Session(NetworkEngine(StatePerceptron(Coordinates(3)), 0.1))
