"""Frames of films: a trajectory as a camera sees it that follows what moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import UInt8

from physvision.core import State
from physvision.physics import Engine
from physvision.physics.engine import Overrides
from physvision.rendering.framing import choose_framing, film_views, ground_below
from physvision.rendering.renderer import Renderer

GROUND_MARGIN = 0.02  # between the lowest point of a film and the ground below, in its height


def film_frames(
    engine: Engine, states: State, dt: float, size: tuple[int, int], properties: Overrides = None
) -> Iterator[UInt8[np.ndarray, "height width 3"]]:
    """Render states of one world that follow one another in time.

    Args:
        engine: Engine with mechanics.
        states: States of the world, a batch of them.
        dt: Time between them, s.
        size: Height and width of the frames, pixels.
        properties: Properties; the engine's own if None.
    """
    renderer = Renderer(engine)
    poses, sizes = renderer.frames(states, properties)
    if not renderer.planar:
        renderer.ground_height = ground_below(renderer, poses, sizes, GROUND_MARGIN)
    framing = choose_framing(renderer, State(states.q[:1], states.v[:1]), size, properties)
    views = film_views(framing, poses[:, framing.movable][..., :3, 3], dt)
    for moment, current in zip(poses, views, strict=True):
        yield renderer.render_frames(moment, sizes, current)
