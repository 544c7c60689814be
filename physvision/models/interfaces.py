"""Interfaces of the networks around an engine: an encoder reads states in frames, a decoder renders states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import Coordinates, State, Trajectory
from physvision.physics.engine import Overrides


@dataclass(frozen=True)
class Observation:
    """States and properties that an encoder reads in consecutive frames; the last entries belong to the last frame.

    Attributes:
        positions: Positions in every frame that the encoder reads by itself, at least in those with a velocity.
        velocities: Velocities in every frame with enough frames before it, units of the positions a second.
        confidence: Confidence in each object in those frames, 0 to 1; None from encoders without an estimate of it.
        masks: Soft segmentation of each object at reduced resolution, 0 to 1.
        properties: Leaves of the engine's properties that hold in this clip, one row a world.
        appearance: Code of the clip's looks, read by decoders that take one.
        position_std: Standard deviations of the positions.
        velocity_std: Standard deviations of the velocities.
        property_std: Standard deviations of the properties, by the same names.
    """

    positions: Float[Tensor, "batch times nq"]
    velocities: Float[Tensor, "batch windows nv"]
    confidence: Float[Tensor, "batch windows objects"] | None = None
    masks: Float[Tensor, "batch frames objects rows columns"] | None = None
    properties: Mapping[str, Tensor] | None = None
    appearance: AppearanceCode | None = None
    position_std: Float[Tensor, "batch times nq"] | None = None
    velocity_std: Float[Tensor, "batch windows nv"] | None = None
    property_std: Mapping[str, Tensor] | None = None

    @property
    def trajectory(self) -> Trajectory:
        """The states in all frames that have a velocity."""
        return Trajectory(self.positions[:, -self.velocities.shape[1] :], self.velocities)

    @property
    def state(self) -> State:
        """The state in the last frame."""
        return State(self.positions[:, -1], self.velocities[:, -1])

    def split(self, size: int) -> list[Observation]:
        """Split into observations of `size` worlds each, without looks."""
        parts = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                parts[field.name] = value.split(size)
            elif isinstance(value, Mapping):
                leaves = {name: leaf.split(size) for name, leaf in value.items()}
                parts[field.name] = [dict(zip(leaves, row, strict=True)) for row in zip(*leaves.values(), strict=True)]
        return [
            replace(self, appearance=None, **dict(zip(parts, row, strict=True)))
            for row in zip(*parts.values(), strict=True)
        ]

    def to(self, dtype: torch.dtype) -> Observation:
        """Convert all floating-point tensors to `dtype`."""
        changes: dict[str, object] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor | AppearanceCode):
                changes[field.name] = value.to(dtype)
            elif value is not None:
                changes[field.name] = {name: leaf.to(dtype) for name, leaf in value.items()}
        return replace(self, **changes)


@dataclass(frozen=True)
class AppearanceCode:
    """The looks of a clip without its motion: a short code, and the background that no object covers.

    Attributes:
        code: At most 64 numbers a clip.
        background: Median of the clip's frames outside the objects' masks, brightness 0 to 1.
        extrinsics: Pose of the camera in each frame to render, from the world to the camera's frame; None for a camera
            that stands still.
        textures: Mean picture of each object in its own axes, as the given frames show it; None where codes alone
            describe the objects.
        shadow: Offset of shadows along columns and rows, px, and their darkness, 0 to 1; None for no shadows.
        background_extrinsics: Pose of the camera from which the background is seen; None for a camera that stands
            still.
    """

    code: Float[Tensor, "batch codes"]
    background: Float[Tensor, "batch channels height width"]
    extrinsics: Float[Tensor, "batch 4 4"] | None = None
    textures: Float[Tensor, "batch objects channels rows columns"] | None = None
    shadow: Float[Tensor, "batch 3"] | None = None
    background_extrinsics: Float[Tensor, "batch 4 4"] | None = None

    def to(self, dtype: torch.dtype) -> AppearanceCode:
        """Convert all but the poses of the frames to render to `dtype`."""
        return replace(self._map(lambda value: value.to(dtype)), extrinsics=self.extrinsics)

    def __getitem__(self, rows: slice) -> AppearanceCode:
        """Select the looks of some clips."""
        return self._map(lambda value: value[rows])

    def repeat(self, times: int, extrinsics: Tensor | None = None) -> AppearanceCode:
        """Repeat each clip's looks `times` times in a row, for that many states a clip, each with its camera pose."""
        return replace(self._map(lambda value: value.repeat_interleave(times, 0)), extrinsics=extrinsics)

    def _map(self, change: Callable[[Tensor], Tensor]) -> AppearanceCode:
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {name: None if value is None else change(value) for name, value in values.items()}
        return AppearanceCode(**changed)


@dataclass(frozen=True)
class ClipContext:
    """Known values of a clip, beside its frames.

    Attributes:
        extrinsics: Pose of the camera in each frame, from the world to the camera's frame.
        properties: Properties that are given for all clips, such as the walls of a table.
    """

    extrinsics: Float[Tensor, "batch times 4 4"] | None = None
    properties: Mapping[str, Tensor] | None = None

    def extrinsics_at(self, present: int, steps: Sequence[int]) -> Float[Tensor, "batch steps 4 4"] | None:
        """Poses of the camera `steps` frames after frame `present`; beyond the known frames, the last pose."""
        if self.extrinsics is None:
            return None
        end = self.extrinsics.shape[1] - 1
        return self.extrinsics[:, [min(present + step, end) for step in steps]]


class Encoder(nn.Module):
    """Reads positions and velocities in consecutive frames; a subclass defines `observe`.

    Attributes:
        coordinates: Meaning of the positions, where single frames are read; None for an encoder that reads only whole
            windows, at their last frame.
    """

    coordinates: Coordinates | None = None

    def observe(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Observation:
        """Read consecutive frames, at least as many as a velocity takes.

        Args:
            frames: Bytes or brightness 0 to 1.
            context: Known values of the clip, for encoders that use any.
        """
        raise NotImplementedError

    def observe_window(
        self, frames: Shaped[Tensor, "batch times channels height width"], context: ClipContext | None = None
    ) -> Observation:
        """Estimate as `observe`, but without a fit of the engine's motion to all frames, if the encoder has one."""
        return self.observe(frames) if context is None else self.observe(frames, context)

    def linked(
        self, observation: Observation, earlier: Observation | None, colors: Float[Tensor, "slots 3"] | None = None
    ) -> Observation:
        """Give each object the slot that it has in the window before, if this encoder has slots in no fixed order.

        Args:
            observation: Observation of windows that follow each other by one frame, one a row.
            earlier: Linked observation whose last row is the window before the first one; None at the start of a video.
            colors: Colors of the objects that the scene names, by which the first windows are ordered; None if it says
                nothing of colors.
        """
        return observation

    def forward(self, frames: Shaped[Tensor, "batch times channels height width"]) -> State:
        """Estimate the state in the last of `frames`."""
        return self.observe(frames).state


class Decoder(nn.Module):
    """Renders states; a subclass defines `forward`. A camera that is bound to an engine has the same signature."""

    def forward(
        self, state: State, properties: Overrides = None, appearance: AppearanceCode | None = None
    ) -> Float[Tensor, "batch channels height width"]:
        """Render the frame of each state, brightness about 0 to 1.

        Args:
            state: States to render.
            properties: Engine properties; cameras read sizes in them, networks without geometry do not.
            appearance: Looks of the clip, read by decoders that are conditioned on them.
        """
        raise NotImplementedError
