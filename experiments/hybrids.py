"""Physics, networks, and both: what is learned from few states of motions that the engine does not fully explain.

Three scenes, each with something that its engine lacks, stand in `hybrid_scenes.py`. The truth is simulated with a
tenth of the step, its forces known to nobody. Five models learn from the same pairs of a state and the next: the
engine, whose parameters are fitted; two networks, of layers and of a graph; and the engine with a learned force, of any
kind or a passive one, whose parameters are fitted too. Errors are those of positions after 10 and 200 steps from starts
that were not learned from: where training states lie, and beyond. Pairs that a model does not learn from tell when to
stop, and whether a learned force is more than chance: if not, the engine is left alone. They are a fifth of many pairs,
and of few all in turn. The square of every network's weights has a price, once and not for each pair, as by a normal
prior: few pairs are to be explained by a smooth force.

    python experiments/hybrids.py [--scenes '[pendulum,cartpole,ball]'] [--counts '[10,30,300,3000,10000]'] \
        [--seeds 3] [--rounds 160] [--out out]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from statistics import median
from typing import Any

import torch
from hybrid_scenes import DOUBLE, DT, SCENES, Scene, scene_of
from jsonargparse import auto_cli
from panel import panel, save
from result_cache import cached_results
from torch import Tensor, nn

from physvision.core import State
from physvision.models import LearnedForce, NetworkEngine, PassiveForce, StateGraph, StatePerceptron
from physvision.physics import Engine, Hybrid

NEAR, FAR = 10, 200  # steps
TESTS = 64
TRIED = 100  # pairs, at least, that tell when to stop
DRAWN, COURSE = 500, 40  # pairs at most that a course of so many rounds learns from
WILD = 1e4  # an error to which a search may go astray; what is larger has no slope
KINDS = ("engine", "perceptron", "graph", "hybrid", "passive hybrid")


@dataclass(frozen=True)
class Pairs:
    """States, the controls there, and the states one step later, (count, 2 nv)."""

    start: State
    control: Tensor | None
    after: Tensor

    def some(self, subset: Tensor | slice) -> Pairs:
        """Those at some indices."""
        start = State(self.start.q[subset], self.start.v[subset])
        return Pairs(start, None if self.control is None else self.control[subset], self.after[subset])


def pairs(scene: Scene, count: int, generator: torch.Generator) -> Pairs:
    """Random states of the range that is learned from, and what truly follows."""
    start, controls = scene.states(count, generator), scene.pushes(count, 1, generator)
    return Pairs(start, None if controls is None else controls[:, 0], scene.moved(start, 1, controls)[:, 1])


def models(scene: Scene) -> dict[str, Engine]:
    """One of each kind, before it has learned."""
    speed, push = max(scene.reach[scene.coordinates.size :]), int(scene.controls > 0)
    sizes: dict[str, Any] = {"controls": push, "velocity_scale": speed, "ignored_positions": scene.ignored_positions}

    def perceptron(outputs: int) -> StatePerceptron:
        return StatePerceptron(scene.coordinates, outputs, hidden=64, **sizes)

    result = {
        "engine": scene.engine(),
        "perceptron": NetworkEngine(perceptron(2), DT),
        "graph": NetworkEngine(
            StateGraph(scene.coordinates, scene.bodies, hidden=32, message_passing_steps=2, **sizes), DT
        ),
        "hybrid": Hybrid(scene.engine(), LearnedForce(perceptron(1), scene.force)),
        "passive hybrid": Hybrid(
            scene.engine(), PassiveForce(scene.coordinates, scene.force[0], hidden=64, velocity_scale=speed)
        ),
    }
    return {name: engine.double() for name, engine in result.items()}


def loss_of(engine: Engine, data: Pairs, scale: Tensor, weight: float, size: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Mean squares of errors of a step over how much velocities change, of each pair; and what the force costs."""
    run = engine.rollout(data.start, 1, None if data.control is None else data.control.unsqueeze(1))
    result = torch.cat([run.final.q, run.final.v], 1)
    errors = ((result - data.after) / scale).square().mean(1)
    if not isinstance(engine, Hybrid):
        return errors, errors.new_zeros(())
    held = None if data.control is None else data.control.unsqueeze(1)
    return errors, weight * (engine.forces(run, held) / torch.tensor(size)).square().mean()


def folds(data: Pairs) -> list[tuple[Pairs, Pairs]]:
    """Four fifths of the pairs to learn from, the rest to try: others in turn until a hundred are tried, or all."""
    place, fifth = torch.arange(len(data.after)) % 5, len(data.after) // 5
    return [(data.some(place != fold), data.some(place == fold)) for fold in range(min(5, -(-TRIED // fifth)))]


def fitting(engine: Engine, scene: Scene, data: Pairs, rounds: int, weight: float, decay: float) -> Iterator[None]:
    """Fit a model, with a stop before the first round and after each.

    The physical parameters are fitted alone before, so that a learned force starts at the fitted engine. Of many pairs
    some are drawn for each course of rounds, so that these take as long however many there are.
    """
    scale, generator = scale_of(scene, data), torch.Generator().manual_seed(0)
    layers = [layer.weight for layer in engine.modules() if isinstance(layer, nn.Linear)]
    physical, every = list(engine.physical_parameters()), list(engine.parameters())

    def course(parameters: list[nn.Parameter], rounds: int, price: float) -> Iterator[None]:
        selected = data.some(torch.randperm(len(data.after), generator=generator)[:DRAWN])
        options = {"history_size": 30, "tolerance_grad": 1e-9, "tolerance_change": 1e-12}
        search = torch.optim.LBFGS(parameters, max_iter=5, line_search_fn="strong_wolfe", **options)

        def slope() -> float:
            search.zero_grad()
            errors, cost = loss_of(engine, selected, scale, weight, scene.force)
            result = errors.clamp(max=WILD).mean() + cost
            for layer in layers if price else ():
                result = result + price * layer.square().sum()
            result.backward()
            return float(result.detach())

        for _ in range(rounds):
            search.step(slope)
            yield

    if physical:
        deque(course(physical, 10, 0.0), maxlen=0)
    yield
    if len(every) > len(physical):
        for index in range(0, rounds, COURSE):
            yield from course(every, min(COURSE, rounds - index), decay / min(DRAWN, len(data.after)))


def learn(engine: Engine, scene: Scene, data: Pairs, rounds: int, weight: float, decay: float) -> None:
    """Fit a model for as many rounds as make the error of pairs that it does not learn from least.

    Where these are all pairs in turn, it then learns from all of them. A learned force is left out if the errors of
    the pairs that are tried do not fall by a factor that is more than chance, by two standard errors.
    """
    start, parts, candidate, states = copied(engine), folds(data), [], []
    for learned, entry in parts:
        engine.load_state_dict(start)
        scale, result = scale_of(scene, learned), []
        for _ in fitting(engine, scene, learned, rounds, weight, decay):
            with torch.no_grad():
                result.append(loss_of(engine, entry, scale, weight, scene.force)[0].nan_to_num(torch.inf))
            states.append(copied(engine))
        candidate.append(torch.stack(result))
    errors = torch.cat(candidate, 1)
    best = int(errors.mean(1).argmin())
    # By what factor each pair's error falls: in their logarithms a few large errors do not hide the others.
    gain = (errors[0] / errors[best]).log()
    if list(engine.physical_parameters()) and gain.mean() < 2 * gain.std() / len(gain) ** 0.5:
        best = 0
    if len(parts) == 1:
        engine.load_state_dict(states[best])
    else:
        engine.load_state_dict(start)
        deque(islice(fitting(engine, scene, data, rounds, weight, decay), best + 1), maxlen=0)


def copied(engine: Engine) -> dict[str, Tensor]:
    """All that a model has learned."""
    return {name: value.clone() for name, value in engine.state_dict().items()}


def scale_of(scene: Scene, data: Pairs) -> Tensor:
    """By how much positions and velocities change in a step; what few pairs do not change still has a size."""
    change = data.after[:, scene.coordinates.size :] - data.start.v
    minimum = 1e-3 * torch.tensor(scene.reach[scene.coordinates.size :], dtype=DOUBLE)
    size = torch.maximum(change.square().mean(0).sqrt(), minimum)
    return torch.cat([DT * size, size])


@torch.no_grad()
def errors(engine: Engine, scene: Scene, beyond: bool) -> tuple[float, float]:
    """The median error of positions after few and after many steps, rad or m."""
    generator = torch.Generator().manual_seed(12345)
    start, controls = scene.states(TESTS, generator, beyond), scene.pushes(TESTS, FAR, generator)
    q = scene.moved(start, FAR, controls)[..., : scene.coordinates.size]
    apart = scene.coordinates.difference(q, engine.rollout(start, FAR, controls).q).norm(dim=-1)
    near, far = (float(apart[:, step].nan_to_num(torch.inf).median()) for step in (NEAR, FAR))
    return near, far


def parameters(engine: Engine) -> dict[str, float]:
    """Physical parameters of the model."""
    results = {}
    for name, value in engine.learned_values.items():
        many = value.detach().flatten().tolist()
        results |= {name: many[0]} if len(many) == 1 else {f"{name} {k}": entry for k, entry in enumerate(many)}
    return results


def trial(name: str, kind: str, count: int, seed: int, rounds: int, weight: float, decay: float) -> dict:
    """One model, learned and tried."""
    scene = scene_of(name)
    torch.manual_seed(seed)
    engine = models(scene)[kind]
    generator = torch.Generator().manual_seed(1000 * seed + count)
    learn(engine, scene, pairs(scene, count, generator), rounds, weight, decay)
    result = parameters(engine)
    return {
        "scene": name,
        "kind": kind,
        "count": count,
        "seed": seed,
        "inside": errors(engine, scene, beyond=False),
        "beyond": errors(engine, scene, beyond=True),
        "off": {entry: abs(result[entry] / value - 1) for entry, value in scene.values.items() if entry in result},
    }


def main(
    scenes: Sequence[str] = tuple(SCENES),
    counts: Sequence[int] = (10, 30, 300, 3000, 10000),
    kinds: Sequence[str] = KINDS,
    seeds: int = 3,
    rounds: int = 160,
    weight: float = 1e-4,
    decay: float = 2.4e-4,
    out: Path = Path("out"),
) -> bool:
    """Learn all models from all numbers of pairs, print the table and draw it.

    Args:
        scenes: which motions.
        counts: numbers of pairs.
        kinds: Kinds of models, at least the first four.
        seeds: draws of the pairs and of the networks' first weights.
        rounds: Rounds of five steps of L-BFGS, after each of which the held-out pairs are evaluated.
        weight: Weight of the squared learned force in the loss.
        decay: Weight decay of the networks, relative to the sum over pairs.
        out: where results and pictures go; a run that was interrupted goes on.

    Returns:
        Whether the hybrid is below the engine and the networks from 30 pairs on, inside and beyond.
    """
    target = list(product(scenes, kinds, counts, range(seeds)))
    results = cached_results(
        out / "hybrids.jsonl",
        target,
        lambda key: trial(*key, rounds=rounds, weight=weight, decay=decay),
        lambda row: (row["scene"], row["kind"], row["count"], row["seed"]),
    )
    good = True
    for name in scenes:
        middle = {
            (kind, count): [
                median(results[name, kind, count, seed][where][step] for seed in range(seeds))
                for where in ("inside", "beyond")
                for step in (0, 1)
            ]
            for kind in kinds
            for count in counts
        }
        report(name, middle, {key: row for key, row in results.items() if key[0] == name})
        draw(name, middle, out)
        best = {
            count: all(middle["hybrid", count][k] <= middle[kind, count][k] for kind in kinds[:3] for k in range(4))
            for count in counts
            if count >= 30
        }
        print(f"hybrid below engine and networks, inside and beyond, after {NEAR} and {FAR} steps: {best}")
        good &= all(best.values())
    return good


def report(name: str, middle: Mapping, results: Mapping) -> None:
    """Print the table of a scene."""
    print(f"\n{name}: median error of positions, inside after {NEAR} | {FAR} steps, beyond after {NEAR} | {FAR} steps")
    for (kind, count), entry in middle.items():
        off = [list(row["off"].values()) for key, row in results.items() if key[1:3] == (kind, count)]
        shown = ", ".join(f"{100 * median(entry):.2g} %" for entry in zip(*off, strict=True))
        numbers = "  ".join(f"{value:8.2g}" for value in entry)
        print(f"  {kind:14s} {count:6d}  {numbers}  {'parameters off ' + shown if shown else ''}")


def draw(name: str, middle: Mapping, out: Path) -> None:
    """A line for each model: the error after few steps inside the range, and beyond it."""
    figure, axis = panel()
    for k, kind in enumerate(dict.fromkeys(kind for kind, _ in middle)):
        counts, near = zip(*((count, entry) for (own, count), entry in middle.items() if own == kind), strict=True)
        axis.loglog(counts, [entry[0] for entry in near], "o-", color=f"C{k}", label=kind)
        axis.loglog(counts, [entry[2] for entry in near], ":", color=f"C{k}")
    axis.set_xlabel("pairs learned from")
    axis.set_ylabel(f"error after {NEAR} steps (dotted: beyond the range)")
    save(figure, axis, out / f"hybrids_{name}.png")


if __name__ == "__main__":
    auto_cli(main)
