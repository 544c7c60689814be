"""Cloth and rigid solids: closed forms on two meshes, a fabric's stiffness from its overhang, and a picture.

A plate whose edges are supported sinks by 0.00406 q a⁴/D, a strip of a beam's by F L³/3EI, and a sheet between two
lines hangs as an elastic cable. Half of what bends at an edge is not counted, an error that falls with the size of an
element, so two meshes tell where they lead. A fabric's bending is measured as in a laboratory, from how far a strip
droops over an edge (Peirce, 1930): the droop of the elastica, solved by shooting and with 0.2 mm of noise, is given to
two meshes, and what they make of it is extrapolated likewise.

    python experiments/cloth.py [--seeds 3] [--out out]
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from jsonargparse import auto_cli
from torch import Tensor

from physvision.core import State, Trajectory
from physvision.physics import soft

mpl.use("Agg")
from matplotlib import pyplot as plt

FOREVER, DOUBLE = 1e6, torch.float64  # a step of so many seconds is an equilibrium
YOUNG, RATIO, THICK = 1e6, 0.3, 0.01
RIGIDITY = YOUNG * THICK**3 / (12 * (1 - RATIO**2))
LENGTH, FABRIC, SOFT, DENSITY = 0.2, 2e-3, 2e7, 400.0  # of a strip of fabric: m, thickness, Pa, kg/m³
TRUE, FIRST, NOISE = 0.3, 1.0, 2e-4  # its `bending`, the first guess, and m
BAR, BENDING_BAR = 0.02, 0.05


def sheet(mesh: soft.Mesh, held: np.ndarray, load: Tensor | None = None, **given: object) -> soft.SoftBody:
    """A weightless one, unless it is told otherwise."""
    given = {"poissons_ratio": RATIO, "thickness": THICK} | given
    gravity = given.pop("gravity", (0.0, 0.0, 0.0))
    material = soft.Material(YOUNG, **given)  # pyright: ignore[reportArgumentType]
    nodes = np.flatnonzero(held).tolist()
    return soft.SoftBody(mesh, material, dt=FOREVER, kinematic=nodes, load=load, gravity=gravity)  # pyright: ignore[reportArgumentType]


def sunk(body: soft.SoftBody, nodes: np.ndarray) -> float:
    """By how much nodes are lower at rest."""
    start = body.initial_state(dtype=DOUBLE)
    end = body.node_positions(body.step(start)) - body.node_positions(start)
    return -float(end[0, nodes, 2].mean())


def plate(count: int) -> float:
    """The middle of a square plate of supported edges, over its formula."""
    mesh = soft.cloth((1.0, 1.0), (count, count))
    edge = np.any((mesh.nodes[:, :2] < 1e-9) | (mesh.nodes[:, :2] > 1 - 1e-9), axis=1)
    load = torch.zeros(len(mesh.nodes), 3, dtype=DOUBLE)
    load[:, 2] = -1e-3 * torch.from_numpy(mesh.node_areas)
    result = sunk(sheet(mesh, edge, load), np.array([mesh.nearest_node((0.5, 0.5, 0.0))]))
    return result / (0.00406235 * 1e-3 / RIGIDITY)


def strip(count: int) -> float:
    """The end of a strip, over its formula."""
    mesh = soft.cloth((1.0, 0.2), (count, count // 5))
    end = np.flatnonzero(mesh.nodes[:, 0] > 1 - 1e-9)
    load = torch.zeros(len(mesh.nodes), 3, dtype=DOUBLE)
    load[end, 2] = -1e-3 / len(end)
    result = sunk(sheet(mesh, mesh.nodes[:, 0] < 1.01 / count, load, poissons_ratio=0.0), end)
    return result / (1e-3 / (3 * YOUNG * 0.2 * THICK**3 / 12))


def cable(count: int) -> float:
    """The sag of 1.2 m of sheet over 1 m, over that of an elastic catenary."""
    mesh = soft.cloth((1.2, 0.06), (count, 2))
    ends = (mesh.nodes[:, 0] < 1e-9) | (mesh.nodes[:, 0] > 1.2 - 1e-9)
    body = sheet(mesh, ends, poissons_ratio=0.0, bending=0.0, density=100.0, gravity=(0.0, 0.0, -9.81))
    fraction = torch.from_numpy(mesh.nodes[:, 0]) / 1.2
    places = torch.stack([fraction, torch.from_numpy(mesh.nodes[:, 1]), -1.2 * fraction * (1 - fraction)], 1)
    end = body.node_positions(body.step(State(places.reshape(1, -1), torch.zeros(1, body.nv, dtype=DOUBLE))))
    sag = -float(end[0, mesh.nearest_node((0.6, 0.03, 0.0)), 2])
    weight, stiffness = 981.0 * THICK, YOUNG * THICK
    low, high = 0.01, 100.0
    for _ in range(100):  # the horizontal force at which the ends are 1 m apart
        force = (low * high) ** 0.5
        reached = 2 * (force * 0.6 / stiffness + force / weight * math.asinh(weight * 0.6 / force))
        low, high = (force, high) if reached < 1.0 else (low, force)
    exact = weight * 0.36 / (2 * stiffness) + force / weight * (math.hypot(1.0, weight * 0.6 / force) - 1)
    return sag / exact


def elastica(bending: float) -> float:
    """Droop of a heavy strip that leaves a table level: D θ'' = −w s cos θ, s from the end."""
    weight, stiffness, parts = DENSITY * 9.81 * FABRIC, bending * SOFT * FABRIC**3 / 12, 2000
    step = LENGTH / parts

    def shot(angle: float) -> tuple[float, float]:
        """The angle at the table, below level, and the fall, if the end points down by so much."""
        slope = fall = 0.0
        for k in range(parts):
            middle = angle + slope * step / 2
            slope -= step * weight * (k + 0.5) * step * math.cos(middle) / stiffness
            fall += step * math.sin(middle)
            angle += step * slope
        return angle, fall

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if shot(angle)[0] < 0 else (low, angle)
    return shot(low)[1]


def droop(count: int, bending: Tensor) -> Tensor:
    """Droop of a strip that is clamped on a table up to the edge."""
    free = LENGTH / count
    mesh = soft.cloth((LENGTH + free, LENGTH / 4), (count + 1, max(count // 4, 1)))
    held = np.flatnonzero(mesh.nodes[:, 0] < 1.01 * free).tolist()
    body = soft.SoftBody(
        mesh,
        soft.Material(SOFT, thickness=FABRIC, density=DENSITY, poissons_ratio=0.0, velocity_decay=5.0),
        dt=0.1,
        kinematic=held,
    )
    run = body.rollout(body.initial_state(dtype=DOUBLE), 60, properties={"bending": bending})
    assert bool(run.status.converged.all())  # pyright: ignore[reportOptionalMemberAccess]
    return -body.node_positions(run.final)[0, mesh.nearest_node((LENGTH + free, LENGTH / 8, 0.0)), 2]


def stiffness_of(observed_droop: float, count: int) -> float:
    """The bending that makes the strip droop as it is seen to, by Newton's method through the gradient."""
    log = torch.zeros(1, dtype=DOUBLE) + math.log(FIRST)
    for _ in range(8):
        log = log.detach().requires_grad_()
        off = droop(count, log.exp()) - observed_droop
        (slope,) = torch.autograd.grad(off, log)
        log = log - (off / slope).clamp(-0.5, 0.5)
    return float(log.detach().exp())


def draped() -> tuple[soft.SoftBody, Trajectory]:
    """A cloth that falls on a ball that is held."""
    ball = soft.Collider((0.0, 0.0, 0.0), 0.3, friction=0.5, kinematic=True)
    body = soft.SoftBody(
        soft.cloth((1.0, 1.0), (20, 20), (-0.5, -0.5, 0.32)),
        soft.Material(1e5, density=300.0, viscous_time=0.01, velocity_decay=1.0, thickness=2e-3),
        contact=soft.SoftContact(colliders=[ball], stiffness=1e5),
        dt=0.02,
    )
    return body, body.rollout(body.initial_state(dtype=DOUBLE), 60)


def pressed() -> tuple[soft.SoftBody, Trajectory]:
    """A ball that comes to rest on a block."""
    ground, ball = soft.Ground((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.5), soft.Collider((0.0, 0.0, 0.33), 0.12, mass=10.0)
    body = soft.SoftBody(
        soft.box((0.4, 0.4, 0.2), (8, 8, 4), (-0.2, -0.2, 0.0)),
        soft.Material(2e4, viscous_time=0.02),
        contact=soft.SoftContact(grounds=[ground], colliders=[ball], stiffness=5e6),
        dt=0.01,
    )
    return body, body.rollout(body.initial_state(dtype=DOUBLE), 150)


def draw(out: Path) -> None:
    """Both of them, in one picture."""
    figure = plt.figure(figsize=(9, 3.8), layout="constrained")
    turn, rise = np.meshgrid(np.linspace(0, 2 * np.pi, 30), np.linspace(0, np.pi, 16))
    globe = np.stack([np.cos(turn) * np.sin(rise), np.sin(turn) * np.sin(rise), np.cos(rise)])
    for number, (body, run) in enumerate((draped(), pressed())):
        axis = figure.add_subplot(1, 2, number + 1, projection="3d")
        places = body.node_positions(run.final)[0].numpy()
        faces = body.mesh.elements if body.mesh.cloth else body.mesh.surface
        center = body.collider_positions(run.final)[0, 0].numpy()
        axis.plot_surface(*(center[:, None, None] + 0.97 * body.colliders[0].radius * globe), color="C1", alpha=0.6)
        axis.plot_trisurf(*places.T, triangles=faces, color="C0", edgecolor="0.3", linewidth=0.2, alpha=0.8)
        axis.set_aspect("equal")
        axis.set_axis_off()
        axis.view_init(20, -60)
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "soft.png", dpi=110)
    plt.close(figure)


def main(seeds: int = 3, out: Path = Path("out")) -> bool:
    """Print what is found beside the closed forms, and draw; whether every bar is met.

    Args:
        seeds: Seeds of the noise of the overhang.
        out: folder of the picture.
    """
    met = True
    for name, law, counts in (("plate", plate, (12, 24)), ("strip", strip, (20, 40)), ("cable", cable, (20, 40))):
        coarse, fine = (law(count) for count in counts)
        lead = 2 * fine - coarse
        met &= abs(lead - 1) < BAR
        print(f"{name}: {coarse:.4f} and {fine:.4f} of the closed form on {counts} elements, which lead to {lead:.4f}")
    exact, worst = elastica(TRUE), 0.0
    for seed in range(seeds):
        observed = exact + NOISE * float(torch.randn((), generator=torch.Generator().manual_seed(seed)))
        coarse, fine = (stiffness_of(observed, count) for count in (10, 20))
        lead = 2 * fine - coarse
        worst = max(worst, abs(lead / TRUE - 1))
        print(f"bending from a droop of {1e3 * observed:.1f} mm: {coarse:.4f}, {fine:.4f}, so {lead:.4f} of {TRUE}")
    print(f"off by {worst:.1%} at most (bar {BENDING_BAR:.0%})")
    draw(out)
    met &= worst < BENDING_BAR
    print("met" if met else "MISSED")
    return met


if __name__ == "__main__":
    auto_cli(main)
