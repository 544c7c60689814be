"""Soft bodies beside scikit-fem: an equilibrium and a motion, with the gradient of a place to every element's modulus.

    python benchmarks/soft.py [--rounds 5]

One thread each, float64, the same mesh of linear elements. scikit-fem assembles (its mesh is prepared before), scipy
factorizes. The equilibrium is linear: one solve, and for the gradient one more with the transposed matrix, and the
derivative of the stiffness to each modulus. The motion is that of a neo-Hookean body by backward Euler and Newton's
method, each ended at the same size of its last step; its gradient is the adjoint of those steps, which the user of
scikit-fem writes: one assembly, one factorization and one solve a step. Times are medians of rounds, in which the two
take turns.
"""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false, reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import scipy.sparse.linalg as sparse
import skfem
import torch
from jsonargparse import auto_cli
from scipy.sparse import diags
from skfem.helpers import ddot, det, grad, identity, inv, sym_grad, trace, transpose

from physvision.physics import soft

YOUNG, RATIO, DENSITY, DT, STEPS = 1e5, 0.3, 1000.0, 0.01, 10
CLOSE = 1e-10  # of an element's size


class Peer:
    """Model of the same body in scikit-fem."""

    def __init__(self, mesh: soft.Mesh, held: np.ndarray) -> None:
        kinds = (skfem.MeshTri, skfem.ElementTriP1) if mesh.axes == 2 else (skfem.MeshTet, skfem.ElementTetP1)
        self.mesh = mesh
        self.basis = skfem.Basis(
            kinds[0](mesh.nodes.T.copy(), mesh.elements.T.copy()), skfem.ElementVector(kinds[1]()), intorder=1
        )
        self.free = np.setdiff1d(np.arange(self.basis.N), self.basis.nodal_dofs[:, held].ravel())
        self.tip = int(
            self.basis.nodal_dofs[1, mesh.nearest_node(np.array([mesh.nodes[:, 0].max(), *[0.0] * (mesh.axes - 1)]))]
        )
        fractions = np.abs(mesh.volumes) * DENSITY / (mesh.axes + 1)
        mass = np.zeros(len(mesh.nodes))
        np.add.at(mass, mesh.elements, np.repeat(fractions[:, None], mesh.axes + 1, 1))
        self.mass = np.zeros(self.basis.N)
        self.mass[self.basis.nodal_dofs] = mass
        self.weight = np.zeros(self.basis.N)
        self.weight[self.basis.nodal_dofs[-1]] = -9.81 * mass
        self.lame = (YOUNG / (2 + 2 * RATIO), YOUNG * RATIO / ((1 + RATIO) * (1 - 2 * RATIO)))
        self.of_element = skfem.Basis(
            self.basis.mesh, skfem.ElementTriP0() if mesh.axes == 2 else skfem.ElementTetP0(), intorder=1
        )

    def equilibrium(self) -> tuple[np.ndarray, np.ndarray]:
        """Displacements, and the gradient of the tip's height to all moduli, in the linear law."""
        mu, lam = self.lame

        @skfem.BilinearForm
        def stiffness(u, v, w):
            return 2 * mu * ddot(sym_grad(u), sym_grad(v)) + lam * trace(grad(u)) * trace(grad(v))

        K = stiffness.assemble(self.basis)[self.free][:, self.free].tocsc()
        factor = sparse.splu(K)
        x, k = np.zeros((2, self.basis.N))
        x[self.free] = factor.solve(self.weight[self.free])
        seed = np.zeros(self.basis.N)
        seed[self.tip] = 1.0
        k[self.free] = factor.solve(seed[self.free])

        @skfem.LinearForm
        def pulled(v, w):
            u, kappa = w["u"].grad, w["k"].grad
            e, d = (u + transpose(u)) / 2, (kappa + transpose(kappa)) / 2
            return -v * (2 * mu * ddot(e, d) + lam * trace(u) * trace(kappa)) / YOUNG

        gradient = pulled.assemble(self.of_element, u=self.basis.interpolate(x), k=self.basis.interpolate(k))
        return x, gradient

    def forces(self, x: np.ndarray) -> tuple[np.ndarray, object]:
        """Gradient and second derivative of the neo-Hookean energy at displacements x."""
        mu, lam = self.lame
        field = self.basis.interpolate(x)

        @skfem.LinearForm
        def gradient(v, w):
            F = w["x"].grad + identity(w["x"].grad)
            T = transpose(inv(F))
            return ddot(mu * (F - T) + lam * np.log(det(F)) * T, grad(v))

        @skfem.BilinearForm
        def tangent(u, v, w):
            F = w["x"].grad + identity(w["x"].grad)
            T, G = transpose(inv(F)), grad(u)
            bent = np.einsum("ij...,kj...,kl...->il...", T, G, T)
            P = mu * G + (mu - lam * np.log(det(F))) * bent + lam * ddot(T, G) * T
            return ddot(P, grad(v))

        return gradient.assemble(self.basis, x=field), tangent.assemble(self.basis, x=field)

    def motion(self) -> tuple[np.ndarray, np.ndarray]:
        """Final position of the tip, and the gradient of its height with respect to all moduli."""
        free, h2 = self.free, DT**2
        x, v, places = np.zeros(self.basis.N), np.zeros(self.basis.N), []
        places.append(x)
        for _ in range(STEPS):
            after = x + DT * v
            for _ in range(60):
                inner, K = self.forces(after)
                r = self.mass / h2 * (after - x - DT * v) + inner - self.weight
                H = K[free][:, free] + diags(self.mass[free] / h2)
                move = sparse.splu(H.tocsc()).solve(-r[free])
                after[free] += move
                if np.abs(move).max() < CLOSE * self.mesh.size:
                    break
            v, x = (after - x) / DT, after
            places.append(x)
        return x, self._back(places)

    def _back(self, places: list[np.ndarray]) -> np.ndarray:
        free, h2 = self.free, DT**2
        x_bar, v_bar, total = np.zeros(self.basis.N), np.zeros(self.basis.N), 0.0
        x_bar[self.tip] = 1.0
        mu, lam = self.lame

        @skfem.LinearForm
        def pulled(v, w):
            F = w["x"].grad + identity(w["x"].grad)
            T = transpose(inv(F))
            return -v * ddot(mu * (F - T) + lam * np.log(det(F)) * T, w["k"].grad) / YOUNG

        for x in places[:0:-1]:
            _, K = self.forces(x)
            H = K[free][:, free] + diags(self.mass[free] / h2)
            k = np.zeros(self.basis.N)
            k[free] = sparse.splu(H.tocsc()).solve((x_bar + v_bar / DT)[free])
            fields = {"x": self.basis.interpolate(x), "k": self.basis.interpolate(k)}
            total = total + pulled.assemble(self.of_element, **fields)
            x_bar, v_bar = self.mass / h2 * k - v_bar / DT, self.mass / DT * k
        return total


class Ours:
    """Model of the same body here, with a modulus for each element."""

    def __init__(self, mesh: soft.Mesh, held: np.ndarray) -> None:
        moduli = [YOUNG] * len(mesh.elements)
        linear, neo_hookean = (soft.Material(moduli, RATIO, DENSITY, law) for law in ("linear", "neo_hookean"))
        self.still = soft.SoftBody(mesh, linear, dt=1e6, kinematic=held.tolist())
        self.moving = soft.SoftBody(mesh, neo_hookean, dt=DT, kinematic=held.tolist())
        self.tip = mesh.nearest_node([mesh.nodes[:, 0].max(), *[0.0] * (mesh.axes - 1)])

    def run(self, body: soft.SoftBody, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Final positions of the nodes, and the gradient of the tip's height with respect to all moduli."""
        young = body.properties.youngs_modulus.clone().requires_grad_()
        end = body.node_positions(
            body.rollout(body.initial_state(1, torch.float64), steps, properties={"youngs_modulus": young})
        )
        (gradient,) = torch.autograd.grad(end[0, -1, self.tip, 1], young)
        return end[0, -1].detach().numpy(), gradient.numpy()


def times(works: list[Callable[[], object]], rounds: int) -> list[float]:
    """Medians of milliseconds, the works taking turns."""
    retained: list[list[float]] = [[] for _ in works]
    for _ in range(rounds + 1):
        for entry, work in zip(retained, works, strict=True):
            began = time.perf_counter()
            work()
            entry.append(1e3 * (time.perf_counter() - began))
    return [median(entry[1:]) for entry in retained]


def main(rounds: int = 5) -> None:
    """Print the table of times.

    Args:
        rounds: after one that warms up.
    """
    torch.set_num_threads(1)
    meshes = {
        "640 triangles": soft.rectangle((2.0, 0.4), (40, 8)),
        "5,120 triangles": soft.rectangle((2.0, 0.5), (102, 25)),
        "1,152 tetrahedra": soft.box((0.6, 0.2, 0.2), (12, 4, 4)),
        "6,000 tetrahedra": soft.box((1.0, 0.5, 0.4), (20, 10, 5)),
    }
    print("| body | work with its gradient | here, ms | scikit-fem, ms | ratio | gradients differ by |")
    print("|---|---|---|---|---|---|")
    for name, mesh in meshes.items():
        held = np.flatnonzero(mesh.nodes[:, 0] == 0.0)
        ours, peer = Ours(mesh, held), Peer(mesh, held)
        pairs = {
            "equilibrium, linear": (partial(ours.run, ours.still, 1), peer.equilibrium),
            f"{STEPS} steps, neo-Hookean": (partial(ours.run, ours.moving, STEPS), peer.motion),
        }
        for work, bodies in pairs.items():
            single, reference = (body()[1] for body in bodies)
            off = np.abs(single - reference).max() / np.abs(reference).max()
            here, there = times(list(bodies), rounds)
            print(f"| {name} | {work} | {here:.1f} | {there:.0f} | {here / there:.3f} | {off:.0e} |", flush=True)


if __name__ == "__main__":
    auto_cli(main)
