"""Arrays that the kernels read and write: parameters of a model, their gradients and working memory.

The tables define the kernels' structs, the tensors behind them, the order of a call's inputs and the buffers of their
gradients. Rows are counted by "links" (what one joint moves; several bodies fixed to each other are one link),
"bodies", "positions" and "velocities".
"""

from physvision.kernels.layout import field

# Numbers of the model. Those with the name of a property are that property as it is; `Packing.pack` makes the others.
PARAMETERS = {
    "mass": field("scalar", "links"),
    "moment": field("vec3", "links"),  # mass times center of mass, link frame
    "center": field("vec3", "bodies"),  # of mass of a body, frame of its link
    "inertia": field("mat33", "links"),  # about the link's origin
    "rotation": field("mat33", "links"),  # parent to link at q = 0
    "offset": field("vec3", "links"),  # of the link's origin in the parent at q = 0
    "joint_stiffness": field("scalar", "links"),  # of the link's joint
    "spring_reference": field("scalar", "positions"),  # at which the spring is at rest
    "joint_damping": field("scalar", "velocities"),
    "armature": field("scalar", "velocities"),
    "friction_loss": field("scalar", "velocities"),
    "gravity": field("vec3"),
    # Drag of a medium, along the axes of a box for each body (frame of its link).
    "drag_axes": field("mat33", "bodies"),
    "viscous_force": field("vec3", "bodies"),
    "viscous_moment": field("vec3", "bodies"),
    "dynamic_force": field("vec3", "bodies"),
    "dynamic_moment": field("vec3", "bodies"),
}

# The gradient to `rotation` is summed up on the tangent, rotationᵀ exp([turn]×), and made a matrix at the end.
TANGENT_GRADIENTS = {"turn": field("vec3", "links")}

FORWARD_MEMORY = {
    # States at which the dynamics are evaluated within one step, and the accelerations found there.
    "q": field("scalar", "evaluations", "positions"),
    "v": field("scalar", "evaluations", "velocities"),
    "a": field("scalar", "evaluations", "velocities"),
    "rate": field("scalar", "evaluations", "velocities"),  # that moved positions over the substep that ends there
    # Placement and motion of a link, all in the world's axes and about the link's origin.
    "orientation": field("mat33", "links"),  # link to world
    "offset": field("vec3", "links"),  # from the parent's origin to the link's
    "first_moment": field("vec3", "links"),  # of its mass
    "second_moment": field("mat33", "links"),
    "joint_angular": field("vec3", "links"),  # velocity across the joint
    "joint_linear": field("vec3", "links"),
    "bias_angular": field("vec3", "links"),  # acceleration at q̈ = 0 that the parent does not give
    "bias_linear": field("vec3", "links"),
    "angular": field("vec3", "links"),  # velocity
    "linear": field("vec3", "links"),
    "angular_acceleration": field("vec3", "links"),  # gravity counted as an acceleration of the world upwards
    "linear_acceleration": field("vec3", "links"),
    "axis_angular": field("vec3", "velocities"),  # columns of the motion subspace
    "axis_linear": field("vec3", "velocities"),
    # Articulated inertia (upper left, upper right, lower right) and bias force.
    "inertia_angular": field("mat33", "links"),
    "inertia_coupling": field("mat33", "links"),
    "inertia_linear": field("mat33", "links"),
    "moment": field("vec3", "links"),
    "force": field("vec3", "links"),
    # The factorization, a column for each velocity: U, 1/D, and the right-hand side u.
    "column_angular": field("vec3", "velocities"),
    "column_linear": field("vec3", "velocities"),
    "pivot": field("scalar", "velocities"),
    "drag": field("scalar", "velocities"),  # damping plus friction as a coefficient of the velocity
    "rest": field("scalar", "velocities"),
    # Only where wrenches act.
    "wrench_moment": field("vec3", "links"),  # about the link's origin
    "wrench_force": field("vec3", "links"),
}

BACKWARD_MEMORY = {
    # Adjoints of q (tangent), v and q̈ for each evaluation.
    "q_bar": field("scalar", "evaluations", "velocities"),
    "v_bar": field("scalar", "evaluations", "velocities"),
    "a_bar": field("scalar", "evaluations", "velocities"),
    "rate_bar": field("scalar", "evaluations", "velocities"),
    # The solution λ of the implicit equation, the motion that λ gives each link, and the adjoints of velocity,
    # acceleration and that motion.
    "multiplier": field("scalar", "evaluations", "velocities"),
    "virtual_angular": field("vec3", "links"),
    "virtual_linear": field("vec3", "links"),
    "velocity_bar_angular": field("vec3", "links"),
    "velocity_bar_linear": field("vec3", "links"),
    "acceleration_bar_angular": field("vec3", "links"),
    "acceleration_bar_linear": field("vec3", "links"),
    "virtual_bar_angular": field("vec3", "links"),
    "virtual_bar_linear": field("vec3", "links"),
    "turning": field("vec3", "links"),  # adjoint of the link's orientation; only where wrenches act
}

# Shapes that may touch, and pairs of them, as `contact.Pairs` lists them.
CONTACT_PARAMETERS = {
    "shape_turn": field("mat33", "shapes"),  # shape to link, or to the world
    "shape_offset": field("vec3", "shapes"),  # of the shape's frame in its link, or in the world
    "shape_size": field("vec3", "shapes"),
    "friction": field("scalar", "pairs"),
    "restitution": field("scalar", "pairs"),
    "torsion": field("scalar", "pairs"),  # greatest moment against spinning, of a unit of normal force
    "rolling": field("scalar", "pairs"),
    "limit_low": field("scalar", "limits"),  # of a joint's position
    "limit_high": field("scalar", "limits"),
    "transmission_stiffness": field("scalar", "transmissions"),
    "transmission_damping": field("scalar", "transmissions"),
    "transmission_rest": field("scalar", "transmissions"),
    "transmission_low": field("scalar", "transmissions"),  # force
    "transmission_high": field("scalar", "transmissions"),
    "transmission_speed": field("scalar", "transmissions"),  # that a servo asks for at most
}

# The gradient to `shape_turn` is summed up on the tangent, exp([twist]×) shape_turn.
SHAPE_TANGENTS = {"shape_twist": field("vec3", "shapes")}

CONTACT_MEMORY = {
    # Operations of one step: flights and impacts. A row of `q` and `v` is where one starts.
    "kind": field("whole", "evaluations"),
    "duration": field("scalar", "evaluations"),  # of a flight, and what was left of the step when it began
    "left": field("scalar", "evaluations"),
    "count": field("whole", "evaluations"),  # of contacts that take part
    "bounce": field("scalar", "evaluations"),  # share of restitution that an impact has
    "struck": field("whole", "evaluations"),  # the pair whose gap ended the flight, or -1
    "from_middle": field("whole", "evaluations"),  # whether some tree has the acceleration of its flight's middle
    "looked_ahead": field("whole", "evaluations"),  # whether links were placed along the flight, to find its end
    # What is told of the whole rollout, and of the flight or step that came last.
    "residual": field("scalar"),  # the largest of all impulses
    "grazing": field("whole"),  # the first step with an event that a shift of a micrometre would make or undo, or -1
    "crowded": field("whole"),  # steps in which nothing bounced from some operation on
    "softened": field("whole"),  # impacts whose restitution was lowered, or they would have added energy
    "overlap": field("scalar"),  # the deepest at the start of any operation
    "grazes": field("whole"),
    # Candidates are pairs, and two stops for each limit of a joint. What follows is told of those that are near.
    "listed": field("whole", "candidates"),  # whether it takes part in the operation
    "watched": field("whole", "candidates"),  # those that may end the flight
    "shape_bound": field("scalar", "shapes"),  # radius of a ball about the shape
    "group_gap": field("scalar", "groups"),  # how far a pair of shapes is apart at least
    "deepest": field("scalar"),  # overlap of any pair
    "extent": field("scalar", "links"),  # how far from the link's joint anything is that it carries
    "reach": field("scalar", "links"),  # how far its shapes can get
    # Where links and shapes are in the world, and how far pairs are apart.
    "world_rotation": field("mat33", "links"),
    "world_origin": field("vec3", "links"),
    "shape_turn": field("mat33", "shapes"),
    "shape_origin": field("vec3", "shapes"),
    "limit_position": field("scalar", "limits"),  # of a ball joint the angle that it is turned by
    "limit_axis": field("vec3", "limits"),  # of a ball joint that about which it is turned
    "gap": field("scalar", "candidates"),
    "middle_gap": field("scalar", "candidates"),
    "end_gap": field("scalar", "candidates"),
    "depth": field("scalar", "candidates"),  # how deep the flight would lead before the pair parts by itself
    # Of the general pair of shapes, in the row of its first pair of features: the normal and the gap of the closest
    # points, and the count of placements at which they were found. In the other rows the number of a corner.
    "placed": field("whole"),  # counts how often shapes were placed
    "searched": field("whole", "pairs"),
    "way": field("vec3", "pairs"),
    "way_gap": field("scalar", "pairs"),
    "flat_corner": field("whole", "pairs"),
    "pushed": field("vec3", "pairs"),  # impulse of the step on the pair's first shape
    # Contacts that take part in an operation: their pairs and what they do. A block is (normal, two tangents).
    "pair": field("whole", "contacts"),
    "frame": field("mat33", "contacts"),  # rows: normal and tangents
    "friction": field("scalar", "contacts"),
    "restitution": field("scalar", "contacts"),
    "mode": field("whole", "contacts"),
    "next_mode": field("whole", "contacts"),
    "best_mode": field("whole", "contacts"),
    "wrong": field("scalar", "contacts"),  # by how much its mode is not the right one, as a velocity
    "closed": field("whole", "contacts"),  # those that are not open
    # Where an island begins: how many, if the factors in `matrix` are those at the solution; otherwise negative.
    "factored": field("whole", "contacts"),
    "path": field("whole", "contacts", "links"),  # the links that move it, outermost first
    "path_length": field("whole", "contacts"),
    "island": field("whole", "contacts"),  # the same number for those that one tree, or a row of contacts, joins
    "member": field("whole", "contacts"),  # contacts by islands
    "island_end": field("whole", "contacts"),  # where an island ends in `member`, in the row where it begins
    "loose": field("whole", "links"),  # of a tree's root: whether it has the acceleration of the flight's middle
    "met": field("whole", "links"),  # a contact that the link's tree has; whether something was handed to the link
    "jacobian": field("vec3", "contacts", "velocities"),  # of the links that carry, as all that follows
    "half": field("vec3", "contacts", "velocities"),  # W Jᵀ, with M⁻¹ = Wᵀ D⁻¹ W
    "inward_moment": field("mat33", "links"),
    "inward_force": field("mat33", "links"),
    "delassus": field("mat33", "contacts", "contacts"),
    "matrix": field("mat33", "contacts", "contacts"),
    "vector": field("vec3", "contacts"),
    "impulse": field("vec3", "contacts"),
    "best_impulse": field("vec3", "contacts"),
    "slip": field("vec3", "contacts"),  # velocity of the contact, with bias, after the impulse
    "drive": field("vec3", "contacts"),  # the same without the impulse
    "before": field("vec3", "contacts"),  # velocity of the contact when the operation begins
    "jump": field("scalar", "evaluations", "velocities"),  # of the velocities, by the impulses
    "impulse_bar": field("vec3", "contacts"),
    "slip_bar": field("vec3", "contacts"),
    "friction_bar": field("scalar", "contacts"),
    # Blocks beside those of contacts (see `kernels/contact/noncontact_constraints.py`).
    "law": field("whole", "contacts"),
    "holder": field("whole", "contacts"),  # the contact that turning friction belongs to
    "bias": field("vec3", "contacts"),  # velocity added to that of a row, in a flight
    "yielding": field("scalar", "contacts"),
    "low": field("scalar", "contacts"),  # impulse
    "high": field("scalar", "contacts"),
    "torsion": field("scalar", "contacts"),
    "rolling": field("scalar", "contacts"),
    # Of contacts that follow a reference acceleration (see `kernels/contact/convex_solver.py`).
    "answer": field("scalar", "coupled"),
    "downhill": field("scalar", "coupled"),
    "cost": field("scalar", "coupled", "coupled"),
    "row_start": field("whole", "coupled"),
    "lag": field("vec3", "contacts"),  # behind the reference, along normal and tangents
    "hardness": field("scalar", "contacts"),  # force of an edge, of a unit of lag
    "low_bar": field("scalar", "contacts"),  # of the lower bound, or of torsion
    "high_bar": field("scalar", "contacts"),
    "restored_bar": field("scalar", "contacts"),  # of the normal velocity before an impact, by restitution
}
