"""How accelerations become motion: explicit methods, each a tableau that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Integrator:
    """A substep of length h from (q, v): s stages, each one evaluation of the dynamics.

        stage 0 stands at (q, v), stage s at q ⊕ h reach_s v_{s−1}, v + h reach_s q̈_{s−1}
        v′ = v + h Σ weight_s q̈_s
        q′ = q ⊕ h (share Σ weight_s v_s + (1 − share) v′)

    Attributes:
        reach: of each stage.
        weight: of each stage; they sum to one.
        share: of the stages' velocities in what moves positions; the velocity at the end has the rest.
        implicit_drag: whether drag is taken at the end of the substep, which keeps strong drag stable.
    """

    reach: tuple[float, ...]
    weight: tuple[float, ...]
    share: float
    implicit_drag: bool

    @property
    def stages(self) -> int:
        """Evaluations of the dynamics in a substep."""
        return len(self.weight)


INTEGRATORS = {
    "semi_implicit_euler": Integrator((0.0,), (1.0,), share=0.0, implicit_drag=True),
    "runge_kutta_4": Integrator((0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6), share=1.0, implicit_drag=False),
}
