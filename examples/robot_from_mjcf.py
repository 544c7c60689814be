"""A legged robot from MJCF: dropped, simulated with contact, and drawn.

python examples/robot_from_mjcf.py [robot.xml]
"""

import sys

import matplotlib.pyplot as plt
import torch

from physvision import State
from physvision.physics import articulated
from physvision.physics.articulated import scenes
from physvision.rendering import film_frames


def main(out: str = "robot.png", model: str = "") -> None:
    """Drop the robot, and draw three moments."""
    engine = articulated.load(model or scenes.path("quadruped"), dt=0.01)
    start = engine.initial_state(dtype=torch.float64)
    start.q[0, 2] += 0.1
    motion = engine.rollout(start, 100)
    assert motion.status is not None
    print(f"{engine.nq} positions, {engine.nu} controls; every step converged: {bool(motion.status.converged.all())}")
    moments = State(motion.q[0, ::49], motion.v[0, ::49])
    frames = list(film_frames(engine, moments, 49 * engine.dt, (240, 320)))
    _, axes = plt.subplots(1, len(frames), figsize=(10, 3))
    for axis, frame, step in zip(axes, frames, range(0, 101, 49), strict=True):
        axis.imshow(frame)
        axis.set_title(f"{step * engine.dt:.2f} s")
        axis.axis("off")
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
