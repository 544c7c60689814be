"""Tuning numbers of the kinds of motion, part of `physvision.identification.settings`.

Unless the entry says otherwise, raising a `min_…` rejects more tracks, raising a `max_…` rejects fewer, raising a
`…_std` weakens a prior, and raising a number of steps, samples or draws costs time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ParabolaSettings:
    """Thresholds of the search for a parabolic stretch of a track.

    Attributes:
        min_samples: Smallest number of samples of a stretch.
        cubic_samples: Samples from which drag and rolling shutter bend a parabola, so that a cubic is fitted.
        max_residual: Largest residual of a sample, in noise standard deviations. Raising it lengthens the stretch.
        max_median_residual: Largest median residual of a stretch, in noise standard deviations.
        noise_ratio: Assumed noise relative to the track's, since positions on a path scatter more.
        max_sideways: Largest sideways part of a fall's acceleration, relative to the downward part.
        variance_ratios: Candidate variances of autocorrelated noise, relative to the white noise's.
        time_scales: Candidate correlation times, relative to the stretch.
        departure_threshold: Squared residuals that count as a departure: the 99.9 % quantile of χ² with 6 degrees of
            freedom. Raising it notices hands later.
    """

    min_samples: int = 6
    cubic_samples: int = 16
    max_residual: float = 3.5
    max_median_residual: float = 1.5
    noise_ratio: float = 1.3
    max_sideways: float = 0.4
    variance_ratios: tuple[float, ...] = (0.5, 2.0, 8.0)
    time_scales: tuple[float, ...] = (0.03, 0.1, 0.3)
    departure_threshold: float = 22.5


@dataclass(frozen=True)
class ReleaseSettings:
    """Numbers of a release by a hand.

    Attributes:
        hold_duration: Time before a release for which the hand's pull is taken as constant, s.
        swing_duration: Time in which an arm accelerates what it throws, s.
        pull_threshold: Squared residuals above which a pull is needed: the 99.9 % quantile of χ² with 3 degrees of
            freedom, for a time and a pull.
        outlier_cost: Largest squared residual that a sample adds, so that one outlier decides nothing.
        skipped_cost: Cost of a sample before the release that is left out.
        offset_threshold: Improvement above which the first samples are offset from the path.
    """

    hold_duration: float = 0.08
    swing_duration: float = 0.15
    pull_threshold: float = 16.3
    outlier_cost: float = 20.0
    skipped_cost: float = 4.0
    offset_threshold: float = 8.0


@dataclass(frozen=True)
class FlightSettings:
    """Priors and thresholds of throws and falls.

    Attributes:
        drag: Prior mean of the drag, 1/m: 0.001 for a shot, 0.03 for hollow balls.
        drag_std: Prior standard deviation of the drag, 1/m.
        table_drag_std: Prior standard deviation of the drag of tracks from tables, 1/m, whose object may be anything:
        foam
            has 0.07.
        release_std_frames: Standard deviation of the time of an unobserved release, frames.
        hand_release_std_frames: Standard deviation of the time of a release by a visible hand, frames.
        sideways_std: Standard deviation of the sideways velocity of a dropped object, relative to the speed gained.
        max_sideways: Largest sideways part of a fall, relative to its length.
        hand_pull_range: Pull of a hand, relative to gravity; it carries the weight at least.
        max_sigma_ratio: Largest position error of a clear sample, relative to the radius.
        covered_frames: Frames after the first in which a covering hand hides the object again.
        min_hand_samples: Samples that show a hand.
        offset_ratio: Distance from the path that counts as beside it, in noise standard deviations.
        touched_std: Standard deviation of the position where a hand touches the object, relative to the radius.
        covered_std: Standard deviation of the position of a partly covered object, relative to the radius.
        min_bend: Curvature below which a track counts as uniform motion, in noise standard deviations.
        min_samples: Smallest number of samples.
        steps_per_second: Smallest number of engine steps a second.
    """

    drag: float = 0.015
    drag_std: float = 0.015
    table_drag_std: float = 0.03
    release_std_frames: float = 2.0
    hand_release_std_frames: float = 3.0
    sideways_std: float = 0.01
    max_sideways: float = 0.05
    hand_pull_range: tuple[float, float] = (0.5, 15.0)
    max_sigma_ratio: float = 0.6
    covered_frames: int = 4
    min_hand_samples: int = 3
    offset_ratio: float = 3.0
    touched_std: float = 0.04
    covered_std: float = 0.35
    min_bend: float = 4.0
    min_samples: int = 5
    steps_per_second: float = 60.0


@dataclass(frozen=True)
class BounceSettings:
    """Priors and thresholds of bouncing balls.

    Attributes:
        min_samples: Smallest number of samples.
        min_flight_samples: Samples from which a parabola gives the duration of a flight.
        min_impacts: Impacts from which restitution is compared between hard and soft ones.
        min_fall: Part of the way up and down on which the acceleration must be the same.
        min_difference: Difference of restitution between hard and soft impacts that is reported.
        radius: Radius of the engine's ball, pixels; only the height at which its center turns matters.
        friction_std: Prior mean and standard deviation of friction.
        min_jump: Smallest change of velocity at an impact, relative to the fastest motion.
        min_hardest_jump: Largest change of velocity that shows impacts, relative to the fastest motion; swings turn
            softly.
        substeps: Engine steps a frame; an impact blurs the step in which it lies.
        min_steps: Engine steps from which fewer than `substeps` a frame suffice. Raising it costs time.
        max_restitution_scatter: Scatter of the impacts' restitution above which they are fitted with a push each.
        max_speed_gain: Gain of horizontal speed in an impact, relative to its vertical speed, above which impacts are
            fitted with a push each.
        push_delay: Time from the first sample after an impact to its push, frames.
        sideways_push_std: Standard deviation of a push along the floor, relative to the fastest impact.
        upward_push_std: Standard deviation of a push upward, relative to the fastest impact.
    """

    min_samples: int = 12
    min_flight_samples: int = 6
    min_impacts: int = 4
    min_fall: float = 0.5
    min_difference: float = 0.05
    radius: float = 10.0
    friction_std: float = 0.1
    min_jump: float = 0.12
    min_hardest_jump: float = 0.8
    substeps: int = 3
    min_steps: int = 450
    max_restitution_scatter: float = 0.04
    max_speed_gain: float = 0.1
    push_delay: float = 0.5
    sideways_push_std: float = 0.1
    upward_push_std: float = 0.05


@dataclass(frozen=True)
class CollisionSettings:
    """Priors and thresholds of collisions.

    Attributes:
        min_samples: Smallest number of samples of both objects.
        max_duration: Time before and after the impact, s.
        max_samples: Samples before and after the impact; over more, a table's friction is not uniform.
        fit_duration: Time around a candidate impact over which velocities are fitted, s.
        fit_samples: Samples around a candidate impact over which velocities are fitted.
        newton_iterations: Newton iterations of the time of impact.
        max_shift: Largest change of the time of impact from the tracks' estimate, s.
        min_approach: Smallest approach speed, relative to the relative speed.
        friction_std: Prior mean and standard deviation of friction.
        substeps: Engine steps a frame.
    """

    min_samples: int = 12
    max_duration: float = 1.0
    max_samples: int = 40
    fit_duration: float = 0.35
    fit_samples: int = 15
    newton_iterations: int = 4
    max_shift: float = 0.2
    min_approach: float = 0.01
    friction_std: float = 0.05
    substeps: int = 2


@dataclass(frozen=True)
class ExplosionSettings:
    """Thresholds of bodies that push off from each other.

    Attributes:
        min_samples: Smallest number of samples of both objects.
        max_angle: Largest angle between one object's direction and the opposite of the other's, rad.
        max_distance_ratio: Largest distance of the objects at first, relative to the sum of their radii.
        elapsed_frames: Prior mean and standard deviation of the time between push and first sample, frames.
    """

    min_samples: int = 8
    max_angle: float = math.radians(12)
    max_distance_ratio: float = 2.0
    elapsed_frames: float = 1.5


@dataclass(frozen=True)
class DoublePendulumSettings:
    """Priors and thresholds of double pendulums.

    Attributes:
        min_samples: Smallest number of samples of both bobs.
        max_circle_error: Largest deviation of the inner bob from a circle, relative to its radius.
        max_length_change: Largest standard deviation of the bobs' distance, relative to its mean.
        depth_std: Standard deviation of the distance between the planes of the arms, relative to the camera's distance.
        shift_std: Standard deviation of the shift of a bob's observed center along the arms, relative to their length.
        rate_samples: Samples around a time from which an arm's rate is fitted.
        min_swing_offset: Difference of an arm's swing length from its length above which its mass is fitted.
        point_inertia: Inertia of a bob about its center, relative to its mass times the arm's length squared.
        steps_per_second: Smallest number of engine steps a second.
    """

    min_samples: int = 20
    max_circle_error: float = 0.05
    max_length_change: float = 0.08
    depth_std: float = 0.01
    shift_std: float = 0.005
    rate_samples: int = 7
    min_swing_offset: float = 0.25
    point_inertia: float = 1e-7
    steps_per_second: float = 200.0


@dataclass(frozen=True)
class PendulumSettings:
    """Thresholds of the pendulum kind.

    Attributes:
        min_samples: Smallest number of samples.
        min_periods: Smallest number of periods.
        steps_per_second: Smallest number of engine steps a second.
        min_slack: Depth inside the circle of later swings at which a string is slack, relative to the radius.
        min_slack_ratio: Depth inside that circle at which a string is slack, relative to the noise and to the scatter
        of
            later positions.
        min_slack_samples: Smallest number of samples of a slack string.
        max_slack_fraction: Part of the samples in which a string may be slack. Raising it leaves out more.
        max_slack_radius: Largest radius, relative to the extent of later swings, for a circle that shows the depth.
    """

    min_samples: int = 12
    min_periods: float = 0.6
    steps_per_second: float = 120.0
    min_slack: float = 0.02
    min_slack_ratio: float = 6.0
    min_slack_samples: int = 2
    max_slack_fraction: float = 0.4
    max_slack_radius: float = 2.0


@dataclass(frozen=True)
class LineSettings:
    """Thresholds of straight tracks: slides, rolls and springs.

    Attributes:
        min_samples: Smallest number of samples of a slide or roll.
        min_spring_samples: Smallest number of samples of a spring.
        max_width: Largest width of a straight track, relative to its spread.
        max_spring_width: Largest width of a spring's track, which also sways, relative to its spread.
        min_spread: Smallest spread, in noise standard deviations.
        min_moving_fraction: Smallest fraction of the spread that a steady acceleration explains.
        max_slope: Slope above which an object falls, rad.
        max_steady_slope: Slope above which nothing slides at a steady speed, rad: that takes a friction of 1.7.
        spring_steps_per_second: Smallest number of engine steps a second of a spring of slow oscillation.
    """

    min_samples: int = 6
    min_spring_samples: int = 12
    max_width: float = 0.06
    max_spring_width: float = 0.12
    min_spread: float = 6.0
    min_moving_fraction: float = 0.3
    max_slope: float = math.radians(80)
    max_steady_slope: float = math.radians(60)
    spring_steps_per_second: float = 240.0


@dataclass(frozen=True)
class SinkSettings:
    """Thresholds of sinking in a liquid.

    Attributes:
        min_samples: Smallest number of samples.
        max_width: Largest width of the track, relative to its spread.
        max_tilt: Largest angle of the track from the vertical of the picture, rad.
        rest_distance: Distance from the end, relative to the spread, within which it rests on the bottom.
        max_late_gain: Largest gain of speed from the middle third to the last, relative to the speed.
        max_early_speed: Mean speed in the first third above which nothing shows how it became steady, relative to the
            steady speed.
        substeps: Engine steps a frame.
    """

    min_samples: int = 9
    max_width: float = 0.06
    max_tilt: float = math.radians(10)
    rest_distance: float = 0.01
    max_late_gain: float = 0.12
    max_early_speed: float = 0.97
    substeps: int = 8


@dataclass(frozen=True)
class CircularSettings:
    """Thresholds of circular motion.

    Attributes:
        min_samples: Smallest number of samples.
        max_radius: Largest radius, relative to the track's extent.
        max_circle_error: Largest median distance from the circle, relative to its radius.
        min_turn: Smallest angle, rad; about a quarter of a turn.
        min_slowing: Change of the rate over the clip from which it is fitted, relative to the mean rate.
        flatness_std: Standard deviation of the flattening of the circle by the camera's angle, of second order.
        max_release_samples: Samples among which the end of a hand's push is searched. Raising it costs time, cubically.
    """

    min_samples: int = 8
    max_radius: float = 3.0
    max_circle_error: float = 0.06
    min_turn: float = 1.5
    min_slowing: float = 0.02
    flatness_std: float = 0.002
    max_release_samples: int = 150


@dataclass(frozen=True)
class CustomSceneSettings:
    """Numbers of the search for a custom scene's motion.

    Attributes:
        min_samples: Smallest number of samples of all objects.
        steps_per_second: Largest number of steps a second of a scene from a file.
        max_substep_error: Shift of observed points that fewer substeps may cause, pixels; a tenth of a tracker's error.
        max_assignments: Assignments of tracks to bodies above which they must be named.
        fitted_assignments: Assignments that are fitted. Raising it finds better ones and costs time.
        draws: Random initial states and cameras. Raising it finds better starts and costs time.
        starts: Draws that are fitted.
        compared_samples: Samples on which draws are compared.
        min_start_distance: Distance between two starts below which they count as one.
        finite_difference_step: Step of finite differences, m or rad.
        min_sensitivity: Motion of observed points below which a coordinate is unobservable, m.
        probe_states: Random states that show where points can move.
    """

    min_samples: int = 8
    steps_per_second: float = 200.0
    max_substep_error: float = 0.01
    max_assignments: int = 24
    fitted_assignments: int = 2
    draws: int = 1024
    starts: int = 8
    compared_samples: int = 8
    min_start_distance: float = 0.3
    finite_difference_step: float = 1e-4
    min_sensitivity: float = 1e-6
    probe_states: int = 64
