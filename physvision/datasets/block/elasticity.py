"""Small motions of a hanging elastic block: quadratic triangles of scikit-fem, and the trapezoidal rule in time.

With M and K the matrices of mass and stiffness, f the weight and x the displacements of the free nodes,

    M ẍ + K x = f,        (M + h²/4 K) ẍ₁ = f − K (x₀ + h ẋ₀ + h²/4 ẍ₀)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from physvision.core import MissingError

# Number of squares along each side.
_SQUARES = 12


class Block:
    """Square block, held at its top, at rest and unstrained until its release.

    Args:
        side: Side of the block, m.
        modulus: Young's modulus, Pa.
        ratio: Poisson's ratio.
        density: Density, kg/m³.
        gravity: Gravitational acceleration, downwards, m/s².
        squares: Number of squares along each side.
    """

    def __init__(
        self, side: float, modulus: float, ratio: float, density: float, gravity: float, squares: int = _SQUARES
    ) -> None:
        fem, forms = _scikit_fem()
        line = np.linspace(0.0, side, squares + 1)
        self.nodes = fem.MeshTri.init_tensor(line, line).p.T
        basis = fem.Basis(fem.MeshTri.init_tensor(line, line), fem.ElementVector(fem.ElementTriP2()))
        stiffness = fem.asm(forms.linear_elasticity(*forms.lame_parameters(modulus, ratio)), basis)
        mass = fem.asm(fem.BilinearForm(lambda u, v, w: density * (u[0] * v[0] + u[1] * v[1])), basis)
        weight = fem.asm(fem.LinearForm(lambda v, w: -density * gravity * v[1]), basis)
        free = basis.complement_dofs(basis.get_dofs(lambda x: np.isclose(x[1], side)))
        self.nodal_dofs, self.free, self.num_dofs = basis.nodal_dofs.T, free, basis.N
        self.stiffness, self.mass, self.weight = stiffness[free][:, free], mass[free][:, free], weight[free]

    def motion(self, dt: float, steps: int, every: int) -> tuple[np.ndarray, np.ndarray]:
        """Displacements and velocities of the corners of all triangles, (times, corners, 2), every `every` steps."""
        from scipy.sparse.linalg import splu

        solver = splu((self.mass + dt**2 / 4 * self.stiffness).tocsc())
        x, v = np.zeros((2, len(self.free)))
        a = splu(self.mass.tocsc()).solve(self.weight)
        states = [(x, v)]
        for step in range(1, steps + 1):
            predicted = x + dt * v + dt**2 / 4 * a
            next_a = solver.solve(self.weight - self.stiffness @ predicted)
            x, v, a = predicted + dt**2 / 4 * next_a, v + dt / 2 * (a + next_a), next_a
            if step % every == 0:
                states.append((x, v))
        motion = np.zeros((2, len(states), self.num_dofs))
        motion[0][:, self.free], motion[1][:, self.free] = ([state[k] for state in states] for k in range(2))
        displacements, velocities = motion[:, :, self.nodal_dofs]
        return displacements, velocities


def _scikit_fem() -> tuple[Any, Any]:
    try:
        import skfem
        from skfem.models import elasticity
    except ImportError as error:
        raise MissingError("an elastic block needs scikit-fem; pip install physvision[peers]") from error
    return skfem, elasticity
