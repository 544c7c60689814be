"""What a person should be told of what was found: where it makes no sense, and what may have gone wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch

from physvision.identification.fitting import Fit
from physvision.identification.model import Case
from physvision.identification.parameters import Parameter, derived, deviation_of

_WIDEST = 12.0  # m: a picture that is wider was not filmed by hand
_EARTH = (8.8, 10.8)  # m/s²: gravity outside of it is another rate, another scale or another law
_SURPRISING = 3.0  # times the error that was to be expected
_CONTRADICTS = 4.0  # deviations
_ROUNDED = 0.01  # share by which a number that somebody tells may be off without being wrong
_SLOW_MOTION = "if it was filmed in slow motion, give the rate at which it was filmed with --fps"


def remarks(case: Case, found: Fit, parameters: Mapping[str, Parameter]) -> list[str]:
    """What makes no sense on Earth or contradicts what was told, and what follows from that."""
    said = []
    gravity = parameters.get("gravity")
    if gravity is not None and gravity.value is not None and not _EARTH[0] < gravity.value < _EARTH[1]:
        low, high = gravity.interval_95 or (gravity.value, gravity.value)
        if not low < 9.81 < high:
            said.append(f"Gravity comes out as {gravity.value:.3g} m/s²: {_SLOW_MOTION}, or look at the scale.")
    if "gravity" in case.known:
        told = {name: torch.tensor(known.value, dtype=torch.float64) for name, known in case.known.items()}
        pixels = found.model.scale(found.problem.unknowns.values(found.z[None]), told)
        if pixels is not None and float(case.view.width / pixels) > _WIDEST:
            wide = float(case.view.width / pixels)
            said.append(f"With this gravity the picture would be {wide:.3g} m wide: {_SLOW_MOTION}.")
    return said + _contradiction(case, found)


def _contradiction(case: Case, found: Fit) -> list[str]:
    """The first of what was told that the motion and the rest of what was told do not agree with."""
    for name, told in case.known.items():
        rest = {other: known for other, known in case.known.items() if other != name}
        # A lone number has nothing to contradict, but an angle, which is seen.
        says = derived(replace(case, known=rest), found).get(name) if rest or name == "angle" else None
        if says is None or says.value is None or says.interval_68 is None:
            continue
        unsure = (says.interval_68[1] - says.interval_68[0]) / 2
        far = max(_CONTRADICTS * math.hypot(unsure, deviation_of(name, case)), _ROUNDED * abs(told.value))
        if abs(told.value - says.value) > far:
            by = " and ".join(["the motion", *rest])
            return [
                f"{name} was told as {told.value:.4g} {says.unit}, but {by} make it {says.value:.4g} ± {unsure:.2g}: "
                "they contradict each other, and what follows from them cannot be trusted."
            ]
    return []


def surprise(error: float, expected: float, extent: float, unit: str) -> str:
    """What is to be said where the last third was predicted badly from the first two.

    Args:
        error: by how much the prediction is off.
        expected: by how much it was expected to be.
        extent: of the motion.
        unit: of all of them.
    """
    if extent < expected < math.inf:
        return (
            "The first two thirds do not tell the last, however well they are fitted: the motion is too sensitive, "
            "or they show too little of it."
        )
    if error < _SURPRISING * expected < math.inf:
        return (
            f"The motion is so sensitive that its first two thirds tell the last only to {expected:.2g} {unit}, "
            "however well it is fitted."
        )
    return "What happens in the last third does not follow from the first two: see --from and --to."
