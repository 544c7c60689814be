"""What the kernels work on: the parts, which all worlds share, and the memory of one world.

Bodies are numbered as given; one more, the last, is the world itself: it never moves. A vector over bodies holds x, y
and angle of each. A row is one scalar constraint between two bodies: six numbers, three for either body. The rows of
the joints come first, then a normal and a tangential row for each contact.
"""

import warp as wp

from physvision.kernels.workspace import Layout

from . import scalar

CIRCLE = wp.constant(0)
POLYGON = wp.constant(1)

# Kinds of joint rows: the difference of two anchors along x, or along y (1), or the difference of two angles.
ROW_X = wp.constant(0)
ROW_ANGLE = wp.constant(2)

# Kinds of contacts: a round point on a round point, a round point on an edge, an angle on its limit.
POINT = wp.constant(0)
EDGE = wp.constant(1)
LIMIT = wp.constant(2)

# What a contact does: it is open, it slides (friction = coefficient times normal) or it sticks.
OPEN = wp.constant(0)
SLIDES = wp.constant(1)
STICKS = wp.constant(2)

# The compliance of a row of a joint, as a share of its own: redundant rows share by it.
COMPLIANCE = wp.constant(wp.float64(1.0e-12))

# What an operation is, and what ended it.
FLOW = wp.constant(0)
IMPACT = wp.constant(1)
CROWD = wp.constant(2)
NOTHING = wp.constant(0)
GAP_CLOSED = wp.constant(1)
SLIP_ENDED = wp.constant(2)
CUT = wp.constant(3)
EDGE_ENDED = wp.constant(4)


@wp.struct
class WorldParts:
    """What a world is made of: sizes, tolerances, bodies, joints, and where each property starts in its vector."""

    bodies: wp.int32
    moving: wp.int32
    joint_rows: wp.int32
    joint_band: wp.int32
    joints: wp.int32
    springs: wp.int32
    pairs: wp.int32
    motors: wp.int32
    platforms: wp.int32
    capacity: wp.int32
    crowd: wp.int32
    remembered: wp.int32
    operations: wp.int32
    effort: wp.int32
    dt: scalar
    tolerance: scalar
    rest_speed: scalar
    slop: scalar
    size: scalar
    # Not zero once the caller wants no more.
    stop: wp.array(dtype=wp.int32)

    slot: wp.array(dtype=wp.int32)
    static_slot: wp.array(dtype=wp.int32)
    driven: wp.array(dtype=wp.int32)
    kind: wp.array(dtype=wp.int32)
    vertex_start: wp.array(dtype=wp.int32)
    vertex_count: wp.array(dtype=wp.int32)
    vertices: wp.array2d(dtype=scalar)
    normals: wp.array2d(dtype=scalar)
    reach: wp.array(dtype=scalar)
    pair_bodies: wp.array2d(dtype=wp.int32)
    pair_number: wp.array(dtype=wp.int32)
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
    sliding_deceleration: wp.int32
    static_pose: wp.int32
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
EFFORT = wp.constant(4)
ASLEEP = wp.constant(5)
COARSE = wp.constant(6)
LABOUR = wp.constant(7)
FACTORED = wp.constant(8)

# Entries of `keep`: whether cotangents of properties are wanted, the worst residual, the cotangent of the time left,
# the deepest overlap found last, the longest flow that springs and damping allow, the time left before an operation,
# one where what slides is to part by friction times its slip, which makes the problem convex, else zero; and the
# compliance of a contact in the crowd at hand, as a share of its own coupling.
WANTED = wp.constant(0)
WORST = wp.constant(1)
LEFT_BAR = wp.constant(2)
DEEPEST = wp.constant(3)
LONGEST = wp.constant(4)
LEFT = wp.constant(5)
RELAXED = wp.constant(6)
SOFTNESS = wp.constant(7)

# Lengths of parts of the memory: a vector over bodies, one number a row, one of those that are followed, one a contact
# and a spare one, and one an unknown of the equations for bodies and joints.
VECTOR = "3 * (s.bodies + 1)"
ROWS = "s.joint_rows + 2 * s.crowd + 2"
FOLLOWED = "s.joint_rows + 2 * s.capacity + 2"
CONTACT = "s.crowd + 1"
UNKNOWNS = "3 * s.bodies + s.joint_rows"

_vectors = (
    # Start and end of an operation, half-way velocity, accelerations, displacement without multipliers, inverse masses.
    *("q0", "v0", "q1", "v1", "half", "a0", "a1", "free", "weight"),
    # Cotangents, and what is on the way to them: of the state, of accelerations, of the solution of a stage.
    *("q0_bar", "v0_bar", "q1_bar", "v1_bar", "half_bar", "a_bar", "z", "predicted", "predicted_bar"),
    # Cotangents after an operation, and those of the event that ends it.
    *("seed_q", "seed_v", "event_q", "event_v"),
    # What rows move bodies by, while contacts are decided.
    "shift",
)
_rows = (
    # Multipliers in the two stages of a flow, or in an impact; rows without multipliers; what overlaps are held at;
    # by how much rows miss their targets; the multipliers of an adjoint; right-hand side of a system and its solution.
    *("lambda0", "lambda1", "offset", "target", "missed", "kappa", "x"),
    # While contacts are decided: a row's own coupling, its speed, what it should move by, and multipliers for that.
    *("own", "rate", "wanted", "answered", "change"),
    # The multipliers of the first relaxed problem.
    "relaxed",
)
# Names that end in _bar are cotangents: ∂loss/∂name.
layout = Layout(
    __name__,
    scalar,
    {"s": WorldParts},
    real={
        "keep": "8",
        **dict.fromkeys(_vectors, VECTOR),
        # Rows at the start, at the end, of the first stage, and the cotangent of rows or columns.
        **dict.fromkeys(("rows0", "rows1", "mixed", "columns_bar"), f"6 * ({ROWS})"),
        **dict.fromkeys(_rows, ROWS),
        # The matrix of a stage, and the factors of the system of its equations.
        **dict.fromkeys(("matrix", "factors"), f"({FOLLOWED}) * ({FOLLOWED})"),
        # The equations for bodies and joints, their factors, and a right-hand side or solution.
        **dict.fromkeys(("lower", "upper"), f"({UNKNOWNS}) * ({UNKNOWNS})"),
        "unknown": UNKNOWNS,
        # A contact's compliance in either direction, and the inverse of all that it yields by, row after row; the
        # friction of what slides already, the slip that relaxed contacts part by; numbers of the interior-point method.
        "soft": f"2 * ({CONTACT})",
        "stiff": f"4 * ({CONTACT})",
        **dict.fromkeys(("pull", "parting"), CONTACT),
        # How far a body of a calm island may move and be left where it was; the interval that a body fills; sums over
        # the bodies of an island.
        **dict.fromkeys(("calm", "low", "high", "before", "after"), "s.bodies + 1"),
        "inside": f"15 * ({CONTACT})",
        # Contacts; the one after the last is the contact that an event is about.
        "feature": f"6 * ({CONTACT})",
        **dict.fromkeys(("gap", "rebound", "coefficient", "slide0", "slide1"), CONTACT),
        "log": "s.operations * (6 * s.moving + 8)",
    },
    whole={
        # Bodies of each row; pivots; rows that are equations.
        **dict.fromkeys(("row_a", "row_b", "order", "chosen"), ROWS),
        # Where the unknowns of bodies and of rows of joints are, and where the system's rows begin; islands; a queue.
        **dict.fromkeys(("place", "island", "queue", "head"), "s.bodies + 1"),
        # Bodies in the order of their intervals; pairs that may meet; the island of a body when it was last looked at
        # for rest, and whether it is awake: zero for what rests and for static bodies.
        **dict.fromkeys(("sweep", "group", "awake"), "s.bodies + 1"),
        "near": "s.pairs + 1",
        "joint_place": "s.joint_rows + 1",
        "first": UNKNOWNS,
        # From an end of a row to the next that acts on the same body; `head` has the first.
        "chain": f"2 * ({FOLLOWED})",
        # What each contact does in either stage; whether it slid already at the start.
        **dict.fromkeys(("mode0", "mode1", "sliding"), CONTACT),
        "contact": f"5 * ({CONTACT})",
        # What the contacts of the last crowd did, see `remembered`.
        "kept": f"1 + {CONTACT}",
        "log_kind": "5 * s.operations",
        "counts": "9",
    },
    others={
        **dict.fromkeys(("theta", "theta_bar", "control", "control_bar"), wp.array(dtype=scalar)),
        # What the contacts of the step before did.
        "known": wp.array(dtype=wp.int32),
    },
)
# Functions take both by reference: by value, each call would copy eight thousand bytes.
Parts = wp.ref[WorldParts]
Workspace = wp.ref[layout.Workspace]
carve = layout.carve


@wp.func_native("""
    char* p = reinterpret_cast<char*>(x.data);
    for (int k = 0; k < n; ++k, p += x.strides[0])
        *reinterpret_cast<decltype(x.data)>(p) = 0;
""")
def clear(x: wp.array(dtype=scalar), n: wp.int32):
    """Set the first n numbers to zero."""


@wp.func
def copy(source: wp.array(dtype=scalar), target: wp.array(dtype=scalar), n: wp.int32):
    """Copy the first n numbers."""
    for i in range(n):
        target[i] = source[i]
