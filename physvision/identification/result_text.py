"""Result of an identification as the lines that the terminal shows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from physvision.identification.formatting import describe_rivals, round_to_interval, value_and_interval
from physvision.identification.parameters import known_value_std
from physvision.identification.result import FrameRate, Identification
from physvision.identification.units import si_unit

_MIN_SLOW_MOTION = 1e-3  # relative difference of frame rates below which they are the same


def result_lines(result: Identification) -> list[str]:
    """Return the result line by line: kind of motion, its basis, parameters with 95 % intervals, and warnings."""
    ties = f" (or {', '.join(result.indistinguishable)})" if result.indistinguishable else ""
    unit = result.evidence.unit
    lines = [f"{result.motion}{ties}: residual {result.fit.noise:.2g} {unit}"]
    if len(result.odds) + len(result.rejected) > 1:
        lines.append(f"  {'rivals':<14} {describe_rivals(result.motion, result.odds)}")
    rows = [*basis(result), *_parameters(result), *_camera(result)]
    lines += [f"  {label:<14} {text}" for label, text in rows]
    if result.holdout is not None:
        error, relative_error = result.holdout.error, result.holdout.relative_error
        lines.append(f"  last third predicted to {error:.2g} {unit}, {relative_error:.1%} of the extent")
    return lines + [f"  warning: {warning}" for warning in result.warnings]


def basis(result: Identification) -> Iterator[tuple[str, str]]:
    """Yield the basis of a result with labels: frame rate, scale, known values, and the part that was fitted."""
    yield "frame rate", _describe_frame_rate(result.frame_rate)
    yield "scale", _describe_scale(result)
    known_values = [(name, value) for name, value in result.known_values.items() if name != "scale"]
    exact = [name for name, _ in known_values if known_value_std(name, result.evidence) == 0]
    if exact:
        texts = (f"{name} {value.value:.6g} {si_unit(name)}".rstrip() for name, value in known_values if name in exact)
        yield "taken as exact", ", ".join(texts) + "; give ± if it is not"
    for name, value in known_values:
        if name not in exact:
            std = known_value_std(name, result.evidence)
            yield "known", f"{name} {value.value:.6g} ± {Decimal(f'{std:.2g}'):f} {si_unit(name)}".rstrip()
    yield "fitted", _describe_span(result)


def _describe_frame_rate(rate: FrameRate) -> str:
    text = f"{rate.filming:.4g} frames/s"
    if abs(rate.slow_motion - 1) < _MIN_SLOW_MOTION:
        return f"{text}, by the time stamps of the file"
    return f"{text}, as given; the time stamps of the file say {rate.file:.4g}"


def _describe_scale(result: Identification) -> str:
    if result.evidence.unit == "m":
        return "lengths of the table"
    if result.scale is None:
        return "unknown, so that lengths are in pixels; a known length in the picture gives it, by --scale"
    sources = result.scale_sources
    origin = " and ".join("the given scale" if name == "scale" else f"the known {name}" for name in sources)
    if not sources:
        origin = "the lengths of the scene" + (" and the given scale" if "scale" in result.known_values else "")
    text = f"{result.scale:.4g} px/m"
    if result.scale_interval is not None:
        value, low, high = round_to_interval(result.scale, *result.scale_interval)
        text = f"{value} px/m (95 %: {low} to {high})"
    return f"{text}, from {origin}"


def _describe_span(result: Identification) -> str:
    start, end = result.span
    text, factor = f"{start:.2f} to {end:.2f} s", result.frame_rate.slow_motion
    if abs(factor - 1) < _MIN_SLOW_MOTION:
        return text
    return f"{text} of the motion: {factor * start:.2f} to {factor * end:.2f} s of the file, as --from and --to count"


def _parameters(result: Identification) -> Iterator[tuple[str, str]]:
    for name, parameter in result.parameters.items():
        if parameter.value is None or parameter.interval_95 is None:
            yield name, f"not identifiable: {parameter.reason}"
        elif name in result.known_values and parameter.interval_95[0] == parameter.interval_95[1]:
            yield name, f"{parameter.value:.6g} {parameter.unit}  (taken as exact)"
        else:
            meaning = f"  ({parameter.meaning})" if parameter.meaning else ""
            yield name, "  95 %: ".join(value_and_interval(parameter)) + meaning


def _camera(result: Identification) -> Iterator[tuple[str, str]]:
    for name, entry in result.noticeable_camera.items():
        text = "  95 %: ".join(value_and_interval(entry))
        yield "camera " + name.replace("_", " "), f"{text}  ({entry.meaning})"
