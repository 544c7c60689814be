"""Settings of events and contact solvers, which are compiled into the kernels."""

from dataclasses import dataclass

from ..precision import DOUBLE


@dataclass(frozen=True)
class ContactSolverSettings:
    """Tolerances, thresholds and iteration limits of contact; the defaults are those of float64.

    Lengths are relative unless a unit is given. Tolerances of solved equations are near the rounding of the precision.
    The solver makes several trials to find the contact modes (`solver.solve_contacts`), from the cheapest to the most
    reliable: Newton's method, then after Gauss–Seidel sweeps, then along homotopies in compliance and in friction.

    Attributes:
        min_divisor: Smallest velocity scale and diagonal entry, which only guards against division by zero. 1.0e-30 in
            float32.
        contact_tolerance: Separation below which shapes touch, m. Raising it makes contacts of what is still apart.
            1.0e-5 in float32.
        grazing_distance: Shift that must not make or remove an event, m, or the step is reported as grazing. 1.0e-4 in
            float32.
        max_dip_ratio: Slope over curvature of a separation up to which the minimum of its parabola within a flight is
            examined: at 2 the minimum is at the end of the flight.
        near_flights: Number of flights for which the list of near shapes is meant to hold. Raising it lists them less
            often, and more of them.
        time_tolerance: Relative accuracy of a time of impact. Raising it makes impacts less accurate. 2.0e-7 in
            float32.
        max_root_iterations: Largest number of iterations for a time of impact; a safeguard.
        max_arrivals: Largest number of features that are followed to the first that arrives in a flight; a safeguard.
        midpoint_speed: Speed, m/s or rad/s, below which a tree in contact keeps the acceleration of the flight's start.
            Raising it makes slow motion in contact cheaper, and of first order in the step.
        midpoint_acceleration: Speed over the time of the flight, m/s² or rad/s², above which a tree has the
            acceleration of the midpoint at any speed, so that short steps are of second order.
        max_point_shift: Shift of a contact point from the start to the middle of a flight, relative to the smaller
            shape, beyond which it is another feature of the shapes.
        min_normal_cosine: Cosine of the rotation of a normal from the start to the middle of a flight below which it
            is that of another feature.
        separating_speed: Speed, m/s or rad/s, at the start of a flight above which a contact separates: it is pushed
            only if it would return in the flight. Raising it lets contacts that hold gain more energy; below it resting
            contacts have a derivative.
        penetration_recovery: Fraction of a penetration that is recovered in a step. With separation g and velocity u,
            per step, g′ = g + h (u + u′) / 2 and u′ = −κ g / h: the eigenvalues are real up to 6 − 4 √2; beyond, feet
            hop.
        min_normal_share: Share of the response along the normal below which a penetration is not recovered, for no
            joint can do it. 1.0e-6 in float32.
        max_energy_gain: Share of energy that an impact may add by an inexact solution. Raising it keeps restitution in
            more impacts. 1.0e-4 in float32.
        restitution_trials: Number of times that the restitution of an impact that adds energy is halved; the last one
            is without.
        max_residual: Relative residual beyond which a step fails. Raising it accepts less accurate impulses. 1.0e-3 in
            float32.
        sweeps: Gauss–Seidel sweeps before the second trial; ten times as many precede the third.
        max_sweeps: Gauss–Seidel sweeps before the fifth trial.
        first_homotopy_trial: First trial with a homotopy in compliance; each next one takes twice as many steps.
        first_friction_trial: First trial of the homotopy in friction.
        friction_trials: Number of steps of the homotopy in friction. Raising it follows solutions more closely.
        max_orders: Number of orders of an island's blocks that are tried. Raising it solves more redundant contacts.
        mode_tolerance: Violation of a mode that is accepted, relative to the largest velocity. Raising it ends
            iterations earlier. 1.0e-4 in float32.
        normal_relaxation: Relaxation of normal impulses in sweeps, below one: at one a foot that friction presses down
            is alternately pushed and released.
        compliance: Compliance of Newton's matrix, relative to the mean of its diagonal. Raising it conditions redundant
            contacts better. 1.0e-5 in float32.
        high_compliance: Compliance at the start of trials with friction along directions that move next to nothing,
            where a step with a low one overshoots all cones at once.
        compliance_decay: Factor of a high compliance in each step. Raising it follows solutions more closely, in more
            steps.
        max_compliant_steps: Largest number of steps with a high compliance; it decays to `compliance` within them.
        max_compliance: Compliance at the start of a homotopy, at which the solution is unique: above the matrix itself.
        homotopy_decay: Factor of the compliance in a step of a homotopy. Raising it follows solutions more closely, in
            more steps.
        max_homotopy_steps: Largest number of steps of a homotopy.
        converged_residual: Relative residual at which Newton's method ends, near rounding. 1.0e-5 in float32.
        max_pivot_ratio: Ratio of diagonal to pivot beyond which rows count as dependent. Raising it trusts worse
            conditioned solves. 1.0e3 in float32.
        max_newton_steps: Largest number of Newton steps with low compliance; a safeguard.
        pivot_tolerance: Share of the largest diagonal entry below which a pivot counts as zero. 1.0e-7 in float32.
        parallel_tolerance: Angle between the normals of a flat side, and between the directions in which its points
            slide, beyond which they differ, rad. 1.0e-3 in float32.
        max_convex_steps: Largest number of Newton steps of convex contact; a safeguard.
        max_line_search: Largest number of evaluations of a line search of convex contact.
        slope_tolerance: Share of the initial slope at which a line search ends. Raising it ends the search earlier.
        step_tolerance: Relative step at which Newton's method for convex contact ends, near rounding. 1.0e-6 in
            float32.
        quadratic_step: Relative step of Newton's method on an elliptic cone after which the error is below rounding.
            Raising it saves a step and leaves larger errors. 1.0e-4 in float32.
        max_convex_residual: Relative residual of convex contact beyond which a step fails. 1.0e-3 in float32.
    """

    min_divisor: float = 1.0e-300
    contact_tolerance: float = 1.0e-9
    grazing_distance: float = 1.0e-6
    max_dip_ratio: float = 2.02
    near_flights: float = 6.0
    time_tolerance: float = 4.0e-16
    max_root_iterations: int = 100
    max_arrivals: int = 8
    midpoint_speed: float = 6.0e-3
    midpoint_acceleration: float = 6.0
    max_point_shift: float = 0.3
    min_normal_cosine: float = 0.95
    separating_speed: float = 1.0e-4
    penetration_recovery: float = 0.34
    min_normal_share: float = 1.0e-12
    max_energy_gain: float = 1.0e-10
    restitution_trials: int = 8
    max_residual: float = 1.0e-8
    sweeps: int = 12
    max_sweeps: int = 1000
    first_homotopy_trial: int = 6
    first_friction_trial: int = 9
    friction_trials: int = 17
    max_orders: int = 4
    mode_tolerance: float = 1.0e-11
    normal_relaxation: float = 0.7
    compliance: float = 1.0e-13
    high_compliance: float = 1.0e-3
    compliance_decay: float = 0.92
    max_compliant_steps: int = 160
    max_compliance: float = 10.0
    homotopy_decay: float = 0.8
    max_homotopy_steps: int = 400
    converged_residual: float = 1.0e-13
    max_pivot_ratio: float = 1.0e8
    max_newton_steps: int = 12
    pivot_tolerance: float = 1.0e-14
    parallel_tolerance: float = 1.0e-9
    max_convex_steps: int = 100
    max_line_search: int = 30
    slope_tolerance: float = 0.1
    step_tolerance: float = 1.0e-14
    quadratic_step: float = 1.0e-9
    max_convex_residual: float = 1.0e-6


SOLVER = ContactSolverSettings()
if not DOUBLE:
    SOLVER = ContactSolverSettings(
        min_divisor=1.0e-30,
        contact_tolerance=1.0e-5,
        grazing_distance=1.0e-4,
        time_tolerance=2.0e-7,
        min_normal_share=1.0e-6,
        max_energy_gain=1.0e-4,
        max_residual=1.0e-3,
        mode_tolerance=1.0e-4,
        compliance=1.0e-5,
        converged_residual=1.0e-5,
        max_pivot_ratio=1.0e3,
        pivot_tolerance=1.0e-7,
        parallel_tolerance=1.0e-3,
        step_tolerance=1.0e-6,
        quadratic_step=1.0e-4,
        max_convex_residual=1.0e-3,
    )
