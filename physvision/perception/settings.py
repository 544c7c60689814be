"""Tuning numbers of motion tracking, grouped by stage.

Where no source is given, a default was chosen on the drawn clips of `physvision.datasets.clips` by the accuracy of the
tracks (experiments/track_accuracy.py). Intensities and colors are in levels of 0 to 255, lengths in pixels of the
analyzed image, unless a field says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BackgroundSettings:
    """Tuning numbers of background estimation.

    Attributes:
        max_side: Longer side of the analyzed image, px; larger frames are shrunk by an integer. Raising it costs time.
        samples: Frames that the background is estimated from. Raising it costs memory and resolves rarer colors.
        min_change: Smallest change that counts as foreground; codec noise stays below it. Raising it loses
            low-contrast objects.
        noise_factor: Foreground threshold in standard deviations of the pixel noise. Raising it loses contrast.
        min_noisy_change: Foreground threshold above which a note says that the picture is noisy, levels; well above
            `min_change`, so that noise, and not compression, limits the contrast.
        min_enhanced_noise: Noise from which frames are smoothed, levels; that of a dark picture after brightening it.
        smoothing: Standard deviations of the Gaussians that may smooth noisy frames, px, increasing; the first that
            suffices is used. Raising them loses small objects.
        max_noise_ratio: Remaining fraction of the noise above which frames are not smoothed: what changes is no noise.
        noise_floor_ratio: Noise relative to that after the largest blur at which a smaller blur suffices, too.
        max_dark_level: Brightest level up to which a picture is dark, and brightened.
        max_gain: Largest factor by which it is brightened.
        min_jitter: Standard deviation of the camera shift above which jitter is compensated, px; the estimates of a
            static camera scatter by a few hundredths. Raising it leaves jitter in the tracks.
        min_gain_change: Relative change of illumination above which a frame is corrected.
        bright_levels: Range of background levels that illumination is estimated from; others are dark or saturated.
        min_bright_fraction: Fraction of such pixels below which illumination is not estimated: they may be an object's.
        min_second_color_fraction: Fraction of the time from which a second color of a pixel makes it ambiguous.
        max_changing_fraction: Fraction of ambiguous pixels above which the camera is taken to move.
        max_distance: Distance to the inpainted color at which saliency saturates, in tolerances.
        rarity_weight: Tolerances of distance that weigh as much as being visible e times less often.
        min_hidden_fraction: Fraction of the time from which a pixel is taken to be always covered by objects.
        min_color_fraction: Fraction of the foreground pixels from which a color is an object's. Raising it drops the
            blurred edges, then small objects.
        speckle_size: Side of the median filter that removes remnants of objects, px; odd.
        min_state_samples: Samples before and after a pixel's only change. Raising it misses short rests.
        min_steady_fraction: Fraction of the samples that show one of the two colors of a pixel that changes once.
        min_edge_majority: Fraction of the edge of a patch of such pixels that must agree on the state without a body.
    """

    max_side: int = 1024
    samples: int = 48
    min_change: float = 12.0
    noise_factor: float = 5.0
    min_noisy_change: float = 15.0
    min_enhanced_noise: float = 6.0
    smoothing: tuple[float, ...] = (0.7, 1.0, 1.5, 2.0, 3.0)
    max_noise_ratio: float = 0.75
    noise_floor_ratio: float = 1.25
    max_dark_level: float = 128.0
    max_gain: float = 4.0
    min_jitter: float = 0.16
    min_gain_change: float = 0.004
    bright_levels: tuple[float, float] = (30.0, 245.0)
    min_bright_fraction: float = 0.05
    min_second_color_fraction: float = 0.12
    max_changing_fraction: float = 0.45
    max_distance: float = 4.0
    rarity_weight: float = 2.0
    min_hidden_fraction: float = 0.9
    min_color_fraction: float = 0.03
    speckle_size: int = 21
    min_state_samples: int = 3
    min_steady_fraction: float = 0.8
    min_edge_majority: float = 0.75


@dataclass(frozen=True)
class JitterSettings:
    """Tuning numbers of camera-jitter estimation.

    Attributes:
        grid: Blocks (rows, columns) that the image is divided into.
        block_pixels: Edge pixels per block. Raising it averages out noise and takes weaker edges.
        min_block_pixels: Edge pixels below which a block is not used.
        gradients: Gradients above which a pixel counts as an edge, levels per px: the first with enough blocks.
        min_blocks: Usable blocks at which a gradient threshold is accepted.
        block_tolerance: Standard deviation by which blocks disagree besides noise, px.
        iterations: Largest number of Gauss-Newton iterations.
        min_common_corners: Fraction of corners that move alike in a moving picture; fewer may lie on one object.
        max_uncorrected: Shift by a moving camera from which frames are registered, unless undone as jitter, px.
    """

    grid: tuple[int, int] = (4, 5)
    block_pixels: int = 200
    min_block_pixels: int = 40
    gradients: tuple[float, ...] = (6.0, 3.0, 1.5)
    min_blocks: int = 6
    block_tolerance: float = 0.15
    iterations: int = 4
    min_common_corners: float = 0.7
    max_uncorrected: float = 2.0


@dataclass(frozen=True)
class StabilizationSettings:
    """Thresholds of the registration of hand-held clips.

    Attributes:
        max_corners: Largest number of corners that are tracked. Raising it costs time.
        corner_quality: Strength of a corner, relative to the strongest.
        min_corners: Number of corners below which no homography is estimated.
        min_plane_corners: Number below which a shift is preferred, since a homography of few corners is inexact.
        inlier_distance: Largest distance of a corner that agrees with a homography, px.
        min_inliers: Fraction of the corners that must agree.
        max_shift: Largest shift of a corner of the picture, relative to its longer side.
        min_registered: Fraction of the frames whose shift must be determined.
    """

    max_corners: int = 300
    corner_quality: float = 0.01
    min_corners: int = 16
    min_plane_corners: int = 40
    inlier_distance: float = 1.5
    min_inliers: float = 0.5
    max_shift: float = 0.15
    min_registered: float = 0.9


@dataclass(frozen=True)
class AssociationSettings:
    """Tuning numbers of blob detection and of their association into tracklets.

    Attributes:
        core_depth: Fraction of the largest distance to the edge above which a pixel belongs to a blob's core; thinner
            parts are strings, or the neck between touching objects. Raising it splits more blobs.
        max_gap: Longest interval without a detection within a tracklet, s.
        max_merge_gap: Longest interval between tracklets of one object, s. Raising it merges different objects.
        max_dissimilarity: Appearance difference above which a blob cannot continue a tracklet.
        min_length: Blobs below which a tracklet is discarded.
    """

    core_depth: float = 0.5
    max_gap: float = 0.35
    max_merge_gap: float = 3.0
    max_dissimilarity: float = 2.5
    min_length: int = 4


@dataclass(frozen=True)
class SelectionSettings:
    """Tuning numbers of the choice of the tracklets that show moving objects.

    Attributes:
        min_score: Motion score below which a tracklet is dropped, relative to the best one. Raising it loses objects.
        min_expected_score: Relative score that suffices while fewer objects are selected than expected.
        max_ambiguity: Score of the first surplus tracklet, relative to the last selected one, that is an error.
        rest_distance: Distance from the first or last position within which an object rests, in extents.
        rest_samples: Positions whose median is the position of rest.
        min_reflection_cosine: Cosine between two color differences from the background above which one may be a
            reflection of the other.
        max_part_distance: Distance of two centers below which both move as one body, relative to the sum of the radii:
            two squares side by side have 0.89. Raising it takes more bodies that touch for one.
        max_previewed: Number of tracklets, the longest ones, among which objects are selected during the tracking.
    """

    min_score: float = 0.2
    min_expected_score: float = 0.01
    max_ambiguity: float = 0.35
    rest_distance: float = 0.1
    rest_samples: int = 5
    min_reflection_cosine: float = 0.9
    max_part_distance: float = 0.85
    max_previewed: int = 12


@dataclass(frozen=True)
class RefinementSettings:
    """Tuning numbers of subpixel localization.

    Attributes:
        margin: Width of the blurred edge outside the half-covered contour, px.
        min_luma_contrast: Contrast above which brightness alone measures coverage: codecs keep color more coarsely.
        max_slit: Width of gaps that are closed within an object, in object sizes.
        path_samples: Detections at an end of a tracklet that its extrapolation is fitted to.
        max_extrapolation: Frames over which a tracklet is extrapolated.
        min_trace: Change that counts as a trace of a barely visible object, in standard deviations of the noise.
        stub_weight: Coverage from which thin structures at the edge are cut off.
        min_axis_ratio: Ratio of the axes from which an object has an orientation.
    """

    margin: int = 2
    min_luma_contrast: float = 25.0
    max_slit: float = 0.15
    path_samples: int = 8
    max_extrapolation: int = 4
    min_trace: float = 2.5
    stub_weight: float = 0.25
    min_axis_ratio: float = 1.3


@dataclass(frozen=True)
class OcclusionSettings:
    """Thresholds of static things in front of a motion.

    Attributes:
        core_radius: Part of an object's radius within which it covers all pixels.
        min_passages: Frames in which an object passes a pixel that may be hidden. Raising it misses narrow posts.
        max_visible: Part of these frames in which it may be seen there.
    """

    core_radius: float = 0.8
    min_passages: int = 2
    max_visible: float = 0.2


@dataclass(frozen=True)
class HandSettings:
    """Tuning numbers of tracking an object back into the hand that releases it.

    Attributes:
        max_clear_change: Change of log area below which nothing else touches the object.
        clear_frames: Consecutive frames for which the object must be clear of the hand.
        max_frames: Frames over which the object is tracked back.
        max_missed: Consecutive frames without a detection after which tracking back stops; a repeated frame is one.
        max_area_change: Change of log area up to which a region is the object.
        min_color_distance: Distance between the colors of object and hand below which they cannot be separated.
        static_frames: Frames before the first detection that must be static, first and last; in the frames between, a
            part of the object may be visible.
        static_radius: Radius around the first detection that must be static, in object radii.
        max_static_change: Changed area in that circle, in object areas.
        color_radius: Radius within which only the object's colors are visible, in object radii.
        search_radius: Radius that the hand's colors are sampled in, in object radii.
    """

    max_clear_change: float = 0.06
    clear_frames: int = 4
    max_frames: int = 24
    max_missed: int = 2
    max_area_change: float = 0.25
    min_color_distance: float = 45.0
    static_frames: tuple[int, int] = (2, 5)
    static_radius: float = 4.0
    max_static_change: float = 0.2
    color_radius: float = 0.7
    search_radius: float = 3.0


@dataclass(frozen=True)
class TrackSettings:
    """Tuning numbers of the assembly of tracks from detections.

    Attributes:
        systematic_error: Systematic position error, px, below which noise does not matter. Raising it widens intervals.
        max_area_error: Relative error of the area from which the position is off and gets a larger sigma.
        area_outlier: Area errors that noise explains, in standard deviations.
        min_detections: Complete detections below which an object is not tracked.
        neighbors: Detections on each side that the usual area is the median of.
        max_area_change: Change of log area from the neighbors above which a detection is incomplete.
        max_area_loss: Decrease of log area from the median above which a detection may be another object.
        max_area_step: Change of log area from frame to frame above which the object joins or leaves another one.
        slow_fraction: Fraction of the frames, the slowest, that the radius is measured in: motion blur widens others.
        max_split_gap: Frames without a detection after which one or two detections are outliers.
        max_merge_gap: Frames between two targets of one object.
    """

    systematic_error: float = 0.03
    max_area_error: float = 0.1
    area_outlier: float = 4.0
    min_detections: int = 5
    neighbors: int = 2
    max_area_change: float = 0.5
    max_area_loss: float = 1.4
    max_area_step: float = 0.25
    slow_fraction: float = 0.25
    max_split_gap: int = 10
    max_merge_gap: int = 8


@dataclass(frozen=True)
class TimestampSettings:
    """Tuning numbers of the repair of timestamps.

    Attributes:
        side_steps: Steps on each side that the usual displacement is extrapolated from.
        max_difference: Difference of the two extrapolations, and of the step's direction, relative to the step.
        min_step: Displacement in standard deviations of a position below which a step carries no information.
        integer_tolerance: Standard deviations from a whole number of frames up to which the count is rounded.
        min_jump: Deviation from the expected displacement that is a jump, in standard deviations.
        max_jump_fraction: Fraction of frames with jumps above which they are the object's motion.
    """

    side_steps: int = 4
    max_difference: float = 0.2
    min_step: float = 8.0
    integer_tolerance: float = 3.0
    min_jump: float = 4.0
    max_jump_fraction: float = 0.1


@dataclass(frozen=True)
class CadenceSettings:
    """Thresholds of conversions of the frame rate; chosen on half of the real clips.

    Attributes:
        camera_fps: Usual frame rates of cameras, frames a second.
        max_ratio: Largest ratio of the rates of camera and file, and of file and camera.
        min_rate_change: Smallest relative change of the rate; a smaller one drops single frames.
        phases: Number of phases that are compared. Raising it costs time.
        min_samples: Smallest number of observed frames in which the object moves.
        max_unevenness: Largest spread of the intervals of the stamps, relative to the interval. Raising it takes less
            even stamps for even ones.
        min_path: Distance in three frames below which a motion does not show its times, pixels.
        noise: Deviation from smooth motion below which times are not told apart, pixels.
        min_gain: Smallest mean decrease of the logarithm of squared deviations from smooth motion. Raising it finds
            fewer conversions.
    """

    camera_fps: tuple[float, ...] = (
        12.5,
        15.0,
        20.0,
        24000 / 1001,
        24.0,
        25.0,
        30000 / 1001,
        30.0,
        50.0,
        60000 / 1001,
        60.0,
    )
    max_ratio: float = 2.01
    min_rate_change: float = 0.02
    phases: int = 24
    min_samples: int = 20
    max_unevenness: float = 0.1
    min_path: float = 3.0
    noise: float = 0.3
    min_gain: float = 0.4


@dataclass(frozen=True)
class OnsetSettings:
    """Tuning numbers of onset detection in audio.

    Attributes:
        block: Block in which the power is measured, s.
        background: Time before a block that its power is compared with, s.
        min_power_ratio: Power ratio to that background that is an onset. Raising it misses soft impacts.
        min_interval: Time between onsets, s; earlier ones are echoes.
    """

    block: float = 1e-3
    background: float = 0.04
    min_power_ratio: float = 30.0
    min_interval: float = 0.06


@dataclass(frozen=True)
class PerceptionSettings:
    """Tuning numbers of all stages of perception.

    Attributes:
        background: Background estimation and foreground threshold.
        jitter: Estimation of the camera jitter.
        stabilization: Registration of hand-held clips.
        association: Blob detection and tracklets.
        selection: Choice of the moving objects.
        refinement: Subpixel localization.
        occlusion: Static things in front of the motion.
        hand: Tracking back into the releasing hand.
        track: Assembly of tracks.
        cadence: Conversions of the frame rate.
        timestamps: Repair of timestamps.
        onsets: Onset detection in audio.
    """

    background: BackgroundSettings = BackgroundSettings()
    jitter: JitterSettings = JitterSettings()
    stabilization: StabilizationSettings = StabilizationSettings()
    association: AssociationSettings = AssociationSettings()
    selection: SelectionSettings = SelectionSettings()
    refinement: RefinementSettings = RefinementSettings()
    occlusion: OcclusionSettings = OcclusionSettings()
    hand: HandSettings = HandSettings()
    track: TrackSettings = TrackSettings()
    cadence: CadenceSettings = CadenceSettings()
    timestamps: TimestampSettings = TimestampSettings()
    onsets: OnsetSettings = OnsetSettings()


DEFAULT_SETTINGS = PerceptionSettings()
