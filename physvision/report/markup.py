"""Pieces of a page that are more than text: tables, rows of pictures, the film."""

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

# A page holds so much of a film; a longer one stays beside it.
FILM_BYTES = 8_000_000


class Markup(str):
    """Text that is HTML already; every other text is escaped where it comes into a page."""


@dataclass(frozen=True)
class ParameterRow:
    """A physical parameter as a page shows it.

    Attributes:
        name: for people.
        values: one, or one for each object.
        unit: of the values; "1" for a pure number.
        origin: where it comes from, as "measured in this clip", "known" or "assumed".
        interval: lower and upper end of what the clip leaves open, with 95 % probability; None where nobody said.
        note: what a person should know of it.
    """

    name: str
    values: Sequence[float]
    unit: str
    origin: str
    interval: tuple[float, float] | None = None
    note: str = ""

    @property
    def text(self) -> str:
        """Values and unit; of many values the first six."""
        shown = ", ".join(f"{value:.5g}" for value in self.values[:6]) + (" …" if len(self.values) > 6 else "")
        return f"{shown} {'' if self.unit == '1' else self.unit.replace('^2', '²')}".strip()


def shown(part: object) -> str:
    """`part` as HTML: markup as it is, anything else as escaped text."""
    return str(part) if isinstance(part, Markup) else escape(str(part))


def code(text: str) -> Markup:
    """Text in letters of one width."""
    return Markup(f"<code>{escape(text)}</code>")


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> Markup:
    """A table; the first column names its rows."""
    first = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>" if head else ""
    lines = ("".join(f"<td>{shown(cell)}</td>" for cell in row) for row in rows)
    return Markup(f"<table>{first}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")


def parameter_table(parameters: Iterable[ParameterRow]) -> Markup:
    """A table of parameters with their intervals, if any has one, and where they come from."""
    chosen = list(parameters)
    sure, noted = any(each.interval for each in chosen), any(each.note for each in chosen)
    rows = []
    for each in chosen:
        between = f"{each.interval[0]:.5g} to {each.interval[1]:.5g}" if each.interval else "–"
        rows.append([each.name, each.text, *([between] if sure else []), each.origin, *([each.note] if noted else [])])
    return table(rows, ["parameter", "value", *(["95 % interval"] if sure else []), "origin", *([""] if noted else [])])


def stat_cards(numbers: Iterable[tuple[str, str]]) -> Markup:
    """Numbers in large letters, each above what it is."""
    boxes = (f'<div class="card"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in numbers)
    return Markup(f'<div class="cards">{"".join(boxes)}</div>')


def side_by_side(left: Iterable[Markup], right: Iterable[Markup]) -> Markup:
    """Figures in two columns."""
    return Markup(f'<div class="two"><div>{"".join(left)}</div><div>{"".join(right)}</div></div>')


def image_strip(pictures: Mapping[str, np.ndarray]) -> Markup:
    """Pictures (height, width, channels) uint8 in a row, each above its caption."""
    boxes = (f'<div><img alt="" src="{png(each)}">{escape(caption)}</div>' for caption, each in pictures.items())
    return Markup(f'<figure><div class="strip">{"".join(boxes)}</div></figure>')


def png(picture: np.ndarray) -> str:
    """A picture (height, width, channels) uint8 as a data address."""
    _, data = cv2.imencode(".png", picture if picture.shape[-1] == 1 else picture[..., ::-1])
    return f"data:image/png;base64,{base64.b64encode(data.tobytes()).decode()}"


def embed_video(film: Path, start: float = 0.0) -> Markup:
    """The film to be played in the page: all of it, or the beginning of a long one, without coding it anew.

    Args:
        film: an MP4 file.
        start: the time of its first frame in the charts, s.
    """
    whole = film.stat().st_size <= FILM_BYTES
    data = base64.b64encode(film.read_bytes() if whole else _beginning(film)).decode()
    rest = "" if whole else f"<p>This is the beginning; {escape(film.name)} beside this page has all of it.</p>"
    return Markup(
        f'<video controls loop muted playsinline preload="auto" data-start="{start}" '
        f'src="data:video/mp4;base64,{data}"></video>{rest}'
    )


def _beginning(film: Path) -> bytes:
    """As much of its beginning as a page holds well."""
    target = io.BytesIO()
    with av.open(str(film)) as source, av.open(target, "w", format="mp4") as short:
        stream = source.streams.video[0]
        copied, size = short.add_stream_from_template(stream), 0
        for packet in source.demux(stream):
            if packet.dts is None or size + packet.size > FILM_BYTES:
                break
            size += packet.size
            packet.stream = copied
            short.mux(packet)
    return target.getvalue()
