"""The files that commands of README.md and docs/ read: clips, tables and models, by the name of the block."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import own_clip
import yaml
from snippets import read_blocks

from physvision import video
from physvision.datasets import BilliardsRecipe, PendulumRecipe, clips
from physvision.physics.articulated import load


def write_own() -> None:
    """Write the configuration, the module and the model file of one's own clip."""
    Path("scene.xml").write_text(own_clip.SCENE)
    Path("mine.yaml").write_text(yaml.safe_dump(own_clip.configuration(updates=4, devices=1)))
    Path("own_eyes.py").write_text(own_clip.MODULE)


def write_clip(kind: str, number: int, name: str) -> None:
    """Film a motion whose parameters are drawn."""
    clips.draw(kind, number).write(name)


def write_balls(name: str) -> None:
    """Film three balls as the checkpoint billiards-3 expects them."""
    video.write(name, BilliardsRecipe(trials=10, frames=60, seed=7).make("test", 0)["frames"], 30)


def write_links(name: str, large: bool = False) -> None:
    """Film three links as the checkpoint pendulum expects them, or in the middle of 640 × 480 pixels, 60 a second."""
    frames = PendulumRecipe(trials=10, frames=40, seed=7).make("test", 0)["frames"]
    if large:
        sized = [np.pad(cv2.resize(frame, (480, 480)), ((0, 0), (80, 80))) for frame in frames]
        frames = np.stack(sized)[..., None].repeat(3, 0)
    video.write(name, frames, 60 if large else 20)


def write_arm() -> None:
    """Write the model of the page, and film its bob at another stiffness and damping."""
    (text,) = [
        block.text for block in read_blocks("text") if block.text.startswith('<mujoco><worldbody><body name="arm"')
    ]
    Path("arm.xml").write_text(text)
    engine = load(re.sub('stiffness="[^"]*" damping="[^"]*"', 'stiffness="0.35" damping="0.004"', text), dt=1 / 60)
    state = engine.initial_state()
    angles = engine.rollout(type(state)(state.q + 0.8, state.v - 1.0), 90).q[0, :, 0]
    ground = cv2.GaussianBlur(np.random.default_rng(1).uniform(120, 220, (240, 320, 3)).astype(np.float32), (0, 0), 3)
    with video.VideoWriter("arm.mp4", 60) as writer:
        for angle in angles.tolist():
            frame, shift = ground.copy(), 4
            middle = np.array([160 - 120 * np.sin(angle), 40 + 120 * np.cos(angle)]) * 2**shift
            x, y = (round(value) for value in middle)
            cv2.circle(frame, (x, y), 12 * 2**shift, (40, 40, 160), -1, cv2.LINE_AA, shift)
            writer.add(frame.round().astype(np.uint8))


def write_arm_environment() -> None:
    """Write the module of the page that registers an environment."""
    (block,) = [block for block in read_blocks("python") if 'ENVIRONMENTS["Arm"] = arm' in block.text]
    Path("arm_env.py").write_text(block.text)


FILES: dict[str, list[Callable[[], None]]] = {
    "README-3": [partial(write_clip, "pendulum", 3, "swing.mp4"), partial(write_balls, "table.mp4")],
    "control-2": [write_arm_environment],
    "data-1": [partial(write_links, "my.mp4", large=True)],
    "identify-1": [partial(write_clip, "pendulum", 3, "swing.mp4")],
    "identify-2": [partial(write_clip, "projectile", 1, "throw.mp4")],
    "identify-3": [partial(write_clip, "spring", 1, "spring.mp4")],
    "identify-4": [write_arm],
    "index-1": [partial(write_clip, "pendulum", 3, "swing.mp4")],
    "index-2": [partial(write_links, "my.mp4", large=True)],
    "own_scene-1": [write_own],
    "own_video-1": [partial(write_links, "my.mp4")],
    "own_video-2": [partial(write_links, "my.mp4", large=True)],
    "tour-1": [partial(write_links, "my.mp4", large=True)],
}
