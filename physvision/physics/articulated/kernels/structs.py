"""Structs of the kernels, and the constants that their fields hold.

`physvision.physics.articulated.arrays` declares the arrays of the workspaces and of the parameters.
"""

import warp as wp

from physvision.kernels.layout import struct
from physvision.physics.articulated.arrays import (
    BACKWARD_MEMORY,
    CONTACT_MEMORY,
    CONTACT_PARAMETERS,
    FORWARD_MEMORY,
    PARAMETERS,
    SHAPE_TANGENTS,
    TANGENT_GRADIENTS,
)

from .precision import mat33, scalar, vec3

# Joint types.
REVOLUTE = wp.constant(1)
PRISMATIC = wp.constant(2)
BALL = wp.constant(3)
FREE = wp.constant(4)

# Laws of constraint blocks.
CONTACT = wp.constant(0)  # normal and two tangents
BOUNDED = wp.constant(1)  # one direction, whose impulse lies between bounds
TORSIONAL_ROLLING = wp.constant(2)  # rotational friction about a contact's normal and tangents
EQUALITY = wp.constant(3)  # three rows that always stick

# Modes of contacts.
OPEN = wp.constant(0)
STICK = wp.constant(1)
SLIDE = wp.constant(2)

# Modes of bounded blocks, besides STICK.
LOWER = wp.constant(3)
UPPER = wp.constant(4)

# Modes of rotational friction, besides OPEN (with its contact) and STICK.
SPIN = wp.constant(2)
ROLL = wp.constant(3)
SPIN_AND_ROLL = wp.constant(4)

ENTRIES = {"scalar": scalar, "whole": wp.int32, "vec3": vec3, "mat33": mat33}


@struct(ENTRIES, PARAMETERS)
class TreeStruct:
    """Kinematic tree: its topology and its parameters."""

    links: int
    bodies: int
    positions: int
    velocities: int
    parent: wp.array(dtype=wp.int32)  # -1 for the world
    joint: wp.array(dtype=wp.int32)  # joint type
    first_position: wp.array(dtype=wp.int32)
    first_velocity: wp.array(dtype=wp.int32)  # one more than there are links
    body_link: wp.array(dtype=wp.int32)  # link that a body is part of, -1 for the world
    dry_friction_velocity: scalar  # rad/s or m/s below which Coulomb friction is smoothed
    has_dry_friction: int
    has_springs: int
    servo_link: wp.array(dtype=wp.int32)  # for a velocity: link whose spring acts at the end of the step, or -1
    couplings: int  # velocities that exert forces on other velocities
    coupling_source: wp.array(dtype=wp.int32)
    coupling_target: wp.array(dtype=wp.int32)  # a velocity; beyond their number a transmission
    coupling_gain: wp.array(dtype=scalar)
    root: wp.array(dtype=wp.int32)  # for a link: first link of its tree
    varying_trees: int  # trees whose inertia or weight depends on their pose, or on the axes of a free body
    varying_tree_root: wp.array(dtype=wp.int32)
    has_fluid_drag: int
    centered_links: int  # free links whose origin is their center of mass, not that of their coordinates
    centered_link: wp.array(dtype=wp.int32)


@wp.struct
class ForcesStruct:
    """External forces, [world, step, …]; a wrench acts at the center of mass of a body, in world axes."""

    torque: wp.array3d(dtype=scalar)
    has_wrenches: int
    body_force: wp.array3d(dtype=vec3)
    body_moment: wp.array3d(dtype=vec3)


@wp.struct
class ScheduleStruct:
    """Substeps of a step, and the tableau of the integrator; see `physvision.physics.articulated.model.integrators`."""

    h: scalar  # length of a substep
    substeps: int
    stages: int  # evaluations of the dynamics in a substep
    drag_interval: scalar  # interval over which damping is implicit
    stage_fraction: wp.array(dtype=scalar)  # time of a stage, as a fraction of the substep
    weight: wp.array(dtype=scalar)  # of a stage in the mean velocity and acceleration of the substep
    stage_velocity_weight: (
        scalar  # of the stages' mean velocity in that which moves positions; the rest is the final one's
    )


@struct(ENTRIES, FORWARD_MEMORY, BACKWARD_MEMORY)
class WorkspaceStruct:
    """Workspace of the dynamics in one launch."""


@struct(ENTRIES, PARAMETERS, TANGENT_GRADIENTS)
class GradientsStruct:
    """Gradients with respect to the parameters of the tree, summed over time, and to external forces."""

    is_requested: int  # whether the gradients of parameters are computed; their arrays are absent otherwise
    torque: wp.array3d(dtype=scalar)
    body_force: wp.array3d(dtype=vec3)
    body_moment: wp.array3d(dtype=vec3)


@struct(ENTRIES, CONTACT_PARAMETERS, group="shapes")
class ShapeModel:
    """Collision shapes, each fixed to a link or to the world."""

    count: int
    link: wp.array(dtype=wp.int32)  # -1 for the world
    bounding_scale: wp.array(dtype=vec3)  # factors of the sizes whose vector has the length of the bounding radius
    kind: wp.array(dtype=wp.int32)  # of a convex shape, see `support_shapes`
    bounding_radius: wp.array(dtype=scalar)  # of a polytope, as a share of its largest size
    first_vertex: wp.array(dtype=wp.int32)  # one more than there are shapes
    first_face: wp.array(dtype=wp.int32)


@wp.struct
class HullModel:
    """Vertices, edges and faces of all polytopes."""

    vertex: wp.array(dtype=vec3)  # shares of sizes
    neighbor_start: wp.array(dtype=wp.int32)  # one more than there are vertices
    neighbor: wp.array(dtype=wp.int32)  # vertices at the other ends of edges
    face_normal: wp.array(dtype=vec3)  # outward, of the shape with all sizes one
    loop_start: wp.array(dtype=wp.int32)  # one more than there are faces
    loop: wp.array(dtype=wp.int32)  # vertices of faces, counterclockwise as seen from outside


@struct(ENTRIES, CONTACT_PARAMETERS, group="pairs")
class PairModel:
    """Pairs of features of two shapes that may touch."""

    count: int
    kind: wp.array(dtype=wp.int32)  # see `closest_points`
    first: wp.array(dtype=wp.int32)  # shapes
    second: wp.array(dtype=wp.int32)
    feature: wp.array(dtype=vec3)  # part of the first shape
    group: wp.array(dtype=wp.int32)  # pair of shapes
    has_rotational_friction: wp.array(dtype=wp.int32)
    margin: wp.array(dtype=scalar)  # distance at which the pair counts as touching, m
    is_held: wp.array(dtype=wp.int32)  # of all candidates, whether they overlap in the reference pose: no failure
    is_capsule_end: wp.array(dtype=wp.int32)  # whether tangents follow the axis of the first shape


@wp.struct
class GroupModel:
    """Pairs of shapes, whose pairs of features are contiguous."""

    count: int
    max_pairs: int  # largest number of pairs of features in a group
    start: wp.array(dtype=wp.int32)  # first pair of features, one more than there are groups
    kind: wp.array(dtype=wp.int32)  # see `broad_phase`


@struct(ENTRIES, CONTACT_PARAMETERS, group="limits")
class LimitModel:
    """Joints with position limits."""

    count: int
    link: wp.array(dtype=wp.int32)


@wp.struct
class LengthModel:
    """Limits of combinations of joint positions."""

    count: int
    row: wp.array(dtype=wp.int32)  # of the transmissions


@struct(ENTRIES, CONTACT_PARAMETERS, group="transmissions")
class TransmissionModel:
    """Servos, dry friction and equality constraints along linear combinations of joint positions."""

    count: int
    kind: wp.array(dtype=wp.int32)  # see `transmissions`
    is_smooth: wp.array(dtype=wp.int32)  # whether a servo's force saturates smoothly
    start: wp.array(dtype=wp.int32)  # first coefficient, one more than there are transmissions
    coefficient: wp.array(dtype=scalar)
    velocity: wp.array(dtype=wp.int32)  # of each coefficient
    position: wp.array(dtype=wp.int32)
    path_start: wp.array(dtype=wp.int32)  # first link
    path: wp.array(dtype=wp.int32)  # links that carry its joints, outermost first


@wp.struct
class EqualityModel:
    """Loop joints: two frames, given as shapes that touch nothing, whose points or poses coincide."""

    count: int
    first: wp.array(dtype=wp.int32)
    second: wp.array(dtype=wp.int32)
    is_weld: wp.array(dtype=wp.int32)
    torque_scale: wp.array(dtype=scalar)  # m, of rotations relative to translations in convex contact


@wp.struct
class ConvexContactModel:
    """Parameters of convex contact for every candidate, transmission and loop joint; see `convex_contact`."""

    is_elliptic: int  # whether the friction cone is elliptic, not a pyramid
    friction_ratio: scalar  # of the stiffness along friction to that along the normal
    reference: wp.array(dtype=vec3)  # k, b and width
    impedance: wp.array(dtype=vec3)  # smallest, largest, and acceleration by a force of 1 N (or moment of 1 N m)
    curve: wp.array(dtype=vec3)  # midpoint and power of the impedance, and of a weld the acceleration by 1 N m


@wp.struct
class ContactModelStruct:
    """Constraints of a tree: pairs of shapes, joint limits, transmissions, equality constraints, and their settings."""

    shapes: ShapeModel
    hulls: HullModel
    pairs: PairModel
    groups: GroupModel
    limits: LimitModel
    lengths: LengthModel
    transmissions: TransmissionModel
    equalities: EqualityModel
    convex: ConvexContactModel
    candidates: int  # pairs of features, two for each joint with limits, and limits of combinations of joints
    noncontact_blocks: int  # blocks that are no contacts
    max_blocks: int
    row_blocks: int  # blocks of transmissions and loop joints
    max_events: int  # flights and impacts in a step
    restitution_threshold: scalar  # m/s of approach below which there is no restitution
    max_penetration: scalar  # m, or rad of a joint, in the initial state; it is pushed out


@struct(ENTRIES, CONTACT_MEMORY)
class ContactWorkspaceStruct:
    """Workspace of contact in one launch, a sub-struct for each stage."""


@struct(ENTRIES, CONTACT_PARAMETERS, SHAPE_TANGENTS)
class ContactGradientsStruct:
    """Gradients with respect to the parameters of `ContactModelStruct`, summed over time."""

    is_requested: int


@wp.struct
class SystemStruct:
    """Structs of a launch with contact besides the tree and the workspaces; forward kernels have no gradients."""

    forces: ForcesStruct
    model: ContactModelStruct
    gradients: GradientsStruct
    contact_gradients: ContactGradientsStruct


# Functions take the structs by reference: by value, every call would copy kilobytes. In the kernels of contact every
# function that takes them is inlined, where necessary by `inline=True`: one that is not keeps all fields in memory, and
# the backward pass takes a third longer.
Tree = wp.ref[TreeStruct]
Forces = wp.ref[ForcesStruct]
Schedule = wp.ref[ScheduleStruct]
Workspace = wp.ref[WorkspaceStruct]
Gradients = wp.ref[GradientsStruct]
Model = wp.ref[ContactModelStruct]
Contact = wp.ref[ContactWorkspaceStruct]
ContactGradients = wp.ref[ContactGradientsStruct]
System = wp.ref[SystemStruct]
