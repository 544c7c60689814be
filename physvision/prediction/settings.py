"""Tuning numbers of the domain check and of reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PredictionSettings:
    """Tuning numbers of the check that a video is in the model's domain.

    Pairs of limits are for a warning and for rejection. The defaults were chosen on the shipped checkpoints' test
    videos, which are far from all limits, and on videos of other scenes (tests/prediction/test_domain_check.py).

    Attributes:
        first_frames: Frames within which a video is rejected; later differences are warnings only.
        min_frames: Frames that are needed to reject a video.
        max_sampled_frames: Frames that measurements are retained of, evenly spaced. Raising it costs memory.
        max_other_color: Fractions of an object's line that show another color.
        max_surplus: Fractions of the foreground that belong to no object.
        max_radius_error: Relative errors of a disc's radius.
        inner_line_ends: Range of a line's end, relative to its length, where the next line begins.
        last_line_ends: Range of the end of the last line, which extends by half its width.
        max_cut_frames: Fraction of frames in which the border cuts an object off, above which it is a warning.
        color_distance: Distance from an object's color, over three channels of 0 to 1, up to which a pixel has it.
        background_distance: Distance from the background above which a pixel is another object's. Between both lie
            the mixed colors of edges.
        min_blob_area: Area from which a blob counts as an object, relative to the object's disc.
        max_color_error: Mean absolute difference per channel up to which a pixel on a line has the object's color.
        line_width: Half the width of a line, relative to the longer side of the image.
        line_margin: Distance from a line beyond which foreground belongs to no object, relative to the longer side.
        line_samples: Samples along a line segment.
        line_extension: Distance past its end over which a line's color is followed, relative to its length.
        disc_radius: Radius within which the area of a disc is measured, in radii.
        ring_radius: Outer radius of the ring that the background next to a disc is measured in, in radii.
        min_confidence: Confidence below which an object counts as poorly visible.
        confident_radii: Error of a disc's estimated position up to which it counts as correct, in radii.
        confident_angle: Error of a link's estimated angle up to which it counts as correct, rad.
        max_unsure_frames: Fraction of frames with poor visibility above which it is a warning.
        max_interval_error: Relative error of a frame interval above which it is a warning.
    """

    first_frames: int = 96
    min_frames: int = 16
    max_sampled_frames: int = 384
    max_other_color: tuple[float, float] = (0.03, 0.3)
    max_surplus: tuple[float, float] = (0.05, 0.3)
    max_radius_error: tuple[float, float] = (0.08, 0.25)
    inner_line_ends: tuple[float, float] = (0.95, 1.05)
    last_line_ends: tuple[float, float] = (0.95, 1.2)
    max_cut_frames: float = 0.02
    color_distance: float = 0.35
    background_distance: float = 0.5
    min_blob_area: float = 0.25
    max_color_error: float = 0.15
    line_width: float = 0.0185
    line_margin: float = 0.04
    line_samples: int = 48
    line_extension: float = 0.25
    disc_radius: float = 2.0
    ring_radius: float = 2.5
    min_confidence: float = 0.25
    confident_radii: float = 0.5
    confident_angle: float = 0.1
    max_unsure_frames: float = 0.1
    max_interval_error: float = 0.25


SETTINGS = PredictionSettings()


@dataclass(frozen=True)
class ClipFitSettings:
    """Tuning numbers of the fit of states and parameters to a clip.

    The defaults were chosen on clips of tests/prediction/other_physics.py with other seeds than those that are measured
    (experiments/predict_other_physics.py). But `contact_error`, `contact_reach`, `step_error`, `error_length` and
    `angle_roughness` were set with clips in view that this experiment measures too.

    Attributes:
        pixel_window: Frames of a window where discs move. Raising it makes states more exact, and impacts harder to
            find.
        angle_window: Frames of a window where hinges turn.
        max_windows: Windows that parameters are fitted to. Raising it costs time and memory.
        rounds: Rounds of a fit; each one starts anew the states of windows that the parameters so far do not explain.
        joint_iterations: Iterations of each round.
        state_iterations: Iterations of the fit of a frame's window at known parameters.
        refit_ratio: Number of frames, relative to the last fit, at which parameters are fitted again.
        min_pixel_std: Smallest error of a position, px.
        min_angle_std: Smallest error of an angle, rad.
        pixel_order: Order of the differences of positions that are noise; a motion without forces has none from two on.
        angle_order: Order of the differences of angles that are noise.
        max_inflation: Largest ratio of the standard deviation that a number counts with to its error in one frame, for
            autocorrelated errors; larger residuals are no errors of the encoder.
        angle_correlation: Sum of the correlations of an angle's errors over all later frames, as the shipped encoder
            has it; a number counts with √(1 + 2 of it) times its error in one frame at least.
        angle_roughness: Variance of the differences of an angle's errors, relative to that of independent errors, as
            the same encoder has it: neighbors are alike, so differences are small.
        error_length: Distance, px, over which the error of a disc's position changes.
        step_error: Error of a disc that moves, in its steps from frame to frame.
        contact_error: Error of a disc near another one or the border of the image, in radii.
        contact_reach: Gap up to which it is, in radii; at least a step from frame to frame.
        impact_turn: Change of a disc's step from one frame to the next, relative to the step, from which it is taken
            for an impact.
        hidden_ratio: Ratio of neighboring differences to the usual ones from which a link is taken to be hidden.
        calibration: Ratio of the errors of parameters and futures to the standard deviations of the fit, which add up
            errors that do not all come together; measured on 100 clips.
        min_deviation: Standard deviations from the checkpoint's value from which a parameter is adapted.
        max_relative_std: Standard deviation, relative to the prior's, up to which the clip determines a parameter.
        max_mean_cost: Mean cost of an observed number up to which a motion explains a window; noise costs a half.
        max_fitted_cost: Mean cost of an observed number up to which a window takes part in the fit of parameters.
        min_confidence: Confidence up to which an object is not observed.
        ensemble: Number of motions that the spread of the future is taken from.
        frame_ensemble: Number of motions that the spread of a prediction from each frame is taken from.
        max_unexplained: Fractions of the windows that no parameters explain, for a warning and for rejection.
        fast_quantile: Fraction of the frames in which a fast disc may still be slow.
        still_angle: Angle that a hinge stays within if it does not turn, rad.
        still_quantile: Fraction of the frames in which it does.
    """

    pixel_window: int = 20
    angle_window: int = 16
    max_windows: int = 32
    rounds: int = 3
    joint_iterations: int = 7
    state_iterations: int = 4
    refit_ratio: float = 2.0
    min_pixel_std: float = 0.004
    min_angle_std: float = 0.0005
    pixel_order: int = 2
    angle_order: int = 4
    max_inflation: float = 2.2
    contact_error: float = 0.03
    contact_reach: float = 0.8
    impact_turn: float = 0.3
    angle_correlation: float = 0.8
    angle_roughness: float = 0.62
    error_length: float = 0.2
    step_error: float = 0.003
    hidden_ratio: float = 3.0
    calibration: float = 0.85
    min_deviation: float = 3.5
    max_relative_std: float = 0.5
    max_mean_cost: float = 4.0
    max_fitted_cost: float = 1.0
    min_confidence: float = 0.1
    ensemble: int = 32
    frame_ensemble: int = 8
    max_unexplained: tuple[float, float] = (0.15, 0.5)
    fast_quantile: float = 0.8
    still_angle: float = 0.1
    still_quantile: float = 0.95


FIT_SETTINGS = ClipFitSettings()
