"""Data sets: exact truth, stored so that anyone can make it again, and read at random by any number of processes."""

from typing import TYPE_CHECKING

from physvision.datasets.billiards import BilliardsRecipe
from physvision.datasets.block import BlockRecipe
from physvision.datasets.dataset import Dataset
from physvision.datasets.dye import DyeRecipe
from physvision.datasets.generation import generate
from physvision.datasets.importing import import_video
from physvision.datasets.pendulum import PendulumRecipe
from physvision.datasets.recipe import Recipe
from physvision.datasets.registry import repair
from physvision.datasets.sample import Sample
from physvision.datasets.sampling import ShardSampler
from physvision.datasets.showing import show
from physvision.datasets.swing import SwingRecipe
from physvision.datasets.tabletop import TabletopRecipe
from physvision.datasets.windows import Windows, WindowShape

if TYPE_CHECKING:
    from physvision.datasets.modules import DataModule

__all__ = [
    "BilliardsRecipe",
    "BlockRecipe",
    "DataModule",
    "Dataset",
    "DyeRecipe",
    "PendulumRecipe",
    "Recipe",
    "Sample",
    "ShardSampler",
    "SwingRecipe",
    "TabletopRecipe",
    "WindowShape",
    "Windows",
    "generate",
    "import_video",
    "repair",
    "show",
]


def __getattr__(name: str):
    # Lightning takes seconds to import, and what generates data does not need it.
    if name == "DataModule":
        from physvision.datasets.modules import DataModule

        return DataModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
