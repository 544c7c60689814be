"""Data sets: exact truth, stored so that anyone can make it again, and read at random by any number of processes."""

from typing import TYPE_CHECKING

from physvision.datasets.billiards import BilliardsRecipe as BilliardsRecipe
from physvision.datasets.block import BlockRecipe as BlockRecipe
from physvision.datasets.dataset import Dataset as Dataset
from physvision.datasets.dye import DyeRecipe as DyeRecipe
from physvision.datasets.generation import generate as generate
from physvision.datasets.importing import import_video as import_video
from physvision.datasets.pendulum import PendulumRecipe as PendulumRecipe
from physvision.datasets.recipe import Field as Field, FrameFormat as FrameFormat, Recipe as Recipe
from physvision.datasets.registry import repair as repair
from physvision.datasets.sample import Sample as Sample
from physvision.datasets.sampling import ShardSampler as ShardSampler
from physvision.datasets.showing import show as show
from physvision.datasets.swing import SwingRecipe as SwingRecipe
from physvision.datasets.tabletop import TabletopRecipe as TabletopRecipe
from physvision.datasets.windows import LabelSettings as LabelSettings, Windows as Windows, WindowShape as WindowShape

if TYPE_CHECKING:
    from physvision.datasets.modules import DataModule as DataModule


def __getattr__(name: str):
    # Lightning takes seconds to import, and what generates data does not need it.
    if name == "DataModule":
        from physvision.datasets.modules import DataModule

        return DataModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
