"""A grasp that was learned on many slightly different grippers, beside one learned on a single gripper.

Balls weigh up to 30 % more or less, and friction is up to 30 % higher or lower. Both grasps start from the one of
`grasp.py` that was found first, and learn for as many updates to squeeze no more than they must: on the gripper of the
scene, and on a batch of others. Then both try grippers that neither saw, which hold if it stays within 2 cm of
its place.

    python experiments/many_grippers.py [--grippers 32] [--updates 100] [--unseen 200] [--out out]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from grasp import DT, EFFORT, ENGINE, HELD, KNOTS, MIN_FORCE_N, RATE, away, forces, lifted, losses, search
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

MASS, FRICTION = 0.3, 0.3  # largest shares by which a gripper differs
CLOSE = 0.02  # m
BALL = ENGINE.body_names.index("ball")


@dataclass(frozen=True)
class Grippers:
    """Factors by which each one's ball is heavier and its surfaces are rougher, (grippers,) each."""

    mass: Tensor
    friction: Tensor

    def properties(self) -> dict[str, Tensor]:
        """The engine's, one row a gripper."""
        own = {name: value.double() for name, value in ENGINE.properties.items()}
        heavier = torch.ones(len(self.mass), len(ENGINE.body_names), dtype=torch.float64)
        heavier[:, BALL] = self.mass
        return {
            "mass": own["mass"] * heavier,
            "friction": own["friction"] * self.friction[:, None],
        }


def random_grippers(count: int, seed: int) -> Grippers:
    """Sample random designs of grippers."""
    generator = torch.Generator().manual_seed(seed)
    fractions = [
        1 + entry * (2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1) for entry in (MASS, FRICTION)
    ]
    return Grippers(*fractions)


def as_drawn() -> Grippers:
    """The gripper of the scene alone."""
    return Grippers(*(torch.ones(1, dtype=torch.float64) for _ in range(2)))


def learned(start: Tensor, grippers: Grippers, updates: int) -> Tensor:
    """Targets, (1, KNOTS × 3), that hold with all of these grippers on average, and squeeze little."""
    unknowns = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([unknowns], 0.3 * RATE)
    rest = grippers.properties()
    for _ in range(updates):
        same = unknowns.expand(len(grippers.mass), -1)
        motion = lifted(same, others=rest)
        effort = (forces(motion, same) / MIN_FORCE_N).square().mean((1, 2))
        optimizer.zero_grad()
        (losses(motion) + EFFORT * effort).mean().backward()
        optimizer.step()
    return unknowns.detach()


@torch.no_grad()
def evaluate(unknowns: Tensor, grippers: Grippers) -> tuple[Tensor, float]:
    """For each gripper, whether it holds its ball, and the mean squeezing force, N."""
    same = unknowns.expand(len(grippers.mass), -1)
    motion = lifted(same, others=grippers.properties())
    return away(motion).amax(1) < CLOSE, float(forces(motion, same)[:, -HELD:].mean())


def main(grippers: int = 32, updates: int = 100, unseen: int = 200, out: Path = Path("out")) -> bool:
    """Learn both, and try them.

    Args:
        grippers: in the batch.
        updates: Updates of each policy.
        unseen: grippers that both are tried on.
        out: folder of the figure.

    Returns:
        Whether more unseen grippers hold by what was learned on many.
    """
    torch.set_num_threads(1)
    first = search(torch.zeros(1, 3 * KNOTS, dtype=torch.float64), 200).unknowns
    results = {"one gripper": learned(first, as_drawn(), updates)}
    results[f"{grippers} grippers"] = learned(first, random_grippers(grippers, 0), updates)
    rest = random_grippers(unseen, 1)
    figure, axis = panel()
    fractions = []
    for number, (name, unknowns) in enumerate({"first found": first, **results}.items()):
        good, force = evaluate(unknowns, rest)
        own, _ = evaluate(unknowns, as_drawn())
        fractions.append(float(good.double().mean()))
        text = f"{'holds' if bool(own[0]) else 'loses'} the ball of the scene, squeezing by {force:.2f} N"
        print(f"{name:<16}{100 * fractions[-1]:.0f} % of {unseen} unseen grippers hold; {text}", flush=True)
        rows = torch.nonzero(good)[:, 0]
        axis.scatter(rest.mass[rows], rest.friction[rows], s=60 - 22 * number, color=f"C{number}", label=name)
    axis.set(xlabel="ball's mass, of the scene's", ylabel="friction, of the scene's")
    save(figure, axis, out / "many_grippers.png")
    print(f"figure: {out / 'many_grippers.png'}; a step is {DT:g} s")
    return fractions[2] > fractions[1]


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
