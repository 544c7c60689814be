"""Check of energy: beyond the work of controls it may fall, and never grow."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from physvision.core import Trajectory

# Growth that is named, as a fraction of the motion's energy; that of finite steps is smaller where they resolve it.
MAX_ENERGY_GAIN = 1e-3
# Rounding of energies that are sums over many bodies, in units of the dtype's.
_ROUNDING = 1e3
# Number of states whose energy is computed at once: each has a workspace of its own.
_MAX_STATES = 4096


def path_energy(
    energy: Callable[[Trajectory], tuple[Tensor, Tensor]], path: Trajectory
) -> tuple[Float[Tensor, "batch times"], Float[Tensor, "batch times"]]:
    """Compute the kinetic and potential energy of a long path, J, with the memory of a short one."""
    count = max(1, _MAX_STATES // path.batch)
    parts = [energy(path[start : start + count]) for start in range(0, len(path), count)]
    kinetic, potential = (torch.cat(part, 1) for part in zip(*parts, strict=True))
    return kinetic, potential


def first_energy_gain(
    kinetic: Float[Tensor, "batch times"],
    potential: Float[Tensor, "batch times"],
    work: Float[Tensor, "batch steps"] | float,
    negligible: Float[Tensor, " #batch"] | float,
) -> Int[Tensor, " batch"]:
    """First step after which the energy is larger than before it by more than a thousandth; -1 for none.

    Args:
        kinetic: Kinetic energy, J.
        potential: Potential energy, J.
        work: Upper bound of the work of controls in each step, J.
        negligible: Energy of resting bodies, any fraction of which may change, J.
    """
    steps = kinetic.new_zeros(len(kinetic), kinetic.shape[1] - 1) + work
    total_work = torch.cat([kinetic.new_zeros(len(kinetic), 1), steps.cumsum(1)], 1)
    energy = kinetic + potential - total_work
    size = kinetic.amax(1) + potential.amax(1) - potential.amin(1)
    rounding = _ROUNDING * torch.finfo(kinetic.dtype).eps * (kinetic.amax(1) + potential.abs().amax(1))
    gains = energy - energy.cummin(1).values > (MAX_ENERGY_GAIN * size + rounding + negligible).unsqueeze(1)
    return torch.where(gains.any(1), gains.int().argmax(1), -1)
