"""Posterior of a fit whose residuals are autocorrelated, marginalized over noise models.

Errors of a tracker, and what a model leaves out, persist over several frames. The residuals are modeled as white noise,
an error that decays in time, and an error that depends on the position in the image (the background there, or what is
attached to the object), which recurs with every period:

    Σ = σ² (1 + a exp(−|t − t'| / τ) + b exp(−|x − x'|² / 2 l²))

The residuals determine a, τ, b and l only roughly: each of many noise models is weighted by its restricted likelihood
(Patterson and Thompson, 1971), which accounts for the degrees of freedom that the fit has used. With J the weighted
Jacobian, P the priors' information and A = Jᵀ J + P, the minimum then has the covariance

    A⁻¹ (Jᵀ Σ J + P) A⁻¹
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.estimation.gauss_newton import residual_scale, robust_weights
from physvision.estimation.motion_residual import MotionResidual
from physvision.estimation.residual import Linearization
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.estimation.uncertainty import diagonal_scale, regularized_inverse


@dataclass(frozen=True)
class MixturePosterior:
    """Posterior of z as a mixture over noise models.

    Attributes:
        weights: Probability of each noise model; they sum to one.
        covariances: Covariance of z under each noise model.
        white_covariance: Part of the covariance that comes from white noise alone, averaged over the noise models.
        df: Degrees of freedom of the likeliest noise model.
    """

    weights: Float[Tensor, " models"]
    covariances: Float[Tensor, "models unknowns unknowns"]
    white_covariance: Float[Tensor, "unknowns unknowns"]
    df: float

    @property
    def covariance(self) -> Float[Tensor, "unknowns unknowns"]:
        """Covariance of z, averaged over the noise models."""
        return torch.einsum("k,kij->ij", self.weights, self.covariances)

    def sample(self, count: int, seed: int = 0) -> Float[Tensor, "count unknowns"]:
        """Draw deviations of z from the minimum, by Student's t distribution of each noise model."""
        generator = torch.Generator().manual_seed(seed)
        model = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        # An unknown at its bound has an arbitrary variance in z: on that scale rounding would drown the others.
        scale = diagonal_scale(self.covariances)
        values, vectors = torch.linalg.eigh(self.covariances / scale[:, :, None] / scale[:, None])
        roots = scale[:, :, None] * vectors * values.clamp(min=0).sqrt()[:, None]
        normal = torch.randn(count, roots.shape[-1], generator=generator, dtype=roots.dtype)
        deviations = torch.empty_like(normal)
        for index in range(len(roots)):
            deviations[model == index] = normal[model == index] @ roots[index].mT
        shape = torch.full((count, 1), self.df / 2, dtype=roots.dtype)
        chi_squared = 2 * torch._standard_gamma(shape, generator=generator)
        return deviations * (self.df / chi_squared).sqrt()


class NoiseModel(NamedTuple):
    """Parameters of a covariance model of residuals.

    Attributes:
        temporal: Variance of the noise correlated in time, relative to the white noise's.
        time_scale: Correlation time, s.
        spatial: Variance of the noise correlated in position, relative to the white noise's.
        length_scale: Correlation length, pixels.
    """

    temporal: float
    time_scale: float
    spatial: float
    length_scale: float


@dataclass(frozen=True)
class _ObjectResiduals:
    """Weighted residuals of one object with distances between its samples; neighbors are averaged where many.

    Attributes:
        residuals: Weighted residuals.
        jacobian: Their Jacobian.
        time_distances: Time between samples, s.
        distances: Distance between positions, pixels.
        samples_per_row: Number of samples that are averaged in a row.
    """

    residuals: Float[Tensor, "rows numbers"]
    jacobian: Float[Tensor, "rows numbers unknowns"]
    time_distances: Float[Tensor, "rows rows"]
    distances: Float[Tensor, "rows rows"]
    samples_per_row: int

    @classmethod
    def of(
        cls, problem: MotionResidual, columns: slice, linearization: Linearization, positions: Tensor, max_rows: int
    ) -> _ObjectResiduals:
        """Collect the residuals of the object whose position these columns are."""
        residuals, jacobian = linearization
        samples = torch.nonzero(torch.isfinite(problem.observed[:, columns]).all(1)).flatten()
        count = max(1, math.ceil(len(samples) / max_rows))
        if len(samples):
            samples = samples[: len(samples) // count * count].unflatten(0, (-1, count))
        else:
            samples = samples[:, None]
        times, centers = problem.times[samples].mean(1), positions[samples][..., columns].mean(1)
        return cls(
            residuals[samples][..., columns].sum(1) / math.sqrt(count),
            jacobian[samples][:, :, columns].sum(1) / math.sqrt(count),
            (times[:, None] - times).abs(),
            torch.cdist(centers, centers),
            count,
        )

    def covariances(self, models: Sequence[NoiseModel]) -> Float[Tensor, "models rows rows"]:
        """Return the residuals' covariance under each model, in units of the white noise's variance."""
        # Many models share a correlation time or length.
        temporal = {scale: torch.exp(-self.time_distances / scale) for scale in {model.time_scale for model in models}}
        scales = {model.length_scale for model in models if model.spatial}
        spatial = {scale: torch.exp(-((self.distances / scale) ** 2) / 2) for scale in scales}
        covariances = torch.stack(
            [self.samples_per_row * model.temporal * temporal[model.time_scale] for model in models]
        )
        for index, model in enumerate(models):
            if model.spatial:
                covariances[index].add_(spatial[model.length_scale], alpha=self.samples_per_row * model.spatial)
        covariances.diagonal(dim1=1, dim2=2).add_(1.0)
        return covariances


def mixture_posterior(
    problem: MotionResidual, z: Float[Tensor, " unknowns"], linearization: Linearization | None = None
) -> MixturePosterior:
    """Estimate the posterior of z from robustly fitted residuals of positions, x and y of each object.

    Args:
        problem: Residuals that were minimized, with outliers downweighted.
        z: Unconstrained numbers at the minimum.
        linearization: Residuals and Jacobian at z, if already computed.
    """
    residuals, jacobian = problem.linearize(z.detach()[None]) if linearization is None else linearization
    weights = robust_weights(residuals, residual_scale(residuals))[0]
    prior_residual, prior_derivative = (part[0] for part in problem.unknowns.prior_residuals(z.detach()[None]))
    prior = torch.diag(prior_derivative.square())
    positions = problem.predictions(z[None]).detach()[0]
    root = weights.sqrt()[:, None]
    weighted = root * residuals[0], root[..., None] * jacobian[0]
    columns, max_rows = [slice(k, k + 2) for k in range(0, positions.shape[1], 2)], DEFAULT_SETTINGS.max_covariance_rows
    objects = [_ObjectResiduals.of(problem, part, weighted, positions, max_rows) for part in columns]
    objects = [item for item in objects if len(item.residuals)]
    prior_terms = prior_derivative * prior_residual, prior
    models, evaluations = _evaluate_noise_models(objects, prior_terms, problem.times, positions)
    log_likelihoods, variances, df = evaluations
    likelihoods = torch.exp(log_likelihoods - log_likelihoods.max())
    retained = torch.nonzero(likelihoods > DEFAULT_SETTINGS.min_relative_likelihood).flatten()
    information = variances[retained, None, None] * _noise_information(objects, [models[index] for index in retained])
    # Downweighted outliers leave residuals that are too small.
    inflation = len(weights) / float(weights.sum())
    flat = [item.jacobian.flatten(0, 1) for item in objects]
    squares = sum((jacobian.mT @ jacobian for jacobian in flat), torch.zeros_like(prior))
    matrix = squares + prior
    scale = diagonal_scale(matrix)
    scales = scale[:, None] * scale
    inverse = regularized_inverse(matrix / scales)
    covariances = inverse @ ((inflation * information + prior) / scales) @ inverse / scales
    weights = likelihoods[retained] / likelihoods[retained].sum()
    white_variance = inflation * float(weights @ variances[retained])
    white_covariance = inverse @ (white_variance * squares / scales) @ inverse / scales
    return MixturePosterior(weights, covariances, white_covariance, float(df[log_likelihoods.argmax()]))


class _Evaluation(NamedTuple):
    """Restricted log-likelihood, white-noise variance and degrees of freedom of each noise model."""

    log_likelihoods: Float[Tensor, " models"]
    variances: Float[Tensor, " models"]
    df: Float[Tensor, " models"]


def _evaluate_noise_models(
    objects: Sequence[_ObjectResiduals],
    prior: tuple[Tensor, Tensor],
    times: Tensor,
    positions: Tensor,
) -> tuple[list[NoiseModel], _Evaluation]:
    """Evaluate temporal noise models, then spatial ones added to the white and to the likeliest temporal one."""
    span = float(times[-1])
    step = float((times[1:] - times[:-1]).median()) if len(times) > 1 else 1.0
    extent = float((positions.amax(0) - positions.amin(0)).norm())
    shortest, longest = 1.5 * step, max(span / 2, 3 * step)
    time_scales = [shortest * (longest / shortest) ** (index / 4) for index in range(5)]
    white = NoiseModel(0.0, time_scales[0], 0.0, extent)
    temporal = [white]
    ratios = DEFAULT_SETTINGS.variance_ratios
    temporal += [NoiseModel(ratio, scale, 0.0, extent) for ratio in ratios for scale in time_scales]
    temporal_evaluation = _evaluate(objects, prior, temporal)
    likeliest = temporal[int(temporal_evaluation.log_likelihoods.argmax())]
    spatial = [
        model._replace(spatial=ratio, length_scale=scale * extent)
        for ratio in ratios
        for scale in DEFAULT_SETTINGS.length_scales
        for model in dict.fromkeys((white, likeliest))
    ]
    evaluations = (temporal_evaluation, _evaluate(objects, prior, spatial))
    return [*temporal, *spatial], _Evaluation(*(torch.cat(parts) for parts in zip(*evaluations, strict=True)))


def _evaluate(
    objects: Sequence[_ObjectResiduals], prior: tuple[Tensor, Tensor], models: Sequence[NoiseModel]
) -> _Evaluation:
    """Evaluate all noise models at once."""
    prior_gradient, prior_information = prior
    unknowns, count = len(prior_information), len(models)
    size, square, log_determinant = 0, prior_information.new_zeros(count), prior_information.new_zeros(count)
    information = prior_information.new_zeros(count, unknowns, unknowns)
    gradient = prior_information.new_zeros(count, unknowns)
    for item in objects:
        rows, numbers = item.residuals.shape
        factor = torch.linalg.cholesky(item.covariances(models))
        stacked = torch.cat([item.residuals[..., None], item.jacobian], 2).flatten(1)
        whitened = torch.linalg.solve_triangular(factor, stacked.expand(count, -1, -1), upper=False)
        white_residuals, jacobian = whitened.reshape(count, -1, 1 + unknowns).split([1, unknowns], 2)
        size += rows * numbers
        square = square + white_residuals.square().sum((1, 2))
        log_determinant = log_determinant + 2 * numbers * factor.diagonal(dim1=1, dim2=2).log().sum(1)
        information = information + jacobian.mT @ jacobian
        gradient = gradient + (jacobian.mT @ white_residuals).squeeze(2)
    variance, effective_unknowns, residual_square = square / size, torch.zeros_like(square), square
    step = torch.zeros_like(gradient)
    for _ in range(6):
        covariance = regularized_inverse(information / variance[:, None, None] + prior_information)
        step = -(covariance @ (gradient / variance[:, None] + prior_gradient)[..., None]).squeeze(2)
        effective_unknowns = (covariance * information).sum((1, 2)) / variance
        residual_square = square + 2 * (step * gradient).sum(1) + _quadratic_form(information, step)
        variance = residual_square.maximum(1e-12 * square + 1e-300) / (size - effective_unknowns).clamp(min=1.0)
    normal = information / variance[:, None, None] + prior_information
    prior_cost = _quadratic_form(prior_information, step) + 2 * step @ prior_gradient
    scale = diagonal_scale(normal)
    eigenvalues = torch.linalg.eigvalsh(normal / scale[:, :, None] / scale[:, None]).clamp(min=1e-12)
    log_volume = eigenvalues.log().sum(1) + 2 * scale.log().sum(1)
    deviance = size * variance.log() + log_determinant + log_volume + residual_square / variance + prior_cost
    return _Evaluation(-deviance / 2, variance, (size - effective_unknowns).clamp(min=1.0))


def _noise_information(
    objects: Sequence[_ObjectResiduals], models: Sequence[NoiseModel]
) -> Float[Tensor, "models unknowns unknowns"]:
    """Return Jᵀ Σ J under each model, in units of the white noise's variance."""
    total = 0.0
    for item in objects:
        product = (item.covariances(models) @ item.jacobian.flatten(1)).unflatten(2, item.jacobian.shape[1:])
        total = total + item.jacobian.flatten(0, 1).mT @ product.flatten(1, 2)
    return torch.as_tensor(total)


def _quadratic_form(matrix: Tensor, vectors: Float[Tensor, "models unknowns"]) -> Float[Tensor, " models"]:
    """Return vᵀ M v of each vector."""
    return (vectors * (matrix @ vectors[..., None]).squeeze(2)).sum(1)
