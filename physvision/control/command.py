"""`physvision control`: a task by name in; a film of how it is done, and a table, out."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from physvision.control.adaptive import AdaptiveMpc
from physvision.control.arrival import Arrival, least_effort, least_time
from physvision.control.swingup import DT, POLES, Poles, with_deep_floor
from physvision.core import InputError, State, Trajectory
from physvision.core.checks import check_count, check_positive
from physvision.report import OutputFolder, VideoFigure, render_video

PIXELS = "pendulum-pixels"
_AIMS = ("goal", "time", "energy")
_TRIES, _SECONDS = 8, {"goal": 6.0, "time": 3.0, "energy": 3.0}
_LARGER, _WAY = 3, (120, 220, 120)  # pixels for one of the game, and the colour of the ball's way
_WRONG, _EVERY = 2.0, 25  # masses and lengths that a learner begins with, and steps between its fits


def control(
    task: str,
    aim: str = "goal",
    learn: bool = False,
    seconds: float | None = None,
    frames: int = 1000,
    seed: int = 0,
    policy: str = PIXELS,
    out: str | None = None,
) -> int:
    """Do a task by control through an engine's gradients, and film it.

    Args:
        task: pendulum, cartpole, double-pendulum or acrobot, which are swung up; pendulum-pixels, swung up by a
            network that sees it; or breakout, Atari's game.
        aim: for poles, goal: plan before each step to stand up soon and stay; time: to stand after the least time;
            energy: after the given seconds, with the least squares of the controls.
        learn: begin with masses and lengths that are all 2, and refit them to what is seen each half second.
        seconds: how long: 6 for the aim goal; at most, for time, or exactly, for energy, 3; of breakout's film, 30,
            and of that of pendulum-pixels, 15.
        frames: of breakout, played at random first, from which the paddle's motion is learned.
        seed: of what is drawn.
        policy: of pendulum-pixels, a file that `physvision fit-policy` wrote.
        out: the film, an MP4 file; out/control/TASK.mp4 if not given.
    """
    path = Path(out) if out else Path("out/control") / f"{task}.mp4"
    if task == "breakout":
        return _play(path, 30.0 if seconds is None else check_positive("seconds", seconds), frames, seed)
    if task == PIXELS:
        from physvision.control.pixels.showing import show

        show(path, 15.0 if seconds is None else check_positive("seconds", seconds), policy)
        return 0
    if task not in POLES:
        raise InputError(f"task: expected one of {', '.join([*POLES, PIXELS, 'breakout'])}, got {task!r}")
    if aim not in _AIMS:
        raise InputError(f"aim: expected one of {', '.join(_AIMS)}, got {aim!r}")
    if learn and aim != "goal":
        raise InputError(f"learn: works with `aim=goal`, got {aim}")
    poles, duration = POLES[task](), _SECONDS[aim] if seconds is None else check_positive("seconds", seconds)
    steps = check_count("steps", round(duration / DT))
    with OutputFolder(path.parent):
        path_taken = _swung(poles, steps, learn, seed) if aim == "goal" else _arrived(poles, aim, steps, seed)
        looks = with_deep_floor(poles.engine) if poles.cart else None
        print(render_video(poles.engine, path_taken, path, properties=looks))
    return 0


def _swung(poles: Poles, steps: int, learn: bool, seed: int) -> Trajectory:
    """Planned anew before each step."""
    controller = poles.controller(seed)
    adaptive = AdaptiveMpc(controller, poles.model(_WRONG)) if learn else None
    state, states, thinking = poles.begin(), [poles.begin()], 0.0
    print("  time  cosine of the lowest rod   controls" + (" " * 16 + "masses; lengths as learned" if learn else ""))
    for step in range(1, steps + 1):
        begun = time.perf_counter()
        chosen = controller.act(state).control
        thinking += time.perf_counter() - begun
        end = poles.engine.step(state, chosen)
        if adaptive is not None:
            adaptive.saw(state, chosen, end)
            if step % _EVERY == 0 and step <= 10 * _EVERY:
                adaptive.refit()
        state = end
        states.append(state)
        if step % round(0.5 / DT) == 0:
            told = " ".join(f"{value:7.2f}" for value in chosen[0].tolist())
            known = "" if adaptive is None else _told(adaptive)
            print(f"{step * DT:6.2f} {float(poles.standing(state)):25.3f}   {told:16s} {known}".rstrip())
    q, v = torch.stack([each.q for each in states], 1), torch.stack([each.v for each in states], 1)
    low = torch.nonzero(poles.standing(State(q[0], v[0])) < 0.95)
    last = int(low[-1]) + 1 if len(low) else 0
    print(f"stands from {last * DT:.2f} s on" if last <= steps else "does not stand")
    print(f"{1e3 * thinking / steps:.1f} ms a decision")
    return Trajectory(q, v, None, DT)


def _arrived(poles: Poles, aim: str, steps: int, seed: int) -> Trajectory:
    """Planned once; then held upright for a second."""
    tries = poles.random(_TRIES, steps, seed)
    if aim == "time":
        found = least_time(poles.engine, poles.begin(), tries, poles.target(), poles.bounds())
    else:
        found = least_effort(poles.engine, poles.begin(_TRIES), 0.3 * tries, poles.target(), poles.bounds())
    best = found.best()
    _tell(found, best)
    path = found.plan.trajectory
    held, holder = [State(path.final.q[best : best + 1], path.final.v[best : best + 1])], poles.controller(seed)
    for _ in range(round(1 / DT)):
        held.append(poles.engine.step(held[-1], holder.act(held[-1]).control))
    q = torch.cat([path.q[best], *(each.q for each in held[1:])])[None]
    return Trajectory(q, torch.cat([path.v[best], *(each.v for each in held[1:])])[None], None, DT)


def _tell(found: Arrival, best: int) -> None:
    reached, effort = int(found.reached.sum()), float(found.effort[best])
    largest = ", ".join(f"{value:.3f}" for value in found.plan.controls[best].abs().amax(0).tolist())
    print(f"{reached} of {len(found.reached)} searches stand after {found.seconds:.2f} s; the one of the least effort:")
    print(f"∫ u² dt {effort:.4f}, largest controls {largest}, missed by {float(found.missed[best]):.1e}")


def _told(adaptive: AdaptiveMpc) -> str:
    values = adaptive.model.unknowns.values(adaptive.z)
    masses = values["mass"][0].tolist() + (values["cart"].tolist() if "cart" in values else [])
    return "; ".join(" ".join(f"{value:.4f}" for value in each) for each in (masses, values["length"][0].tolist()))


def _play(path: Path, seconds: float, learned: int, seed: int) -> int:
    """Breakout, from random frames on; its frames with where the ball is thought to go."""
    from physvision.control.breakout import Paddle, Player, play
    from physvision.envs.atari import AtariEnv, Image

    game = AtariEnv("Breakout")
    paddle = Paddle.learned(game, check_count("frames", learned), seed + 1)
    print(f"from {learned} random frames: a key moves the paddle by {paddle.speed:.2f} pixels a frame")
    with OutputFolder(path.parent):
        shown = VideoFigure(path, 60.0)

        def show(picture: Image, player: Player) -> None:
            shown.add([_drawn(picture, [] if player.landing is None else player.landing.way())])

        result = play(game, Player(paddle, seed), 100 + seed, round(60 * seconds), show)
        shown.close()
    rate = result.frames / result.seconds
    print(
        f"{result.score:.0f} points in {result.frames} frames, {result.lives} lives left, {rate:.0f} decisions a second"
    )
    print(path)
    return 0


def _drawn(picture: np.ndarray, way: list[tuple[float, float]]) -> np.ndarray:
    """A frame three times as large, with the ball's way ahead and where the paddle has to be."""
    shown = picture.repeat(_LARGER, 0).repeat(_LARGER, 1)
    for number, (x, y) in enumerate(way[1:]):
        row, column, last = int(_LARGER * (y + 2)), int(_LARGER * (x + 1)), number == len(way) - 2
        if last:
            shown[row : row + 6, column - 9 : column + 9] = _WAY
        elif number % 2:
            shown[row - 1 : row + 1, column - 1 : column + 1] = _WAY
    return shown
