"""One impulse differentiated in three ways: each sweep of its solver unrolled, implicitly, by the engine's adjoint.

A box strikes the ground with its four lower corners at once, which makes twelve equations of rank six; corners stick,
slide or are let go. Projected Gauss–Seidel sweeps find the impulses, written in torch; unrolled, autograd goes back
through all of them. Implicitly it goes through one Newton step from where the sweeps have ended: with the residual of
the projections F(λ, b) = λ − Π(λ − ρ (A λ + b)) that step is λ − F_λ⁺ F(λ, b), whose derivative in b is that of the
solution. The engine's adjoint solves one transposed system of the contacts' modes in its kernels. The table tells the
errors of the velocity after the impulse and of its 6×6 Jacobian (against differences of the engine's velocities), what
autograd keeps, and milliseconds of both.

    python experiments/impulse_gradients.py
"""

# pyright: reportCallIssue=false

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import torch
from contact_comparison import Complementarity  # pyright: ignore[reportMissingImports]
from jsonargparse import auto_cli
from torch import Tensor

from physvision import State
from physvision.core import Box, Placed, Plane
from physvision.physics import articulated
from physvision.physics.articulated import Body, Joint

DOUBLE = torch.float64
SIZES, MASS, MOMENT = (0.4, 0.3, 0.2), 1.3, 0.02
SWEEPS = 10, 100, 1000
SCENES = {
    "turns about a corner that sticks": (0.9, (0.2, -0.1, -0.6, 6.0, -4.0, 0.5)),
    "slides on an edge": (0.1, (1.0, -0.6, 0.5, 0.0, 6.0, 0.4)),
}
Solver = Callable[[Tensor, Tensor, float], Tensor]


def corners() -> Tensor:
    """The Jacobian of the lower corners, (4, 3, 6): normal and tangents by the velocity and the turning."""
    rows = []
    for x, y in product((-0.5, 0.5), repeat=2):
        arm = torch.tensor([x * SIZES[0], y * SIZES[1], -SIZES[2] / 2], dtype=DOUBLE)
        turning = torch.stack([torch.linalg.cross(arm, axis) for axis in torch.eye(3, dtype=DOUBLE)])
        rows.append(torch.cat([torch.eye(3, dtype=DOUBLE), turning], 1)[[2, 0, 1]])
    return torch.stack(rows)


def onto_cone(impulse: Tensor, friction: float) -> Tensor:
    """Each contact's normal impulse from zero on, and its friction no larger than the cone lets it be: (…, 3)."""
    normal = impulse[..., :1].clamp(min=0)
    length = impulse[..., 1:].square().sum(-1, keepdim=True).clamp(min=1e-300).sqrt()
    return torch.cat([normal, impulse[..., 1:] * (friction * normal / length).clamp(max=1.0)], -1)


def swept(matrix: Tensor, drive: Tensor, friction: float, sweeps: int) -> Tensor:
    """Impulses, (4, 3), by sweeps over the contacts."""
    results = [torch.zeros(3, dtype=DOUBLE) for _ in drive]
    for _ in range(sweeps):
        for c in range(len(drive)):
            slip = drive[c] + sum(matrix[c, k] @ results[k] for k in range(len(drive)))
            results[c] = onto_cone(results[c] - slip / matrix[c, c].trace(), friction)
    return torch.stack(results)


def implicit(matrix: Tensor, drive: Tensor, friction: float) -> Tensor:
    """One Newton step from where the sweeps have ended."""
    with torch.no_grad():
        known = swept(matrix, drive, friction, SWEEPS[-1])
    scale = matrix.diagonal(dim1=0, dim2=1).diagonal(dim1=0, dim2=1).sum(-1, keepdim=True)

    def residual(impulse: Tensor, drive: Tensor) -> Tensor:
        slip = torch.einsum("ckij,kj->ci", matrix, impulse.view(4, 3)) + drive
        return (impulse.view(4, 3) - onto_cone(impulse.view(4, 3) - slip / scale, friction)).flatten()

    rate = torch.autograd.functional.jacobian(lambda impulse: residual(impulse, drive.detach()), known.flatten())
    assert isinstance(rate, Tensor)
    return known - (torch.linalg.pinv(rate, rtol=1e-9) @ residual(known.flatten(), drive)).view(4, 3)


def by_torch(solver: Solver, friction: float) -> Callable[[Tensor], Tensor]:
    """The velocity after the impulse from that before."""
    jacobian = corners()
    answer = torch.diag(1 / torch.tensor([MASS] * 3 + [MOMENT] * 3, dtype=DOUBLE)) @ jacobian.mT  # (4, 6, 3)
    matrix = torch.einsum("cid,kdj->ckij", jacobian, answer)
    return lambda v: v + torch.einsum("cdi,ci->d", answer, solver(matrix, jacobian @ v, friction))


def by_engine(friction: float) -> Callable[[Tensor], Tensor]:
    """Gradients by the engine, for one step without gravity that solves complementarity once."""
    box = Body("box", None, [Joint("free")], mass=MASS, inertia=(MOMENT,) * 3, shapes=[Placed(Box(SIZES))])
    result = articulated.tree(
        [box],
        gravity=(0, 0, 0),
        static_shapes=[Placed(Plane())],
        contact=articulated.ContactSettings(Complementarity(), friction=friction),
    )
    q = result.initial_state(dtype=DOUBLE).q + torch.tensor([0, 0, SIZES[2] / 2, 0, 0, 0, 0], dtype=DOUBLE)
    return lambda v: result.step(State(q, v[None])).v[0]


def differences(after: Callable[[Tensor], Tensor], v: Tensor, h: float = 1e-6) -> Tensor:
    columns = [(after(v + h * axis) - after(v - h * axis)) / (2 * h) for axis in torch.eye(6, dtype=DOUBLE)]
    return torch.stack(columns, 1)


def by_complementarity(after: Callable[[Tensor], Tensor], v: Tensor) -> int:
    """Bytes that autograd keeps for the way back."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        held.append(tensor)  # so that no memory is counted twice for another
        return tensor

    held: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        after(v.clone().requires_grad_())
    return sum(sizes.values())


def main() -> dict[str, dict[str, tuple[float, float]]]:
    """Print the tables; of each scene and way the errors of the velocity and of its Jacobian."""
    torch.set_num_threads(1)
    results: dict[str, dict[str, tuple[float, float]]] = {}
    for scene, (friction, speeds) in SCENES.items():
        v = torch.tensor(speeds, dtype=DOUBLE)
        exact = by_engine(friction)
        with torch.no_grad():
            after, slopes = exact(v), differences(exact, v)
        torch.autograd.functional.jacobian(exact, v)  # loads its kernels
        ways = {
            f"{sweeps} sweeps, unrolled": by_torch(lambda *given, n=sweeps: swept(*given, n), friction)
            for sweeps in SWEEPS
        }
        ways |= {f"{SWEEPS[-1]} sweeps, implicitly": by_torch(implicit, friction), "the engine's adjoint": exact}
        print(f"a box that {scene}, friction {friction:g}")
        print(f"  {'':<26}{'velocity':>10}{'Jacobian':>10}{'bytes kept':>12}{'ms':>9}")
        results[scene] = {}
        for name, way in ways.items():
            began = time.process_time()
            velocity, jacobian = way(v), torch.autograd.functional.jacobian(way, v)
            took = 1e3 * (time.process_time() - began)
            assert isinstance(jacobian, Tensor)
            errors = float((velocity - after).abs().max()), float((jacobian - slopes).abs().max())
            results[scene][name] = errors
            print(
                f"  {name:<26}{errors[0]:>10.1e}{errors[1]:>10.1e}{by_complementarity(way, v):>12}{took:>9.1f}",
                flush=True,
            )
        print()
    return results


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
