"""Billiards: an exact event-driven simulator and its pictures."""

from physvision.datasets.billiards.recipe import BilliardsRecipe
from physvision.datasets.billiards.simulation import Motion, Table, simulate

__all__ = ["BilliardsRecipe", "Motion", "Table", "simulate"]
