"""What cannot be used is refused at the boundary, with words that say what and where."""

import jaxtyping
import numpy as np
import pytest
import torch

from physvision import State
from physvision.core import (
    Box,
    Capsule,
    Cylinder,
    DeviceError,
    DtypeError,
    Ellipsoid,
    InputError,
    ModelError,
    Placed,
    Plane,
    ShapeError,
    Sphere,
)
from physvision.physics import articulated
from physvision.physics.articulated import Body, ContactSettings, Joint, tree
from physvision.physics.articulated.compiler.properties import smallest_minor
from physvision.physics.feedback import FeedbackPolicy

HINGE = (Joint("revolute"),)


@pytest.fixture(autouse=True)
def annotations_unchecked():
    """Annotations are checked in the tests only; what a user meets are the engine's own checks."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([Body("a", "b", HINGE), Body("b", "a", HINGE)], "cycle, not a tree: a → b → a"),
        ([Body("a", "a", HINGE)], "cycle, not a tree: a → a"),
        ([Body("a", "ghost", HINGE)], "'a' has the parent 'ghost', which does not exist"),
        ([Body("a", None, HINGE), Body("a", None, HINGE)], "two bodies are called 'a'"),
        ([Body("a", None, HINGE, mass=0.0)], "'a': expected numbers above zero, got 0"),
        ([Body("a", None, HINGE, mass=-1.0)], "'a': expected numbers of at least zero, got -1"),
        ([Body("a", None, HINGE, inertia=(1.0, -1.0, 1.0))], "'a': expected a positive definite matrix"),
        ([Body("a", None, HINGE, inertia=(1.0, 0.0, 1.0))], "'a': expected a positive definite matrix"),
        ([Body("a", None, [Joint("screw")])], "'a': expected a joint kind among .* got 'screw'"),
        ([Body("a", None, [Joint(axis=(0, 0, 0))])], "'a': expected a joint axis"),
        (
            [Body("a", None, [Joint(initial_position=(1.0, 2.0))])],
            "'a': expected an initial_position of 1 numbers",
        ),
        ([Body("a", None, HINGE), Body("b", "a", [Joint("free")])], "'b': a free joint must be its only joint"),
        ([Body("a", None, HINGE, orientation=(0, 0, 0, 0))], "'a': expected a quaternion other than zero, got 0"),
    ],
)
def test_trees(bodies, message):
    with pytest.raises(ModelError, match=message):
        tree(bodies)


@pytest.mark.parametrize(
    "shape", [Sphere(0.0), Box((0.1, 0.0, 0.1)), Capsule(0.0, 0.2), Cylinder(0.1, 0.0), Ellipsoid((0.1, 0.1, 0.0))]
)
def test_shapes_that_can_touch_have_a_size(shape):
    """Nothing says to which side a point, a line or a flat thing pushes: two went through each other."""
    point = Body("dot", None, [Joint("free")], shapes=[Placed(shape)])
    kind = type(shape).__name__.lower()
    with pytest.raises(ModelError, match=rf"contact: {kind} 'dot' of body 'dot': expected sizes above zero"):
        tree([point], static_shapes=[Placed(Plane())], contact="event")
    tree([point], static_shapes=[Placed(Plane())])  # what nothing touches may be as it likes
    ball = Body("ball", None, [Joint("free")], shapes=[Placed(Capsule(0.1, 0.0))])
    tree([ball], static_shapes=[Placed(Plane())], contact="event")  # a capsule without a length is a ball


def test_shapes_without_a_name_are_told_by_their_number():
    ball = Body("ball", None, [Joint("free")], shapes=[Placed(Sphere(0.1), name="skin")])
    with pytest.raises(ModelError, match=r"friction of 'shape 0': expected numbers of at least zero"):
        tree([ball], static_shapes=[Placed(Plane())], contact=ContactSettings(friction=-0.1))


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        (15.0, InputError, r"expected a pair \(low, high\) of numbers or \(2,\) tensors, .* got 15"),
        ((1.0, 2.0, 3.0), InputError, "expected a pair"),
        ((1.0, -1.0), InputError, "expected the lower ones first"),
        (("low", 1.0), DtypeError, r"expected numbers or \(2,\) tensors, got 'low'"),
        ((-1.0, torch.ones(3)), ShapeError, r"expected a number or shape \(2,\), got \(3,\)"),
    ],
)
def test_bounds_of_a_feedback_policy(bounds, error, message):
    engine = articulated.chain([1.0, 1.0])
    path = engine.rollout(engine.initial_state(), 3, torch.zeros(1, 3, 2))
    policy = FeedbackPolicy(torch.zeros(1, 3, 2), path, torch.zeros(1, 3, 2, 4))
    with pytest.raises(error, match=f"bounds: {message}"):
        engine.rollout_feedback(path.state(0), policy, bounds)


@pytest.mark.parametrize("body", ["c", 2, -1])
def test_a_jacobian_of_no_body(body):
    engine = tree([Body("a", None, HINGE), Body("b", "a", HINGE)])
    with pytest.raises(InputError, match=f"body: expected one of a, b, or its row, got {body!r}"):
        engine.jacobian(engine.initial_state(), body)


def test_numbers_of_a_tree():
    with pytest.raises(InputError, match=r"mass of 'a': expected numbers of at least zero, got nan"):
        tree([Body("a", None, HINGE, mass=float("nan"))])
    with pytest.raises(ModelError, match=r"joint_damping of 'a': expected numbers of at least zero, got -1"):
        tree([Body("a", None, [Joint(damping=-1.0)])])
    with pytest.raises(ShapeError, match="'a': position: expected 3 numbers"):
        tree([Body("a", None, HINGE, position=(0.0, 1.0))])
    with pytest.raises(ShapeError, match="gravity: expected three numbers"):
        tree([Body("a", None, HINGE)], gravity=(0.0, 9.81))
    with pytest.raises(InputError, match="dt: expected a positive finite number, got 0"):
        tree([Body("a", None, HINGE)], dt=0)
    with pytest.raises(InputError, match="substeps: expected an integer of at least 1, got 0"):
        tree([Body("a", None, HINGE)], substeps=0)
    with pytest.raises(InputError, match=r"integrator: expected one of .*, got 'verlet'"):
        tree([Body("a", None, HINGE)], integrator="verlet")
    with pytest.raises(InputError, match="lengths: expected positive numbers"):
        articulated.chain([1.0, -1.0])
    with pytest.raises(InputError, match="expected 2, one for each link, got 1"):
        articulated.cartpole(links=2, lengths=[1.0], masses=[1.0])
    with pytest.raises(InputError, match="kinds: expected letters R and P"):
        articulated.from_dh([1.0], [0.0], [0.0], kinds="X")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e, s: e.rollout(s, 0), InputError, "steps: expected an integer of at least 1, got 0"),
        (lambda e, s: e.rollout(s, 2, truncate=0), InputError, "truncate: expected an integer"),
        (lambda e, s: e.rollout(State(s.q[:, :1], s.v), 2), ShapeError, r"state.q: expected shape \(any, 2\), got"),
        (lambda e, s: e.rollout(State(s.q, s.v[:1]), 2), ShapeError, r"state.v: expected shape \(3, 2\), got \(1, 2\)"),
        (lambda e, s: e.rollout(State(s.q, s.v.double()), 2), DtypeError, "state.v: expected torch.float32 as state.q"),
        (lambda e, s: e.rollout(State(s.q.half(), s.v.half()), 2), DtypeError, "expected float32 or float64"),
        (lambda e, s: e.rollout(State(s.q, s.v.to("meta")), 2), DeviceError, "state.v: expected device cpu"),
        (lambda e, s: e.rollout(s, 2, torch.zeros(3, 3, 2)), ShapeError, r"controls: expected shape \(3, 2, 2\)"),
        (lambda e, s: e.rollout(s, 2, torch.zeros(3, 2, 2).double()), DtypeError, "controls: expected torch.float32"),
        (lambda e, s: e.step(s, torch.zeros(3, 1)), ShapeError, r"controls: expected shape \(3, 1, 2\)"),
        (lambda e, s: e.rollout(s, 2, wrenches=torch.zeros(3, 2, 2, 3)), ShapeError, "wrenches: expected shape"),
        (lambda e, s: e.inverse_dynamics(s, torch.zeros(3, 1)), ShapeError, "acceleration: expected shape"),
        (lambda e, s: e.rollout(s, 2, None, {"weight": s.q}), InputError, "no property 'weight'; there are mass"),
        (lambda e, s: e.rollout(s, 2, None, {"mass": torch.ones(3)}), ShapeError, r"\(2,\), or \(3, 2\)"),
        (lambda e, s: e.rollout(s, 2, None, {"mass": torch.ones(2, dtype=torch.long)}), DtypeError, "floating-point"),
        (lambda e, s: e.rollout(s, 2, None, {"mass": torch.ones(2, device="meta")}), DeviceError, "properties.mass"),
        (lambda e, s: e.rollout(s, 2, None, {"mass": torch.tensor([1.0, torch.nan])}), InputError, "got nan"),
        (lambda e, s: e.rollout(s, 2, None, {"mass": torch.tensor([1.0, 0.0])}), ModelError, "'rod 1': .* above zero"),
        (lambda e, s: e.step(s, None, {"inertia": -torch.eye(3).repeat(2, 1, 1)}), ModelError, "inertia of 'rod 0'"),
        (lambda e, s: e.step(s, None, {"inertia": torch.diag(torch.tensor([1.0, 1.0, -1e-3])).repeat(3, 2, 1, 1)}), ModelError, "of 'rod 0'"),  # noqa: E501
        (lambda e, s: e.step(s, None, {"inertia": torch.ones(3, 3).repeat(2, 1, 1)}), ModelError, "minors above zero"),
        (lambda e, s: e.step(s, None, {"gravity": torch.tensor([0.0, torch.inf, 0.0])}), ModelError, "gravity.*got inf"),  # noqa: E501
        (lambda e, s: e.step(s, None, {"shape_pose": torch.full((2, 4, 4), torch.nan)}), ModelError, "shape_pose.*nan"),
        (lambda e, s: e.initial_state(0), InputError, "batch: expected an integer"),
    ],
)  # fmt: skip
def test_calls(call, error, message):
    engine = articulated.chain([1.0, 1.0])
    with pytest.raises(error, match=message):
        call(engine, engine.initial_state(3))


def test_only_the_first_bad_world_and_body_are_named():
    """Three worlds of three bodies: the world is not taken for a body, nor a body for a world."""
    engine = articulated.chain([1.0, 1.0, 1.0])
    mass = torch.ones(3, 3)
    mass[1, 2] = 0.0
    with pytest.raises(ModelError, match=r"mass of 'rod 2': expected numbers above zero, got 0 at \(1, 2\)"):
        engine.step(engine.initial_state(3), None, {"mass": mass})


def test_inertias_are_accepted_where_their_eigenvalues_are_positive():
    """The leading minors decide as eigenvalues do, on random matrices of which half are indefinite."""
    rng = torch.Generator().manual_seed(0)
    turned = torch.linalg.qr(torch.randn(500, 3, 3, generator=rng, dtype=torch.float64))[0]
    values = torch.randn(500, 3, generator=rng, dtype=torch.float64) + 1.0
    matrices = turned @ torch.diag_embed(values) @ turned.mT
    result = smallest_minor(matrices, np.zeros(500, bool)) > 0
    assert torch.equal(result, (values > 0).all(-1))
    # A fixed body may be a rod or nothing at all.
    thin = turned[:2] @ torch.diag_embed(torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]).double()) @ turned[:2].mT
    assert (smallest_minor(thin, np.ones(2, bool)) > 0).all()
    assert not (smallest_minor(-matrices[values.amin(-1) > 0.1], np.ones(1, bool)) > 0).any()
