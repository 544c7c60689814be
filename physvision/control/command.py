"""`physvision control TASK`: a film and a table of a task done by control through the engine's gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from physvision.control.adaptive import AdaptiveMpc
from physvision.control.point_to_point import PointToPointPlan, minimum_effort, minimum_time
from physvision.control.swing_up import DT, SWING_UP_TASKS, SwingUpTask, lowered_floor
from physvision.core import InputError, State, Trajectory
from physvision.core.checks import check_count, count_steps
from physvision.report import OutputFolder, VideoFigure, render_video

NUM_SEARCHES, DEFAULT_SECONDS = 8, {"stabilize": 6.0, "time": 3.0, "effort": 3.0}
INITIAL_GUESS, REFIT_STEPS, LAST_REFIT_STEP = 2.0, 25, 250  # of masses and lengths, in kg and m
FILM_FPS = 60.0  # of the game
FRAME_SCALE, PATH_COLOR = 3, (120, 220, 120)  # film pixels for a screen pixel, and the color of the ball's path


def swing_up(
    task: Callable[[], SwingUpTask],
    objective: str = "stabilize",
    learn: bool = False,
    seconds: float | None = None,
    seed: int = 0,
    out: str | None = None,
) -> None:
    """Swing up a pendulum by control through the engine's gradients, and film it.

    Args:
        task: Function that builds the task, one of `SWING_UP_TASKS`.
        objective: stabilize: plan before each step to stand up soon and stay; time: stand after the shortest time;
            effort: stand after the given time with the smallest integral of squared controls.
        learn: If true, start from masses and lengths of 2 kg and 2 m, and refit them each half second; only with the
            objective stabilize.
        seconds: Duration, in s; the longest for the objective time, the exact one for effort. 6 to stabilize, 3
            otherwise.
        seed: Seed of the initial controls.
        out: MP4 file of the film; out/control/TASK.mp4 if not given.
    """
    if objective not in DEFAULT_SECONDS:
        raise InputError(f"objective: expected one of {', '.join(DEFAULT_SECONDS)}, got {objective!r}")
    if learn and objective != "stabilize":
        raise InputError(f"learn: expected `objective=stabilize`, got {objective}")
    mechanism = task()
    duration = DEFAULT_SECONDS[objective] if seconds is None else seconds
    steps, path = count_steps("seconds", duration, DT), _film_path(task.__name__.replace("_", "-"), out)
    with OutputFolder(path.parent):
        if objective == "stabilize":
            motion = _stabilize(mechanism, steps, learn, seed)
        else:
            motion = _reach_upright(mechanism, objective, steps, seed)
        properties = lowered_floor(mechanism.engine) if mechanism.has_cart else None
        print(render_video(mechanism.engine, motion, path, properties=properties))


def pendulum_pixels(seconds: float = 15.0, policy: str = "pendulum-pixels", out: str | None = None) -> None:
    """Swing up a pole on a cart by a network that observes camera frames, and film it.

    Args:
        seconds: Duration, in s.
        policy: Name of a policy that comes with physvision, or a file that `physvision fit-policy` wrote.
        out: MP4 file of the film; out/control/pendulum-pixels.mp4 if not given.
    """
    from physvision.control.pixels.task import CONTROL_PERIOD_S
    from physvision.control.pixels.trials import film_policy

    count_steps("seconds", seconds, CONTROL_PERIOD_S)
    film_policy(_film_path("pendulum-pixels", out), seconds, policy)


def breakout(seconds: float = 30.0, frames: int = 1000, seed: int = 0, out: str | None = None) -> None:
    """Play Atari's Breakout with a learned model of the paddle, and film it with the ball's predicted path.

    Args:
        seconds: Duration of the film, in s, at 60 frames a second.
        frames: Frames of random play from which the paddle's motion is learned.
        seed: Seed of the game and of the agent.
        out: MP4 file of the film; out/control/breakout.mp4 if not given.
    """
    from physvision.control.breakout import BreakoutAgent, PaddleModel, play_game
    from physvision.envs.atari import AtariEnv, Image

    num_frames, path = count_steps("seconds", seconds, 1 / FILM_FPS), _film_path("breakout", out)
    env = AtariEnv("Breakout")
    paddle = PaddleModel.fit(env, check_count("frames", frames), seed + 1)
    print(f"from {frames} random frames: a key moves the paddle by {paddle.speed:.2f} pixels a frame")
    with OutputFolder(path.parent), VideoFigure(path, FILM_FPS) as video:

        def record(image: Image, agent: BreakoutAgent) -> None:
            video.add([_with_path(image, [] if agent.prediction is None else agent.prediction.full_path())])

        result = play_game(env, BreakoutAgent(paddle, seed), 100 + seed, num_frames, record)
    rate = result.frames / result.seconds
    print(
        f"{result.score:.0f} points in {result.frames} frames, {result.lives} lives left, {rate:.0f} decisions a second"
    )
    print(path)


COMMANDS = {name: (swing_up, task) for name, task in SWING_UP_TASKS.items()}
COMMANDS |= {"pendulum-pixels": pendulum_pixels, "breakout": breakout}


def _film_path(task: str, out: str | None) -> Path:
    return Path(out) if out else Path("out/control") / f"{task}.mp4"


def _stabilize(task: SwingUpTask, steps: int, learn: bool, seed: int) -> Trajectory:
    """Swing up by model-predictive control and print a line each half second."""
    controller = task.controller(seed)
    adaptive = AdaptiveMpc(controller, task.adaptive_model(INITIAL_GUESS)) if learn else None
    states, planning_s = [task.reset()], 0.0
    print("  time  cosine of the lowest rod   controls" + (" " * 16 + "masses; lengths as learned" if learn else ""))
    for step in range(1, steps + 1):
        start = time.perf_counter()
        control = controller.act(states[-1]).control
        planning_s += time.perf_counter() - start
        states.append(task.engine.step(states[-1], control))
        if adaptive is not None:
            adaptive.observe(states[-2], control, states[-1])
            if step % REFIT_STEPS == 0 and step <= LAST_REFIT_STEP:
                adaptive.refit()
        if step % round(0.5 / DT) == 0:
            controls = " ".join(f"{value:7.2f}" for value in control[0].tolist())
            estimates = "" if adaptive is None else _estimates(adaptive)
            cosine = float(task.upright_cosine(states[-1]))
            print(f"{step * DT:6.2f} {cosine:25.3f}   {controls:16s} {estimates}".rstrip())
    motion = Trajectory.stack(states, DT)
    fallen_steps = torch.nonzero(task.upright_cosine(motion.flatten()) < 0.95)
    rise_step = int(fallen_steps[-1]) + 1 if len(fallen_steps) else 0
    print(f"stands from {rise_step * DT:.2f} s on" if rise_step <= steps else "does not stand")
    print(f"{1e3 * planning_s / steps:.1f} ms a decision")
    return motion


def _reach_upright(task: SwingUpTask, objective: str, steps: int, seed: int) -> Trajectory:
    """Stand up by a plan of minimum time or effort, then hold upright for a second."""
    controls, target, bounds = task.random_controls(NUM_SEARCHES, steps, seed), task.final_target(), task.bounds()
    if objective == "time":
        result = minimum_time(task.engine, task.reset(), controls, target, bounds)
    else:
        result = minimum_effort(task.engine, task.reset(NUM_SEARCHES), 0.3 * controls, target, bounds)
    best = result.best()
    _print_plan(result, best)
    path, controller = result.policy.trajectory, task.controller(seed)
    states = [State(path.q[best : best + 1, step], path.v[best : best + 1, step]) for step in range(len(path))]
    for _ in range(round(1 / DT)):
        states.append(task.engine.step(states[-1], controller.act(states[-1]).control))
    return Trajectory.stack(states, DT)


def _print_plan(result: PointToPointPlan, best: int) -> None:
    reached, effort = int(result.reached.sum()), float(result.effort[best])
    largest = ", ".join(f"{value:.3f}" for value in result.policy.feedforward[best].abs().amax(0).tolist())
    count = len(result.reached)
    print(f"{reached} of {count} searches stand after {result.seconds:.2f} s; the one of the least effort:")
    print(f"∫ u² dt {effort:.4f}, largest controls {largest}, missed by {float(result.error[best]):.1e}")


def _estimates(adaptive: AdaptiveMpc) -> str:
    """Format the masses and lengths as learned so far."""
    values = adaptive.model.unknowns.values(adaptive.z)
    masses = values["mass"][0].tolist() + (values["cart"].tolist() if "cart" in values else [])
    groups = (masses, values["length"][0].tolist())
    return "; ".join(" ".join(f"{value:.4f}" for value in group) for group in groups)


def _with_path(image: np.ndarray, path: list[tuple[float, float]]) -> np.ndarray:
    """Return an enlarged frame with the ball's predicted path and the position that the paddle has to reach."""
    frame = image.repeat(FRAME_SCALE, 0).repeat(FRAME_SCALE, 1)
    for index, (x, y) in enumerate(path[1:]):
        row, column, last = int(FRAME_SCALE * (y + 2)), int(FRAME_SCALE * (x + 1)), index == len(path) - 2
        if last:
            frame[row : row + 6, column - 9 : column + 9] = PATH_COLOR
        elif index % 2:
            frame[row - 1 : row + 1, column - 1 : column + 1] = PATH_COLOR
    return frame
