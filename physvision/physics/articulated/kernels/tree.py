"""What the kernels read and write: the tree with its parameters, and the workspace of one launch."""

import warp as wp

from . import scalar
from .spatial import mat33, vec3

REVOLUTE = wp.constant(1)
PRISMATIC = wp.constant(2)
BALL = wp.constant(3)
FREE = wp.constant(4)


@wp.struct
class Tree:
    """The model. Arrays of parameters are [world, link], [world, velocity] or [world, position].

    A link is what one joint moves; several bodies may be fixed to each other and be one link.
    """

    links: int
    bodies: int
    positions: int
    velocities: int
    parent: wp.array(dtype=wp.int32)  # -1 for the world
    joint: wp.array(dtype=wp.int32)
    first_position: wp.array(dtype=wp.int32)
    first_velocity: wp.array(dtype=wp.int32)  # one more than there are links
    body_link: wp.array(dtype=wp.int32)  # the link that a body is part of, -1 for the world
    friction_velocity: scalar  # rad/s or m/s within which Coulomb friction is smooth
    rubs: int  # whether there may be Coulomb friction
    springs: int  # whether there may be springs

    mass: wp.array2d(dtype=scalar)
    moment: wp.array2d(dtype=vec3)  # mass times centre of mass, link frame
    center: wp.array2d(dtype=vec3)  # of mass of a body, [world, body], link frame
    inertia: wp.array2d(dtype=mat33)  # about the link's origin
    rotation: wp.array2d(dtype=mat33)  # parent to link at q = 0
    offset: wp.array2d(dtype=vec3)  # of the link's origin in the parent at q = 0
    stiffness: wp.array2d(dtype=scalar)  # of the link's joint
    reference: wp.array2d(dtype=scalar)  # position at which the spring is at rest
    damping: wp.array2d(dtype=scalar)
    armature: wp.array2d(dtype=scalar)
    friction: wp.array2d(dtype=scalar)
    gravity: wp.array(dtype=vec3)


@wp.struct
class Forces:
    """What acts from outside, [world, step, …]. A wrench acts at the body's centre of mass, in the world's axes."""

    torque: wp.array3d(dtype=scalar)
    wrenches: int  # whether there are any
    push: wp.array3d(dtype=vec3)
    twist: wp.array3d(dtype=vec3)


@wp.struct
class Workspace:
    """Scratch memory of one launch, [world, link], [world, velocity] or [world, evaluation, number]."""

    # States at which the dynamics are evaluated within one step, and the accelerations found there.
    q: wp.array3d(dtype=scalar)
    v: wp.array3d(dtype=scalar)
    a: wp.array3d(dtype=scalar)

    rotation: wp.array2d(dtype=mat33)
    offset: wp.array2d(dtype=vec3)
    joint_angular: wp.array2d(dtype=vec3)  # velocity across the joint
    joint_linear: wp.array2d(dtype=vec3)
    bias_angular: wp.array2d(dtype=vec3)  # acceleration at q̈ = 0 that the parent does not give
    bias_linear: wp.array2d(dtype=vec3)
    angular: wp.array2d(dtype=vec3)  # velocity
    linear: wp.array2d(dtype=vec3)
    angular_acceleration: wp.array2d(dtype=vec3)  # gravity counted as an acceleration of the world upwards
    linear_acceleration: wp.array2d(dtype=vec3)
    axis_angular: wp.array2d(dtype=vec3)  # columns of the motion subspace
    axis_linear: wp.array2d(dtype=vec3)

    # Articulated inertia (upper left, upper right, lower right) and bias force.
    inertia_angular: wp.array2d(dtype=mat33)
    inertia_coupling: wp.array2d(dtype=mat33)
    inertia_linear: wp.array2d(dtype=mat33)
    moment: wp.array2d(dtype=vec3)
    force: wp.array2d(dtype=vec3)

    # The factorisation, a column for each velocity: U, 1/D, and the right-hand side u.
    column_angular: wp.array2d(dtype=vec3)
    column_linear: wp.array2d(dtype=vec3)
    pivot: wp.array2d(dtype=scalar)
    drag: wp.array2d(dtype=scalar)  # damping plus friction as a coefficient of the velocity
    rest: wp.array2d(dtype=scalar)

    # Only where wrenches act.
    orientation: wp.array2d(dtype=mat33)  # link to world
    wrench_moment: wp.array2d(dtype=vec3)  # link frame, about the link's origin
    wrench_force: wp.array2d(dtype=vec3)
    turning: wp.array2d(dtype=vec3)  # adjoint of the link's orientation

    # Only backward: adjoints of q (tangent), v and q̈ for each evaluation, the solution λ of the implicit equation,
    # the motion that λ gives each link, and the adjoints of velocity, acceleration and that motion.
    q_bar: wp.array3d(dtype=scalar)
    v_bar: wp.array3d(dtype=scalar)
    a_bar: wp.array3d(dtype=scalar)
    multiplier: wp.array2d(dtype=scalar)
    virtual_angular: wp.array2d(dtype=vec3)
    virtual_linear: wp.array2d(dtype=vec3)
    velocity_bar_angular: wp.array2d(dtype=vec3)
    velocity_bar_linear: wp.array2d(dtype=vec3)
    acceleration_bar_angular: wp.array2d(dtype=vec3)
    acceleration_bar_linear: wp.array2d(dtype=vec3)
    virtual_bar_angular: wp.array2d(dtype=vec3)
    virtual_bar_linear: wp.array2d(dtype=vec3)


@wp.struct
class Gradients:
    """Gradients to the parameters of `Tree`, summed over time, and to what acts from outside."""

    wanted: int  # whether anybody asks for those to the parameters; their arrays are missing otherwise

    mass: wp.array2d(dtype=scalar)
    moment: wp.array2d(dtype=vec3)
    center: wp.array2d(dtype=vec3)
    inertia: wp.array2d(dtype=mat33)
    rotation: wp.array2d(dtype=mat33)
    turn: wp.array2d(dtype=vec3)  # of `rotation`, on the tangent: rotationᵀ exp([turn]×)
    offset: wp.array2d(dtype=vec3)
    stiffness: wp.array2d(dtype=scalar)
    reference: wp.array2d(dtype=scalar)
    damping: wp.array2d(dtype=scalar)
    armature: wp.array2d(dtype=scalar)
    friction: wp.array2d(dtype=scalar)
    gravity: wp.array(dtype=vec3)

    torque: wp.array3d(dtype=scalar)
    push: wp.array3d(dtype=vec3)
    twist: wp.array3d(dtype=vec3)
