"""The engine's motion that is closest to where balls are read in all windows of a clip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from physvision.core import Coordinates
from physvision.models.interfaces import Observation
from physvision.models.object_order import reordered
from physvision.models.segmentation import match_order
from physvision.models.tabletop import park_absent, tabletop_leaves
from physvision.models.track_fit import FittedMotion, MotionTracks, TrackFit, TrackFitSettings
from physvision.physics.engine import Engine

# Frames that are fitted first, and by how many more each time: so few rarely hold more than one impact. Of all ways to
# thirty frames the cheapest motion counts.
_GROWTHS = ((8, 6), (11, 6), (5, 3))
# A detection without confidence may still be the ball that is looked for.
_MIN_WEIGHT = 0.05
# Standard deviation, px and px/s, of what is not read: of a ball that is not matched, and of an empty slot.
_UNSEEN_STD, _EMPTY_STD = 1e3, 1.0


@dataclass(frozen=True)
class TableMotionSettings:
    """Tuning numbers of a motion that is fitted to a whole clip.

    Attributes:
        step: Number of frames from one window that is read to the next.
        max_frames: Largest number of last frames that are fitted. More determine velocities and properties better;
            each impact among them makes the fit harder.
        max_distance: Distance from where a window expects a ball in the one before, px, beyond which it is another.
        max_cost: Cost for each number that is read, in squares of its standard deviation, beyond which the engine does
            not explain what is read: then the state stays that of the last window.
        max_speed: Prior standard deviation of velocities, px/s.
        position_std: Standard deviation of the positions that windows show, px; the encoder's own if not given.
        velocity_std: Standard deviation of the velocity in the last window, px/s; the encoder's own if not given.
        constant_error: Part of the variance of errors of positions that is the same in all frames.
        correlation: Correlation of the rest of these errors from one frame to the next.
    """

    step: int = 1
    max_frames: int = 30
    max_distance: float = 12.0
    max_cost: float = 4.0
    max_speed: float = 60.0
    position_std: float | None = None
    velocity_std: float | None = None
    constant_error: float = 0.0
    correlation: float = 0.0

    def ends(self, count: int, window: int) -> list[int]:
        """Last frames of the windows among `count` frames that are read, ascending."""
        first = max(window - 1, count - self.max_frames)
        return list(range(count - 1, first - 1, -self.step))[::-1]


class TableMotion(nn.Module):
    """Fits a table's motion to observations of windows that end at different frames.

    Unknowns are the state at the first of these frames and the properties that the encoder estimates, whose estimates
    and standard deviations are the prior. Balls are followed back in time from the last window, and `TrackFit` seeks
    the engine's motion closest to their positions, over more and more frames, since impacts give the distance many
    minima. Long clips tell velocities well: the error of a slope through n positions falls as n to the power of −3/2.
    """

    def __init__(self, engine: Engine, slots: int, settings: TableMotionSettings | None = None) -> None:
        """Prepare the fit of a table's motions.

        Args:
            engine: Engine of a `table` or `tabletop`, one step a frame; not trained.
            slots: Number of its balls.
            settings: Tuning numbers.
        """
        super().__init__()
        settings = settings or TableMotionSettings()
        self.settings, self.dt = settings, engine.dt
        growths = tuple(tuple(range(first, settings.max_frames, step)) for first, step in _GROWTHS)
        self._fit = TrackFit(
            engine,
            Coordinates(3 * slots, tuple(range(2, 3 * slots, 3))),
            tabletop_leaves,
            TrackFitSettings(
                iterations=6,
                velocity_std=settings.max_speed,
                constant_error=settings.constant_error,
                correlation=settings.correlation,
                growths=growths,
            ),
        )

    @torch.no_grad()
    def forward(
        self, latest: Observation, earlier: Sequence[Observation], ends: Sequence[int], known: dict[str, Tensor]
    ) -> Observation:
        """Replace the state and properties of an observation by those of the motion closest to all windows.

        Args:
            latest: Observation of the window that ends latest.
            earlier: Observations of those before it, in order of time, their balls in any order.
            ends: Frames at which all these windows end.
            known: Properties of the trials that are not estimated.
        """
        present = torch.ones_like(latest.positions[:, -1, ::3], dtype=torch.bool)
        if latest.properties and "present" in latest.properties:
            present = latest.properties["present"] > 0.5
            known = {**known, "present": present.float()}
        motion = self._fitted(latest, earlier, ends, present, known)
        return self._completed(latest, motion, present, len(ends))

    def _fitted(
        self,
        latest: Observation,
        earlier: Sequence[Observation],
        ends: Sequence[int],
        present: Tensor,
        known: dict[str, Tensor],
    ) -> FittedMotion:
        """Follow the balls back in time, and fit the motion to their positions."""
        settings = self.settings
        positions, stds = [latest.positions[:, -1]], [_or(settings.position_std, self._known(latest.position_std))]
        gaps = [later - before for before, later in pairwise(ends)]
        place, velocity = self._plane(latest.positions), self._plane(latest.velocities)
        for observation, gap in zip(reversed(earlier), reversed(gaps), strict=True):
            expected = place - gap * self.dt * velocity
            weight = self._known(observation.confidence)
            order = match_order(
                expected,
                present.to(weight),
                self._plane(observation.positions),
                _MIN_WEIGHT + weight,
                settings.max_distance,
            )
            ordered = reordered(observation, order)
            read = self._plane(ordered.positions)
            matched_mask = (read - expected).norm(dim=-1, keepdim=True) < settings.max_distance
            matched_mask = matched_mask & (self._known(ordered.confidence) > 0.5)[..., None]
            place = torch.where(matched_mask, read, expected)
            velocity = torch.where(matched_mask, self._plane(ordered.velocities), velocity)
            positions.insert(0, ordered.positions[:, -1])
            own = _or(settings.position_std, self._known(ordered.position_std))
            std = torch.where(matched_mask, own.unflatten(1, (-1, 3)), _UNSEEN_STD)
            stds.insert(0, std.flatten(1))
        empty = (~present)[..., None].expand(-1, -1, 3).flatten(1)
        velocity_std = _or(settings.velocity_std, self._known(latest.velocity_std))
        tracks = MotionTracks(
            park_absent(torch.stack(positions, 1), present),
            torch.where(empty[:, None], _EMPTY_STD, self._turning_ignored(torch.stack(stds, 1))),
            tuple(end - ends[0] for end in ends),
            ends[-1] - ends[0] + 1,
            torch.where(empty, 0.0, latest.velocities[:, -1]),
            torch.where(empty, _EMPTY_STD, self._turning_ignored(velocity_std)),
            first_velocity=torch.where(present[..., None], functional.pad(velocity, (0, 1)), 0.0).flatten(1),
        )
        estimated = dict(latest.property_std or {})
        means = {name: (latest.properties or {})[name] for name in estimated}
        return self._fit(tracks, (means, estimated), known=known)

    def _completed(self, latest: Observation, motion: FittedMotion, present: Tensor, windows: int) -> Observation:
        """The observation with the fitted state and properties, in the trials whose motion the engine explains.

        A cost of more than one for each number says that errors are larger than their standard deviations: all grow by
        its square root.
        """
        cost = motion.cost / (2 * windows * present.sum(1)).clamp_min(1)
        good, growth = (cost < self.settings.max_cost) & motion.state.q.isfinite().all(1), cost.clamp_min(1.0).sqrt()

        def rows(values: Tensor, like: Tensor) -> Tensor:
            return values.reshape(-1, *(1,) * (like.dim() - 1))

        def selection(fitted: Tensor, own: Tensor) -> Tensor:
            return torch.where(rows(good, own), fitted.to(own), own)

        def selected_std(fitted: Tensor, own: Tensor | None) -> Tensor:
            assert own is not None
            return selection(rows(growth, fitted) * fitted, own)

        stds = latest.property_std or {}
        properties = {name: selection(value, latest.properties[name]) for name, value in motion.properties.items()}  # pyright: ignore
        property_stds = {name: selected_std(value, stds[name]) for name, value in motion.property_std.items()}
        return replace(
            latest,
            positions=selection(motion.state.q[:, None], latest.positions[:, -1:]),
            velocities=selection(motion.state.v[:, None], latest.velocities[:, -1:]),
            position_std=selected_std(motion.state_std.q[:, None], self._known(latest.position_std)[:, None]),
            velocity_std=selected_std(motion.state_std.v[:, None], self._known(latest.velocity_std)[:, None]),
            properties={**(latest.properties or {}), **properties} or None,
            property_std={**stds, **property_stds} or None,
        )

    @staticmethod
    def _known(values: Tensor | None) -> Tensor:
        assert values is not None
        return values[:, -1]

    @staticmethod
    def _plane(values: Tensor) -> Tensor:
        return values[:, -1].unflatten(1, (-1, 3))[..., :2]

    @staticmethod
    def _turning_ignored(std: Tensor) -> Tensor:
        """Standard deviations in which rotations, which windows do not show, are those of an empty slot."""
        turns = torch.arange(std.shape[-1], device=std.device) % 3 == 2
        return torch.where(turns, _EMPTY_STD, std)


def _or(value: float | None, own: Tensor) -> Tensor:
    """One value in the place of all, if it is given."""
    return own if value is None else torch.full_like(own, value)
