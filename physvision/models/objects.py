"""The encoder of objects: perception says what is whose and about where, a network on each object's part the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from physvision.core import ShapeError, brightness
from physvision.core.checks import check_count, check_positive
from physvision.models.parts import Encoder, Observation, windows
from physvision.perception.colors import ColorFilters
from physvision.perception.disturbance import Disturbance
from physvision.perception.locating import Places, locate
from physvision.perception.objects import FRAMES, object_inputs
from physvision.perception.tracking import follow

# What the network is told of pixels beyond the picture: no frame holds it, so walls can be seen.
_OUTSIDE = -1.0


@dataclass(frozen=True)
class Percepts:
    """What perception finds in a window: each object's masks, where it is, and how pixels move.

    Attributes:
        frames: that it looked at.
        masks: each object's share of each pixel.
        places: of the objects, by their masks.
        flows: from each frame to the next, pixels.
    """

    frames: Float[Tensor, "batch frames 3 height width"]
    masks: Float[Tensor, "batch frames objects height width"]
    places: Places
    flows: Float[Tensor, "batch flows 2 height width"]


@dataclass(frozen=True)
class ObjectViews:
    """What the network is told of each object, and the motion that it mends.

    Attributes:
        pictures: 13 channels of each object.
        position: at the last frame, pixels.
        step: displacement a frame, pixels.
        confidence: visible share of each object in each frame.
    """

    pictures: Float[Tensor, "batch objects 13 rows columns"]
    position: Float[Tensor, "batch objects 2"]
    step: Float[Tensor, "batch objects 2"]
    confidence: Float[Tensor, "batch frames objects"]


class ObjectEncoder(Encoder):
    """Reads the states of discs of known colours in windows of three consecutive frames.

    Perception has no weights that are trained here: colour masks, optical flow, and a line through each object's three
    centres. The network is given each object's 13 channels and says by how much the line's position and velocity are
    off; one that was not trained says nothing. All objects go through the same network.
    """

    colors: Tensor
    background: Tensor

    def __init__(
        self,
        size: tuple[int, int],
        dt: float,
        radius: float,
        colors: Sequence[tuple[float, float, float]],
        network: nn.Module,
        flow: nn.Module,
        background: tuple[float, float, float] = (0.0, 0.0, 0.0),
        counts: Sequence[int] | None = None,
        crop: int | None = None,
        disturbance: Disturbance | None = None,
    ) -> None:
        """Put it together.

        Args:
            size: height and width of a frame, pixels.
            dt: seconds between two frames.
            radius: of the objects, pixels.
            colors: red, green, blue of each colour, 0 to 1.
            network: pictures of 13 channels to 4 numbers, pixels and pixels a frame.
            flow: the optical flow, see `perception.flow.Flow`; not trained along.
            background: red, green, blue behind the objects, 0 to 1.
            counts: how many objects have each colour; one each if not given.
            crop: side of the piece around each object that the network is given, pixels; the whole frame if None.
            disturbance: what is done to the frames in training, so that the network copes with it.
        """
        super().__init__()
        self.size, self.dt, self.radius = tuple(size), check_positive("dt", dt), check_positive("radius", radius)
        self.counts = tuple(counts) if counts else (1,) * len(colors)
        self.crop = None if crop is None else check_count("crop", crop)
        self.register_buffer("colors", torch.tensor([list(color) for color in colors]), persistent=False)
        self.register_buffer("background", torch.tensor(list(background)).reshape(3, 1, 1), persistent=False)
        self.objects = self.filters.objects
        self.network, self.flow, self.disturbance = network, flow, disturbance
        flow.requires_grad_(False)
        last = [part for part in network.modules() if isinstance(part, nn.Linear)][-1]
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    @property
    def filters(self) -> ColorFilters:
        """The colours that are looked for."""
        return ColorFilters(self.colors, self.background, self.counts)

    def observe(self, frames: Shaped[Tensor, "batch times channels height width"]) -> Observation:
        """The states at the end of all windows of three frames, finite whatever they show.

        The confidence is the visible share of the object's area in the last frame, times that in the better one of the
        frames before, without which there is no velocity. Where the last frame does not show an object it is 0, and
        the position is extrapolated; where none does, the position is the middle of the picture, at rest.
        """
        if frames.shape[1] < FRAMES or frames.shape[2:] != (3, *self.size):
            raise ShapeError(
                f"frames: expected shape (batch, {FRAMES} or more, 3, {self.size[0]}, {self.size[1]}), got "
                f"{tuple(frames.shape)}; resize them"
            )
        pieces = windows(brightness(frames), FRAMES)
        views = self.look(pieces.flatten(0, 1))
        off = self.network(views.pictures.flatten(0, 1)).unflatten(0, (-1, self.objects)).to(views.position.dtype)
        # What is not seen at all is not guessed at.
        seen = (views.confidence.amax(1) > 0)[..., None]
        position = views.position + seen * off[..., :2]
        velocity = (views.step + seen * off[..., 2:]) / self.dt
        still = torch.zeros_like(position[..., :1])
        places, rates = (torch.cat([part, still], -1).flatten(1) for part in (position, velocity))
        sure = views.confidence[:, -1] * views.confidence[:, :-1].amax(1)
        return Observation(*(part.unflatten(0, pieces.shape[:2]) for part in (places, rates, sure)))

    @torch.no_grad()
    def look(self, frames: Float[Tensor, "batch 3 channels height width"]) -> ObjectViews:
        """What perception finds in a window; without a gradient, and the same for the same frames in evaluation."""
        percepts = self.perceive(frames)
        position, step = percepts.places.motion()
        middle = position.new_tensor([self.size[1] / 2, self.size[0] / 2])
        position = torch.where(position.isnan(), middle, position)
        # Within one sample all three frames and both flows are cut out at the same place.
        pixels = position.floor().long()
        pictures = object_inputs(percepts.frames, percepts.masks, percepts.flows, pixels, self.crop, _OUTSIDE)
        return ObjectViews(pictures, position, step, percepts.places.confidence)

    def perceive(self, frames: Float[Tensor, "batch 3 channels height width"]) -> Percepts:
        """Masks, places and flows; of disturbed frames in training."""
        # Places are found to a hundredth of a pixel, which half precision does not know.
        with torch.autocast(frames.device.type, enabled=False):
            frames = frames.float()
            masks = self._masks(frames)
            if self.training and self.disturbance is not None:
                position = locate(masks, self.radius).centers[:, -1]
                frames = self.disturbance(frames, masks.sum(2, keepdim=True), position)
                masks = self._masks(frames)
            places = locate(masks, self.radius)
        flows = self.flow(frames[:, :-1].flatten(0, 1), frames[:, 1:].flatten(0, 1))
        return Percepts(frames, masks, places, flows.unflatten(0, (-1, FRAMES - 1)))

    def _masks(self, frames: Tensor) -> Tensor:
        """The masks of objects; those that share a colour are told apart."""
        masks = self.filters.masks(frames)
        if max(self.counts) == 1:
            return masks
        return torch.stack([follow(window, self.counts).masks for window in masks])
