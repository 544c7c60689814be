"""The frames of prediction.mp4: the video, what had been predicted for the same moment, and the difference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from physvision.core import State
from physvision.prediction.mechanics import outlines
from physvision.prediction.prediction import Segment
from physvision.prediction.predictor import Predictor
from physvision.report import Canvas, Mark, Panel, difference_heatmap, object_colors

DOTS = 10  # moments of the predicted path that are drawn


class PredictionFrames:
    """Draws what a predictor sees, segment by segment."""

    def __init__(self, predictor: Predictor) -> None:
        scene, ahead = predictor.scene, f"predicted {predictor.horizon:.3g} s before"
        self._predictor = predictor
        self._canvas = Canvas(
            scene.size,
            ("video, and what is seen in it", ahead, "difference"),
            scene.fps,
            f"error of the frame {ahead}, % of full brightness",
        )

    def draw(self, segment: Segment) -> Iterator[np.ndarray]:
        """The film's frames of `segment`; engines are asked at once, pictures drawn as they are iterated over."""
        return self._pictures(segment, *self._marks(segment))

    def _marks(self, segment: Segment) -> tuple[list[list[Mark]], list[list[Mark]]]:
        """What is drawn over each frame of the video, and over each predicted one."""
        scene, steps = self._predictor.scene, self._predictor.steps
        moments = np.unique(np.linspace(0, steps, min(DOTS, steps) + 1).round().astype(int))[1:].tolist()
        wanted = zip(*((each.q, each.v) for each in (segment.states, segment.expected)), strict=True)
        q, v = (
            torch.cat([now[:, None], ahead[:, moments], before[:, None].nan_to_num()], 1).flatten(0, 1)
            for ahead, (now, before) in zip((segment.ahead.q, segment.ahead.v), wanted, strict=True)
        )
        points = outlines(self._predictor.model, scene, State(q, v).to(self._predictor.device))
        seen: list[list[Mark]] = [[] for _ in segment.frames]
        expected: list[list[Mark]] = [[] for _ in segment.frames]
        for each, color, whole, sure in zip(
            scene.objects, object_colors(scene.objects), points, segment.confidence.T.tolist(), strict=False
        ):
            whole = whole.reshape(len(segment.frames), len(moments) + 2, *whole.shape[1:])
            radius = each.radius or 2.0
            for index, lines in enumerate(whole):
                seen[index].append(Mark(color, lines[0], radius, dots=lines[1:-1, -1], confidence=sure[index]))
                expected[index].append(Mark(color, lines[-1], radius, dimmed=True))
        return seen, expected

    def _pictures(self, segment: Segment, seen: list[list[Mark]], expected: list[list[Mark]]) -> Iterator[np.ndarray]:
        for index, timed in enumerate(segment.frames):
            panels: list[Panel | str] = [Panel(timed.original, seen[index])]
            error = float("nan")
            if bool(segment.known[index]):
                foreseen = segment.foreseen[index].movedim(0, -1).numpy()
                levels = np.rint(foreseen * 255).astype(np.uint8)
                difference = foreseen - timed.frame.astype(np.float32) / 255
                error = float(np.sqrt(np.square(difference).mean()))
                panels += [Panel(levels, expected[index]), Panel(difference_heatmap(np.abs(difference).mean(-1)))]
            else:
                panels.append("nothing was predicted yet")
            yield self._canvas.draw(panels, timed.time, error)
