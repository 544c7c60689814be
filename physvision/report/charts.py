"""Charts as SVG; those over time carry their numbers for the page's script to read out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np

from physvision.report.markup import Markup, png
from physvision.report.palette import Color, css

WIDTH, HEIGHT = 880, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 28


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Attributes:
        name: for the legend.
        values: one for each time, or places (points, 2) in a plane; NaN leaves a gap.
        color: of the line.
        style: "dotted" for what is predicted rather than seen, "points" for single measurements.
        spread: half the width of a band around the values, in a chart over time.
    """

    name: str
    values: np.ndarray
    color: Color
    style: Literal["solid", "dotted", "points"] = "solid"
    spread: np.ndarray | None = None


class _Frame:
    """The box of a chart, its grid, and where values lie in it."""

    def __init__(self, across: tuple[float, float], up: tuple[float, float], size: tuple[int, int]) -> None:
        self.across, self.up, (self.width, self.height) = across, up, size
        self.box = (_LEFT, self.width - _RIGHT, _TOP, self.height - _BOTTOM)

    def x(self, values):
        left, right, _, _ = self.box
        return left + (values - self.across[0]) / (self.across[1] - self.across[0]) * (right - left)

    def y(self, values):
        _, _, top, bottom = self.box
        share = np.clip((values - self.up[0]) / (self.up[1] - self.up[0]), -0.02, 1.02)
        return bottom - share * (bottom - top)

    def grid(self, unit_across: str) -> str:
        """Lines and numbers of both axes."""
        left, right, _, _ = self.box
        marks = []
        for tick in _ticks(*self.up):
            y = self.y(tick)
            marks.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            marks.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.6g}</text>')
        for tick in _ticks(*self.across, max(3, self.width // 110)):
            text = f"{tick:.6g} {escape(unit_across)}".strip()
            marks.append(f'<text x="{self.x(tick):.1f}" y="{self.height - 8}" text-anchor="middle">{text}</text>')
        return "".join(marks)

    def line(self, x: np.ndarray, y: np.ndarray, line: Curve, jump: float = math.inf) -> str:
        """A line through places of the chart; it is parted at gaps and where it jumps further than `jump`."""
        across, down, color = self.x(x), self.y(y), css(line.color)
        if line.style == "points":
            dots = zip(across, down, strict=True)
            return "".join(
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.8" fill="{color}"/>' for a, b in dots if math.isfinite(a + b)
            )
        parts, before = [], math.nan
        for a, b, value in zip(across, down, y, strict=True):
            if math.isfinite(a + b):
                joined = math.isfinite(before) and abs(value - before) <= jump
                parts.append(f"{'L' if joined else 'M'}{a:.1f} {b:.1f}")
            before = float(value) if math.isfinite(a) else math.nan
        dashed = ' class="dashed"' if line.style == "dotted" else ""
        return f'<path d="{"".join(parts)}" stroke="{color}"{dashed}/>'

    def band(self, x: np.ndarray, line: Curve) -> str:
        """The band around a line, if it has one."""
        if line.spread is None:
            return ""
        edge = np.concatenate([line.values + line.spread, (line.values - line.spread)[::-1]])
        corners = zip(self.x(np.concatenate([x, x[::-1]])), self.y(edge), strict=True)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners if math.isfinite(a + b))
        return f'<polygon points="{points}" fill="{css(line.color)}" opacity=".18"/>'


def time_chart(
    title: str,
    unit: str,
    times: np.ndarray,
    lines: Sequence[Curve],
    *,
    turns: bool = False,
    low: float | None = None,
    width: int = WIDTH,
) -> Markup:
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
    edges = [line.values + sign * (0.0 if line.spread is None else line.spread) for line in lines for sign in (-1, 1)]
    bottom, top = _span(np.concatenate(edges or [np.zeros(0)]))
    up = _rounded(bottom if low is None else min(low, bottom), top)
    frame = _Frame((float(times[0]), float(max(times[-1], times[0] + 1e-6))), up, (width, HEIGHT))
    jump = math.pi if turns else math.inf
    drawn = [frame.band(times, line) + frame.line(times, line.values, line, jump) for line in lines]
    data = {
        "t": _numbers(times),
        "names": [line.name for line in lines],
        "colors": [css(line.color) for line in lines],
        "values": [_numbers(line.values) for line in lines],
        "unit": unit,
        "span": frame.across,
        "frame": frame.box,
    }
    cursor = f'<line class="cursor" x1="-9" x2="-9" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
    numbers = f'<div class="tip"></div><script type="application/json">{json.dumps(data)}</script>'
    return _figure("chart", title, unit, lines, (width, HEIGHT), frame.grid("s") + "".join(drawn) + cursor, numbers)


def phase_chart(title: str, across: str, up: str, lines: Sequence[Curve], *, width: int = WIDTH // 2) -> Markup:
    """A figure of lines in a plane of two quantities, such as an angle and its rate.

    Args:
        title: what is shown.
        across: name of the first quantity, and its unit.
        up: that of the second one.
        lines: whose values are (points, 2).
        width: of the chart.
    """
    whole = np.concatenate([line.values for line in lines])
    spans = [_rounded(*_span(whole[:, axis])) for axis in (0, 1)]
    size = (width, round(0.8 * width))
    frame = _Frame(spans[0], spans[1], size)
    drawn = [frame.line(line.values[:, 0], line.values[:, 1], line) for line in lines]
    return _figure("phase", title, f"{up} over {across}", lines, size, frame.grid("") + "".join(drawn))


def path_chart(title: str, size: tuple[int, int], lines: Sequence[Curve], picture: np.ndarray | None = None) -> Markup:
    """A figure of the paths that objects took in the picture; a dotted one begins with a dot.

    Args:
        title: what is shown.
        size: width and height of the picture, pixels.
        lines: whose values are (points, 2), pixels, y down.
        picture: (height, width, channels) uint8, drawn faintly behind them.
    """
    wide, high = size
    width = 0.004 * max(size)
    drawn = [f'<rect width="{wide}" height="{high}"/>']
    if picture is not None:
        drawn.append(f'<image width="{wide}" height="{high}" opacity=".55" href="{png(picture)}"/>')
    for line in lines:
        points = line.values[np.isfinite(line.values).all(1)]
        color, dotted = css(line.color), line.style == "dotted"
        if line.style == "points":
            drawn += [f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{width:.3g}" fill="{color}"/>' for x, y in points]
            continue
        stroke = f'stroke="{color}" stroke-width="{1.6 * width if dotted else width:.3g}"'
        dash = f' stroke-dasharray="{2.5 * width:.3g} {2.5 * width:.3g}" stroke-linecap="round"' if dotted else ""
        drawn.append(f'<polyline points="{" ".join(f"{x:.2f},{y:.2f}" for x, y in points)}" {stroke}{dash}/>')
        if dotted and len(points):
            x, y = points[0]
            drawn.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{3 * width:.3g}" fill="{color}"/>')
    return _figure("map", title, "", lines, size, "".join(drawn))


def _figure(
    kind: str, title: str, unit: str, lines: Sequence[Curve], size: tuple[int, int], body: str, rest: str = ""
) -> Markup:
    """A figure with its caption and legend; equal names stand there once."""
    named = {line.name: line for line in lines if line.name}
    keys = "".join(
        f'<span class="key{" dashed" if line.style == "dotted" else ""}" style="--c:{css(line.color)}">'
        f"{escape(name)}</span>"
        for name, line in named.items()
    )
    return Markup(
        f'<figure class="{kind}"><figcaption><b>{escape(title)}</b> <i>{escape(unit)}</i>'
        f'<span class="legend">{keys}</span></figcaption>'
        f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-label="{escape(title)}">{body}</svg>{rest}</figure>'
    )


def _span(values: np.ndarray) -> tuple[float, float]:
    """Lower and upper end of an axis: a few values far from all others are cut off, so that the others are seen."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = np.quantile(values, [0.01, 0.99])
    room = 0.5 * (high - low)
    return float(max(values.min(), low - room)), float(min(values.max(), high + room))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis that is no point, and reaches the ticks at its ends."""
    high = high if high - low > 1e-9 * max(abs(high), 1.0) else low + 1.0
    ticks = _ticks(low, high)
    return min(low, ticks[0]), max(high, ticks[-1])


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`."""
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
