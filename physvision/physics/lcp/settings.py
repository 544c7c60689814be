"""Tuning numbers of the contact solver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverSettings:
    """Tolerances and limits of the contact solver, without unit where none is given.

    Defaults were chosen on the piles, random scenes and resting scenes of `benchmarks/plane_*.py`.

    Attributes:
        joint_compliance: Compliance of a joint row, as a fraction of its diagonal. Redundant joints share their load
            by it; raising it lets joints yield. A few thousand times the rounding error.
        contact_compliance: Compliance of a contact row, as a fraction of its diagonal. Rounding moves the load of
            redundant contacts by its own size over this number; raising it needs more refinements.
        contact_refinements: Refinements that remove the contacts' compliance from a dense solution.
        rounding: Relative size below which values count as rounding. Raising it makes nearly undecided contacts stick.
        min_velocity: Smallest row velocity above rounding, as a fraction of the restitution threshold.
        max_mode_updates: Updates of guessed contact modes before the mode search starts.
        mode_slack: Factor by which `rounding` grows for modes that the mode search returned: its contacts yield.
        max_search_residual: Relative residual above which a dense solution counts as failed.
        max_guess_updates: Updates of guessed modes at the start of a mode search.
        max_mode_corrections: Updates of modes that were read off an interior-point iterate.
        residual_tolerance: Largest residual of an accepted solution, as a fraction of the largest row value.
        max_factorizations: Sparse factorizations of one mode search; raising it costs time in the hardest piles.
        max_attempt_factorizations: Sparse factorizations of one interior-point attempt.
        relaxed_factorizations: Sparse factorizations that are reserved for one relaxed problem.
        softer_compliance: Contact compliance of the third interior-point attempt.
        softest_compliance: Contact compliance of the fourth and fifth attempt.
        near_bounds_scale: Scale of the starting point of the second and fifth attempt, which begin near the bounds.
        max_attempts: Interior-point attempts from different starting points before the problem is relaxed.
        min_step: Length below which an interior-point step is replaced by a centering step.
        max_short_steps: Consecutive short steps after which an attempt ends.
        max_relaxed_short_steps: Consecutive short steps after which a relaxed attempt ends; its problem has a solution.
        first_mode_check: Residual, relative to the problem, at which modes are read off an iterate for the first time.
        mode_check_decrease: Factor of the residual between two such checks.
        min_residual: Relative residual at which interior-point steps end.
        boundary_fraction: Fraction of the step to the nearest bound that is taken (Mehrotra, 1992).
        min_centering: Smallest centering parameter of a corrector step.
    """

    joint_compliance: float = 1e-12
    contact_compliance: float = 1e-6
    contact_refinements: int = 2
    rounding: float = 1e-10
    min_velocity: float = 1e-4
    max_mode_updates: int = 5
    mode_slack: float = 1e4
    max_search_residual: float = 1e-6
    max_guess_updates: int = 5
    max_mode_corrections: int = 3
    residual_tolerance: float = 1e-9
    max_factorizations: int = 150
    max_attempt_factorizations: int = 36
    relaxed_factorizations: int = 30
    softer_compliance: float = 1e-4
    softest_compliance: float = 1e-3
    near_bounds_scale: float = 0.1
    max_attempts: int = 5
    min_step: float = 0.1
    max_short_steps: int = 2
    max_relaxed_short_steps: int = 4
    first_mode_check: float = 1e-5
    mode_check_decrease: float = 1e-2
    min_residual: float = 1e-11
    boundary_fraction: float = 0.995
    min_centering: float = 1e-8
