"""Physical parameters of a clip: those of a checkpoint's engine that its motion may contradict, and their priors.

Each has a search coordinate z with a standard normal prior, in which the checkpoint's own value is zero: the value is
start + std · z, or start · exp(std · z) for those that are positive. Where the image shows a value and the motion only
repeats it, as for the lengths of rods, the checkpoint's value stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from physvision.core import Scene
from physvision.models import PredictiveAutoencoder
from physvision.physics.engine import Engine

# Search coordinate that no clip reaches.
_FAR = 6.0


@dataclass(frozen=True)
class ClipParameter:
    """One number that is sought in a clip.

    Attributes:
        name: Name shown to people.
        leaf: Name of the parameter in a scene, which several numbers may share.
        unit: Its unit.
        start: Value of the checkpoint.
        std: Prior standard deviation, of the logarithm if `is_positive`.
        min_change: Difference from the checkpoint's value that matters to predictions; relative if `is_positive`.
        low: Smallest value.
        high: Largest value.
        is_positive: If true, the logarithm is sought.
    """

    name: str
    leaf: str
    unit: str
    start: float
    std: float
    min_change: float
    low: float = -math.inf
    high: float = math.inf
    is_positive: bool = False

    def value(self, z: Tensor) -> Tensor:
        """Value at a search coordinate."""
        value = self.start * torch.exp(self.std * z) if self.is_positive else self.start + self.std * z
        return value.clamp(self.low, self.high)

    def coordinate(self, value: float) -> float:
        """Search coordinate of a value."""
        if not math.isfinite(value):
            return math.copysign(_FAR, value)
        change = math.log(max(value, 1e-9) / self.start) if self.is_positive else value - self.start
        return min(max(change / self.std, -_FAR), _FAR)

    def matters(self, value: float) -> bool:
        """Return whether a value differs from the checkpoint's so much that predictions change."""
        change = value / self.start - 1 if self.is_positive else value - self.start
        return abs(change) > self.min_change


@dataclass(frozen=True)
class ParameterEstimate:
    """One physical parameter of a clip.

    Attributes:
        parameter: Name, unit, and value of the checkpoint.
        value: Most likely value; that of the checkpoint if the clip does not determine it.
        std: Standard deviation; NaN if the clip does not determine it.
        used: Value that predictions take: the checkpoint's, unless the clip contradicts it.
    """

    parameter: ClipParameter
    value: float
    std: float
    used: float

    @property
    def is_estimated(self) -> bool:
        """If true, the clip determines the parameter; otherwise it is assumed."""
        return math.isfinite(self.std)

    @property
    def differs(self) -> bool:
        """If true, the clip contradicts the checkpoint's value by an amount that matters."""
        return self.used != self.parameter.start and self.parameter.matters(self.used)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval that holds the value with a probability, within the parameter's bounds."""
        half = math.sqrt(2) * float(torch.special.erfinv(torch.tensor(level))) * self.std
        if self.parameter.is_positive:
            factor = math.exp(half / self.value)
            return self.value / factor, self.value * factor
        return max(self.value - half, self.parameter.low), min(self.value + half, self.parameter.high)

    def __repr__(self) -> str:
        if not self.is_estimated:
            return f"{self.parameter.name} {self.value:.4g} {self.parameter.unit} (assumed)"
        low, high = self.interval()
        return f"{self.parameter.name} {self.value:.4g} {self.parameter.unit} (95 %: {low:.4g} to {high:.4g})"


class ClipParameters:
    """Parameters that a clip may determine, as leaves of the engine's properties."""

    def __init__(self, engine: Engine, parameters: Sequence[ClipParameter], walls: Sequence[int] = ()) -> None:
        """Choose the parameters of an engine.

        Args:
            engine: Engine whose properties they change.
            parameters: Parameters, in the order of z.
            walls: Rows of the left, upper, right and lower wall among static bodies.
        """
        self.engine, self.parameters, self._walls = engine, tuple(parameters), tuple(walls)
        self.low = torch.tensor([item.coordinate(item.low) for item in parameters], dtype=torch.float64)
        self.high = torch.tensor([item.coordinate(item.high) for item in parameters], dtype=torch.float64)

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[ClipParameter]:
        return iter(self.parameters)

    def values(self, z: Float[Tensor, "*batch numbers"]) -> Float[Tensor, "*batch numbers"]:
        """Values at search coordinates."""
        return torch.stack([item.value(part) for item, part in zip(self.parameters, z.unbind(-1), strict=True)], -1)

    def estimates(self, z: Tensor, std: Tensor, used: Tensor) -> tuple[ParameterEstimate, ...]:
        """Estimates at search coordinates.

        Args:
            z: Most likely search coordinates.
            std: Their standard deviations; NaN where a clip does not determine them.
            used: Search coordinates that predictions take.
        """
        columns = (self.values(z).tolist(), std.tolist(), self.values(used).tolist())
        rows = []
        for item, value, deviation, current in zip(self.parameters, *columns, strict=True):
            size = deviation * item.std * (value if item.is_positive else 1.0)
            rows.append(ParameterEstimate(item, item.start if math.isnan(size) else value, size, current))
        return tuple(rows)

    def first_guess(self, observed: Float[Tensor, "windows times columns"]) -> Float[Tensor, " numbers"]:
        """Search coordinates before a fit: walls where discs turn before the checkpoint's, all else as it has it.

        A disc that turns early touches a wall where its center was furthest out; a wall beyond that, which no disc
        meets in the motion simulated, would have no derivative.
        """
        z = torch.zeros(len(self), dtype=torch.float64)
        if not self._walls:
            return z
        radius = float(dict(self.engine.properties.items())["radius"].max())
        centers = observed.unflatten(-1, (-1, 2)).flatten(0, -2)
        centers = centers[centers.isfinite().all(1)]
        if not len(centers):
            return z
        edges = [*(centers.amin(0) - radius).tolist(), *(centers.amax(0) + radius).tolist()]
        walls = [index for index, item in enumerate(self.parameters) if item.leaf == "walls"]
        for index, edge in zip(walls, edges, strict=True):
            if self.parameters[index].matters(edge):
                z[index] = self.parameters[index].coordinate(edge)
        return z

    def leaves(self, z: Float[Tensor, "worlds numbers"]) -> dict[str, Tensor]:
        """Leaves of the engine's properties, one row a world."""
        own = {name: value.detach().to(z) for name, value in self.engine.properties.items()}
        values, worlds, leaves = self.values(z), len(z), {}
        changes: dict[str, list[Tensor]] = {}
        for item, value in zip(self.parameters, values.unbind(-1), strict=True):
            changes.setdefault(item.leaf, []).append(value)
        for name, columns in changes.items():
            column = torch.stack(columns, 1)
            if name == "walls":
                starts = torch.tensor([item.start for item in self.parameters if item.leaf == name]).to(z)
                pose = own["static_pose"].repeat(worlds, 1, 1)
                for wall, axis, shift in zip(self._walls, (0, 1, 0, 1), (column - starts).unbind(1), strict=True):
                    pose[:, wall, axis] += shift
                leaves["static_pose"] = pose
            elif name == "mass":
                ratio = torch.cat([torch.ones_like(column[:, :1]), column], 1)
                leaves["mass"] = own["mass"] * ratio
                if "inertia" in own:
                    leaves["inertia"] = own["inertia"] * ratio[..., None, None]
            elif name == "gravity":
                leaves[name] = own[name] / own[name].norm() * column
            elif name == "radius":
                leaves[name] = torch.where(own[name] > 0, column, 0.0)
            else:
                leaves[name] = column.expand(-1, len(own[name]))
        return leaves


def clip_parameters(model: PredictiveAutoencoder) -> ClipParameters | None:
    """Parameters that clips of a model's scene may determine; None for engines without any.

    A table has walls around it and discs that slide; a mechanism has hinges and hangs.
    """
    scene, properties = model.scene, dict(model.engine.properties.items())
    assert scene is not None
    units = set(scene.coordinates.values())
    if "sliding_deceleration" in properties and len(properties["static_pose"]) == 4 and "px" in units:
        return _table(model.engine, scene, properties)
    if "joint_damping" in properties and units == {"rad"} and float(properties["gravity"].norm()) > 0:
        return _mechanism(model.engine, scene, properties)
    return None


def _mass_ratios(scene: Scene) -> list[ClipParameter]:
    first = scene.objects[0].name
    return [
        ClipParameter(f"mass of {item.name} / {first}", "mass", "1", 1.0, 1.0, 0.15, is_positive=True)
        for item in scene.objects[1:]
    ]


def _table(engine: Engine, scene: Scene, properties: Mapping[str, Tensor]) -> ClipParameters:
    width, height = scene.size
    pose = properties["static_pose"]
    walls = [
        int(index) for index in (pose[:, 0].argmin(), pose[:, 1].argmin(), pose[:, 0].argmax(), pose[:, 1].argmax())
    ]
    borders = {"left": (0.0, width), "upper": (0.0, height), "right": (width, width), "lower": (height, height)}
    radius = float(properties["radius"].max())
    parameters = [
        ClipParameter("restitution", "restitution", "1", float(properties["restitution"][0]), 0.3, 0.05, 0.0, 1.0),
        ClipParameter(
            "sliding deceleration",
            "sliding_deceleration",
            "px/s^2",
            float(properties["sliding_deceleration"][0]),
            10.0,
            1.0,
            0.0,
        ),
        *(
            ClipParameter(f"{name} wall", "walls", "px", at, 5.0, 0.7, at - 0.5 * side, at + 0.5 * side)
            for name, (at, side) in borders.items()
        ),
    ]
    if len(scene.objects) > 1:
        # Distances at impacts between discs give the radius; without them it cannot be told from the walls.
        parameters += [*_mass_ratios(scene), ClipParameter("radius", "radius", "px", radius, 0.1, 0.2, 0.5 * radius)]
    return ClipParameters(engine, parameters, walls)


def _mechanism(engine: Engine, scene: Scene, properties: Mapping[str, Tensor]) -> ClipParameters:
    gravity, damping = float(properties["gravity"].norm()), float(properties["joint_damping"][0])
    parameters = [
        ClipParameter("gravity", "gravity", "m/s^2", gravity, 1.0, 0.05, is_positive=True),
        ClipParameter("joint damping", "joint_damping", "N m s/rad", damping, 2.0, 0.2, 0.0),
        *_mass_ratios(scene),
    ]
    return ClipParameters(engine, parameters)
