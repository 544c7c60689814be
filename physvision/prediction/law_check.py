"""Check that a clip follows the law of its engine: observations less predictions of the closest motion.

The innovations of a window are its residuals at the most likely state and parameters, in standard deviations of what
the encoder sees. Where the law holds they are noise; where no state and no parameters explain a window, its mean cost
is many times that of noise. Chaos is allowed for, because each window has a state of its own and is short.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from physvision.core import Scene
from physvision.prediction.clip_fit import ClipFit
from physvision.prediction.prediction import Difference


def law_differences(fit: ClipFit, scene: Scene) -> Iterator[Difference]:
    """Yield how a clip differs from the checkpoint's physics: parameters, and windows that no parameters explain."""
    if fit.estimate is None:
        return
    still = _still_hinges(fit, scene)
    if still:
        names = " and ".join(still)
        text = f"{names} does not turn against the link before: only {len(scene.objects) - len(still)} links move"
        yield Difference(True, text)
    yield from _unexplained(fit, scene)
    yield from _fast(fit, scene)
    for item in fit.estimates():
        if item.differs and item.is_estimated:
            low, high = item.interval()
            unit = "" if item.parameter.unit == "1" else f" {item.parameter.unit}"
            yield Difference(
                False,
                f"{item.parameter.name} is {item.value:.3g}{unit} in this clip (95 %: {low:.3g} to {high:.3g}), the "
                f"checkpoint expects {item.parameter.start:.3g}; predictions use the clip's",
            )


def _still_hinges(fit: ClipFit, scene: Scene) -> list[str]:
    """Names of links that keep their angle against the link before, while others turn."""
    if not fit.angles or len(scene.objects) < 2:
        return []
    angles = torch.cat([window[1] for window in fit.windows])
    away = fit.space.unwind(angles - angles.nanmedian(0).values).abs()
    spread = away.nan_to_num(0.0).quantile(fit.settings.still_quantile, dim=0)
    if bool((spread < fit.settings.still_angle).all()):
        return []
    return [item.name for item, size in zip(scene.objects, spread, strict=True) if size < fit.settings.still_angle]


def _fast(fit: ClipFit, scene: Scene) -> Iterator[Difference]:
    """Discs that move more than their radius from frame to frame."""
    if fit.angles:
        return
    steps = torch.stack([window[1] for window in fit.windows]).diff(dim=1).unflatten(-1, (-1, 2)).norm(dim=-1)
    usual = steps.flatten(0, 1).nanquantile(fit.settings.fast_quantile, dim=0)
    for item, step in zip(scene.objects, usual.tolist(), strict=True):
        if item.radius and step > item.radius:
            yield Difference(
                False,
                f"{item.name} moves {step:.1f} px a frame and more, its radius is {item.radius:g}: what is so fast is "
                "seen less exactly, and meets others so often that a prediction is soon uncertain",
            )


def _unexplained(fit: ClipFit, scene: Scene) -> Iterator[Difference]:
    estimate, settings = fit.estimate, fit.settings
    assert estimate is not None
    numbers = torch.stack([window[1].isfinite().sum() for window in fit.windows])[: len(estimate.cost)]
    contradicts = estimate.cost > settings.max_mean_cost * numbers
    fraction = float(contradicts.double().mean())
    if fraction <= settings.max_unexplained[0] or int(contradicts.sum()) < 2:
        return
    # Sizes of residuals, (windows, times, objects).
    observed = torch.stack([window[1] for window in fit.windows])[: len(estimate.cost)]
    sizes = (
        (estimate.residuals * fit.noise.observation_std(observed)).unflatten(-1, (len(scene.objects), -1)).norm(dim=-1)
    )
    sizes = sizes * contradicts[:, None, None]
    window, time, item = (int(index) for index in torch.unravel_index(sizes.argmax(), sizes.shape))
    # Windows count frames with a state; the first of them is the last one of the first window of the encoder.
    first = int(contradicts.nonzero()[0]) if contradicts.any() else 0
    start = (fit.windows[first][0] + scene.frames_in - 1) / scene.fps
    at = (fit.windows[window][0] + time + scene.frames_in - 1) / scene.fps
    unit = "rad" if fit.angles else "px"
    yield Difference(
        fraction > settings.max_unexplained[1],
        f"from {start:.1f} s on, {fraction:.0%} of the motion follows no law of the checkpoint's engine, whatever the "
        f"parameters: {scene.objects[item].name} is {float(sizes[window, time, item]):.2g} {unit} off at {at:.1f} s, "
        f"{_assumption(fit, scene, window, time, item)}",
    )


def _assumption(fit: ClipFit, scene: Scene, window: int, time: int, item: int) -> str:
    """Name the assumption that a residual contradicts."""
    if fit.angles:
        return "where it should swing freely on hinges: another constraint, drive or number of links"
    centers = fit.windows[window][1].unflatten(-1, (len(scene.objects), 2))
    neighborhood = centers[max(0, time - 2) : time + 3]
    if not bool(neighborhood[:, item].isfinite().all()):
        return "where it is hidden"
    speed = float(fit.windows[window][1].diff(dim=0).unflatten(-1, (-1, 2))[:, item].norm(dim=-1).nan_to_num(0.0).max())
    radius = scene.objects[item].radius or 1.0
    if speed > radius:
        return f"where it moves {speed:.1f} px a frame, more than its radius, which is too fast to be seen exactly"
    values = {row.parameter.name: row.used for row in fit.estimates()}
    edges = torch.tensor([values[f"{name} wall"] for name in ("left", "upper", "right", "lower")], dtype=torch.float64)
    gaps = torch.cat([neighborhood[:, item] - edges[:2], edges[2:] - neighborhood[:, item]], 1) - radius
    others = [index for index in range(len(scene.objects)) if index != item]
    distances = (neighborhood[:, others] - neighborhood[:, item : item + 1]).norm(dim=-1) - 2 * radius
    reach = 2 * speed + 0.5
    if len(others) and bool((distances.nan_to_num(1e9) < reach).any()):
        partner = others[int(distances.nan_to_num(1e9).amin(0).argmin())]
        return f"at an impact with {scene.objects[partner].name}: not a central impact of two discs"
    if bool((gaps < reach).any()):
        return "at a wall: not the reflection of a disc by a straight wall"
    return "away from walls and other objects, where it should move straight on"
