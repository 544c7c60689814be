"""The engine's motion that is closest to what is read of a chain of links in all frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from physvision.models.interfaces import Observation
from physvision.models.links import unit_vectors
from physvision.models.track_fit import FittedMotion, MotionTracks, TrackFit

# Steps of a fit in training, where properties need not be exact.
_TRAINING_ITERATIONS = 4
# Standard deviation of centroids of masks, m, and of lengths that are read off links of unseen looks, m: the network
# knows the looks of labeled trials by heart, and lengths of others only so well. From the validation set of `swing`.
_CENTROID_STD, _UNSEEN_STD = 0.1, 0.05


def last_middle(q: Tensor, properties: Mapping[str, Tensor]) -> Float[Tensor, "worlds times 2"]:
    """Middle of the last link of a chain at angles of its hinges, m."""
    steps = properties["length"][:, None, :, None].to(q) * unit_vectors(q.cumsum(-1))
    return steps[:, :, :-1].sum(2) + 0.5 * steps[:, :, -1]


def fitted_motion(
    fit: TrackFit,
    observation: Observation,
    times: Sequence[int],
    count: int,
    training: bool,
    centroids: Float[Tensor, "batch read 2"] | None = None,
) -> FittedMotion:
    """Fit the engine's motion to directions of links, without gradient.

    The centroid of the last link, which no other hides, tells the lengths of those before it from their directions,
    whatever they look like.

    Args:
        fit: Fit that knows the engine, with `last_middle` as its points.
        observation: Directions, angular velocity in the last frame, and lengths, with their standard deviations.
        times: Indices of the frames that are read.
        count: Number of all frames.
        training: If true, a few steps are enough.
        centroids: Centroids of the last link on the plane of motion, m.
    """
    assert observation.position_std is not None
    assert observation.velocity_std is not None
    assert observation.properties is not None
    assert observation.property_std is not None
    tracks = MotionTracks(
        observation.positions.detach().cumsum(-1),
        observation.position_std.detach(),
        tuple(times),
        count,
        observation.velocities[:, -1].detach().cumsum(-1),
        observation.velocity_std[:, -1].detach(),
        absolute=True,
        points=None if centroids is None else centroids.detach(),
        points_std=_CENTROID_STD,
    )
    means, stds = (
        {name: part[name].detach() for name in ("length", "mass", "joint_damping")}
        for part in (observation.properties, observation.property_std)
    )
    if not training:
        stds["length"] = (stds["length"].square() + _UNSEEN_STD**2).sqrt()
    return fit(tracks, (means, stds), _TRAINING_ITERATIONS if training else None)
