"""Pictures of environments for Gymnasium: frames of all worlds, and a window."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, UInt8

from physvision.core import InputError, State
from physvision.envs.environment import Environment
from physvision.rendering import FollowingCamera, Renderer, choose_framing, ground_below

RENDER_MODES = ("rgb_array", "human")
FRAME_SIZE = (480, 640)  # height and width, pixels
GROUND_MARGIN = 0.25  # between the lowest point at the start and a ground that the scene lacks, in its height

Frame = UInt8[np.ndarray, "height width 3"]


class EnvironmentRenderer:
    """Renderer of the worlds of an environment, with a camera for each world that follows what moves."""

    def __init__(self, env: Environment, num_envs: int) -> None:
        self._renderer = Renderer(env.engine)
        self._step_s = env.engine.dt * env.frame_skip
        self._cameras: list[FollowingCamera | None] = [None] * num_envs
        self._last_steps = np.zeros(num_envs, int)

    def reset(self, mask: Bool[np.ndarray, " worlds"]) -> None:
        """Let the cameras of worlds that start anew jump to them."""
        for world in np.flatnonzero(mask).tolist():
            camera = self._cameras[world]
            if camera is not None:
                camera.reset()
            self._last_steps[world] = 0

    @torch.no_grad()
    def render(self, world: int, state: State, steps: int) -> Frame:
        """Render the state of one world.

        Args:
            world: Index of the world.
            state: Its state, a batch of one.
            steps: Environment steps since its last reset.
        """
        renderer, camera = self._renderer, self._cameras[world]
        if camera is None:
            camera = self._cameras[world] = FollowingCamera(choose_framing(renderer, state, FRAME_SIZE))
        poses, sizes = renderer.frames(state)
        if not renderer.planar:
            margin = GROUND_MARGIN if renderer.ground_height is None else 0.0
            ground = ground_below(renderer, poses, sizes, margin)
            renderer.ground_height = min(ground, renderer.ground_height or ground)
        elapsed = self._step_s * max(0, steps - int(self._last_steps[world]))
        self._last_steps[world] = steps
        view = camera.update(poses[0, camera.framing.movable, :3, 3], elapsed)
        return renderer.render_frames(poses[0], sizes, view)


class Window:
    """Window that shows one frame after another, by whatever window system matplotlib finds."""

    def __init__(self, title: str) -> None:
        import matplotlib.pyplot as plt

        self._plt: Any = plt
        self._figure = plt.figure(title, figsize=(6.4, 4.8), dpi=100)
        self._axis = self._figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self._axis.set_axis_off()
        self._image: Any = None
        if plt.get_backend().lower() == "agg":
            warnings.warn(
                "render_mode 'human': there is no display to open a window on; use 'rgb_array', or `physvision view`",
                stacklevel=2,
            )
        else:
            self._figure.show()

    def show(self, frame: Frame) -> None:
        """Show a frame in the window."""
        if self._image is None:
            self._image = self._axis.imshow(frame, interpolation="bilinear")
        else:
            self._image.set_data(frame)
        self._figure.canvas.draw_idle()
        self._figure.canvas.flush_events()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._plt.close(self._figure)


def check_render_mode(render_mode: str | None) -> str | None:
    """Check the name of a render mode and return it.

    Raises:
        InputError: There is no such mode.
    """
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise InputError(f"render_mode: expected one of {', '.join(RENDER_MODES)} or None, got {render_mode!r}")
    return render_mode
