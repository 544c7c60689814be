"""HTML elements of a page: tables, rows of images, the video."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import av
import cv2
import numpy as np

MAX_VIDEO_BYTES = 8_000_000  # of a video in a page; the rest of a longer one is beside the page


class Markup(str):
    """Text that is HTML already; any other text is escaped on a page."""


@dataclass(frozen=True)
class ParameterRow:
    """Physical parameter as a row of a table.

    Attributes:
        name: Name of the parameter.
        values: One value, or one per object.
        unit: Unit of the values; "1" for a pure number.
        origin: Origin of the values, such as "measured in this clip", "known" or "assumed".
        interval: Lower and upper end of the 95 % interval; None if unknown.
    """

    name: str
    values: Sequence[float]
    unit: str
    origin: str
    interval: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """First six values with their unit."""
        values = ", ".join(f"{value:.5g}" for value in self.values[:6]) + (" …" if len(self.values) > 6 else "")
        return f"{values} {'' if self.unit == '1' else self.unit.replace('^2', '²')}".strip()


def to_html(part: object) -> str:
    """Convert a part to HTML: markup is unchanged, anything else is escaped text."""
    return str(part) if isinstance(part, Markup) else escape(str(part))


def code(text: str) -> Markup:
    """Format text in a monospaced font."""
    return Markup(f"<code>{escape(text)}</code>")


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> Markup:
    """Make a table whose first column names its rows."""
    header = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    lines = ("".join(f"<td>{to_html(cell)}</td>" for cell in row) for row in rows)
    return Markup(f"<table>{header}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")


def parameter_table(parameters: Iterable[ParameterRow]) -> Markup:
    """Make a table of parameters with origins, and intervals where there are any."""
    parameters = list(parameters)
    has_intervals, rows = any(row.interval for row in parameters), []
    for row in parameters:
        interval = f"{row.interval[0]:.5g} to {row.interval[1]:.5g}" if row.interval else "–"
        rows.append([row.name, row.text, *[interval] * has_intervals, row.origin])
    return table(rows, ["parameter", "value", *["95 % interval"] * has_intervals, "origin"])


def stat_cards(numbers: Iterable[tuple[str, str]]) -> Markup:
    """Make cards with a number in large type above its description."""
    boxes = (f'<div class="card"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in numbers)
    return Markup(f'<div class="cards">{"".join(boxes)}</div>')


def side_by_side(left: Iterable[Markup], right: Iterable[Markup]) -> Markup:
    """Arrange figures in two columns."""
    return Markup(f'<div class="two"><div>{"".join(left)}</div><div>{"".join(right)}</div></div>')


def image_strip(images: Mapping[str, np.ndarray]) -> Markup:
    """Arrange uint8 images (height, width, channels) in a row, each above its caption."""
    boxes = (f'<div><img alt="" src="{png(image)}">{escape(caption)}</div>' for caption, image in images.items())
    return Markup(f'<figure><div class="strip">{"".join(boxes)}</div></figure>')


def png(image: np.ndarray) -> str:
    """Encode a uint8 image (height, width, channels) as a data URL."""
    _, data = cv2.imencode(".png", image if image.shape[-1] == 1 else image[..., ::-1])
    return f"data:image/png;base64,{base64.b64encode(data.tobytes()).decode()}"


def embed_video(video: Path, start: float = 0.0) -> Markup:
    """Embed a video: all of it, or the beginning of a long one, without re-encoding.

    Args:
        video: Path of an MP4 file.
        start: Time of its first frame in the charts, s.
    """
    is_whole = video.stat().st_size <= MAX_VIDEO_BYTES
    data = base64.b64encode(video.read_bytes() if is_whole else _beginning(video)).decode()
    rest = "" if is_whole else f"<p>This is the beginning; {escape(video.name)} beside this page has all of it.</p>"
    return Markup(
        f'<video controls loop muted playsinline preload="auto" data-start="{start}" '
        f'src="data:video/mp4;base64,{data}"></video>{rest}'
    )


def _beginning(video: Path) -> bytes:
    target = io.BytesIO()
    with av.open(str(video)) as source, av.open(target, "w", format="mp4") as excerpt:
        stream = source.streams.video[0]
        copy, size = excerpt.add_stream_from_template(stream), 0
        for packet in source.demux(stream):
            if packet.dts is None or size + packet.size > MAX_VIDEO_BYTES:
                break
            size += packet.size
            packet.stream = copy
            excerpt.mux(packet)
    return target.getvalue()
