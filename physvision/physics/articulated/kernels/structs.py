"""The structs of the kernels; `physvision.physics.articulated.arrays` says what their arrays hold."""

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

REVOLUTE = wp.constant(1)
PRISMATIC = wp.constant(2)
BALL = wp.constant(3)
FREE = wp.constant(4)

# Laws of blocks.
TOUCHES = wp.constant(0)  # a contact: normal and two tangents
BOUNDED = wp.constant(1)  # one direction, whose impulse lies between bounds
TURNS = wp.constant(2)  # friction against turning about a contact's normal and tangents
TIES = wp.constant(3)  # three rows that always stick

# Modes of contacts.
OPEN = wp.constant(0)
STICKS = wp.constant(1)
SLIDES = wp.constant(2)

# A bounded block sticks, or is at one of its bounds.
AT_LOW = wp.constant(3)
AT_HIGH = wp.constant(4)

# A block that turns is open with its contact; else it neither spins nor rolls (STICKS), spins, rolls, or does both.
SPINS = wp.constant(2)
ROLLS = wp.constant(3)
SPINS_AND_ROLLS = wp.constant(4)

ENTRIES = {"scalar": scalar, "whole": wp.int32, "vec3": vec3, "mat33": mat33}


@struct(ENTRIES, PARAMETERS)
class TreeStruct:
    """The model: how its links hang together, and its parameters."""

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
    servo: wp.array(dtype=wp.int32)  # of each velocity: the link whose spring is taken at the end of the step, or -1
    couplings: int  # velocities that push others
    coupling_source: wp.array(dtype=wp.int32)
    coupling_target: wp.array(dtype=wp.int32)  # a velocity; beyond their number a transmission
    coupling_gain: wp.array(dtype=scalar)
    root: wp.array(dtype=wp.int32)  # of each link the first one of its tree
    varying: int  # trees whose inertia or weight changes with their pose
    varying_root: wp.array(dtype=wp.int32)
    spinners: int  # links that turn freely and carry nothing, where the step is of second order in that
    spinner: wp.array(dtype=wp.int32)
    dragged: int  # whether a medium drags the bodies


@wp.struct
class ForcesStruct:
    """What acts from outside, [world, step, …]. A wrench acts at the body's centre of mass, in the world's axes."""

    torque: wp.array3d(dtype=scalar)
    wrenches: int  # whether there are any
    push: wp.array3d(dtype=vec3)
    twist: wp.array3d(dtype=vec3)


@wp.struct
class ScheduleStruct:
    """How a step is cut into substeps, and the integrator's tableau; see `model.integrators`."""

    h: scalar  # length of a substep
    substeps: int
    stages: int  # evaluations of the dynamics in a substep
    drag_interval: scalar  # over which drag is taken implicitly
    reach: wp.array(dtype=scalar)  # of each stage: how far it stands from the substep's start
    weight: wp.array(dtype=scalar)  # of each stage's velocity and acceleration in the substep's means
    share: scalar  # of the stages' mean velocity in what moves positions; the end's has the rest


@struct(ENTRIES, FORWARD_MEMORY, BACKWARD_MEMORY)
class WorkspaceStruct:
    """Working memory of one launch."""


@struct(ENTRIES, PARAMETERS, TANGENT_GRADIENTS)
class GradientsStruct:
    """Gradients to the parameters of `Tree`, summed over time, and to what acts from outside."""

    wanted: int  # whether anybody asks for those to the parameters; their arrays are missing otherwise
    torque: wp.array3d(dtype=scalar)
    push: wp.array3d(dtype=vec3)
    twist: wp.array3d(dtype=vec3)


@struct(ENTRIES, CONTACT_PARAMETERS)
class ContactsStruct:
    """What may touch: pairs of shapes, each part of a link or of the world, and joints and their stops."""

    shapes: int
    shape_link: wp.array(dtype=wp.int32)  # -1 for the world
    pairs: int
    kind: wp.array(dtype=wp.int32)  # of each pair; see `closest`
    first: wp.array(dtype=wp.int32)  # its shapes
    second: wp.array(dtype=wp.int32)
    feature: wp.array(dtype=vec3)  # which part of the first
    group: wp.array(dtype=wp.int32)  # the pair of shapes that it belongs to
    groups: int  # pairs of shapes
    group_start: wp.array(dtype=wp.int32)  # where their pairs of features begin, one more than there are groups
    group_kind: wp.array(dtype=wp.int32)  # see `reach`
    shape_reach: wp.array(dtype=vec3)  # shares of a shape's sizes that make the radius of a ball about it
    turns: wp.array(dtype=wp.int32)  # whether there is friction against turning
    solid_kind: wp.array(dtype=wp.int32)  # of each shape, see `solids`
    solid_bound: wp.array(dtype=scalar)  # of a ball that holds it, as a share of its largest size
    solid_corner: wp.array(dtype=wp.int32)  # where its corners begin, one more than there are shapes
    solid_face: wp.array(dtype=wp.int32)  # where its faces begin
    corner: wp.array(dtype=vec3)  # shares of sizes
    neighbour_start: wp.array(dtype=wp.int32)  # where its neighbours begin, one more than there are corners
    neighbour: wp.array(dtype=wp.int32)  # corners that edges lead to
    face_normal: wp.array(dtype=vec3)  # outwards, of the shape with all its sizes one
    loop_start: wp.array(dtype=wp.int32)  # where the corners of a face begin in `loop`, one more than there are faces
    loop: wp.array(dtype=wp.int32)  # anticlockwise as seen from outside
    margin: wp.array(dtype=scalar)  # m apart at which the pair counts as touching
    lengthwise: wp.array(dtype=wp.int32)  # whether the first shape is one whose axis its tangents follow
    reference: wp.array(dtype=vec3)  # of each candidate: k, b and width (see `compliant`)
    shares: wp.array(dtype=vec3)  # least, largest, and what a force of 1 N gives both bodies in the start, or 1 N m
    limits: int
    limit_link: wp.array(dtype=wp.int32)
    candidates: int  # pairs and stops
    transmissions: int
    transmission_kind: wp.array(dtype=wp.int32)  # see `transmissions`
    transmission_first: wp.array(dtype=wp.int32)  # where its shares begin, one more than there are transmissions
    transmission_share: wp.array(dtype=scalar)
    transmission_velocity: wp.array(dtype=wp.int32)  # of each share
    transmission_position: wp.array(dtype=wp.int32)
    transmission_path_first: wp.array(dtype=wp.int32)  # where its links begin
    transmission_path: wp.array(dtype=wp.int32)  # the links that carry its joints, outermost first
    ties: int  # connections of bodies
    tie_first: wp.array(dtype=wp.int32)  # shapes that stand for their frames
    tie_second: wp.array(dtype=wp.int32)
    tie_turns: wp.array(dtype=wp.int32)  # whether it is a weld
    beside: int  # whether there are blocks beside those of contacts
    capacity: int  # contacts that may take part at once
    operations: int  # flights and impacts that a step may have
    rest_speed: scalar  # m/s below which nothing bounces
    overlap: scalar  # m, or rad of a joint, that a world may start beyond what stops it; it is pushed out


@struct(ENTRIES, CONTACT_MEMORY)
class ContactMemoryStruct:
    """Working memory of one launch with contacts."""


@struct(ENTRIES, CONTACT_PARAMETERS, SHAPE_TANGENTS)
class ContactGradientsStruct:
    """Gradients to the parameters of `Contacts`, summed over time."""

    wanted: int


# Functions take them by reference: by value, each call would copy some kilobytes. In the kernels of contact every
# function that takes them is inlined, where need be by `inline=True`: one that is not keeps all of them in memory, and
# the backward pass takes a third longer.
Tree = wp.ref[TreeStruct]
Forces = wp.ref[ForcesStruct]
Schedule = wp.ref[ScheduleStruct]
Workspace = wp.ref[WorkspaceStruct]
Gradients = wp.ref[GradientsStruct]
Contacts = wp.ref[ContactsStruct]
ContactMemory = wp.ref[ContactMemoryStruct]
ContactGradients = wp.ref[ContactGradientsStruct]
