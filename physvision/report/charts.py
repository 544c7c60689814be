"""Charts as SVG; charts over time include their data for the page's script."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np

from physvision.report.markup import Markup
from physvision.report.palette import Color, css

WIDTH, HEIGHT = 880, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 28


CurveStyle = Literal["solid", "dotted", "points"]


@dataclass(frozen=True)
class Curve:
    """Line of a chart, with its legend.

    Attributes:
        name: Name in the legend.
        values: Values over time, or points (points, 2) in a plane; NaN leaves a gap.
        color: Color of the line.
        style: Line style: "dotted" for predictions, "points" for single measurements.
        half_width: Half the width of a band around the line, one value per time; None for no band.
    """

    name: str
    values: np.ndarray
    color: Color
    style: CurveStyle = "solid"
    half_width: np.ndarray | None = None


class _Axes:
    """Frame of a chart with its scales and grid."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float], size: tuple[int, int]) -> None:
        self.x_range, self.y_range, (self.width, self.height) = x_range, y_range, size
        self.box = (_LEFT, self.width - _RIGHT, _TOP, self.height - _BOTTOM)

    def x(self, values):
        left, right, _, _ = self.box
        return left + (values - self.x_range[0]) / (self.x_range[1] - self.x_range[0]) * (right - left)

    def y(self, values):
        _, _, top, bottom = self.box
        fraction = np.clip((values - self.y_range[0]) / (self.y_range[1] - self.y_range[0]), -0.02, 1.02)
        return bottom - fraction * (bottom - top)

    def grid(self, x_unit: str) -> str:
        """Draw grid lines and tick labels of both axes."""
        left, right, _, _ = self.box
        elements = []
        for tick in _ticks(*self.y_range):
            y = self.y(tick)
            elements.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            elements.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.6g}</text>')
        for tick in _ticks(*self.x_range, max(3, self.width // 110)):
            text = f"{tick:.6g} {escape(x_unit)}".strip()
            elements.append(f'<text x="{self.x(tick):.1f}" y="{self.height - 8}" text-anchor="middle">{text}</text>')
        return "".join(elements)

    def line(self, x: np.ndarray, y: np.ndarray, curve: Curve, max_jump: float = math.inf) -> str:
        """Draw a line through points; it is interrupted at gaps and at jumps above `max_jump`."""
        points = list(zip(self.x(x), self.y(y), strict=True))
        commands, previous = [], math.nan
        for (a, b), value in zip(points, y, strict=True):
            if math.isfinite(a + b):
                continues = math.isfinite(previous) and abs(value - previous) <= max_jump
                is_point = curve.style == "points"
                commands.append(f"{'L' if continues and not is_point else 'M'}{a:.1f} {b:.1f}{'h0' * is_point}")
            previous = float(value) if math.isfinite(a) else math.nan
        dashed = {"solid": "", "dotted": ' class="dashed"', "points": ' class="points"'}[curve.style]
        return f'<path d="{"".join(commands)}" stroke="{css(curve.color)}"{dashed}/>'

    def band(self, x: np.ndarray, curve: Curve, max_jump: float = math.inf) -> str:
        """Draw the band around a line, a shape for each stretch without gaps and jumps; none if there is none."""
        if curve.half_width is None:
            return ""
        low, high = (self.y(curve.values + side * curve.half_width) for side in (-1, 1))
        known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
        breaks = (np.diff(known) > 1) | (np.abs(np.diff(curve.values[known])) > max_jump)
        shapes = []
        for part in np.split(known, np.flatnonzero(breaks) + 1):
            edge = [*zip(self.x(x[part]), high[part], strict=True), *zip(self.x(x[part]), low[part], strict=True)]
            edge[len(part) :] = edge[len(part) :][::-1]
            shapes.append(f"M{'L'.join(f'{a:.1f} {b:.1f}' for a, b in edge)}Z" if edge else "")
        # The style of lines in a page has no fill.
        return f'<path d="{"".join(shapes)}" class="band" style="fill:{css(curve.color)}"/>'


def time_chart(
    title: str,
    unit: str,
    times: np.ndarray,
    curves: Sequence[Curve],
    *,
    wraps: bool = False,
    low: float | None = None,
    width: int = WIDTH,
) -> Markup:
    """Draw curves over time.

    Args:
        title: Title of the figure.
        unit: Unit of the values.
        times: Times of the values, s.
        curves: Curves with one value per time.
        wraps: If true, values are angles from −π to π, and lines are interrupted where they wrap.
        low: Lower end of the axis; determined by the values if None.
        width: Width of the chart, px.
    """
    bottom, top = _value_range(np.concatenate([curve.values for curve in curves] or [np.zeros(0)]))
    y_range = _extend_to_ticks(bottom if low is None else min(low, bottom), top)
    axes = _Axes((float(times[0]), float(max(times[-1], times[0] + 1e-6))), y_range, (width, HEIGHT))
    max_jump = math.pi if wraps else math.inf
    lines = [axes.band(times, curve, max_jump) for curve in curves]
    lines += [axes.line(times, curve.values, curve, max_jump) for curve in curves]
    data = {
        "t": _to_json(times),
        "names": [curve.name for curve in curves],
        "colors": [css(curve.color) for curve in curves],
        "values": [_to_json(curve.values) for curve in curves],
        "unit": unit,
        "span": axes.x_range,
        "frame": axes.box,
    }
    cursor = f'<line class="cursor" x1="-9" x2="-9" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
    script = f'<div class="tip"></div><script type="application/json">{json.dumps(data)}</script>'
    return _figure("chart", title, unit, curves, (width, HEIGHT), axes.grid("s") + "".join(lines) + cursor, script)


def phase_chart(title: str, x_label: str, y_label: str, curves: Sequence[Curve]) -> Markup:
    """Draw curves in the plane of two quantities, such as an angle and its rate.

    Args:
        title: Title of the figure.
        x_label: Name and unit of the horizontal quantity.
        y_label: Name and unit of the vertical quantity.
        curves: Curves whose values are (points, 2).
    """
    points = np.concatenate([curve.values for curve in curves])
    x_range, y_range = (_extend_to_ticks(*_value_range(points[:, axis])) for axis in (0, 1))
    size = (WIDTH // 2, round(0.4 * WIDTH))
    axes = _Axes(x_range, y_range, size)
    lines = [axes.line(curve.values[:, 0], curve.values[:, 1], curve) for curve in curves]
    return _figure("phase", title, f"{y_label} over {x_label}", curves, size, axes.grid("") + "".join(lines))


def path_chart(title: str, size: tuple[int, int], curves: Sequence[Curve]) -> Markup:
    """Draw the paths of objects in the image; a dotted path begins with a dot.

    Args:
        title: Title of the figure.
        size: Width and height of the image, px.
        curves: Curves whose values are (points, 2), px, y down.
    """
    image_width, image_height = size
    width = 0.004 * max(size)
    elements = [f'<rect width="{image_width}" height="{image_height}"/>']
    for curve in curves:
        points = curve.values[np.isfinite(curve.values).all(1)]
        color, is_dotted = css(curve.color), curve.style == "dotted"
        stroke = f'stroke="{color}" stroke-width="{1.6 * width if is_dotted else width:.3g}"'
        dash = f' stroke-dasharray="{2.5 * width:.3g} {2.5 * width:.3g}" stroke-linecap="round"' if is_dotted else ""
        elements.append(f'<polyline points="{" ".join(f"{x:.2f},{y:.2f}" for x, y in points)}" {stroke}{dash}/>')
        if is_dotted and len(points):
            x, y = points[0]
            elements.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{3 * width:.3g}" fill="{color}"/>')
    return _figure("map", title, "", curves, size, "".join(elements))


def _figure(
    kind: str, title: str, unit: str, curves: Sequence[Curve], size: tuple[int, int], body: str, script: str = ""
) -> Markup:
    """Wrap a drawing in a figure with caption and legend; equal names appear once."""
    named = {curve.name: curve for curve in curves if curve.name}
    keys = "".join(
        f'<span class="key{"" if curve.style == "solid" else " dashed"}" style="--c:{css(curve.color)}">'
        f"{escape(name)}</span>"
        for name, curve in named.items()
    )
    return Markup(
        f'<figure class="{kind}"><figcaption><b>{escape(title)}</b> <i>{escape(unit)}</i>'
        f'<span class="legend">{keys}</span></figcaption>'
        f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-label="{escape(title)}">{body}</svg>{script}</figure>'
    )


def _value_range(values: np.ndarray) -> tuple[float, float]:
    """Range of an axis, with distant outliers cut off."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = np.quantile(values, [0.01, 0.99])
    margin = 0.5 * (high - low)
    return float(max(values.min(), low - margin)), float(min(values.max(), high + margin))


def _extend_to_ticks(low: float, high: float) -> tuple[float, float]:
    """Extend the range of an axis to its outer ticks, and to more than a point."""
    high = high if high - low > 1e-9 * max(abs(high), 1.0) else low + 1.0
    ticks = _ticks(low, high)
    return min(low, ticks[0]), max(high, ticks[-1])


def _to_json(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values]


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about `count` of them."""
    min_step = (high - low) / count
    power = 10.0 ** math.floor(math.log10(min_step))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= min_step * 0.999)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
