"""Billiards: an exact event-driven simulator and its pictures."""

from physvision.datasets.billiards.recipe import BilliardsRecipe as BilliardsRecipe
from physvision.datasets.billiards.simulation import Motion as Motion, Table as Table, simulate as simulate
