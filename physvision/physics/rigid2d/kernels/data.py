"""Data of the planar kernels: the model, which all worlds share, and the workspace of one world.

Bodies are numbered in the kernels' order; one more, the last, is the world, which never moves. A vector over bodies
holds x, y and angle of each. Constraint rows are those of `physvision.physics.lcp.kernels.problem`.
"""

import warp as wp

from physvision.kernels.workspace import Layout, make_struct, settings_struct
from physvision.physics.lcp.kernels import problem
from physvision.physics.rigid2d.settings import StepSettings

from .precision import Array1d, Array2d, IntArray1d, IntArray2d, scalar

CIRCLE = wp.constant(0)
POLYGON = wp.constant(1)

# Kinds of joint rows: difference of two anchors along x (0) or along y (1, without a name), difference of angles (2).
ROW_X = wp.constant(0)
ROW_ANGLE = wp.constant(2)

# Contact types: a circle or corner against a circle or corner, the same against an edge, an angle against its limit.
POINT = wp.constant(0)
EDGE = wp.constant(1)
LIMIT = wp.constant(2)

# Types of operations in a step.
SMOOTH_STEP = wp.constant(0)
IMPACT = wp.constant(1)
FALLBACK_STEP = wp.constant(2)

# Events that end an operation.
NO_EVENT = wp.constant(0)
CONTACT_CLOSED = wp.constant(1)
SLIP_ENDED = wp.constant(2)
STEP_CUT = wp.constant(3)
EDGE_ENDED = wp.constant(4)

StepSettingsStruct = settings_struct(__name__, StepSettings, scalar)


# Sizes, tolerances, bodies and joints of a world, and the first entry of each property in its packed vector.
ModelStruct = make_struct(
    "ModelStruct",
    __name__,
    {
        "settings": StepSettingsStruct,
        "solver": problem.Settings,
        **dict.fromkeys(
            ("bodies", "num_moving_bodies", "joints", "springs", "pairs", "motors", "kinematic_bodies"), wp.int32
        ),
        **dict.fromkeys(("joint_rows", "joint_band", "max_contacts", "max_speculative_contacts"), wp.int32),
        **dict.fromkeys(("max_stored_modes", "max_operations", "work_budget"), wp.int32),
        **dict.fromkeys(("dt", "tolerance", "restitution_threshold", "penetration_slop", "length_scale"), scalar),
        # Nonzero once the caller requests to stop.
        "stop": IntArray1d,
        # Bodies: index in the state or among static poses (-1 for none), shape, vertices, edge normals, radius.
        **dict.fromkeys(("state_index", "static_index", "is_kinematic", "shape_type"), IntArray1d),
        **dict.fromkeys(("vertex_start", "vertex_count"), IntArray1d),
        **dict.fromkeys(("vertices", "normals"), Array2d),
        "radii": Array1d,
        # Pairs that may touch, and the pair of every two bodies (-1 for none).
        **dict.fromkeys(("pair_bodies", "joint_bodies", "spring_bodies"), IntArray2d),
        **dict.fromkeys(("pair_index", "motor", "has_limits", "row_kind", "row_joint"), IntArray1d),
        **dict.fromkeys(("mass", "gyration", "radius", "restitution", "friction", "velocity_decay"), wp.int32),
        **dict.fromkeys(("sliding_deceleration", "static_pose", "gravity", "anchors", "joint_angle"), wp.int32),
        **dict.fromkeys(("joint_stiffness", "joint_damping", "joint_limits", "spring_anchors"), wp.int32),
        **dict.fromkeys(("spring_stiffness", "spring_length", "spring_damping"), wp.int32),
    },
)


# Columns of the table of contacts.
KIND = wp.constant(0)
BODY_A = wp.constant(1)
BODY_B = wp.constant(2)
FEATURE_A = wp.constant(3)
FEATURE_B = wp.constant(4)

# Lengths of workspace arrays: a vector over bodies, one number per row, one number per contact and a spare one.
VECTOR = "3 * (m.bodies + 1)"
ROWS = "m.joint_rows + 2 * m.max_speculative_contacts + 2"
CONTACT = "m.max_speculative_contacts + 1"

_lcp_real, _lcp_integer = problem.layout.length(
    "m.bodies", "m.joint_rows", "m.max_speculative_contacts", "m.max_contacts"
)
_vectors = (
    # Start and end of an operation, midpoint velocity, accelerations, positions or velocities without constraints.
    *("q0", "v0", "q1", "v1", "v_mid", "a0", "a1", "unconstrained"),
    # Cotangents of the state, of accelerations and of the solution of a stage, and intermediate values of these.
    *("q0_bar", "v0_bar", "q1_bar", "v1_bar", "v_mid_bar", "a_bar", "z", "predicted", "predicted_bar"),
    # Cotangents after an operation, and those of the event that ends it.
    *("seed_q", "seed_v", "event_q", "event_v"),
)
# Names that end in _bar are cotangents: ∂loss/∂name.
layout = Layout(
    __name__,
    scalar,
    {"m": ModelStruct},
    real={
        "lcp_real": _lcp_real,
        **dict.fromkeys(_vectors, VECTOR),
        # Constraint rows at the start, at the end, of the position stage, and their cotangent.
        **dict.fromkeys(("rows0", "rows1", "rows_mixed", "rows_bar"), f"6 * ({ROWS})"),
        # Multipliers of the two stages, or of an impact; target of each row; errors of the rows at the end.
        **dict.fromkeys(("lambda0", "lambda1", "target", "row_error"), ROWS),
        # Motion below which a body rests; its interval on the sweep axis; energies of an island.
        **dict.fromkeys(("rest_threshold", "interval_min", "interval_max"), "m.bodies + 1"),
        **dict.fromkeys(("energy_before", "energy_after"), "m.bodies + 1"),
        # Contacts: points and normal in the bodies' frames; the last row is the contact that causes an event.
        "contact_points": f"6 * ({CONTACT})",
        **dict.fromkeys(("separation", "restitution", "ratio0", "ratio1"), CONTACT),
        "log_state": "m.max_operations * (6 * m.num_moving_bodies + 8)",
    },
    whole={
        "lcp_integer": _lcp_integer,
        # Bodies in the order of their intervals; pairs that may touch; island of each body when it last rested.
        **dict.fromkeys(("sweep_order", "sleep_group"), "m.bodies + 1"),
        "candidate_pairs": "m.pairs + 1",
        # Contact modes of either stage; type, bodies and features of each contact.
        **dict.fromkeys(("mode0", "mode1"), CONTACT),
        "contact_features": f"5 * ({CONTACT})",
        # Contact modes of the last fallback step, see `warm_start`.
        "stored_modes": f"1 + {CONTACT}",
        "log_kind": "5 * m.max_operations",
    },
    others={
        **dict.fromkeys(("theta", "theta_bar", "control", "control_bar"), Array1d),
        # Contact modes of the previous step.
        "previous_modes": IntArray1d,
        "lcp": problem.ProblemStruct,
        # Contacts in the table; 1 if it overflowed; sleeping bodies; 1 if the step is too long.
        **dict.fromkeys(("contacts", "overflow", "sleeping_bodies", "underresolved"), wp.int32),
        # 1 if cotangents of properties are accumulated, otherwise 0; cotangent of the time left.
        **dict.fromkeys(("property_mask", "time_left_bar"), scalar),
        # Deepest penetration of the last search; longest stable smooth step; time left before an operation.
        **dict.fromkeys(("max_penetration", "max_duration", "time_left"), scalar),
    },
)
# Functions take both structs by reference: by value, each call would copy eight thousand bytes.
Model = wp.ref[ModelStruct]
Data = wp.ref[layout.Workspace]
bind_workspace = layout.carve
