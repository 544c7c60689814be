"""Tuning numbers of a step of the planar world."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepSettings:
    """Tolerances and limits of one step of the planar world, without unit where none is given.

    Defaults were chosen on the piles, random scenes and resting scenes of `benchmarks/plane_*.py`.

    Attributes:
        max_contacts: Contacts that may touch at one moment for events to be followed; None for 16.
        max_events: Impacts, ends of slip and smooth steps between them that are followed in one step.
        max_milliseconds: Estimated cost of following events in one step, in milliseconds on one core, counted in
            operations and not by the clock; None for 2, or 16 where nothing can touch. Beyond any of these three limits
            the rest of the step is a fallback step, see `Status.fallback_steps`.
        tolerance: Separation below which bodies touch, as a fraction of the scene's extent. Raising it makes contacts
        close
            earlier; lowering it below 1e-12 meets rounding.
        restitution_threshold: Approach velocity below which a contact rests, in tolerances a step.
        min_penetration_slop: Smallest penetration that is corrected, in tolerances.
        penetration_slop: Penetration that is left uncorrected, as a fraction of the smallest moving body. Raising it
            lets piles rest deeper, and moves less of them.
        max_event_iterations: Iterations of root finding for the duration of a smooth step that ends by a mode change.
        max_contact_iterations: Newton iterations for the time at which a contact closes.
        max_position_iterations: Newton iterations of the position stage.
        max_event_retries: Shortenings of one smooth step by later searches for contacts and mode changes.
        position_accuracy: Error of the position stage below which it ends, in tolerances.
        max_restitution_halvings: Halvings of restitution in an impact that would gain energy; the last sets it to zero.
        max_impact_energy_gain: Relative gain of energy of an impact that counts as rounding.
        max_corrections: Position corrections of one fallback step.
        joint_corrections: Last corrections, which are about joints alone.
        correction_factorizations: Sparse factorizations after which corrections are about joints alone.
        sink_fraction: Velocity at which loaded compliant contacts may sink, as a fraction of the free acceleration's.
        max_fallback_parts: Parts into which the fallback step of jointed bodies is divided.
        max_rotation: Rotation of a jointed body in one smooth step, in radians. Raising it saves steps and loses
            energy of fast joints.
        min_part: Shortest part of the time left to which a smooth step is halved.
        max_energy_gain: Relative gain of energy at which a smooth step with contacts has failed.
        max_energy_error: Relative change of energy at which a smooth step of joints without contacts has failed.
        time_constant_fraction: Duration of a smooth step, as a fraction of the fastest time constant of springs and
            damping; above one they become unstable.
        sleep_velocity: Velocity below which an island rests, as a fraction of what free acceleration adds in a step.
        warm_start_window: Stored contacts that are searched for one contact.
        edge_margin: Distance past an edge's end at which its contact has ended, in tolerances. `narrow_phase` keeps
            contacts up to a hundred, so that a lower number could end a contact that it finds again.
        speculative_margin: Separation below which contacts are part of a position correction, as a fraction of the
        smaller
            body's bounding radius.
        max_unsorted_pairs: Pairs of bodies up to which every pair is tested, without a sweep.
        brief_bounce: Duration of a bounce below which a contact rests, as a fraction of a step.
        brief_slip: Duration of a slip below which a contact sticks, as a fraction of a step.
        min_advance: Shortest advance of a grazing pair in the search for a contact, as a fraction of the duration.
        max_exact_advances: Advances of one pair after which they grow.
        min_free_duration: Shortest smooth step without constraints, as a fraction of the step.
        min_duration: Shortest smooth step with constraints, whose multipliers are divided by it, likewise.
        min_cut: Shortest smooth step that is cut to search for contacts again, likewise.
        cut_divisions: Equal parts of the time left at which such cuts fall, independent of the state.
    """

    max_contacts: int | None = None
    max_events: int = 128
    max_milliseconds: float | None = None
    tolerance: float = 1e-9
    restitution_threshold: float = 1e-2
    min_penetration_slop: float = 10.0
    penetration_slop: float = 2e-4
    max_event_iterations: int = 40
    max_contact_iterations: int = 20
    max_position_iterations: int = 12
    max_event_retries: int = 8
    position_accuracy: float = 1e-5
    max_restitution_halvings: int = 8
    max_impact_energy_gain: float = 1e-9
    max_corrections: int = 10
    joint_corrections: int = 3
    correction_factorizations: int = 60
    sink_fraction: float = 2e-4
    max_fallback_parts: int = 16
    max_rotation: float = 0.2
    min_part: float = 0.01
    max_energy_gain: float = 1e-4
    max_energy_error: float = 1e-3
    time_constant_fraction: float = 0.5
    sleep_velocity: float = 1e-3
    warm_start_window: int = 12
    edge_margin: float = 150.0
    speculative_margin: float = 1e-2
    max_unsorted_pairs: int = 64
    brief_bounce: float = 1e-2
    brief_slip: float = 1e-4
    min_advance: float = 1e-3
    max_exact_advances: int = 50
    min_free_duration: float = 1e-12
    min_duration: float = 1e-9
    min_cut: float = 1e-3
    cut_divisions: float = 64.0
