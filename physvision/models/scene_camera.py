"""A camera in front of any mechanism or world, as a part of a decoder that a configuration describes."""

from __future__ import annotations

from physvision.camera import BoundCamera, Camera
from physvision.core import InputError
from physvision.physics import Engine


class SceneCamera(BoundCamera):
    """A camera that shows the shapes of an engine: a pinhole camera in space, or one above a plane.

    In a configuration, `engine` is that of the model, described again: the camera reads its geometry, and the model
    moves and trains its own.
    """

    def __init__(
        self,
        engine: Engine,
        size: tuple[int, int],
        position: tuple[float, float, float] | None = None,
        target: tuple[float, float, float] = (0.0, 0.0, 0.0),
        fov: float | None = None,
        focal: float | None = None,
        scale: float = 1.0,
        y_down: bool = False,
    ) -> None:
        """Place the camera before the engine.

        Args:
            engine: Engine whose shapes are visible.
            size: Width and height of the frames, px.
            position: Position of the pinhole, m; None for a camera above a plane, as `Camera.table`.
            target: Point in the center of the image of a pinhole camera, m.
            fov: Field of view of a pinhole camera over the height of the image, rad.
            focal: Focal length of a pinhole camera, px, in place of `fov`.
            scale: Pixels per unit of length of a camera above a plane.
            y_down: If true, y of the plane points down in the image.
        """
        width, height = size
        if position is None:
            camera = Camera.table(height, width, scale=scale, y_down=y_down)
        elif (fov is None) == (focal is None):
            raise InputError(f"fov, focal: expected one of them, got {fov} and {focal}")
        else:
            camera = Camera.pinhole(height, width, position=position, target=target, fov=fov, focal=focal)
        super().__init__(camera, engine)
