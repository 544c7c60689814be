"""Tuning numbers of identification, in one settings object with a group for each stage and kind of motion.

Unless a source is given, a default was chosen on drawn clips of ten kinds of motion (`physvision.datasets.clips`), so
that fits are found and intervals cover the truth as often as they say (`experiments/identify_coverage.py`). Unless the
entry says otherwise, raising a `min_…` rejects more tracks, raising a `max_…` rejects fewer, raising a `…_std` weakens
a prior and widens intervals, and raising a number of iterations, samples or draws costs time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from physvision.camera import Calibration
from physvision.identification import kind_settings as kinds


@dataclass(frozen=True)
class TrackSettings:
    """Thresholds of track preparation.

    Attributes:
        min_positions: Observed positions below which a track is refused.
        max_samples: Samples above which a track is thinned, as far as its motion allows, and then cut. Raising it
            costs time and memory.
        max_thinning_error: Distance of a left out position from the curve through the others that counts as lost
            motion, in noise standard deviations. Raising it thins more.
        max_lost_path: Part of the path that may be lost by thinning, such as that around impacts.
        min_gap: Smallest gap between two tracks of one object, frames; negative for tracks that overlap.
        max_gap: Largest gap between two tracks of one object, frames. Raising it merges more.
        gap_speed_ratio: Largest speed across a gap, relative to the speed before it.
        min_rest_fraction: Fraction of positions at rest above which a start or end is trimmed. Raising it trims less.
        rest_distance: Distance from the resting position that counts as rest, relative to the extent.
        max_departure_ratio: Time to leave four times that distance, relative to that distance, below which a short rest
            at the start is trimmed too: 2 where a constant force acts from the start, 1 after a long rest.
        max_rest_ratio: Duration of a rest at the end that is used, relative to that of the motion before. Raising it
            costs time.
        rest_noise_ratio: Distance that counts as rest, in noise standard deviations.
        table_pixels: Extent of a table of lengths, in pixels of the picture that it is taken for. Raising it lowers the
            noise that is assumed at least.
        min_extent_ratio: Extent relative to the largest track's above which a track counts as moving.
        max_frame_ratio: Ratio of a frame's interval to the median above which frames are missing.
        min_hinge_turn: Smallest turn of a rod whose hinge is sought, rad; axes that turn less do not intersect well.
        min_hinge_samples: Smallest number of samples of such a rod.
        hinge_iterations: Reweighted least-squares iterations for the hinge.
        max_axis_miss: Largest typical distance of the rod's axes from the hinge, relative to the radius.
        max_hinge_error: Largest standard error of the hinge, relative to the radius.
        max_radius_change: Largest typical change of the distance to the hinge, relative to the radius.
    """

    min_positions: int = 5
    max_samples: int = 1000
    max_thinning_error: float = 5.0
    max_lost_path: float = 0.1
    min_gap: int = -2
    max_gap: int = 6
    gap_speed_ratio: float = 1.5
    min_rest_fraction: float = 0.15
    rest_distance: float = 0.01
    max_departure_ratio: float = 4 / 3
    max_rest_ratio: float = 0.5
    rest_noise_ratio: float = 5.0
    table_pixels: float = 500.0
    min_extent_ratio: float = 0.15
    max_frame_ratio: float = 1.5
    min_hinge_turn: float = 0.2
    min_hinge_samples: int = 12
    hinge_iterations: int = 10
    max_axis_miss: float = 0.02
    max_hinge_error: float = 0.02
    max_radius_change: float = 0.05


@dataclass(frozen=True)
class CameraPrior:
    """Standard deviations of what a camera's pose and lens do to a picture, all about zero.

    Attributes:
        roll: Rotation about the line of sight, rad.
        keystone: Relative change of scale over half a picture.
        foreshortening: Difference of the scales along and across a direction in the middle, relative to their sum.
        distortion: Radial displacement at half a picture's width from the middle, relative to that distance.
    """

    roll: float
    keystone: float
    foreshortening: float
    distortion: float


@dataclass(frozen=True)
class ViewSettings:
    """Priors of the camera. Raising one widens the intervals of what depends on it.

    Attributes:
        careful: Camera that is meant to look along the normal of the plane: people notice a degree or two, and phones
            correct their lens to a few thousandths.
        arbitrary: Camera at any angle up to some 20 degrees, with any lens but a fisheye.
        arbitrary_probability: Probability of an arbitrary camera before anything is observed.
        half_field: Half a picture's width over the focal length, and its standard deviation, where no calibration
            gives it: lenses of 24 to 70 mm, in terms of full-frame cameras.
        half_field_range: Range of the same ratio, from a long lens to a wide one.
        tilt_std: Standard deviation of an arbitrary camera's rotation about each axis of the picture, rad.
        k1_std: Standard deviation of OpenCV's k1 of an arbitrary camera.
        proposals: Proposals for each sample of an arbitrary camera. Raising it makes intervals more repeatable.
        max_keystone: Bound of the keystone.
        readout: Rolling-shutter readout time of a typical phone, s, and its standard deviation.
        max_readout: Readout time of the slowest phones, s.
        table_margin: Size of the assumed picture of a table, relative to the extent of its positions.
        calibration: Calibration of the camera; None if unknown.
    """

    careful: CameraPrior = CameraPrior(math.radians(1), 0.005, 2e-4, 0.003)
    arbitrary: CameraPrior = CameraPrior(math.radians(4), 0.08, 0.01, 0.08)
    arbitrary_probability: float = 0.1
    half_field: tuple[float, float] = (0.5, 0.25)
    half_field_range: tuple[float, float] = (0.2, 1.4)
    tilt_std: float = math.radians(8)
    k1_std: float = 0.3
    proposals: int = 5
    max_keystone: float = 0.6
    readout: float = 0.008
    max_readout: float = 0.035
    table_margin: float = 1.2
    calibration: Calibration | None = None


@dataclass(frozen=True)
class FitSettings:
    """Numbers of the search.

    Attributes:
        max_candidates: Searches that continue after each horizon. Raising it finds better minima and costs time.
        tolerance: Relative decrease of the cost below which a minimum is refined no further: a hundredth of a standard
            deviation of a parameter for some hundred samples. Raising it saves time.
        training_fraction: Fraction of the samples that is fitted to predict the rest.
        min_sigma_ratio: Smallest standard deviation of a position, relative to the track's median. Raising it keeps
            single positions from dominating.
        min_noise: Smallest assumed noise of a coordinate, pixels.
        max_extrapolation: Time for which a fitted motion is predicted, relative to the fitted stretch.
        readout_iterations: Fixed-point iterations of the image row and the time at which that is read.
    """

    max_candidates: int = 3
    tolerance: float = 1e-6
    training_fraction: float = 2 / 3
    min_sigma_ratio: float = 0.5
    min_noise: float = 0.15
    max_extrapolation: float = 3.0
    readout_iterations: int = 2


@dataclass(frozen=True)
class SelectionSettings:
    """Thresholds of the comparison of kinds and models.

    Attributes:
        max_objects: Moving objects that a kind may be tried on.
        tie_margin: Difference of Bayes' information criterion below which kinds are indistinguishable: odds of 20 : 1
            (Kass and Raftery, 1995). Raising it names more kinds together.
        max_error: Largest error of an acceptable fit, relative to the extent.
        max_error_ratio: Largest error of an acceptable fit, in noise standard deviations.
        max_noisy_error: Largest error of an acceptable fit to noisy tracks, relative to the extent.
        max_error_size: Largest error of an acceptable fit to noisy tracks, relative to the largest radius of an object:
            half the standard deviation of positions anywhere on a disc.
        max_relaxed_ratio: Error of a fit, relative to the largest acceptable one, above which it is not refined, nor
            searched again with more unknowns. Raising it costs time.
        min_residual_scale: Smallest residual scale that scores count, in noise standard deviations.
        bias_ratio: Autocorrelated error of a tracker, relative to the object's radius: the scale below which residuals
        of
            kinds are not compared. Raising it brings odds closer to one.
        min_reference_fraction: Fraction of the longest explained stretch that the fit must explain whose residuals give
            the autocorrelation of the tracks' errors.
        max_autocorrelation: Largest autocorrelation of the tracks' errors in the comparison of kinds. Raising it brings
            odds closer to one where no kind explains the tracks well.
        length_lead: Ratio of explained samples above which a choice of objects is preferred.
        gain_lead: Ratio of gains above which a choice of objects with as many samples is preferred.
        min_autocorrelation: Autocorrelation of residuals above which a table is refitted as filmed.
        min_holdout_samples: Samples below which no holdout is evaluated.
        max_holdout_error: Holdout error above which a warning is given, relative to the extent.
        min_holdout_miss: Holdout error below which no kind is rejected, relative to the extent.
        max_holdout_ratio: Holdout error above which a kind is rejected, relative to the error that noise, bias and
            sensitivity imply. Raising it refuses fewer clips.
        max_expected_holdout: Error that these imply above which a kind is rejected, relative to the extent, unless its
            law is a sensitive one.
        max_sensitive_holdout: The same for a sensitive law. No small error of a state grows so much within a clip; one
            of a parameter that the fit does not determine does.
        max_single_miss: Holdout error, relative to the extent, above which a kind that was given is rejected unless
            noise, bias and sensitivity explain it.
        min_successor_odds: Odds against a rejected kind from which another kind may take its place.
    """

    max_objects: int = 2
    tie_margin: float = 6.0
    max_error: float = 0.02
    max_error_ratio: float = 6.0
    max_noisy_error: float = 0.1
    max_error_size: float = 0.25
    max_relaxed_ratio: float = 4.0
    min_residual_scale: float = 0.3
    bias_ratio: float = 0.03
    min_reference_fraction: float = 0.5
    max_autocorrelation: float = 0.9
    length_lead: float = 1.2
    gain_lead: float = 3.0
    min_autocorrelation: float = 0.3
    min_holdout_samples: int = 8
    max_holdout_error: float = 0.1
    min_holdout_miss: float = 0.05
    max_holdout_ratio: float = 5.0
    max_expected_holdout: float = 0.5
    max_sensitive_holdout: float = 1e6
    max_single_miss: float = 0.3
    min_successor_odds: float = 1e-3


@dataclass(frozen=True)
class SignatureSettings:
    """Thresholds of what a law forces on a track; chosen on drawn and on half of the real clips.

    Attributes:
        min_explained_path: Part of an object's path that a law of a stretch must explain. Raising it refuses more.
        path_corners: Positions between which the length of a path is measured.
        min_sag_ratio: Bow of a spring's line that counts as a pendulum's, in noise standard deviations.
        max_unexplained_sag: Part of the motion across a spring's line that a pendulum's bow may leave unexplained.
        min_periods: Part of the fitted period that must be observed, for each kind that oscillates.
        max_impacts: Sudden turns from which no smooth law holds.
        min_approach: Decrease of the distance of two objects before they collide, relative to its whole change.
        max_contact_ratio: Largest distance of two objects that collide, relative to the sum of their radii.
        max_bow: Bow of the path of an object before or after it collides, relative to the path's length; drawn
            collisions have up to 0.006, flights from a launcher 0.05.
        min_bow_ratio: Bow that counts, in noise standard deviations.
        min_bow_size: Bow that counts, relative to the object's radius.
        min_rebound: Rise after an impact from which a motion bounces, relative to its fall: a restitution of 0.17.
        min_bow_samples: Samples from which a bow is estimated.
    """

    min_explained_path: float = 0.3
    path_corners: int = 60
    min_sag_ratio: float = 3.0
    max_unexplained_sag: float = 0.3
    min_periods: dict[str, float] = field(default_factory=lambda: {"pendulum": 0.5, "spring": 0.75})
    max_impacts: int = 3
    min_approach: float = 0.05
    max_contact_ratio: float = 2.0
    max_bow: float = 0.025
    min_bow_ratio: float = 6.0
    min_bow_size: float = 0.06
    min_bow_samples: int = 8
    min_rebound: float = 0.03


@dataclass(frozen=True)
class ParameterSettings:
    """Numbers of parameter intervals.

    Attributes:
        draws: Posterior samples. Raising it makes intervals more repeatable.
        min_feasible_draws: Samples within the bounds below which the truncated distribution is sampled instead.
        truncation_sweeps: Sweeps of Gibbs sampling over the bounded parameters.
        interval_starts: Candidate intervals of which the shortest is taken.
        edge_std: Error to which compression places the edge of a disc, pixels.
        min_scale_error: Smallest relative error of a given scale, which is never quite that of the plane of motion.
        min_radius_error: Smallest relative error of a given radius, which is never quite the observed one.
        max_ratio: Ratio of a positive parameter's bounds at 95 % above which it is not identifiable.
        max_range_fraction: Fraction of a bounded parameter's range above which it is not identifiable.
        max_prior_fraction: Width of a camera value's interval, relative to that of its prior, above which the motion
            does not show it.
        bounds: Physical bounds of parameters.
    """

    draws: int = 20_000
    min_feasible_draws: int = 200
    truncation_sweeps: int = 12
    interval_starts: int = 33
    edge_std: float = 0.16
    min_scale_error: float = 1e-3
    min_radius_error: float = 1e-2
    max_ratio: float = 4.0
    max_range_fraction: float = 0.5
    max_prior_fraction: float = 0.5
    bounds: dict[str, tuple[float, float]] = field(
        default_factory=lambda: {
            "damping": (0.0, 1.0), "drag": (0.0, 0.2), "friction": (0.0, 1.0), "restitution": (0.0, 1.0),
        } | dict.fromkeys(
            ("length", "length_1", "length_2", "gravity", "speed", "acceleration", "stiffness", "period", "radius",
             "mass_ratio", "frequency", "terminal_speed", "relative_speed", "time_constant", "angular_speed"),
            (0.0, math.inf),
        )
    )  # fmt: skip


@dataclass(frozen=True)
class WarningSettings:
    """Thresholds of the result's warnings.

    Attributes:
        max_width: Width of the scene above which slow motion is suspected, m.
        gravity_range: Gravity that raises no suspicion, m/s².
        prediction_ratio: Holdout error relative to the expected one below which it counts as expected.
        contradiction: Difference of a known value from the identified one that counts as a contradiction, in standard
            deviations.
        rounding: Relative rounding error allowed of a known value.
        camera_widening: Factor by which a value of the camera widens an interval above which the terminal shows it.
    """

    max_width: float = 12.0
    gravity_range: tuple[float, float] = (8.8, 10.8)
    prediction_ratio: float = 3.0
    contradiction: float = 4.0
    rounding: float = 0.01
    camera_widening: float = 1.1


@dataclass(frozen=True)
class AudioSettings:
    """Numbers of the restitution from audio onsets.

    Attributes:
        max_lag: Largest lag between sound and picture, s.
        onset_std: Standard deviation of an onset, s.
    """

    max_lag: float = 0.15
    onset_std: float = 1e-3


@dataclass(frozen=True)
class OutputSettings:
    """Numbers of the video and the report.

    Attributes:
        lookahead: Time for which the video shows the prediction, s.
        max_fps: Largest frame rate of the video, frames a second.
        lookahead_points: Points of the predicted path.
    """

    lookahead: float = 0.5
    max_fps: float = 60.0
    lookahead_points: int = 16


@dataclass(frozen=True)
class IdentificationSettings:
    """All tuning numbers of identification.

    Attributes:
        tracks: Thresholds of track preparation.
        view: Priors of the camera.
        fit: Numbers of the search.
        selection: Thresholds of the comparison of kinds and models.
        signatures: Thresholds of what a law forces on a track.
        parameters: Numbers of parameter intervals.
        warnings: Thresholds of warnings.
        audio: Numbers of the restitution from audio onsets.
        output: Numbers of the video and the report.
        parabola: Thresholds of the search for a parabolic stretch.
        release: Numbers of a release by a hand.
        flight: Priors and thresholds of throws and falls.
        bounce: Priors and thresholds of bouncing balls.
        collision: Priors and thresholds of collisions.
        explosion: Thresholds of bodies that push off from each other.
        double_pendulum: Priors and thresholds of double pendulums.
        pendulum: Thresholds of pendulums.
        line: Thresholds of straight tracks.
        circular: Thresholds of circular motion.
        sink: Thresholds of sinking in a liquid.
        custom: Numbers of the search for a custom scene's motion.
    """

    tracks: TrackSettings = field(default_factory=TrackSettings)
    view: ViewSettings = field(default_factory=ViewSettings)
    fit: FitSettings = field(default_factory=FitSettings)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    signatures: SignatureSettings = field(default_factory=SignatureSettings)
    parameters: ParameterSettings = field(default_factory=ParameterSettings)
    warnings: WarningSettings = field(default_factory=WarningSettings)
    audio: AudioSettings = field(default_factory=AudioSettings)
    output: OutputSettings = field(default_factory=OutputSettings)
    parabola: kinds.ParabolaSettings = field(default_factory=kinds.ParabolaSettings)
    release: kinds.ReleaseSettings = field(default_factory=kinds.ReleaseSettings)
    flight: kinds.FlightSettings = field(default_factory=kinds.FlightSettings)
    bounce: kinds.BounceSettings = field(default_factory=kinds.BounceSettings)
    collision: kinds.CollisionSettings = field(default_factory=kinds.CollisionSettings)
    explosion: kinds.ExplosionSettings = field(default_factory=kinds.ExplosionSettings)
    double_pendulum: kinds.DoublePendulumSettings = field(default_factory=kinds.DoublePendulumSettings)
    pendulum: kinds.PendulumSettings = field(default_factory=kinds.PendulumSettings)
    line: kinds.LineSettings = field(default_factory=kinds.LineSettings)
    circular: kinds.CircularSettings = field(default_factory=kinds.CircularSettings)
    sink: kinds.SinkSettings = field(default_factory=kinds.SinkSettings)
    custom: kinds.CustomSceneSettings = field(default_factory=kinds.CustomSceneSettings)


DEFAULT_SETTINGS = IdentificationSettings()
