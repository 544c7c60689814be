"""Explicit time integrators, each a tableau that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Integrator:
    """Tableau of a substep of length h from (q, v): s stages, each one evaluation of the dynamics.

        stage 0 is at (q, v), stage s at q ⊕ h offset_s v_{s−1}, v + h offset_s q̈_{s−1}
        v′ = v + h Σ weight_s q̈_s
        q′ = q ⊕ h (position_weight Σ weight_s v_s + (1 − position_weight) v′)

    Attributes:
        stage_offset: Offset of each stage from the start of the substep, as a fraction of h.
        weight: Weight of each stage; the weights sum to one.
        position_weight: Weight of the stages' velocities in the position update; that of the final velocity is the
            rest.
        implicit_drag: If true, damping is evaluated at the end of the substep, which keeps strong damping stable.
    """

    stage_offset: tuple[float, ...]
    weight: tuple[float, ...]
    position_weight: float
    implicit_drag: bool

    @property
    def stages(self) -> int:
        """Number of evaluations of the dynamics in a substep."""
        return len(self.weight)


INTEGRATORS = {
    "semi_implicit_euler": Integrator((0.0,), (1.0,), position_weight=0.0, implicit_drag=True),
    "runge_kutta_4": Integrator(
        (0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6), position_weight=1.0, implicit_drag=False
    ),
}
