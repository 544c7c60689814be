"""Tuning numbers of the least-squares solver, horizon continuation and uncertainty estimation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EstimationSettings:
    """Tuning numbers of fitting and uncertainty estimation.

    Where no source is given, the default was chosen on drawn clips of ten kinds of motion.

    Attributes:
        cauchy_scale: Scale of Cauchy's loss, in residual scales. The default is 95 % as efficient as least squares for
            Gaussian residuals (Holland and Welsch, 1977); raising it lets outliers count more.
        max_step: Largest step of an unconstrained number in one iteration. Raising it speeds up distant searches and
            lets them overshoot.
        damping_factor: Factor by which the damping grows after a rejected step and shrinks after an accepted one, as
            Marquardt (1963) has it. Raising it adapts faster and oscillates more.
        min_rejected_damping: Smallest damping after a rejected step. Raising it shortens the step that follows a
            rejected undamped step.
        max_damping: Damping above which a search counts as converged: no direction leads down within rounding. Raising
            it costs iterations.
        max_delay_steps: Engine steps by which an observation's delay may reach past the last sample; later ones are
            clamped. Raising it costs simulated steps in bad trials.
        duplicate_distance: Largest difference of unconstrained numbers at which two searches count as one. Raising it
            drops more starts.
        max_cost_ratio: Cost ratio to the best search above which a search is dropped. Raising it keeps more starts.
        continuation_iterations: Iterations at each horizon, and a third of those at the last. Raising it costs time
            where a search has lost the phase.
        continuation_tolerance: Relative decrease of the cost at which a search of an intermediate horizon has
            converged. Raising it saves iterations.
        prediction_tolerance: Largest prediction error at which the next horizon is skipped, relative to the extent of
            the observations; a tenth of a radian of a swing. Raising it skips more horizons.
        patience: Iterations for which the remaining starts are continued once the best one has converged. Raising it
            costs time and finds better minima rarely.
        max_horizon_ratio: Largest ratio of successive horizons. Raising it saves fits and risks losing the phase.
        max_batched_worlds: Worlds that are differentiated at a time; bounds the memory of long motions.
        max_autocorrelation: Largest lag-one autocorrelation of residuals; more cannot be told from a trend. Raising it
            widens intervals of slowly varying residuals.
        max_covariance_rows: Samples an object above which neighbors are averaged before noise models are compared.
            Raising it costs time, cubically.
        min_relative_likelihood: Likelihood relative to the best noise model below which a model is dropped.
        variance_ratios: Candidate variances of correlated noise, relative to the white noise's.
        length_scales: Candidate correlation lengths of position-dependent noise, relative to the motion's extent.
    """

    cauchy_scale: float = 2.385
    max_step: float = 2.0
    damping_factor: float = 10.0
    min_rejected_damping: float = 1e-6
    max_damping: float = 1e10
    max_delay_steps: int = 16
    duplicate_distance: float = 0.05
    max_cost_ratio: float = 10.0
    continuation_iterations: int = 20
    continuation_tolerance: float = 1e-2
    prediction_tolerance: float = 0.05
    patience: int = 3
    max_horizon_ratio: float = 2.2
    max_batched_worlds: int = 65_536
    max_autocorrelation: float = 0.98
    max_covariance_rows: int = 240
    min_relative_likelihood: float = 1e-3
    variance_ratios: tuple[float, ...] = (0.05, 0.15, 0.5, 1.5, 5.0, 15.0)
    length_scales: tuple[float, ...] = (0.03, 0.1, 0.3)


DEFAULT_SETTINGS = EstimationSettings()
