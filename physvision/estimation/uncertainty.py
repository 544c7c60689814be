"""Uncertainty of fitted unknowns from the Jacobian at the minimum, with autocorrelated residuals accounted for.

Residuals of neighboring samples are correlated, since a tracker's errors persist. With lag-one autocorrelation ρ, N
samples carry the information of N (1 − ρ)/(1 + ρ) independent ones, so standard deviations are √((1 + ρ)/(1 − ρ)) times
those of Fisher's information matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from scipy.special import stdtrit  # the quantile of scipy.stats.t, without the half second that importing stats takes
from torch import Tensor

from physvision.core import DerivativeError
from physvision.estimation.gauss_newton import normal_equations, residual_scale, robust_weights
from physvision.estimation.residual import Linearization, Residual
from physvision.estimation.settings import DEFAULT_SETTINGS
from physvision.estimation.unknowns import Unknowns

# Smallest diagonal entry of a matrix that is brought to a diagonal of one.
_MIN_DIAGONAL = 1e-100


@dataclass(frozen=True)
class Uncertainty:
    """Gaussian approximation of the posterior of z around a minimum.

    Attributes:
        unknowns: Unknowns that z stands for.
        z: Unconstrained numbers at the minimum.
        covariance: Covariance of z, correlated residuals accounted for.
        residual_std: Standard deviation of the residuals, relative to the expected noise.
        autocorrelation: Lag-one autocorrelation of the residuals.
        df: Degrees of freedom: effective independent samples less unknowns.
    """

    unknowns: Unknowns
    z: Float[Tensor, " unknowns"]
    covariance: Float[Tensor, "unknowns unknowns"]
    residual_std: float
    autocorrelation: float
    df: float

    @property
    def std(self) -> Float[Tensor, " unknowns"]:
        """Standard deviations of z."""
        return self.covariance.diagonal().clamp(min=0).sqrt()

    def interval(self, level: float) -> Float[Tensor, "unknowns 2"]:
        """Return the confidence interval of each value at a level in (0, 1), by Student's t distribution.

        The interval is symmetric in z, so values stay within their bounds.
        """
        half_width = float(stdtrit(self.df, 0.5 + level / 2)) * self.std
        return torch.stack([self.unknowns.flat_values(self.z + side * half_width) for side in (-1, 1)], -1)


def uncertainty(
    problem: Residual,
    z: Float[Tensor, " unknowns"],
    robust: bool = False,
    linearization: Linearization | None = None,
) -> Uncertainty:
    """Estimate the uncertainty of z at a minimum.

    Args:
        problem: Residuals that were minimized.
        z: Unconstrained numbers at the minimum.
        robust: If true, outliers are downweighted, as in the fit.
        linearization: Residuals and Jacobian at z, if already computed.

    Raises:
        DerivativeError: The Jacobian is not finite, or too large to be squared.
    """
    z = z.detach()[None]
    residuals, jacobian = problem.linearize(z) if linearization is None else linearization
    scale = residual_scale(residuals) if robust else None
    weights = robust_weights(residuals, scale)[0]
    matrix = normal_equations(problem, z, (residuals, jacobian), scale)[1][0]
    prior = torch.diag(problem.unknowns.prior_residuals(z)[1][0].square())
    if not bool(matrix.isfinite().all()):
        raise DerivativeError(f"z: the normal matrix of the residuals is not finite at {z[0].tolist()}")
    valid = torch.isfinite(problem.observed).any(-1)
    valid = valid[0] if valid.dim() > 1 else valid
    count = int(torch.isfinite(problem.observed).sum()) / max(1, problem.observed[..., 0, 0].numel())
    # Unknowns with priors use up degrees of freedom only as far as the data determine them.
    effective_unknowns = float(torch.linalg.lstsq(matrix, matrix - prior, driver="gelsd").solution.trace())
    df = max(count - effective_unknowns, 1.0)
    variance = float((weights[:, None] * residuals[0].square()).sum()) / float(weights.sum() / len(weights)) / df
    rho = autocorrelation(residuals[0], weights, valid, effective_unknowns, DEFAULT_SETTINGS.max_autocorrelation)
    inflation = (1 + rho) / (1 - rho)
    # The residuals scale the information of the data, not that of the priors.
    data = (matrix - prior) / max(variance * inflation, 1e-300)
    covariance = regularized_inverse(data + prior)
    df = max(count / inflation - effective_unknowns, 1.0)
    return Uncertainty(problem.unknowns, z[0], covariance, math.sqrt(variance), rho, df)


def autocorrelation(
    residuals: Float[Tensor, "samples numbers"],
    weights: Float[Tensor, " samples"],
    valid: Bool[Tensor, " samples"],
    unknowns: float,
    maximum: float,
) -> float:
    """Estimate the lag-one autocorrelation of residuals, corrected for the number of fitted unknowns.

    The result lies between zero and `maximum`.
    """
    weighted = residuals[valid] * weights[valid].sqrt()[:, None]
    count, numbers = weighted.shape
    square = float(weighted.square().sum())
    if count < 4 or square == 0:
        return 0.0
    raw = float((weighted[1:] * weighted[:-1]).sum()) / square
    # Neighboring residuals of white noise correlate by about −p/N after p of N degrees of freedom are fitted.
    corrected = raw + (1 + abs(raw)) * unknowns / (numbers * count)
    return min(max(corrected, 0.0), maximum)


def diagonal_scale(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n"]:
    """Scale of rows and columns that brings the diagonal of a positive semidefinite matrix to one.

    A row of a number without any effect has a diagonal of zero. Its scale is so small that it disturbs no other row,
    and large enough that entries off the diagonal, which rounding leaves there, stay finite when divided by it.
    """
    return matrix.diagonal(dim1=-2, dim2=-1).clamp(min=_MIN_DIAGONAL).sqrt()


def regularized_inverse(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """Invert a positive semidefinite matrix; undetermined directions get a huge variance instead of an error."""
    scale = diagonal_scale(matrix)
    values, vectors = torch.linalg.eigh(matrix / scale[..., :, None] / scale[..., None, :])
    inverse = (vectors / values.clamp(min=1e-12)[..., None, :]) @ vectors.mT
    return inverse / scale[..., :, None] / scale[..., None, :]
