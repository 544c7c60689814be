"""Plot of a world with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from physvision.core import State, shapes as core_shapes

if TYPE_CHECKING:
    from physvision.physics.rigid2d.world import World


def plot(world: World, state: State | None = None, index: int = 0, axes: Any = None, y_down: bool = True) -> Any:
    """Plot one world of a batch with matplotlib; return the axes.

    Args:
        world: World to plot.
        state: State to plot; None for the initial one.
        index: Index of the world in the batch.
        axes: Axes to plot into; None for new ones.
        y_down: If true, y grows downwards.
    """
    import matplotlib.pyplot as plt
    from matplotlib import patches

    state = world.initial_state() if state is None else state
    if axes is None:
        axes = plt.figure(figsize=(5, 5)).add_subplot()
    poses = world.poses(state)[index].detach().cpu().numpy()
    for placed in world.geometry:
        assert placed.body is not None
        pose = poses[placed.body]
        color = tuple(placed.color)
        if isinstance(placed.shape, core_shapes.Circle):
            center, radius = pose[:2, 3], placed.shape.radius
            axes.add_patch(patches.Circle(tuple(center), radius, facecolor=color, edgecolor="black", linewidth=0.5))
            rim = center + radius * pose[:2, 0]
            axes.plot([center[0], rim[0]], [center[1], rim[1]], color="black", linewidth=0.5)
        elif isinstance(placed.shape, core_shapes.Polygon):
            corners = np.array(placed.shape.vertices) @ pose[:2, :2].T + pose[:2, 3]
            axes.add_patch(patches.Polygon(corners, facecolor=color, edgecolor="black", linewidth=0.5))
    axes.set_aspect("equal")
    axes.autoscale_view()
    if y_down and not axes.yaxis_inverted():
        axes.invert_yaxis()
    return axes
