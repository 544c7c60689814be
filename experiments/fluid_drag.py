"""A shape of less drag, and a wake whose swaying is damped.

The body's area is fixed while its outline is sought, and its drag is the mean of the flow's last steps. The wake is
that of a disc at Reynolds number 100, which sheds vortices; behind the disc a jet pushes across the flow, by what a row
of sensors says of the flow across. What the sensors weigh is learned through the flow, stretch after stretch as it goes
on; it is judged from the flow without control, over a longer time.

    python experiments/fluid_drag.py [--tasks '[drag,wake]'] [--updates 40] [--out out]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision.core import State
from physvision.estimation import descend
from physvision.physics.fluid import Boundary, Flow, FluidMaterial, Jet

BARS = {"drag": 0.2, "wake": 0.5}
RADIUS, STRONGEST = 0.08, 10.0  # m, and of the jet, m/s²


def middles(cells: tuple[int, int], h: float) -> tuple[Tensor, Tensor]:
    """Places of the cells."""
    x, y = torch.meshgrid(*((torch.arange(n, dtype=torch.float64) + 0.5) * h for n in cells), indexing="ij")
    return x, y


def stream(flow: Flow) -> State:
    """Flow at one meter a second everywhere."""
    u, v = (torch.full((1, *shape), speed).double() for shape, speed in zip(flow.shapes[1:], (1.0, 0.0), strict=True))
    return flow.flow_state(u, v)


def drag(updates: int, out: Path, cells: tuple[int, int] = (40, 24), steps: int = 60) -> bool:
    """An outline of five waves and fixed area around a disc; drag once flow has settled."""
    flow = Flow(
        cells,
        (2.0, 1.2),
        FluidMaterial(0.02, density=1.0),
        boundary=Boundary(("channel", "periodic"), inflow=1.0),
        dt=0.02,
        solid=0.0,
    )
    h = flow.spacing[0]
    x, y = middles(cells, h)
    dx, dy = x - 0.7, y - 0.6
    angle, far = torch.atan2(dy, dx), (dx**2 + dy**2).sqrt()
    area = math.pi * 0.18**2
    turns = torch.arange(180, dtype=torch.float64) * (2 * math.pi / 180)

    def waves(z: Tensor, angle: Tensor) -> Tensor:
        return sum((z[k] * torch.cos((k + 1) * angle) for k in range(len(z))), torch.zeros_like(angle)).exp()

    def solid(z: Tensor) -> Tensor:
        # The area is the mean of r² over all angles, times π: kept by the outline's size.
        size = (area / (math.pi * waves(z, turns).square().mean())).sqrt()
        return ((size * waves(z, angle) - far) * (4 / h)).sigmoid()[None]

    start = stream(flow)
    z, course = torch.zeros(5, dtype=torch.float64, requires_grad=True), []

    def force(z: Tensor) -> Tensor:
        known = {"solid": solid(z)}
        run = flow.rollout(start, steps, properties=known)
        late = [flow.drag(run.state(step), properties=known)[0, 0] for step in (steps - 2, steps)]
        return torch.stack(late).mean()

    def loss() -> Tensor:
        result = force(z)
        course.append(float(result.detach()))
        return result / course[0] + 0.02 * z.square().sum()

    descend(loss, torch.optim.Adam([z], lr=0.03), updates, final_lr_fraction=0.1)
    less = 1 - float(force(z.detach())) / course[0]
    areas = [float(solid(entry).sum()) * h**2 for entry in (torch.zeros(5).double(), z.detach())]
    extended = areas[1] / areas[0] - 1
    print(f"drag: {less:.1%} less than a disc's (bar {BARS['drag']:.0%}), area covered {extended:+.1%}", flush=True)
    figure, axis = panel()
    for entry, label, color in ((torch.zeros(5).double(), "disc", "0.6"), (z.detach(), "found", "C0")):
        axis.contour(x, y, solid(entry)[0], levels=[0.5], colors=[color])
        axis.plot([], [], color=color, label=label)
    axis.set(xlabel="x, m", ylabel="y, m", aspect="equal")
    save(figure, axis, out / "fluid_drag.png")
    return less > BARS["drag"] and abs(extended) < 0.02


class Wake:
    """A disc in a stream, a jet behind it, and sensors of the flow across on its middle line.

    Args:
        cells: Cells of the grid, two along x for one along y.
        shed: steps without control after which it sheds its vortices evenly.
    """

    def __init__(self, cells: int, shed: int) -> None:
        h = 2.0 / cells
        x, y = middles((cells, cells // 2), h)
        disc = ((RADIUS - ((x - 0.4) ** 2 + (y - 0.5) ** 2).sqrt()) * (4 / h)).sigmoid()
        self.flow = Flow(
            (cells, cells // 2),
            (2.0, 1.0),
            FluidMaterial(2 * RADIUS / 100, density=1.0),
            boundary=Boundary(("channel", "periodic"), inflow=1.0),
            dt=0.4 * h,
            solid=disc,
            jets=[Jet((0.4 + 1.5 * RADIUS, 0.5), RADIUS, (0.0, 1.0))],
        )
        across_x, across_y = self.flow.faces(1)
        row = (across_y[0] - 0.5).abs().argmin()
        columns = [(across_x[:, 0] - 0.4 - away * RADIUS).abs().argmin() for away in (3.0, 5.0, 7.0, 9.0)]
        self.sensors = (torch.stack(columns), row)
        # A push at the start lets it begin to sway.
        pushes = torch.zeros(1, shed, 1, dtype=torch.float64)
        pushes[:, :20] = STRONGEST
        self.start = self.flow.rollout(stream(self.flow), shed, pushes).final

    def observe(self, state: State) -> Tensor:
        """Velocities across, (batch, sensors)."""
        return self.flow.velocities(state)[1][:, self.sensors[0], self.sensors[1]]

    def run(self, weights: Tensor, start: State, steps: int) -> tuple[State, Tensor]:
        """Final state of the controlled flow, and the observations of every step."""
        state, observed = start, []
        for _ in range(steps):
            push = STRONGEST * (self.observe(state) @ weights).tanh()
            state = self.flow.step(state, push[:, None])
            observed.append(self.observe(state)[0])
        return state, torch.stack(observed)


def wake(updates: int, out: Path, cells: int = 64, shed: int = 750, stretch: int = 50, evaluated: int = 500) -> bool:
    """The swaying with and without control, over the second half of what is judged."""
    scene = Wake(cells, shed)
    weights = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    going = [scene.start]

    def loss() -> Tensor:
        end, observed = scene.run(weights, going[-1], stretch)
        going.append(State(end.q.detach(), end.v.detach()))
        return observed.square().mean()

    descend(loss, torch.optim.Adam([weights], lr=0.1), updates, final_lr_fraction=0.1)
    with torch.no_grad():
        courses = {
            label: scene.run(entry, scene.start, evaluated)[1]
            for label, entry in (("let go", torch.zeros(4).double()), ("controlled", weights))
        }
    sizes = {label: float(entry[evaluated // 2 :].square().mean().sqrt()) for label, entry in courses.items()}
    left = sizes["controlled"] / sizes["let go"]
    print(
        f"wake: sways by {sizes['let go']:.3f} m/s, under control by {sizes['controlled']:.4f} m/s, "
        f"{left:.1%} of it (bar {BARS['wake']:.0%}); weights {[round(entry, 2) for entry in weights.tolist()]}"
    )
    figure, axis = panel()
    for label, observe in courses.items():
        axis.plot(scene.flow.dt * torch.arange(evaluated), observe[:, 1], label=label)
    axis.set(xlabel="time, s", ylabel="flow across behind the disc, m/s")
    save(figure, axis, out / "fluid_wake.png")
    return left < BARS["wake"]


TASKS: dict[str, Callable[..., bool]] = {"drag": drag, "wake": wake}


def main(tasks: Sequence[str] = tuple(TASKS), updates: int = 40, out: Path = Path("out")) -> bool:
    """Print what is reached, and draw it; whether every bar is met.

    Args:
        tasks: which of them.
        updates: Updates of each controller.
        out: folder of the figures.
    """
    torch.set_num_threads(1)
    met = [TASKS[task](updates, out) for task in tasks]
    print("met" if all(met) else "MISSED")
    return all(met)


if __name__ == "__main__":
    auto_cli(main)
