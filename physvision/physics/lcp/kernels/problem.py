"""Mixed complementarity problem of one thread: bodies, constraint rows, contact modes, and the solver's workspace.

Bodies have three velocities each: x, y and angle. One more, the last, is the world, which never moves. A row is one
scalar constraint between two bodies: six numbers, three for either body. The rows of the joints come first, then a
normal and a tangential row for each contact. `rows` R measures velocities, `columns` C applies forces; they differ
only in the position stage of a smooth step.
"""

import warp as wp

from physvision.kernels.workspace import Layout, settings_struct
from physvision.physics.lcp.settings import SolverSettings

from .precision import Array1d, IntArray1d, scalar

# Contact modes: open, sliding (friction is the ratio times the normal multiplier), sticking.
OPEN = wp.constant(0)
SLIDE = wp.constant(1)
STICK = wp.constant(2)

ROWS = "joint_rows + 2 * contacts + 2"
DENSE_ROWS = "joint_rows + 2 * dense_contacts + 2"
CONTACTS = "contacts + 1"
UNKNOWNS = "3 * bodies + joint_rows"

Settings = settings_struct(__name__, SolverSettings, scalar)
layout = Layout(
    __name__,
    scalar,
    {"bodies": wp.int32, "joint_rows": wp.int32, "contacts": wp.int32, "dense_contacts": wp.int32},
    real={
        # Vectors over bodies: inverse masses and inertias, and the displacement W Cᵀ λ.
        **dict.fromkeys(("inverse_mass", "displacement"), "3 * (bodies + 1)"),
        # Row values without multipliers; diagonal of the Delassus matrix; row velocities with multipliers.
        **dict.fromkeys(("offset", "diagonal", "row_velocity"), ROWS),
        # Right-hand side and solution of the sparse system, by row; contact impulses on the way.
        **dict.fromkeys(("row_target", "solution", "contact_impulse"), ROWS),
        # Multipliers of the first relaxed problem; multipliers of the adjoint, which the search also uses as scratch.
        **dict.fromkeys(("relaxed_solution", "row_adjoint"), ROWS),
        # Dense system of few contacts: the Delassus matrix, its active part factorized, and a right-hand side.
        **dict.fromkeys(("delassus", "factors"), f"({DENSE_ROWS}) * ({DENSE_ROWS})"),
        "active_solution": ROWS,
        # Sparse system of the bodies: its factors, and a right-hand side or solution.
        **dict.fromkeys(("lower", "upper"), f"({UNKNOWNS}) * ({UNKNOWNS})"),
        "unknowns": UNKNOWNS,
        # Compliance of each contact along normal and tangent; the inverse of its total compliance, 2 × 2 row by row.
        "compliance": f"2 * ({CONTACTS})",
        "stiffness": f"4 * ({CONTACTS})",
        # Friction coefficient; ratio of contacts that slide from the start; slip that relaxed contacts part by.
        **dict.fromkeys(("friction", "fixed_ratio", "slip_target"), CONTACTS),
        # Interior-point iterate, its direction and its targets: 15 numbers a contact.
        "iterate": f"15 * ({CONTACTS})",
    },
    whole={
        # Bodies of each row; pivots; rows that are equations.
        **dict.fromkeys(("row_a", "row_b", "pivots", "active_rows"), ROWS),
        # First unknown of each body and of each joint row, and the first column of each row of the sparse system.
        "body_unknown": "bodies + 1",
        "joint_unknown": "joint_rows + 1",
        "envelope": UNKNOWNS,
        # Island of each body, queue of the walk through them, and one for bodies that are awake.
        **dict.fromkeys(("island", "queue", "awake"), "bodies + 1"),
        # Linked lists of the ends of rows that act on one body.
        "first_end": "bodies + 1",
        "next_end": f"2 * ({ROWS})",
        # One for contacts that slide from the start.
        "sliding": CONTACTS,
    },
    others={
        "settings": Settings,
        # Rows that measure velocities and that apply forces; modes and friction ratios of the contacts.
        **dict.fromkeys(("rows", "columns", "ratio"), Array1d),
        "mode": IntArray1d,
        **dict.fromkeys(("bodies", "joint_rows", "joint_band", "work_budget"), wp.int32),
        "restitution_threshold": scalar,
        # Work of the step so far: of operations, which no rounding changes, and of refinements, which it may.
        **dict.fromkeys(("work", "refinement_work"), wp.int32),
        # Sparse factorizations since the last reset, and the largest number that one search took.
        **dict.fromkeys(("factorizations", "iterations"), wp.int32),
        # One where a solution failed; the largest residual, as a fraction of the problem.
        "failed": wp.int32,
        "residual": scalar,
        # One where the problem is relaxed to a convex one, else zero; contact compliance as a fraction of the diagonal.
        **dict.fromkeys(("relaxation", "softness"), scalar),
    },
)
ProblemStruct = layout.Workspace
Problem = wp.ref[ProblemStruct]
_carve = layout.carve


@wp.func
def carve_problem(
    settings: Settings,
    bodies: int,
    joint_rows: int,
    joint_band: int,
    contacts: int,
    dense_contacts: int,
    real: Array1d,
    integer: IntArray1d,
):
    """Return a problem whose arrays lie in the two given rows, with nothing counted yet."""
    p = _carve(bodies, joint_rows, contacts, dense_contacts, real, integer)
    p.settings = settings
    p.bodies = bodies
    p.joint_rows = joint_rows
    p.joint_band = joint_band
    p.residual = scalar(0.0)
    p.iterations = 0
    p.factorizations = 0
    p.failed = 0
    p.work = 0
    p.refinement_work = 0
    p.relaxation = scalar(0.0)
    return p


@wp.func
def bind_contacts(p: Problem, rows: Array1d, columns: Array1d, mode: IntArray1d, ratio: Array1d):
    """Bind the rows of the constraints and the unknown modes and friction ratios of the contacts to a problem."""
    p.rows = rows
    p.columns = columns
    p.mode = mode
    p.ratio = ratio


@wp.func_native("""
    char* p = reinterpret_cast<char*>(x.data);
    for (int k = 0; k < n; ++k, p += x.strides[0])
        *reinterpret_cast<decltype(x.data)>(p) = 0;
""")
def clear(x: Array1d, n: int):
    """Set the first n numbers to zero."""


@wp.func
def copy(source: Array1d, target: Array1d, n: int):
    """Copy the first n numbers from `source` to `target`."""
    for i in range(n):
        target[i] = source[i]
