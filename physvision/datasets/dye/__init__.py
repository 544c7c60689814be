"""Dye that a flow stirs: a pseudo-spectral solver in numpy."""

from physvision.datasets.dye.recipe import DyeRecipe as DyeRecipe
