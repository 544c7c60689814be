"""Three tasks of soft bodies: a modulus from a motion, a field of stiffness for a shape, a crawler's muscles.

The motion is made by scikit-fem (quadratic triangles, a consistent mass, the trapezoidal rule) with 0.1 mm of noise,
and the modulus found through our linear triangles. The beam of the second task shall bend into an arc under a force at
its tip; its stiffness must then fall linearly towards the tip, as the bending moment does. The crawler's four muscles
follow sines, whose sizes, phases and frequency are learned through contact and friction, from several first guesses.

    python experiments/soft_bodies.py [--seeds 3] [--updates 60] [--seconds 3.0] [--out out]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import skfem
import torch
from jsonargparse import auto_cli
from panel import panel, save
from skfem.helpers import dot
from skfem.models.elasticity import lame_parameters, linear_elasticity
from torch import Tensor

from physvision.estimation import descend
from physvision.physics import soft

TRUE, FIRST, RATIO, DENSITY = 2e4, 1e4, 0.3, 1000.0
SIDE, SQUARES, SECONDS, NOISE = 0.2, 16, 0.5, 1e-4
SHOWN = ((0.0, 0.0), (SIDE / 2, 0.0), (SIDE, 0.0))  # marks on the block's lower side
BAR, ARC_BAR, CRAWL_BAR = 0.01, 0.01, 0.1  # of the modulus; of the arc's height; of the crawler's length a second
LENGTH, FORCE, MODULUS = 10.0, 1.0, 1e5
CRAWLER = (0.4, 0.1)


def recorded_motion(dt: float, steps: int) -> Tensor:
    """Places of the marks, (steps + 1, marks, 2), of a block that hangs by its top and is let go, by scikit-fem."""
    line = np.linspace(0.0, SIDE, 13)
    mesh = skfem.MeshTri.init_tensor(line, line)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTriP2()))
    stiffness = skfem.asm(linear_elasticity(*lame_parameters(TRUE, RATIO)), basis)
    mass = skfem.asm(skfem.BilinearForm(lambda u, v, w: DENSITY * dot(u, v)), basis)
    weight = skfem.asm(skfem.LinearForm(lambda v, w: -DENSITY * 9.81 * v[1]), basis)
    free = basis.complement_dofs(basis.get_dofs(lambda x: np.isclose(x[1], SIDE)))
    K, M, f = stiffness[free][:, free], mass[free][:, free], weight[free]
    solve = skfem.solver_direct_scipy()
    x, v = np.zeros((2, len(free)))
    a = solve(M, f)
    left = (M + dt**2 / 4 * K).tocsc()
    places = [np.zeros(basis.N)]
    for _ in range(steps):
        ahead = x + dt * v + dt**2 / 4 * a
        after = solve(left, f - K @ ahead)
        x, v, a = ahead + dt**2 / 4 * after, v + dt / 2 * (a + after), after
        whole = np.zeros(basis.N)
        whole[free] = x
        places.append(whole)
    nodes = [int(np.abs(mesh.p - np.array(mark)[:, None]).sum(0).argmin()) for mark in SHOWN]
    moved = np.stack(places)[:, basis.nodal_dofs[:, nodes].T]
    return torch.from_numpy(moved + np.array(SHOWN))


def modulus(
    seed: int, observed: Tensor, steps: int, dt: float, squares: int = SQUARES, updates: int = 80
) -> list[float]:
    """The modulus after each update."""
    mesh = soft.rectangle((SIDE, SIDE), (squares, squares))
    top = np.flatnonzero(np.isclose(mesh.nodes[:, 1], SIDE)).tolist()
    body = soft.SoftBody(
        mesh,
        soft.Material(FIRST, poissons_ratio=RATIO, density=DENSITY, law="linear"),
        dt=dt,
        integrator="symplectic_euler",
        kinematic=top,
    )
    marks = [mesh.nearest_node(mark) for mark in SHOWN]
    target = observed + NOISE * torch.randn(
        observed.shape, generator=torch.Generator().manual_seed(seed), dtype=observed.dtype
    )
    log = torch.tensor([np.log(FIRST)], dtype=torch.float64, requires_grad=True)
    start, course = body.initial_state(1, torch.float64), [FIRST]

    def loss() -> Tensor:
        run = body.rollout(start, steps, properties={"youngs_modulus": log.exp()})
        return 1e6 * (body.node_positions(run)[0, :, marks] - target).square().mean()

    adam = torch.optim.Adam([log], lr=0.05)
    descend(loss, adam, updates, final_lr_fraction=0.0, callback=lambda: course.append(float(log.detach().exp())))
    return course


def stiffness_field(
    updates: int = 300, columns: int = 20, layers: int = 8
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Distance of the beam from the arc, relative to its height: even and designed; and the moduli of its columns."""
    mesh = soft.rectangle((LENGTH, 1.0), (10 * layers, layers))
    middle = mesh.nodes[mesh.elements].mean(1)[:, 0]
    column = np.minimum(middle / LENGTH * columns, columns - 1).astype(int)
    nodes, load = torch.from_numpy(mesh.nodes), torch.zeros(len(mesh.nodes), 2)
    end = np.flatnonzero(mesh.nodes[:, 0] == LENGTH)
    load[end, 1] = FORCE / len(end)
    body = soft.SoftBody(
        mesh,
        soft.Material([MODULUS] * columns, regions=column.tolist(), law="linear", plane_stress=True),
        dt=1e6,
        kinematic=np.flatnonzero(mesh.nodes[:, 0] == 0.0).tolist(),
        load=load,
        gravity=(0.0, 0.0),
    )
    line = torch.nonzero((nodes[:, 1] - 0.5).abs() < 1e-9).flatten()
    along = nodes[line, 0]
    line, along = line[along <= 0.9 * LENGTH], along[along <= 0.9 * LENGTH]
    # The curvature that a beam of the first modulus has where it is clamped.
    arc = FORCE * LENGTH / (MODULUS / 12) * along**2 / 2
    start = body.initial_state(1, torch.float64)
    logs = torch.zeros(columns, dtype=torch.float64, requires_grad=True)

    def missed() -> Tensor:
        end = body.step(start, properties={"youngs_modulus": MODULUS * logs.exp()})
        return (body.node_positions(end)[0, line, 1] - 0.5 - arc) / arc[-1]

    even = float(missed().detach().abs().max())
    descend(lambda: missed().square().mean(), torch.optim.Adam([logs], lr=0.05), updates, final_lr_fraction=0.0)
    result = (MODULUS * logs.detach().exp()).numpy()
    centers = (np.arange(columns) + 0.5) / columns
    return even, float(missed().detach().abs().max()), result, MODULUS * (1 - centers)


class Crawler:
    """A block on the ground with four muscles: above and below, behind and in front.

    Args:
        seconds: it may crawl.
        dt: Time step of the engine, s.
    """

    def __init__(self, seconds: float, dt: float = 0.02) -> None:
        mesh = soft.rectangle(CRAWLER, (8, 2))
        middle = mesh.nodes[mesh.elements].mean(1)
        behind, above = middle[:, 0] < CRAWLER[0] / 2, middle[:, 1] > CRAWLER[1] / 2
        where = [(behind == back) & (above == top) for back in (True, False) for top in (True, False)]
        self.body = soft.SoftBody(
            mesh,
            soft.Material(2e4, viscous_time=0.01),
            contact=soft.SoftContact(grounds=[soft.Ground((0.0, 0.0), (0.0, 1.0), 0.6)], slip_speed=0.01),
            dt=dt,
            muscles=[soft.Muscle(np.flatnonzero(entry).tolist(), (1.0, 0.0), 1e4) for entry in where],
        )
        self.steps = round(seconds / dt)
        settle = round(0.5 / dt)
        self.start = self.body.rollout(self.body.initial_state(1, torch.float64), settle).final

    def controls(self, z: Tensor) -> Tensor:
        """Activations in [0, 1], (batch, steps, 4), from the frequency, sizes and phases, (batch, 9)."""
        t = self.body.dt * torch.arange(self.steps, dtype=z.dtype)[None, :, None]
        turns = 2 * torch.pi * (1.5 * z[:, :1].exp()[:, None] * t + z[:, None, 5:])
        ramp = (t / 0.3).clamp(max=1.0)
        return ramp * z[:, None, 1:5].sigmoid() * (1 + turns.sin()) / 2

    def way(self, z: Tensor) -> Tensor:
        """Meters to the right of the middle of the body, (batch,)."""
        start = type(self.start)(self.start.q.expand(len(z), -1), self.start.v.expand(len(z), -1))
        run = self.body.rollout(start, self.steps, self.controls(z))
        places = self.body.node_positions(run)[..., 0].mean(-1)
        return places[:, -1] - places[:, 0]


def crawl(seconds: float, updates: int, guesses: int = 8, seed: int = 0) -> tuple[list[Tensor], float]:
    """The way after each update from each guess, and that of the best one at half the step."""
    crawler, ways = Crawler(seconds), []
    generator = torch.Generator().manual_seed(seed)
    z = torch.zeros(guesses, 9, dtype=torch.float64)
    z[:, 5:] = torch.rand(guesses, 4, generator=generator, dtype=torch.float64)
    z.requires_grad_()
    retained: dict[str, Any] = {"best": -torch.inf}

    def loss() -> Tensor:
        way = crawler.way(z)
        reached = way.detach()
        ways.append(reached)
        if float(reached.max()) > retained["best"]:
            retained.update(best=float(reached.max()), z=z.detach()[reached.argmax()][None].clone())
        return -way

    descend(loss, torch.optim.Adam([z], lr=0.05), updates, max_grad_norm=10.0)
    return ways, float(Crawler(seconds, dt=0.01).way(retained["z"]))


def main(seeds: int = 3, updates: int = 60, seconds: float = 3.0, out: Path = Path("out")) -> bool:
    """Print what is reached, and draw it; whether every bar is met.

    Args:
        seeds: Seeds of the noise.
        updates: Updates of the crawler's muscles.
        seconds: that it crawls.
        out: folder of the figures.
    """
    dt = 1e-3
    steps = round(SECONDS / dt)
    observed = recorded_motion(dt, steps)
    courses = [modulus(seed, observed, steps, dt) for seed in range(seeds)]
    worst = max(abs(course[-1] / TRUE - 1) for course in courses)
    print(f"modulus from a motion of scikit-fem: {worst:.2%} off at most, {seeds} draws of noise (bar {BAR:.0%})")
    figure, axis = panel()
    for number, course in enumerate(courses):
        axis.plot(course, label=f"noise {number}")
    axis.axhline(TRUE, color="0.6", linestyle=":", label="truth")
    axis.set(xlabel="update", ylabel="Young's modulus, Pa")
    save(figure, axis, out / "soft_modulus.png")

    even, designed, result, expected = stiffness_field()
    print(f"beam off its arc by {even:.1%} of the height if even, {designed:.2%} with its field (bar {ARC_BAR:.0%})")
    figure, axis = panel()
    axis.plot(result, marker=".", label="found")
    axis.plot(expected, color="0.6", label="of slender beams")
    axis.set(xlabel="column of the beam", ylabel="Young's modulus, Pa")
    save(figure, axis, out / "soft_field.png")

    ways, finer = crawl(seconds, updates)
    best = max(float(way.max()) for way in ways)
    lengths = [way / seconds / CRAWLER[0] for way in (best, finer)]
    print(
        f"crawler: {best:.3f} m in {seconds:g} s, from {float(ways[0].max()):.3f} m of the best guess; {finer:.3f} m at"
    )
    print(f"half the step; {lengths[0]:.2f} of its length a second (bar {CRAWL_BAR})")
    figure, axis = panel()
    axis.plot(torch.stack(ways).numpy(), label=[f"guess {number}" for number in range(len(ways[0]))])
    axis.set(xlabel="update", ylabel=f"way in {seconds:g} s, m")
    save(figure, axis, out / "soft_crawler.png")
    met = worst < BAR and designed < ARC_BAR and min(lengths) > CRAWL_BAR
    print("met" if met else "MISSED")
    return met


if __name__ == "__main__":
    auto_cli(main)
