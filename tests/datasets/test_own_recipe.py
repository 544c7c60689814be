"""A recipe of one's own makes a data set that everything reads."""

from dataclasses import dataclass

import numpy as np
import pytest

from physvision import video
from physvision.core import DataError, InputError
from physvision.datasets import Dataset, Field, FrameFormat, Recipe, generate, repair, show


@dataclass(frozen=True)
class Dark(Recipe):
    """Black frames, and nothing to see in them."""

    @property
    def frame_format(self):
        return FrameFormat(8, 8, 1, fps=30.0, geometry="pixels")

    @property
    def fields(self):
        return {"q": Field((1,), "px", "place"), "v": Field((1,), "px/s", "velocity")}

    def trial(self, random):
        frames = np.zeros((self.frames, 8, 8, 1), np.uint8)
        return {"frames": frames, "q": random.normal(size=(self.frames, 1)), "v": np.zeros((self.frames, 1))}


def test_a_recipe_of_ones_own(tmp_path):
    with pytest.raises(InputError, match="Dark: expected a class attribute `name`"):
        Dark()
    kind = dataclass(frozen=True)(type("Night", (Dark,), {"name": "night"}))
    recipe = kind(trials=10, frames=4)
    out = generate(recipe, tmp_path / "night", workers=1, progress=False)
    assert Dataset(out).trajectory(0, 0, 4).q.shape == (1, 4, 1)
    assert video.read(show(out, tmp_path / "night.png", frames=2)).frames.shape[0] == 1
    shard = out / "train-00000.arrow"
    before = shard.read_bytes()
    shard.write_bytes(b"")
    with pytest.raises(
        DataError, match="its recipe 'night' is none of physvision's; generate it again with that recipe"
    ):
        repair(out)
    generate(recipe, out, workers=1, progress=False)
    assert shard.read_bytes() == before
