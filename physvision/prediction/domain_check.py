"""Whether a video is of the kind that a model was made for, judged over the whole of it while it is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from physvision.core import InputError, SceneObject, State
from physvision.models import PredictiveAutoencoder
from physvision.prediction.appearance_check import (
    beside_lines,
    cut_off,
    disc_sizes,
    line_colors,
    line_ends,
    shown_along_lines,
)
from physvision.prediction.mechanics import outlines
from physvision.prediction.prediction import Segment
from physvision.prediction.reprojection import colored_things, wrong_colors

# A video is refused within its first frames, once there are a few of them; what differs later is named.
FIRST, _FEW = 96, 16
# Frames that are kept in mind, at equal steps.
_MOST = 384


# Beyond the first number a difference is named, beyond the second the video is refused; videos that a model was made
# for are far from both. Share of an object's line that shows something else; share of what stands out from the
# background that is no object; radius of a disc over the scene's, less one.
_ELSE, _BESIDE, _SIZE = (0.03, 0.3), (0.05, 0.3), (0.08, 0.25)
# A line's colour ends within these shares of its length: at the next line, or at half the line's width past its end.
_ENDS = (0.95, 1.05), (0.95, 1.2)
_CUT = 0.02  # share of frames in which the border cuts an object, beyond which it is named


class MismatchError(InputError):
    """A video does not show what the model was made for."""


class DomainCheck:
    """Compares what a model draws of each state with the picture, object by object, and says what differs."""

    def __init__(self, model: PredictiveAutoencoder, device: torch.device, source: str, *, force: bool = False) -> None:
        """Begin with a video.

        Args:
            model: what looks at it; one with a scene.
            device: where the model is.
            source: names the video in errors.
            force: name what differs, but refuse nothing.
        """
        assert model.scene is not None
        self._model, self._scene, self._source, self._force = model, model.scene, source, force
        self._lines = [index for index, each in enumerate(self._scene.objects) if len(each.points) > 1]
        self._discs = [
            index for index, each in enumerate(self._scene.objects) if each.radius and index not in self._lines
        ]
        self._device = device
        self._colored = all(each.color is not None for each in self._scene.objects)
        self._evidence: dict[str, np.ndarray] = {}
        self._seen, self._stride = 0, 1

    def add(self, segment: Segment) -> None:
        """Look at `segment`.

        Raises:
            MismatchError: the video's first frames do not show what the model was made for.
        """
        chosen = np.arange(-self._seen % self._stride, len(segment.frames), self._stride)
        if len(chosen):
            found = {"frame": self._seen + chosen, **self._compared(segment, chosen)}
            kept = self._evidence or {name: value[:0] for name, value in found.items()}
            self._evidence = {name: np.concatenate([kept[name], value]) for name, value in found.items()}
        early = self._seen < FIRST
        self._seen += len(segment.frames)
        while len(self._evidence["frame"]) > _MOST:
            self._stride *= 2
            stays = self._evidence["frame"] % self._stride == 0
            self._evidence = {name: value[stays] for name, value in self._evidence.items()}
        if early and self._seen >= _FEW:
            self._refuse()

    def end(self) -> None:
        """DomainCheck a video that ended before there was enough of it.

        Raises:
            MismatchError: it does not show what the model was made for.
        """
        if self._seen < _FEW:
            self._refuse()

    def _refuse(self) -> None:
        refused = [text for severe, text in self._differences() if severe]
        if refused and not self._force:
            scene = self._scene
            names = ", ".join(each.name for each in scene.objects)
            raise MismatchError(
                f"{self._source}: does not look like what the checkpoint was made for ({'; '.join(refused)}). It "
                f"expects {scene.appearance}; objects: {names}. Give `crop=(x, y, width, height)` of the part that "
                "shows just that, use or train a checkpoint for this scene, or add `force=True` to go on"
            )

    def findings(self) -> list[str]:
        """What differs from videos that the model was made for, one sentence each."""
        ordered = sorted(self._differences(), key=lambda found: not found[0])
        return [f"{text[0].upper()}{text[1:]}." for _, text in ordered]

    def _compared(self, segment: Segment, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """What is known of some frames of `segment`, a row each."""
        scene, levels = self._scene, [segment.frames[index].frame for index in chosen]
        found = {"agreement": segment.agreement.numpy()[chosen]}
        if scene.color == "rgb" and self._colored:
            found["things"] = np.array([colored_things(scene, each) for each in levels])
        state = State(segment.states.q[chosen], segment.states.v[chosen]).to(self._device)
        drawn = outlines(self._model, scene, state) if self._colored else []
        if drawn:
            frames = np.stack(levels).astype(np.float32) / 255
            lines, discs = ([drawn[index] for index in each] for each in (self._lines, self._discs))
            if lines:
                colors = line_colors([scene.objects[index] for index in self._lines], frames, lines)
                found["shown"] = shown_along_lines(colors, frames, lines)
                found["end"] = line_ends(colors, frames, lines)
                if not discs:
                    found["beside"] = beside_lines(frames, lines)
            if discs:
                objects = [scene.objects[index] for index in self._discs]
                found["size"], found["cut"] = disc_sizes(objects, frames, discs), cut_off(objects, frames)
        return found

    def _differences(self) -> Iterator[tuple[bool, str]]:
        """What differs so far, and whether the video is refused for it."""
        scene, found = self._scene, self._evidence
        if "things" in found:
            yield from ((True, text) for text in wrong_colors(scene, found["things"]))
        middle = float(np.median(found["agreement"]))
        if middle < scene.min_reprojection_score:
            usual = f"{scene.min_reprojection_score:.0%} are usual at least"
            yield True, f"the redrawn state explains {middle:.0%} of the picture, {usual}"
        if "shown" in found:
            for index, share, ends in zip(self._lines, 1 - found["shown"].mean(0), found["end"].T, strict=True):
                yield from self._line_differences(scene.objects[index], float(share), ends)
        if "beside" in found:
            share = float(np.median(found["beside"]))
            if share > _BESIDE[0]:
                yield share > _BESIDE[1], f"{share:.0%} of what stands out from the background is none of the objects"
        if "size" in found:
            for index, sizes, cut in zip(self._discs, found["size"].T, found["cut"].T, strict=True):
                yield from self._disc_differences(scene.objects[index], sizes, float(cut.mean()))

    def _line_differences(self, each: SceneObject, share: float, ends: np.ndarray) -> Iterator[tuple[bool, str]]:
        if share > _ELSE[0]:
            yield (
                share > _ELSE[1],
                f"the picture shows something else along {share:.0%} of where {each.name} is drawn: lengths differ "
                "from the checkpoint's, the part of the picture is displaced, or it is another thing",
            )
        known, last = ends[np.isfinite(ends)], each.name == self._scene.objects[self._lines[-1]].name
        end = float(np.median(known)) if len(known) else 1.0
        low, high = _ENDS[last]
        if not low <= end <= high:
            yield False, f"{each.name} ends at {end:.2f} of the length that the checkpoint knows"

    def _disc_differences(self, each: SceneObject, sizes: np.ndarray, cut: float) -> Iterator[tuple[bool, str]]:
        known = sizes[np.isfinite(sizes)]
        size = float(np.median(known)) if len(known) else 1.0
        if abs(size - 1) > _SIZE[0]:
            yield (
                abs(size - 1) > _SIZE[1],
                f"{each.name} has {size:.2f} times the radius of {each.radius:g} that the checkpoint knows, so it "
                "touches and bounces elsewhere",
            )
        if cut > _CUT:
            yield (
                False,
                f"the border of the picture cuts off {each.name} in {cut:.0%} of the frames: the part of the picture "
                "is displaced or too small",
            )
