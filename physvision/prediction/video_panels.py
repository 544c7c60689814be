"""Frames of prediction.mp4: the video, the prediction for the same time, and the difference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from physvision.core import State
from physvision.prediction.mechanics import outlines
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor
from physvision.report import Canvas, Mark, Panel, difference_heatmap, object_colors

MAX_DOTS = 10  # of a predicted path


class PredictionPanels:
    """Draws the observations and predictions of a predictor, segment by segment."""

    def __init__(self, predictor: Predictor) -> None:
        scene, ahead = predictor.scene, f"predicted {predictor.horizon:.3g} s before"
        self._predictor = predictor
        self._canvas = Canvas(
            scene.size,
            ("video and observed state", ahead, "difference"),
            scene.fps,
            f"error of the frame {ahead}, % of full brightness",
        )

    def draw(self, segment: Segment) -> Iterator[np.ndarray]:
        """Draw the frames of a segment; the engine is evaluated at once, images are drawn on iteration."""
        return self._frames(segment, *self._marks(segment))

    def _marks(self, segment: Segment) -> tuple[list[list[Mark]], list[list[Mark]]]:
        """Compute the marks of each observed and each predicted frame."""
        scene, steps = self._predictor.scene, self._predictor.steps
        dots = np.unique(np.linspace(0, steps, min(MAX_DOTS, steps) + 1).round().astype(int))[1:].tolist()
        parts = (
            (segment.states.q, segment.rollout.q, segment.predicted.q),
            (segment.states.v, segment.rollout.v, segment.predicted.v),
        )
        q, v = (
            torch.cat([state[:, None], rollout[:, dots], predicted[:, None].nan_to_num()], 1).flatten(0, 1)
            for state, rollout, predicted in parts
        )
        points = outlines(self._predictor.model, scene, State(q, v).to(self._predictor.device))
        observed: list[list[Mark]] = [[] for _ in segment.frames]
        predicted: list[list[Mark]] = [[] for _ in segment.frames]
        for item, color, outline, confidence in zip(
            scene.objects, object_colors(scene.objects), points, segment.confidence.T.tolist(), strict=False
        ):
            outline = outline.reshape(len(segment.frames), len(dots) + 2, *outline.shape[1:])
            radius = item.radius or 2.0
            for index, lines in enumerate(outline):
                observed[index].append(
                    Mark(color, lines[0], radius, dots=lines[1:-1, -1], confidence=confidence[index])
                )
                predicted[index].append(Mark(color, lines[-1], radius, dimmed=True))
        return observed, predicted

    def _frames(
        self, segment: Segment, observed: list[list[Mark]], predicted: list[list[Mark]]
    ) -> Iterator[np.ndarray]:
        for index, timed_frame in enumerate(segment.frames):
            panels: list[Panel | str] = [Panel(timed_frame.original, observed[index])]
            error = float("nan")
            if bool(segment.has_prediction[index]):
                frame = segment.predicted_frames[index].movedim(0, -1).numpy()
                difference = frame - timed_frame.frame.astype(np.float32) / 255
                error = float(np.sqrt(np.square(difference).mean()))
                levels = np.rint(frame * 255).astype(np.uint8)
                heatmap = difference_heatmap(np.abs(difference).mean(-1))
                panels += [Panel(levels, predicted[index]), Panel(heatmap)]
            else:
                panels.append("no prediction yet")
            yield self._canvas.draw(panels, timed_frame.time, error)
