"""prediction.mp4: drawn and coded by a thread of its own, one piece behind the predictor."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from physvision.core import FileError, State, VideoError
from physvision.predict.canvas import Canvas, Marks
from physvision.predict.mechanics import outlines
from physvision.predict.predictor import Piece, Predictor
from physvision.video import Coding, Writer

TRAIL = 10  # moments of the predicted way that are drawn
# As good to the eye as slower settings at this content, at a tenth of the time.
_CODING = Coding("libx264", "yuv420p", {"crf": "20", "preset": "veryfast"})


class Film:
    """The film of what a predictor sees."""

    def __init__(self, path: Path, predictor: Predictor) -> None:
        """Begin the film at `path`, which appears when it is closed."""
        self._predictor = predictor
        self._canvas = Canvas(predictor.scene, predictor.steps / predictor.scene.fps)
        self._writer = Writer(path, predictor.scene.fps, coding=_CODING)
        self._thread = ThreadPoolExecutor(1, "film")
        self._drawing: Future[None] | None = None
        self._ended = False

    def add(self, piece: Piece) -> None:
        """Take in `piece`; its frames are drawn while the next one is computed.

        Raises:
            FileError: frames given before could not be written; the film is given up.
        """
        self._wait()
        self._drawing = self._thread.submit(self._draw, piece, self._marks(piece))

    def close(self) -> Path | None:
        """Finish the film and put it under its name; None if it was given up before.

        Raises:
            FileError: the last frames could not be written; the film is given up.
        """
        if self._ended:
            return None
        self._wait()
        self._end()
        self._writer.close()
        return self._writer.path

    def abandon(self) -> None:
        """Give up the film, unless it is finished."""
        if not self._ended:
            self._end()
            self._writer.__exit__(RuntimeError, RuntimeError("abandoned"), None)

    def _end(self) -> None:
        self._ended = True
        self._thread.shutdown()

    def _wait(self) -> None:
        drawing, self._drawing = self._drawing, None
        if drawing is None:
            return
        try:
            drawing.result()
        except VideoError as error:
            self._end()
            raise FileError(
                f"{error}; the tables are whole up to there. Make room, or add --film false, and run again"
            ) from error

    def _marks(self, piece: Piece) -> list[Marks]:
        """What is drawn over each frame; engines are asked by one thread alone."""
        model, scene, device = self._predictor.model, self._predictor.scene, self._predictor.device
        seen = outlines(model, scene, piece.states.to(device))
        expected = State(piece.expected.q.nan_to_num(), piece.expected.v.nan_to_num())
        before = outlines(model, scene, expected.to(device))
        ahead = self._ways(piece)
        sure = piece.confidence.tolist()
        return [
            Marks(*([points[index] for points in each] for each in (seen, ahead, before)), confidence=sure[index])
            for index in range(len(piece.frames))
        ]

    def _ways(self, piece: Piece) -> list[np.ndarray]:
        """Where each object's last point is predicted to be, (frames, moments, 2)."""
        steps = self._predictor.steps
        chosen = np.unique(np.linspace(0, steps, min(TRAIL, steps) + 1).round().astype(int))[1:]
        q, v = (whole[:, chosen].flatten(0, 1) for whole in (piece.ahead.q, piece.ahead.v))
        points = outlines(self._predictor.model, self._predictor.scene, State(q, v).to(self._predictor.device))
        return [each[:, -1].reshape(len(piece.frames), len(chosen), 2) for each in points]

    def _draw(self, piece: Piece, marks: list[Marks]) -> None:
        for index, frame in enumerate(piece.frames):
            foreseen = piece.foreseen[index].numpy() if bool(piece.known[index]) else None
            self._writer.add(self._canvas.draw(frame, marks[index], foreseen))
