"""What the kernels work on: the scene, which all worlds share, and the memory of one world, cut from one long row.

Bodies are numbered as given; one more, the last, is the world itself: it never moves. A vector over bodies holds x, y
and angle of each. A row is one scalar constraint between two bodies: six numbers, three for either body. The rows of
the joints come first, then a normal and a tangential row for each contact.
"""

import warp as wp

from physvision.physics.lcp.kernels.workspace import inside_sizes

from . import scalar

CIRCLE = wp.constant(0)
POLYGON = wp.constant(1)

# Kinds of joint rows: the difference of two anchors along x, along y, or the difference of two angles.
ROW_X = wp.constant(0)
ROW_Y = wp.constant(1)
ROW_ANGLE = wp.constant(2)

# Kinds of contacts: a round point on a round point, a round point on an edge, an angle on its limit.
POINT = wp.constant(0)
EDGE = wp.constant(1)
LIMIT = wp.constant(2)

# What a contact does: it is open, it slides (friction = coefficient times normal) or it sticks.
OPEN = wp.constant(0)
SLIDES = wp.constant(1)
STICKS = wp.constant(2)

# What an operation is, and what ended it.
FLOW = wp.constant(0)
IMPACT = wp.constant(1)
NOTHING = wp.constant(0)
GAP_CLOSED = wp.constant(1)
SLIP_ENDED = wp.constant(2)


@wp.struct
class Scene:
    """The scene: sizes, tolerances, bodies, joints, and where each property starts in a world's property vector."""

    bodies: wp.int32
    moving: wp.int32
    joint_rows: wp.int32
    joints: wp.int32
    springs: wp.int32
    pairs: wp.int32
    motors: wp.int32
    capacity: wp.int32
    operations: wp.int32
    dt: scalar
    tolerance: scalar
    rest_speed: scalar

    slot: wp.array(dtype=wp.int32)
    kind: wp.array(dtype=wp.int32)
    vertex_start: wp.array(dtype=wp.int32)
    vertex_count: wp.array(dtype=wp.int32)
    vertices: wp.array2d(dtype=scalar)
    normals: wp.array2d(dtype=scalar)
    reach: wp.array(dtype=scalar)
    fixed: wp.array2d(dtype=scalar)
    pair_bodies: wp.array2d(dtype=wp.int32)
    joint_bodies: wp.array2d(dtype=wp.int32)
    motor: wp.array(dtype=wp.int32)
    limited: wp.array(dtype=wp.int32)
    row_kind: wp.array(dtype=wp.int32)
    row_joint: wp.array(dtype=wp.int32)
    spring_bodies: wp.array2d(dtype=wp.int32)

    mass: wp.int32
    gyration: wp.int32
    radius: wp.int32
    restitution: wp.int32
    friction: wp.int32
    velocity_decay: wp.int32
    gravity: wp.int32
    anchors: wp.int32
    joint_angle: wp.int32
    joint_stiffness: wp.int32
    joint_damping: wp.int32
    joint_limits: wp.int32
    spring_anchors: wp.int32
    spring_stiffness: wp.int32
    spring_length: wp.int32
    spring_damping: wp.int32


@wp.struct
class Work:
    """The memory of one world. Names that end in _bar are cotangents: ∂loss/∂name."""

    theta: wp.array(dtype=scalar)
    theta_bar: wp.array(dtype=scalar)
    control: wp.array(dtype=scalar)
    control_bar: wp.array(dtype=scalar)
    keep: wp.array(dtype=scalar)

    # Vectors over bodies: start and end of an operation, half-way velocity, accelerations, inverse masses.
    q0: wp.array(dtype=scalar)
    v0: wp.array(dtype=scalar)
    q1: wp.array(dtype=scalar)
    v1: wp.array(dtype=scalar)
    half: wp.array(dtype=scalar)
    a0: wp.array(dtype=scalar)
    a1: wp.array(dtype=scalar)
    free: wp.array(dtype=scalar)
    weight: wp.array(dtype=scalar)
    q0_bar: wp.array(dtype=scalar)
    v0_bar: wp.array(dtype=scalar)
    q1_bar: wp.array(dtype=scalar)
    v1_bar: wp.array(dtype=scalar)
    half_bar: wp.array(dtype=scalar)
    a_bar: wp.array(dtype=scalar)
    z: wp.array(dtype=scalar)
    predicted: wp.array(dtype=scalar)
    predicted_bar: wp.array(dtype=scalar)
    seed_q: wp.array(dtype=scalar)
    seed_v: wp.array(dtype=scalar)
    event_q: wp.array(dtype=scalar)
    event_v: wp.array(dtype=scalar)

    # Rows: at the start, at the end; their multipliers in the two stages of a flow, or in an impact.
    rows0: wp.array(dtype=scalar)
    rows1: wp.array(dtype=scalar)
    rows_bar: wp.array(dtype=scalar)
    columns_bar: wp.array(dtype=scalar)
    lambda0: wp.array(dtype=scalar)
    lambda1: wp.array(dtype=scalar)
    offset: wp.array(dtype=scalar)
    target: wp.array(dtype=scalar)
    kappa: wp.array(dtype=scalar)
    x: wp.array(dtype=scalar)
    matrix: wp.array(dtype=scalar)
    factors: wp.array(dtype=scalar)

    # Contacts; the one after the last is the contact that an event is about.
    feature: wp.array(dtype=scalar)
    gap: wp.array(dtype=scalar)
    rebound: wp.array(dtype=scalar)
    coefficient: wp.array(dtype=scalar)
    slide0: wp.array(dtype=scalar)
    slide1: wp.array(dtype=scalar)

    log: wp.array(dtype=scalar)
    inside: wp.array(dtype=scalar)

    row_a: wp.array(dtype=wp.int32)
    row_b: wp.array(dtype=wp.int32)
    order: wp.array(dtype=wp.int32)
    chosen: wp.array(dtype=wp.int32)
    contact: wp.array(dtype=wp.int32)
    mode0: wp.array(dtype=wp.int32)
    mode1: wp.array(dtype=wp.int32)
    sliding: wp.array(dtype=wp.int32)
    inside_order: wp.array(dtype=wp.int32)
    log_kind: wp.array(dtype=wp.int32)
    counts: wp.array(dtype=wp.int32)


# Columns of the table of contacts.
KIND = wp.constant(0)
BODY_A = wp.constant(1)
BODY_B = wp.constant(2)
FEATURE_A = wp.constant(3)
FEATURE_B = wp.constant(4)

# Entries of `counts`.
CONTACTS = wp.constant(0)
ITERATIONS = wp.constant(1)
FAILED = wp.constant(2)
OVERFLOW = wp.constant(3)

# Entries of `keep`: whether cotangents of properties are wanted, the worst residual, the cotangent of the time left.
WANTED = wp.constant(0)
WORST = wp.constant(1)
LEFT_BAR = wp.constant(2)


def sizes(bodies: int, moving: int, joint_rows: int, capacity: int, operations: int) -> tuple[int, int]:
    """How many real and how many whole numbers one world needs."""
    vector = 3 * (bodies + 1)
    rows = joint_rows + 2 * capacity
    bound = 4 * capacity
    real = 4 + 22 * vector + 24 * rows + 6 * rows + 2 * rows * rows + 6 * (capacity + 1) + 5 * (capacity + 1)
    inside, whole = inside_sizes(bound)
    real += operations * (6 * moving + 7) + inside
    integer = 4 * rows + 3 * capacity + whole + 5 * operations + 4 + 5 * (capacity + 1)
    return real, integer


@wp.func
def carve_whole(s: Scene, t: Work, integer: wp.array(dtype=wp.int32)):
    """The whole numbers in the memory of one world, cut from its row."""
    r = s.joint_rows + 2 * s.capacity
    c = s.capacity + 1
    bound = 4 * s.capacity
    t.row_a = integer[0:r]
    t.row_b = integer[r : 2 * r]
    t.order = integer[2 * r : 3 * r]
    t.chosen = integer[3 * r : 4 * r]
    i = int(4 * r)
    t.mode0 = integer[i : i + s.capacity]
    t.mode1 = integer[i + s.capacity : i + 2 * s.capacity]
    t.sliding = integer[i + 2 * s.capacity : i + 3 * s.capacity]
    i += 3 * s.capacity
    t.inside_order = integer[i : i + 2 * bound + 1]
    i += 2 * bound + 1
    t.log_kind = integer[i : i + 5 * s.operations]
    i += 5 * s.operations
    t.counts = integer[i : i + 4]
    t.contact = integer[i + 4 : i + 4 + 5 * c]
    return t


@wp.func
def carve(s: Scene, real: wp.array(dtype=scalar), integer: wp.array(dtype=wp.int32)):
    """The memory of one world, cut from its rows."""
    t = Work()
    n = 3 * (s.bodies + 1)
    t.keep = real[0:4]
    at = wp.int32(4)
    t.q0 = real[at : at + n]
    t.v0 = real[at + n : at + 2 * n]
    t.q1 = real[at + 2 * n : at + 3 * n]
    t.v1 = real[at + 3 * n : at + 4 * n]
    t.half = real[at + 4 * n : at + 5 * n]
    t.a0 = real[at + 5 * n : at + 6 * n]
    t.a1 = real[at + 6 * n : at + 7 * n]
    t.free = real[at + 7 * n : at + 8 * n]
    t.weight = real[at + 8 * n : at + 9 * n]
    t.q0_bar = real[at + 9 * n : at + 10 * n]
    t.v0_bar = real[at + 10 * n : at + 11 * n]
    t.q1_bar = real[at + 11 * n : at + 12 * n]
    t.v1_bar = real[at + 12 * n : at + 13 * n]
    t.half_bar = real[at + 13 * n : at + 14 * n]
    t.a_bar = real[at + 14 * n : at + 15 * n]
    t.z = real[at + 15 * n : at + 16 * n]
    t.predicted = real[at + 16 * n : at + 17 * n]
    t.predicted_bar = real[at + 17 * n : at + 18 * n]
    t.seed_q = real[at + 18 * n : at + 19 * n]
    t.seed_v = real[at + 19 * n : at + 20 * n]
    t.event_q = real[at + 20 * n : at + 21 * n]
    t.event_v = real[at + 21 * n : at + 22 * n]
    at += 22 * n
    r = s.joint_rows + 2 * s.capacity
    t.rows0 = real[at : at + 6 * r]
    t.rows1 = real[at + 6 * r : at + 12 * r]
    t.rows_bar = real[at + 12 * r : at + 18 * r]
    t.columns_bar = real[at + 18 * r : at + 24 * r]
    at += 24 * r
    t.lambda0 = real[at : at + r]
    t.lambda1 = real[at + r : at + 2 * r]
    t.offset = real[at + 2 * r : at + 3 * r]
    t.target = real[at + 3 * r : at + 4 * r]
    t.kappa = real[at + 4 * r : at + 5 * r]
    t.x = real[at + 5 * r : at + 6 * r]
    at += 6 * r
    t.matrix = real[at : at + r * r]
    t.factors = real[at + r * r : at + 2 * r * r]
    at += 2 * r * r
    c = s.capacity + 1
    t.feature = real[at : at + 6 * c]
    at += 6 * c
    t.gap = real[at : at + c]
    t.rebound = real[at + c : at + 2 * c]
    t.coefficient = real[at + 2 * c : at + 3 * c]
    t.slide0 = real[at + 3 * c : at + 4 * c]
    t.slide1 = real[at + 4 * c : at + 5 * c]
    at += 5 * c
    t.log = real[at : at + s.operations * (6 * s.moving + 7)]
    at += s.operations * (6 * s.moving + 7)
    bound = 4 * s.capacity
    t.inside = real[at : at + 2 * bound * bound + 8 * bound]
    return carve_whole(s, t, integer)


@wp.func
def clear(x: wp.array(dtype=scalar), n: wp.int32):
    """Set the first n numbers to zero."""
    for i in range(n):
        x[i] = scalar(0.0)


@wp.func
def copy(source: wp.array(dtype=scalar), target: wp.array(dtype=scalar), n: wp.int32):
    """Copy the first n numbers."""
    for i in range(n):
        target[i] = source[i]
