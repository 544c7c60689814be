"""Motion with another value of a parameter, such as that of a longer string.

A fit has unknowns, such as the radius of a circle in pixels, of which the physical parameters are functions. Another
length is a point of the unknowns at which that parameter has its new value, where the scale of the picture and gravity
stay as they are, and as few others change as that allows. It is found by Gauss–Newton steps on

    w_h (p(z) − target) / s,   w (p_other(z) − p_other(z₀)) / s,   w_z (z − z₀)

with a large w_h for the new value, the scale and gravity, and a small w_z. The weights w = |residual|^(-1/2) make the
second part the sum of absolute changes: a period that must change does not pull at an amplitude that need not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from physvision.core import InputError
from physvision.identification import Identification

_HARD_WEIGHT, _UNKNOWN_WEIGHT = 1e4, 1e-2
_MAX_STEPS, _MAX_STEP, _TOLERANCE = 16, 1.0, 1e-3
_MIN_CHANGE, _MAX_MISS = 1e-4, 1e-3  # relative


class WhatIf:
    """Simulation of an identified motion with other values of its parameters.

    Attributes:
        result: Identification, whose fit gives the values to begin with.
    """

    def __init__(self, result: Identification) -> None:
        self.result = result
        self._fit = result.fit
        self._z = result.fit.z.detach()
        values = {name: entry.value for name, entry in result.parameters.items() if entry.value is not None}
        self._names = list(values)
        width = {
            name: entry.interval_95[1] - entry.interval_95[0]
            for name, entry in result.parameters.items()
            if entry.interval_95 is not None
        }
        self._sizes = torch.tensor([max(abs(values[name]), width.get(name, 0.0), 1e-9) for name in values]).double()
        with torch.no_grad():
            self._begin = self._quantities(self._z)
        self._last = self._z  # of the last simulation, which is close to the next one of the same slider

    def warm_up(self) -> None:
        """Run the simulation once, since the first run takes a second."""
        name = self._names[0] if self._names else None
        self.simulate({name: float(self._begin[0])} if name else {}, self.result.evidence.times.numpy())

    def simulate(self, targets: Mapping[str, float], times: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        """Return the positions at times, (times, 2 · objects), px, and all parameters of the changed motion.

        Args:
            targets: New values by parameter, SI units.
            times: Times of the clip, s.

        Raises:
            InputError: A parameter is unknown, or the motion cannot have the values.
        """
        unknown = [name for name in targets if name not in self._names]
        if unknown:
            raise InputError(f"simulate: expected some of {', '.join(self._names)}, got {unknown[0]!r}")
        z, values = self._solve(targets) if targets else (self._z, self._begin)
        with torch.no_grad():
            positions = replace(self._fit, z=z).positions(torch.from_numpy(times)).numpy()
        if not np.isfinite(positions[self.result.in_span(times)]).all():
            raise InputError("the simulation fails at that value")
        positions[~self.result.may_follow(times)] = np.nan
        return positions, dict(zip(self._names, values.tolist(), strict=False))

    def _solve(self, targets: Mapping[str, float]) -> tuple[Tensor, Tensor]:
        """Return the unknowns at which the parameters have their new values, and all quantities there.

        Raises:
            InputError: There are none nearby.
        """
        goal, weights = self._begin.clone(), torch.ones_like(self._begin)
        weights[len(self._names) :] = _HARD_WEIGHT  # the scale
        for index, name in enumerate(self._names):
            if name in targets:
                goal[index] = targets[name]
            if name in targets or name == "gravity":
                weights[index] = _HARD_WEIGHT
        sizes = torch.cat([self._sizes, self._begin[len(self._names) :].abs()])
        z, size = self._last.clone(), 0.0
        for _ in range(_MAX_STEPS):
            quantities, jacobian = self._linearize(z)
            changes = (quantities - goal) / sizes
            change_weights = torch.where(weights == 1, changes.abs().clamp(min=_MIN_CHANGE).rsqrt(), weights)
            residuals = change_weights * changes
            rows = torch.cat(
                [(change_weights / sizes)[:, None] * jacobian, _UNKNOWN_WEIGHT * torch.eye(len(z)).double()]
            )
            errors = torch.cat([residuals, _UNKNOWN_WEIGHT * (z - self._z)])
            step = torch.linalg.lstsq(rows, -errors[:, None]).solution[:, 0]
            size = float(step.abs().max())
            z = z + step * min(1.0, _MAX_STEP / max(size, 1e-12))
            if size < _TOLERANCE:
                break
        with torch.no_grad():
            quantities = self._quantities(z)
        misses = ((quantities - goal) / sizes)[weights == _HARD_WEIGHT]
        # A value that is only approached, such as a period of zero, still takes the largest steps at the end.
        if size >= _MAX_STEP or not float(misses.abs().max()) < _MAX_MISS:
            self._last = self._z
            raise InputError("this motion cannot have that value; the others would have to change too much")
        self._last = z
        return z, quantities

    def _linearize(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the quantities at some unknowns, and their Jacobian."""
        z = z.clone().requires_grad_()
        quantities = self._quantities(z)
        unit = torch.eye(len(quantities)).double()
        (jacobian,) = torch.autograd.grad(quantities, z, unit, is_grads_batched=True)
        return quantities.detach(), jacobian

    def _quantities(self, z: Tensor) -> Tensor:
        """Return the parameters at some unknowns, and the scale where it can be told."""
        evidence, model = self._fit.evidence, self._fit.model
        values = self._fit.problem.unknowns.values(z[None])
        known = evidence.known_tensors
        parameters = model.parameters(values, known)
        numbers = [torch.as_tensor(parameters[name]).reshape(()) for name in self._names]
        scale = model.scale(values, known)
        return torch.stack([number.double() for number in numbers] + ([] if scale is None else [scale.reshape(())]))
