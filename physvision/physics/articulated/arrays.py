"""Arrays that the kernels read and write: one line for each parameter and for each array of a workspace.

The structs of the kernels, the tensors behind them, the order of a call's inputs and the gradient buffers follow from
these tables. A dotted name is that of a sub-struct and of its field. Dimensions are counted by "links" (all bodies that
one joint moves), "bodies", "positions", "velocities" and the like.
"""

from physvision.kernels.layout import field

# Parameters of the tree. Those with the name of a property are that property; the others are computed from properties.
PARAMETERS = {
    "mass": field("scalar", "links"),
    "first_moment": field("vec3", "links"),  # mass times center of mass, link frame
    # Center of mass of a free link from its origin, about which contact by events integrates it; zero otherwise.
    "link_center": field("vec3", "links"),
    "center": field("vec3", "bodies"),  # center of mass of a body, frame of its link
    "inertia": field("mat33", "links"),  # about the link's origin
    "rotation": field("mat33", "links"),  # parent to link at q = 0
    "offset": field("vec3", "links"),  # link's origin in the parent at q = 0
    "joint_stiffness": field("scalar", "links"),
    "spring_reference": field("scalar", "positions"),  # position at which the spring is at rest
    **dict.fromkeys(("joint_damping", "armature", "friction_loss"), field("scalar", "velocities")),
    "gravity": field("vec3"),
    # Fluid drag along the axes of an equivalent box for each body, in the frame of its link.
    "drag_axes": field("mat33", "bodies"),
    **dict.fromkeys(("viscous_force", "viscous_moment", "dynamic_force", "dynamic_moment"), field("vec3", "bodies")),
}

# The gradient with respect to `rotation` is summed in the tangent space, rotationᵀ exp([tangent]×), and converted last.
TANGENT_GRADIENTS = {"rotation_tangent": field("vec3", "links")}

FORWARD_MEMORY = {
    # States at which the dynamics are evaluated within one step, and their accelerations.
    "q": field("scalar", "evaluations", "positions"),
    **dict.fromkeys(("v", "a"), field("scalar", "evaluations", "velocities")),
    "step_velocity": field("scalar", "evaluations", "velocities"),  # mean velocity that moves positions over a substep
    "stage_rate": field("scalar", "evaluations", "velocities"),  # rate of positions in the tangent space, of each stage
    # Poses and motions of links in world axes, about the link's origin.
    "orientation": field("mat33", "links"),  # link to world
    "offset": field("vec3", "links"),  # from the parent's origin to the link's
    "first_moment": field("vec3", "links"),  # of mass
    "second_moment": field("mat33", "links"),
    "joint_angular_velocity": field("vec3", "links"),  # across the joint
    "joint_linear_velocity": field("vec3", "links"),
    "bias_angular": field("vec3", "links"),  # acceleration at q̈ = 0 without the parent's
    **dict.fromkeys(("bias_linear", "angular_velocity", "linear_velocity"), field("vec3", "links")),
    "angular_acceleration": field("vec3", "links"),  # gravity counts as an upward acceleration of the world
    "linear_acceleration": field("vec3", "links"),
    "axis_angular": field("vec3", "velocities"),  # columns of the motion subspace
    "axis_linear": field("vec3", "velocities"),
    # Articulated inertia (upper left, upper right, lower right) and bias force.
    **dict.fromkeys(("inertia_angular", "inertia_coupling", "inertia_linear"), field("mat33", "links")),
    **dict.fromkeys(("moment", "force"), field("vec3", "links")),
    # Factorization of the joint-space inertia, one column for each velocity: U, 1/D, and the right-hand side u.
    **dict.fromkeys(("column_angular", "column_linear"), field("vec3", "velocities")),
    "inverse_pivot": field("scalar", "velocities"),
    "damping": field("scalar", "velocities"),  # viscous damping plus dry friction as a coefficient of the velocity
    "rhs": field("scalar", "velocities"),
    # External wrenches, where there are any.
    "wrench_moment": field("vec3", "links"),  # about the link's origin
    "wrench_force": field("vec3", "links"),
}

BACKWARD_MEMORY = {
    # Adjoints of q (in the tangent space), v and q̈ for each evaluation.
    **dict.fromkeys(("q_bar", "v_bar", "a_bar", "step_velocity_bar"), field("scalar", "evaluations", "velocities")),
    "stage_rate_bar": field("scalar", "evaluations", "velocities"),
    # Solution λ of the adjoint equation, virtual motion of links under λ, and adjoints of velocity, acceleration and
    # virtual motion.
    "multiplier": field("scalar", "evaluations", "velocities"),
    **dict.fromkeys(("virtual_angular", "virtual_linear", "velocity_bar_angular"), field("vec3", "links")),
    **dict.fromkeys(("velocity_bar_linear", "acceleration_bar_angular"), field("vec3", "links")),
    **dict.fromkeys(("acceleration_bar_linear", "virtual_bar_angular", "virtual_bar_linear"), field("vec3", "links")),
    "orientation_bar": field("vec3", "links"),  # nonzero only under external wrenches
}

# Parameters of shapes, of pairs of them, and of other constraints, as `Pairs` lists them.
CONTACT_PARAMETERS = {
    "shapes.rotation": field("mat33", "shapes"),  # shape to link, or to the world
    "shapes.offset": field("vec3", "shapes"),  # shape's frame in its link, or in the world
    "shapes.size": field("vec3", "shapes"),
    **dict.fromkeys(("pairs.friction", "pairs.restitution"), field("scalar", "pairs")),
    "pairs.torsional_friction": field("scalar", "pairs"),  # largest spinning moment for a normal force of one
    "pairs.rolling_friction": field("scalar", "pairs"),
    "limits.lower": field("scalar", "limits"),  # of a joint's position
    "limits.upper": field("scalar", "limits"),
    **dict.fromkeys(("transmissions.stiffness", "transmissions.damping"), field("scalar", "transmissions")),
    **dict.fromkeys(("transmissions.reference", "transmissions.min_force"), field("scalar", "transmissions")),
    "transmissions.max_force": field("scalar", "transmissions"),
    "transmissions.max_speed": field("scalar", "transmissions"),  # that a servo demands
}

# The gradient with respect to `shapes.rotation` is summed in the tangent space, exp([tangent]×) rotation.
SHAPE_TANGENTS = {"shapes.rotation_tangent": field("vec3", "shapes")}

CONTACT_MEMORY = {
    # Events of one step: flights and impacts. Row k of `q` and `v` is the state at which event k starts.
    "events.kind": field("whole", "evaluations"),
    "events.duration": field("scalar", "evaluations"),  # of a flight
    "events.remaining_time": field("scalar", "evaluations"),  # of the step, when the event starts
    "events.count": field("whole", "evaluations"),  # constraint blocks that take part
    "events.restitution_scale": field("scalar", "evaluations"),  # factor of the restitution of an impact
    "events.impact_pair": field("whole", "evaluations"),  # candidate whose impact ends the flight, or -1
    "events.uses_midpoint": field("whole", "evaluations"),  # see `kernels/contact/midpoint_step.py`
    "events.monitored_count": field("whole", "evaluations"),  # candidates monitored along the flight
    # Fixed features whose impact ends the flight (see `kernels/contact/arriving_features.py`): normal and points.
    "events.has_fixed_features": field("whole", "evaluations"),
    "events.impact_points": field("mat33", "evaluations"),
    **dict.fromkeys(("events.first_radius", "events.second_radius"), field("scalar", "evaluations")),
    "events.is_grazing": field("whole"),  # whether a shift of a micrometer would make or remove an event of the step
    "events.is_midpoint_tree": field("whole", "links"),  # at the root of a tree: whether its flight has a midpoint
    # Status of the rollout.
    "status.residual": field("scalar"),  # largest of all solves
    "status.first_grazing_step": field("whole"),  # -1 if there is none
    "status.fallback_steps": field("whole"),  # steps in which restitution was dropped to limit the number of events
    "status.regularized_impacts": field("whole"),  # impacts whose restitution was lowered so that they add no energy
    "status.penetration": field("scalar"),  # largest at the start of any event
    "status.block_count": field("whole"),  # blocks of an event that has more than the workspace holds, else zero
    "status.pair_impulse": field("vec3", "pairs"),  # on the pair's first shape, over the last step
    # Collision detection. Candidates are the pairs of features, two for each joint with limits, then limits of
    # combinations of joints.
    "detection.is_active": field("whole", "candidates"),  # whether the candidate takes part in the event
    "detection.monitored": field("whole", "candidates"),  # candidates that may end the flight
    "detection.bounding_radius": field("scalar", "shapes"),
    "detection.group_separation": field("scalar", "groups"),  # lower bound of the separations of a pair of shapes
    "detection.near_group": field("whole", "groups"),  # the first one from here on that is near, or their number
    "detection.near_slack": field("scalar"),  # by how much separations may fall before others are near
    "detection.penetration": field("scalar"),  # largest of all pairs
    "detection.link_extent": field("scalar", "links"),  # largest distance from the joint to anything the link carries
    "detection.link_displacement": field("scalar", "links"),  # largest displacement of its shapes
    "detection.link_rotation": field("mat33", "links"),  # link to world
    "detection.link_origin": field("vec3", "links"),
    "detection.shape_rotation": field("mat33", "shapes"),  # shape to world
    "detection.shape_origin": field("vec3", "shapes"),
    "detection.limit_position": field("scalar", "limits"),  # of a ball joint its rotation angle
    "detection.length_displacement": field("scalar", "lengths"),  # of limits of combinations of joints
    "detection.limit_axis": field("vec3", "limits"),  # of a ball joint its rotation axis
    **dict.fromkeys(("detection.separation", "detection.mid_separation"), field("scalar", "candidates")),
    "detection.end_separation": field("scalar", "candidates"),
    "detection.dip_depth": field("scalar", "candidates"),  # how far a monitored separation falls beyond zero
    # Cache of the closest points of convex shapes, in the row of the first pair of features of a group.
    "detection.pose_version": field("whole"),  # counts how often the shapes were moved
    "detection.cached_pose_version": field("whole", "pairs"),
    "detection.cached_normal": field("vec3", "pairs"),
    "detection.cached_separation": field("scalar", "pairs"),
    "detection.manifold_corner": field("whole", "pairs"),  # in the other rows of the group
    # Pairs of convex shapes in contact whose other features may arrive, and the largest separation of their contacts.
    "detection.watched_group": field("whole", "groups"),
    "detection.held_separation": field("scalar", "groups"),
    "detection.start_rotation": field("mat33", "shapes"),  # at the start of the flight
    "detection.start_origin": field("vec3", "shapes"),
    # Constraint blocks of an event. A contact is a block of three rows: normal and two tangents.
    "blocks.pair": field("whole", "contacts"),  # candidate, transmission or equality constraint
    "blocks.law": field("whole", "contacts"),
    "blocks.frame": field("mat33", "contacts"),  # rows: normal and tangents
    **dict.fromkeys(("blocks.friction", "blocks.restitution"), field("scalar", "contacts")),
    "blocks.path": field("whole", "contacts", "links"),  # links that move the block, outermost first
    "blocks.path_length": field("whole", "contacts"),
    "blocks.jacobian": field("vec3", "contacts", "velocities"),  # of the links on the path, as all that follows
    "blocks.half_jacobian": field("vec3", "contacts", "velocities"),  # W Jᵀ, with M⁻¹ = Wᵀ D⁻¹ W
    "blocks.initial_velocity": field("vec3", "contacts"),  # when the event starts
    "blocks.free_velocity": field("vec3", "contacts"),  # without impulses, with the velocity bias
    "blocks.velocity_bias": field("vec3", "contacts"),
    # Blocks that are moved to the midpoint of a flight: contact point, from the world's origin
    # and from that of the first shape, frame and velocity at its start.
    "blocks.is_midpoint": field("whole", "contacts"),
    **dict.fromkeys(("blocks.start_point", "blocks.start_arm", "blocks.start_velocity"), field("vec3", "contacts")),
    "blocks.start_frame": field("mat33", "contacts"),
    # Parameters of blocks that are no contacts (see `kernels/contact/noncontact_constraints.py`).
    "blocks.parent": field("whole", "contacts"),  # contact of a block of rotational friction
    "blocks.compliance": field("scalar", "contacts"),
    "blocks.lower": field("scalar", "contacts"),  # bounds of the impulse
    **dict.fromkeys(("blocks.upper", "blocks.torsional_friction"), field("scalar", "contacts")),
    "blocks.rolling_friction": field("scalar", "contacts"),
    # Solver of the complementarity problem.
    **dict.fromkeys(("solver.mode", "solver.next_mode", "solver.best_mode"), field("whole", "contacts")),
    "solver.mode_violation": field("scalar", "contacts"),  # as a velocity
    "solver.active": field("whole", "contacts"),  # blocks that are not open
    # At the start of an island: number of active blocks if `matrix` holds the factors at the solution, else negative.
    "solver.factored": field("whole", "contacts"),
    "solver.island": field("whole", "contacts"),  # one number for all blocks that interact
    "solver.island_member": field("whole", "contacts"),  # blocks, island by island
    "solver.island_end": field("whole", "contacts"),  # in `island_member`, stored at the start of the island
    "solver.link_marker": field("whole", "links"),  # contact that was last propagated to the link
    **dict.fromkeys(("solver.inward_moment", "solver.inward_force"), field("mat33", "links")),
    **dict.fromkeys(("solver.delassus", "solver.matrix"), field("mat33", "contacts", "contacts")),
    **dict.fromkeys(("solver.vector", "solver.impulse", "solver.best_impulse"), field("vec3", "contacts")),
    "solver.velocity": field("vec3", "contacts"),  # after the impulses, with the velocity bias
    "solver.velocity_change": field("scalar", "evaluations", "velocities"),  # of the tree, by the impulses
    # Solver of convex contact (see `kernels/contact/convex_solver.py`).
    **dict.fromkeys(("convex.solution", "convex.descent"), field("scalar", "coupled")),
    "convex.hessian": field("scalar", "coupled", "coupled"),
    "convex.row_start": field("whole", "coupled"),
    "convex.lag": field("vec3", "contacts"),  # reference acceleration minus acceleration
    **dict.fromkeys(("convex.edge_stiffness", "convex.free_force"), field("scalar", "contacts")),
    "convex.companion": field("whole", "contacts"),  # block of the contact's rotational friction, or -1
    # Adjoints of the solution.
    **dict.fromkeys(("adjoint.impulse_bar", "adjoint.velocity_bar"), field("vec3", "contacts")),
    "adjoint.friction_bar": field("scalar", "contacts"),
    "adjoint.lower_bar": field("scalar", "contacts"),  # of the lower bound, or of torsional friction
    "adjoint.upper_bar": field("scalar", "contacts"),  # of the upper bound, or of rolling friction
    "adjoint.restitution_bar": field("scalar", "contacts"),  # of the normal velocity before an impact, by restitution
}
