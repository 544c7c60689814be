"""Table with textured balls, seen by a tilted, moving camera: exact motion, ray-cast frames."""

from physvision.datasets.tabletop.recipe import TabletopRecipe as TabletopRecipe
