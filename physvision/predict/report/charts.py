"""Charts as SVG, with their numbers beside them for the page's script to read out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from physvision.predict.palette import Color, css

WIDTH, HEIGHT = 880, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 28


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        name: for the legend.
        values: one for each place along x; NaN leaves a gap.
        color: of the line.
        dashed: whether it is a prediction rather than what was seen.
    """

    name: str
    values: np.ndarray
    color: Color
    dashed: bool = False


def over_time(
    title: str,
    unit: str,
    times: np.ndarray,
    lines: Sequence[Line],
    *,
    turns: bool = False,
    low: float | None = None,
    width: int = WIDTH,
) -> str:
    """A figure of lines over time.

    Args:
        title: what is shown.
        unit: of the values.
        times: s.
        lines: with one value for each time.
        turns: values are angles from −π to π; a line is not drawn across the jump.
        low: lower end of the axis; as the values have it if not given.
        width: of the chart, so that its letters have the size of the page's.
    """
    found = np.concatenate([line.values[np.isfinite(line.values)] for line in lines] or [np.zeros(0)])
    bottom, top = _span(found)
    bottom = bottom if low is None else min(low, bottom)
    top = top if top - bottom > 1e-9 * max(abs(top), 1.0) else bottom + 1.0
    ticks = _ticks(bottom, top)
    bottom, top = min(bottom, ticks[0]), max(top, ticks[-1])
    first, last = float(times[0]), float(max(times[-1], times[0] + 1e-6))

    def x(time):
        return _LEFT + (time - first) / (last - first) * (width - _LEFT - _RIGHT)

    def y(value):
        share = np.clip((value - bottom) / (top - bottom), -0.02, 1.02)
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    marks = []
    for tick in ticks:
        marks.append(f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        marks.append(f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.6g}</text>')
    for tick in _ticks(first, last, max(3, width // 110)):
        marks.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{tick:.6g} s</text>')
    drawn = [_path(x(times), y(line.values), line, turns, line.values) for line in lines]
    data = {
        "t": _numbers(times),
        "names": [line.name for line in lines],
        "colors": [css(line.color) for line in lines],
        "values": [_numbers(line.values) for line in lines],
        "unit": unit,
        "span": [first, last],
        "frame": [_LEFT, width - _RIGHT, _TOP, HEIGHT - _BOTTOM],
    }
    body = "".join([*marks, *drawn, f'<line class="cursor" x1="-9" x2="-9" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'])
    return (
        f'<figure class="chart"><figcaption><b>{escape(title)}</b> <i>{escape(unit)}</i>{_legend(lines)}</figcaption>'
        f'<svg viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{escape(title)}">{body}</svg>'
        f'<div class="tip"></div><script type="application/json">{json.dumps(data)}</script></figure>'
    )


def in_the_picture(title: str, size: tuple[int, int], ways: Sequence[Line], ahead: Sequence[np.ndarray]) -> str:
    """A figure of the ways that objects took in the picture.

    Args:
        title: what is shown.
        size: width and height of the picture, pixels.
        ways: whose values are (times, 2), pixels.
        ahead: what follows each, likewise; drawn dashed.
    """
    wide, high = size
    width = 0.004 * max(size)
    drawn = []
    for way, following in zip(ways, ahead, strict=True):
        color = css(way.color)
        drawn.append(f'<polyline points="{_points(way.values)}" stroke="{color}" stroke-width="{width:.3g}"/>')
        dash = f"{2.5 * width:.3g} {2.5 * width:.3g}"
        drawn.append(
            f'<polyline points="{_points(following)}" stroke="{color}" stroke-width="{1.6 * width:.3g}" '
            f'stroke-dasharray="{dash}" stroke-linecap="round"/>'
        )
        if len(following):
            x, y = following[0]
            drawn.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{3 * width:.3g}" fill="{color}"/>')
    return (
        f'<figure class="map"><figcaption><b>{escape(title)}</b> {_legend(ways)}</figcaption>'
        f'<svg viewBox="0 0 {wide} {high}" role="img" aria-label="{escape(title)}">'
        f'<rect width="{wide}" height="{high}"/>{"".join(drawn)}</svg></figure>'
    )


def _span(values: np.ndarray) -> tuple[float, float]:
    """Lower and upper end of an axis: a few values far from all others are cut off, so that the others are seen."""
    if not len(values):
        return 0.0, 1.0
    low, high = np.quantile(values, [0.01, 0.99])
    room = 0.5 * (high - low)
    return float(max(values.min(), low - room)), float(min(values.max(), high + room))


def _legend(lines: Sequence[Line]) -> str:
    keys = (
        f'<span class="key{" dashed" if line.dashed else ""}" style="--c:{css(line.color)}">{escape(line.name)}</span>'
        for line in lines
    )
    return f'<span class="legend">{"".join(keys)}</span>'


def _path(x: np.ndarray, y: np.ndarray, line: Line, turns: bool, values: np.ndarray) -> str:
    pieces, before = [], math.nan
    for across, down, value in zip(x, y, values, strict=True):
        if math.isfinite(value):
            joined = math.isfinite(before) and not (turns and abs(value - before) > math.pi)
            pieces.append(f"{'L' if joined else 'M'}{across:.1f} {down:.1f}")
        before = float(value)
    dashed = ' class="dashed"' if line.dashed else ""
    return f'<path d="{"".join(pieces)}" stroke="{css(line.color)}"{dashed}/>'


def _points(way: np.ndarray) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in way if math.isfinite(x) and math.isfinite(y))


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`."""
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
