"""An elastic block that hangs by its top: the finite elements of scikit-fem."""

from physvision.datasets.block.recipe import BlockRecipe as BlockRecipe
