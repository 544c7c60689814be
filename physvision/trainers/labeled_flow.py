"""Pairs of frames of a table with their true optical flow, from the labels of a few trials."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from physvision.core import State, brightness
from physvision.datasets import DataModule, LabelSettings, Sample, WindowShape
from physvision.datasets.windows import random_stream
from physvision.models.camera_decoder import render_layers
from physvision.models.tabletop import BallCamera, back_project, park_states, project, tabletop_leaves
from physvision.perception.synthetic_flow import FlowSample

_LABELS = LabelSettings(fraction=0.1)


class LabeledFlowData(DataModule):
    """Pairs of frames of the labeled trials of `tabletop`, the later frame first, with the flow between them.

    Pixels of a ball move as its center does, for the autoencoder needs the motion of balls, not that of their texture;
    all others move as the camera makes the table's plane move. In validation all trials are labeled.
    """

    def __init__(
        self,
        path: str,
        batch_size: int = 8,
        gap: int = 2,
        slots: int = 5,
        size: int = 64,
        stride: int = 1,
        labels: LabelSettings = _LABELS,
        seed: int = 0,
    ) -> None:
        """Use the labels of the data set in the folder `path`.

        Args:
            path: Folder of the data set.
            batch_size: Number of pairs of a batch and process.
            gap: Largest number of frames from one frame of a pair to the other.
            slots: Largest number of balls.
            size: Side of the frames, px.
            stride: Number of frames between neighboring pairs.
            labels: Choice of the labeled training trials; only these are used.
            seed: Seed of the order of pairs.
        """
        shape = WindowShape(gap, 1, stride)
        super().__init__(path, batch_size, shape, replace(labels, batch_fraction=1.0), seed=seed, memory=True)
        self.camera = BallCamera(slots, size)

    def on_after_batch_transfer(self, batch: Sample, dataloader_idx: int) -> FlowSample:
        """Compute the flow of each pair; in training over part of the gap, recolored and mirrored, all at random."""
        if self.trainer is None or not self.trainer.training:
            return self.flow_sample(batch)
        # A resumed run has the chances of one that was not interrupted.
        place = self.state_dict()
        random = random_stream(self.seed, "augmentation", place["epoch"], place["batches"], self.trainer.global_rank)
        pair = self.flow_sample(batch, int(random.integers(batch.frames.shape[1] - 1)))
        order = random.permutation(3).tolist()
        first, second, flow, shapes = pair.first[:, order], pair.second[:, order], pair.flow, pair.shapes
        for axis, component in ((-1, 0), (-2, 1)):
            if random.random() < 0.5:
                first, second, flow, shapes = (image.flip(axis) for image in (first, second, flow, shapes))
                flow[:, component] *= -1.0
        return FlowSample(first, second, flow, shapes)

    @torch.no_grad()
    def flow_sample(self, sample: Sample, frame: int = 0) -> FlowSample:
        """Compute the flow from the last frame of each window to an earlier one."""
        assert sample.trajectory is not None
        assert sample.properties is not None
        values = {name: value.float() for name, value in sample.properties.items()}
        radius, present, poses = values["radius"], values["present"] > 0.5, sample.extrinsics
        states, caster = park_states(sample.trajectory, present), self.camera.caster
        assert poses is not None
        later, intrinsics = poses[:, -1].float(), caster.camera.intrinsics.to(poses).float()
        earlier = poses[:, frame].float()
        own = self.camera.mechanics.properties.overridden(tabletop_leaves(values))  # pyright: ignore
        scene = self.camera.appearance(State(states.q[:, -1].float(), states.v[:, -1].float()), own)
        coverage = render_layers(caster, scene, later).coverage
        places = states.q.float().unflatten(2, (-1, 3))[..., :2]
        then, now = (
            _pixels(places[:, index], intrinsics, pose, -radius) for index, pose in ((frame, earlier), (-1, later))
        )
        still = self._still_flow(intrinsics, later, earlier)
        uncovered = (1.0 - coverage.sum(1, True)).clamp(0.0, 1.0)
        flow = uncovered * still + torch.einsum("bkhw,bkc->bchw", coverage, then - now)
        first, second = (brightness(sample.frames[:, index]) for index in (-1, frame))
        return FlowSample(first, second, flow, coverage)

    def _still_flow(self, intrinsics: Tensor, pose: Tensor, earlier: Tensor) -> Tensor:
        """Flow of the table's plane between two poses of the camera."""
        camera = self.camera.caster.camera
        columns, rows = (torch.arange(side).to(pose) for side in (camera.width, camera.height))
        pixels = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), -1).flatten(0, 1).expand(len(pose), -1, -1)
        height = torch.zeros_like(pixels[..., 0])
        moved = _pixels(back_project(pixels, intrinsics, pose, height), intrinsics, earlier, height)
        return (moved - pixels).transpose(1, 2).unflatten(2, (camera.height, camera.width))


def _pixels(places: Tensor, intrinsics: Tensor, pose: Tensor, height: Tensor) -> Tensor:
    return project(torch.cat([places, height[..., None]], -1), intrinsics, pose)
