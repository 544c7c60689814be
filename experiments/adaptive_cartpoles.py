"""Adaptive model-predictive control of the Control Suite's cartpoles, from a wrong initial model.

    python experiments/adaptive_cartpoles.py [--poles 1,2] [--forces 200] [--seeds 5] [--episodes 6]

Needs physvision[environments]. The world is dm_control's own, with an
endless rail and the given force; the model is our engine with point masses, in which masses, lengths and all
coordinates of the centers of mass are 2 at first, 8 numbers for one pole and 13 for two. In each period of 0.05 s iLQR
plans 20 ahead (40 for two poles, twice that where the force is 10 N); the model is refitted by Gauss–Newton to all that
was seen after each episode, and every 50 periods in the first. One line an episode goes to
out/adaptive_cartpoles.jsonl; seeds that are there are not run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import poles as suite
import torch
from claims import Claim, write_claims
from jsonargparse import auto_cli
from panel import panel, save
from torch import Tensor

from physvision import Trajectory
from physvision.control import AdaptiveModel, AdaptiveMpc, Mpc
from physvision.control.swing_up import lowered_floor
from physvision.estimation import Optimum, Unknown, Unknowns
from physvision.physics import articulated
from physvision.report import render_video

HORIZON = {1: 20, 2: 40}
FIRST, EVERY, ROUNDS = 2.0, 50, 8
_FREE = 1e3  # deviation of what is not known: only what has no effect is held by it
_POINT = 1e-9  # inertia of what is nearly a point, kg m²


def model(poles: int) -> AdaptiveModel:
    """Our cartpole with point masses, and all its numbers unknown."""
    engine = articulated.cartpole(poles, dt=0.01 * suite.HOLD, substeps=suite.HOLD, integrator="runge_kutta_4")
    unknowns = [
        Unknown("mass", [FIRST] * (poles + 1), low=0.0, std=_FREE),
        Unknown("center", torch.full((poles + 1, 3), FIRST), std=_FREE),
    ]
    if poles > 1:
        unknowns.append(Unknown("length", [FIRST] * (poles - 1), low=0.0, std=_FREE))

    def leaves(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        mass, center = values["mass"], values["center"]
        inertia = _POINT * torch.eye(3).double().expand(*mass.shape, 3, 3)
        results = {"mass": mass, "center_of_mass": center, "inertia": inertia}
        if poles > 1:
            up = torch.nn.functional.pad(values["length"].unsqueeze(-1), (2, 0))
            results["position"] = torch.cat([mass.new_zeros(*mass.shape[:-1], 2, 3), up], -2)
        return results

    return AdaptiveModel(engine, Unknowns(unknowns), leaves, suite.features)


def known_lumps(adaptive: AdaptiveMpc) -> dict[str, float]:
    """Those of the model as it is now."""
    values = {name: value[0] for name, value in adaptive.model.unknowns.values(adaptive.z).items()}
    return suite.lumps(values["mass"], values.get("length", torch.ones(1)), values["center"])


def spectrum(estimates: Optimum) -> list[float]:
    """Eigenvalues of the fit's Hessian, the largest first."""
    slopes = estimates.best_linearization[1][0].flatten(0, 1)
    return torch.linalg.eigvalsh(slopes.T @ slopes).flip(0).clamp(min=0).tolist()


def predicted(adaptive: AdaptiveMpc, poles: int, force: float) -> tuple[float, list[list[float]]]:
    """Root mean square error of the joint angles over an episode under forces that were never tried, and the angles."""
    world = suite.Poles(poles, force, 999)
    fractions = 0.02 * 200 / force * torch.sin(0.05 * suite.HOLD * torch.arange(suite.PERIODS).double())[:, None]
    state, real = world.begin(), []
    start = state
    for entry in fractions:
        state, _ = world.act(state, entry)
        real.append(state.q[0])
    engine = adaptive.model.engine
    with torch.no_grad():
        path = engine.rollout(start, suite.PERIODS, force * fractions[None], adaptive.controller.properties)
    angles = torch.stack(real)[:, 1:], path.q[0, 1:, 1:]
    error = float((angles[0] - angles[1]).square().mean().sqrt())
    return error, [angle[:, 0].tolist() for angle in angles]


def learn(poles: int, force: float, seed: int, episodes: int, out: Path) -> list[dict]:
    """Episodes of one seed, a row each."""
    world, learner = suite.Poles(poles, force, seed), model(poles)
    horizon, truth = HORIZON[poles] if force > 10 else 2 * HORIZON[poles], suite.true_lumps(world)
    generator = torch.Generator().manual_seed(seed)
    first = force * (2 * torch.rand(1, horizon, 1, generator=generator).double() - 1) / 2
    controller = Mpc(
        learner.engine, suite.goal(poles, force), horizon, (-force, force), initial_controls=first, iterations=ROUNDS
    )
    adaptive, rows = AdaptiveMpc(controller, learner), []
    for episode in range(1, episodes + 1):
        controller.reset()
        state, reward, course, path = world.begin(), 0.0, [], []
        for period in range(1, suite.PERIODS + 1):
            force_now = adaptive.act(state).control
            end, earned = world.act(state, force_now[0] / force)
            adaptive.observe(state, force_now, end)
            path.append(state)
            state, reward = end, reward + earned
            course.append(suite.heights(state))
            if episode == 1 and period % EVERY == 0:
                adaptive.refit()
        fit = adaptive.refit()
        result = known_lumps(adaptive)
        off = max(abs(result[name] / truth[name] - 1) for name in truth)
        missed, angles = predicted(adaptive, poles, force)
        row = {"poles": poles, "force": force, "seed": seed, "episode": episode, "reward": reward}
        row |= {"up": suite.stays_up(course), "off": off, "lumps": result, "truth": truth, "predicted": missed}
        rows.append(row | {"angles": angles, "spectrum": spectrum(fit), "course": len(fit.history) - 1})
        if seed == 0 and episode == 3:
            q, v = torch.cat([entry.q for entry in path])[None], torch.cat([entry.v for entry in path])[None]
            cart, observed = articulated.cartpole(poles), Trajectory(q, v, None, controller.engine.dt)
            render_video(cart, observed, out / f"adaptive_cartpoles_{poles}.mp4", properties=lowered_floor(cart))
    return rows


def table(rows: list[dict], poles: int, force: float) -> float:
    """Print the results of the episodes of all seeds; returns the first one that ends upright with each."""
    results = [row for row in rows if (row["poles"], row["force"]) == (poles, force)]
    print(f"{poles} pole(s), ±{force:g} N, {len({row['seed'] for row in results})} seeds")
    print("episode   reward, median (least)    up   lumps off, worst of median seed   140 periods ahead, rad")
    upright = float("inf")
    for episode in sorted({row["episode"] for row in results}):
        of = [row for row in results if row["episode"] == episode]
        rewards, off, ahead = (np.array([row[name] for row in of]) for name in ("reward", "off", "predicted"))
        up = sum(row["up"] for row in of)
        if up == len(of):
            upright = min(upright, episode)
        print(
            f"{episode:7d} {np.median(rewards):10.1f} ({rewards.min():8.1f}) {up:9d} of {len(of)} "
            f"{np.median(off):12.1e} ({off.max():.1e}) {np.median(ahead):17.1e} ({ahead.max():.1e})"
        )
    last = max(results, key=lambda row: (row["episode"], -row["seed"]))
    lines = (f"{name} {last['lumps'][name]:.6f} ({value:.6f})" for name, value in last["truth"].items())
    print(f"seed {last['seed']} at the end, found (true): " + ", ".join(lines))
    print("eigenvalues of the fit's Hessian: " + " ".join(f"{value:.0e}" for value in last["spectrum"]), flush=True)
    return upright


def draw(rows: list[dict], poles: int, force: float, out: Path) -> None:
    """Angles as predicted after episodes 1 and 3, and as they were."""
    of = {row["episode"]: row for row in rows if (row["poles"], row["force"], row["seed"]) == (poles, force, 0)}
    figure, axis = panel()
    time = 0.01 * suite.HOLD * np.arange(1, suite.PERIODS + 1)
    axis.plot(time, np.degrees(of[1]["angles"][0]), "k", lw=2.5, alpha=0.35, label="real")
    for episode, style in ((1, "--"), (3, "-")):
        if episode in of:
            turned = np.clip(np.degrees(of[episode]["angles"][1]), -720, 1080)
            axis.plot(time, turned, style, lw=1, label=f"predicted after episode {episode}")
    axis.set(xlabel="time, s", ylabel="first pole's angle, degrees", title=f"{poles} pole(s), forces never tried")
    save(figure, axis, out / f"adaptive_cartpoles_{poles}.png")


def main(
    poles: str = "1,2", forces: str = "200", seeds: int = 5, episodes: int = 6, first: int = 0, out: Path = Path("out")
) -> None:
    """Run what is missing, and print the tables."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "adaptive_cartpoles.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    claims, numbers = [], tuple(range(first, first + seeds))
    for count in map(int, poles.split(",")):
        for force in map(float, forces.split(",")):
            for seed in range(first, first + seeds):
                if not any((row["poles"], row["force"], row["seed"]) == (count, force, seed) for row in rows):
                    fresh = learn(count, force, seed, episodes, out)
                    rows += fresh
                    with path.open("a") as file:
                        file.writelines(json.dumps(row) + "\n" for row in fresh)
            upright = table(rows, count, force)
            name = f"first episode in which {'two poles' if count == 2 else 'one pole'} on a cart "
            if upright < float("inf"):
                claims.append(Claim(f"{name}end upright, from a wrong model", upright, "episodes", seeds=numbers))
            draw(rows, count, force, out)
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
