"""Lit pictures of engines: sun and shadows, ground and sky, and a camera that follows what moves."""

from physvision.rendering.framing import (
    FollowingCamera as FollowingCamera,
    Framing as Framing,
    choose_framing as choose_framing,
    film_frames as film_frames,
    ground_below as ground_below,
)
from physvision.rendering.renderer import Renderer as Renderer, grid_size as grid_size
from physvision.rendering.settings import RenderSettings as RenderSettings
from physvision.rendering.view import View as View
