"""Check that a video is in the domain of a model, over the whole video while it is read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from physvision.core import InputError, SceneObject, State
from physvision.models import PredictiveAutoencoder
from physvision.prediction.appearance_check import AppearanceCheck, count_colored_objects, describe_color_mismatch
from physvision.prediction.clip_fit import ClipFit
from physvision.prediction.law_check import law_differences
from physvision.prediction.mechanics import outlines
from physvision.prediction.prediction import Difference, Segment
from physvision.prediction.settings import SETTINGS


class MismatchError(InputError):
    """Error of a video that is outside the model's domain."""


class DomainCheck:
    """Compares the rendered states with the video, object by object, and the motion with its law."""

    def __init__(
        self,
        model: PredictiveAutoencoder,
        device: torch.device,
        source: str,
        *,
        force: bool = False,
    ) -> None:
        """Start the check of a video.

        Args:
            model: Model with a scene.
            device: Device of the model.
            source: Name of the video in messages.
            force: If true, differences are warnings only.
        """
        assert model.scene is not None
        self._model, self._scene, self._source, self._force = model, model.scene, source, force
        self._device = device
        objects = list(enumerate(self._scene.objects))
        self._lines = [index for index, item in objects if len(item.points) > 1]
        self._discs = [index for index, item in objects if item.radius and index not in self._lines]
        self._has_colors = all(item.color is not None for item in self._scene.objects)
        self._measurements: dict[str, np.ndarray] = {}
        self._frames, self._stride = 0, 1
        self._fit: ClipFit | None = None

    def update(self, segment: Segment) -> None:
        """Measure the frames of a segment.

        Raises:
            MismatchError: The first frames of the video are outside the model's domain.
        """
        self._fit = segment.fit
        indices = np.arange(-self._frames % self._stride, len(segment.frames), self._stride)
        if len(indices):
            values = {"frame": self._frames + indices, **self._measure(segment, indices)}
            earlier = self._measurements or {name: value[:0] for name, value in values.items()}
            self._measurements = {name: np.concatenate([earlier[name], value]) for name, value in values.items()}
        is_early = self._frames < SETTINGS.first_frames
        self._frames += len(segment.frames)
        while len(self._measurements["frame"]) > SETTINGS.max_sampled_frames:
            self._stride *= 2
            retained = self._measurements["frame"] % self._stride == 0
            self._measurements = {name: value[retained] for name, value in self._measurements.items()}
        if is_early and self._frames >= SETTINGS.min_frames:
            self._reject_mismatch()

    def finish(self) -> None:
        """Check a video that ended before there were enough frames.

        Raises:
            MismatchError: The video is outside the model's domain.
        """
        if self._frames < SETTINGS.min_frames:
            self._reject_mismatch()

    def _reject_mismatch(self) -> None:
        severe = [difference.text for difference in self._differences() if difference.is_severe]
        if severe and not self._force:
            scene = self._scene
            names = ", ".join(item.name for item in scene.objects)
            raise MismatchError(
                f"{self._source}: is outside the domain of the checkpoint ({'; '.join(severe)}). It "
                f"expects {scene.appearance}; objects: {names}. Give `crop=(x, y, width, height)` of the part that "
                "shows just that, use or train a checkpoint for this scene, or add `force=True` to continue"
            )

    def warnings(self) -> list[str]:
        """Describe the differences from the model's domain, the severe ones first, one sentence each."""
        ordered = sorted(self._differences(), key=lambda difference: not difference.is_severe)
        return [f"{text[0].upper()}{text[1:]}." for _, text in ordered]

    def _measure(self, segment: Segment, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Measure some frames of a segment, a row each."""
        scene, frames = self._scene, [segment.frames[index].frame for index in indices]
        values = {"reprojection_score": segment.reprojection_score.numpy()[indices]}
        if scene.color == "rgb" and self._has_colors:
            values["color_counts"] = np.array([count_colored_objects(scene, frame) for frame in frames])
        state = State(segment.states.q[indices], segment.states.v[indices]).to(self._device)
        rendered = outlines(self._model, scene, state) if self._has_colors else []
        if rendered:
            scaled_frames = np.stack(frames).astype(np.float32) / 255
            lines, discs = (
                AppearanceCheck(
                    [scene.objects[index] for index in group],
                    scaled_frames,
                    [rendered[index] for index in group],
                )
                for group in (self._lines, self._discs)
            )
            if self._lines:
                colors = lines.line_colors()
                values["color_match"] = lines.color_match_along_lines(colors)
                values["line_end"] = lines.line_ends(colors)
                if not self._discs:
                    values["surplus"] = lines.surplus_foreground()
            if self._discs:
                values["size"], values["cut_off"] = discs.disc_sizes(), discs.cut_off()
        return values

    def _differences(self) -> Iterator[Difference]:
        """Yield the differences so far."""
        scene, values = self._scene, self._measurements
        if "color_counts" in values:
            for text in describe_color_mismatch(scene, values["color_counts"]):
                yield Difference(True, text)
        score, limit = float(np.median(values["reprojection_score"])), scene.min_reprojection_score
        if score < limit:
            part = f"{score:.0%}" if score >= 0.005 else "nothing"
            text = f"the rendered state explains {part} of the image, expected are at least {limit:.0%}"
            yield Difference(True, text)
        if "color_match" in values:
            # In most frames: a link that was misread for a while says nothing of lengths.
            mismatch = 1 - np.median(values["color_match"], 0)
            for index, fraction, ends in zip(self._lines, mismatch, values["line_end"].T, strict=True):
                yield from self._line_differences(scene.objects[index], float(fraction), ends)
        if "surplus" in values:
            fraction = float(np.median(values["surplus"]))
            warning, severe = SETTINGS.max_surplus
            if fraction > warning:
                yield Difference(fraction > severe, f"{fraction:.0%} of the foreground belongs to none of the objects")
        if "size" in values:
            for index, sizes, cut in zip(self._discs, values["size"].T, values["cut_off"].T, strict=True):
                yield from self._disc_differences(scene.objects[index], sizes, float(cut.mean()))
        if self._fit is not None:
            yield from law_differences(self._fit, scene)

    def _line_differences(self, item: SceneObject, mismatch: float, ends: np.ndarray) -> Iterator[Difference]:
        warning, severe = SETTINGS.max_other_color
        if mismatch > warning:
            yield Difference(
                mismatch > severe,
                f"the image shows something else along {mismatch:.0%} of where {item.name} is rendered: lengths differ "
                "from the checkpoint's, the crop is displaced, it is another object, or the checkpoint is untrained",
            )
        is_last = item.name == self._scene.objects[self._lines[-1]].name
        end = _finite_median(ends)
        low, high = SETTINGS.last_line_ends if is_last else SETTINGS.inner_line_ends
        if not low <= end <= high:
            yield Difference(False, f"{item.name} ends at {end:.2f} of the length that the checkpoint expects")

    def _disc_differences(self, item: SceneObject, sizes: np.ndarray, cut: float) -> Iterator[Difference]:
        size, (warning, severe) = _finite_median(sizes), SETTINGS.max_radius_error
        if abs(size - 1) > warning:
            yield Difference(
                abs(size - 1) > severe,
                f"{item.name} has {size:.2f} times the radius of {item.radius:g} that the checkpoint expects, so its "
                "contacts are elsewhere",
            )
        if cut > SETTINGS.max_cut_frames:
            yield Difference(
                False,
                f"the border of the image cuts off {item.name} in {cut:.0%} of the frames: the crop is displaced or "
                "too small",
            )


def _finite_median(values: np.ndarray) -> float:
    """Median of the finite values; one if there is none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else 1.0
