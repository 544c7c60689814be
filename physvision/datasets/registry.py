"""Generators by name, and repair of data sets from their descriptions."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from physvision.core import DataError, InputError, StrPath
from physvision.core.serialization import build_dataclass
from physvision.datasets.billiards import BilliardsRecipe
from physvision.datasets.block import BlockRecipe
from physvision.datasets.dye import DyeRecipe
from physvision.datasets.folder import DataFolder, Shard
from physvision.datasets.generation import generate
from physvision.datasets.pendulum import PendulumRecipe
from physvision.datasets.recipe import Recipe
from physvision.datasets.swing import SwingRecipe
from physvision.datasets.tabletop import TabletopRecipe

RECIPES: dict[str, type[Recipe]] = {
    recipe.name: recipe
    for recipe in (BilliardsRecipe, BlockRecipe, DyeRecipe, PendulumRecipe, SwingRecipe, TabletopRecipe)
}


def recipe_of(description: dict) -> Recipe | None:
    """Rebuild the recipe that a data set was made from; None if it was imported, or is of another's recipe."""
    recipe_class = RECIPES.get(description["name"])
    if recipe_class is None:
        return None
    names = {field.name for field in fields(recipe_class)}
    values: dict[str, Any] = description["recipe"]
    if set(values) != names:
        raise DataError(
            f"the recipe of {description['name']} is of another version: {sorted(set(values) ^ names)} differ"
        )
    try:
        return build_dataclass(recipe_class, values, description["name"])
    except InputError as error:
        raise DataError(f"the recipe of {description['name']} cannot be followed: {error}") from error


def faults(path: StrPath) -> dict[Shard, str]:
    """Missing and damaged shards of the data set at `path`, with a description of each fault."""
    folder = DataFolder(path)
    results = {shard: folder.fault(shard) for shard in folder.shards()}
    return {shard: fault for shard, fault in results.items() if fault is not None}


def repair(path: StrPath, workers: int | None = None, progress: bool = True) -> Path:
    """Make the missing and damaged shards of a data set again, and no others.

    Args:
        path: Folder of the data set.
        workers: Number of processes; all cores if None.
        progress: If true, draw a progress bar.

    Raises:
        DataError: The data set was imported from a video, or its recipe is another's: make it again in the same folder.
    """
    description = DataFolder(path).description()
    recipe = recipe_of(description)
    if recipe is None:
        source = description["recipe"].get("source")
        if source is None:
            raise DataError(
                f"{path}: its recipe {description['name']!r} is none of physvision's; generate it again with that "
                "recipe from Python, and what is missing is made"
            )
        raise DataError(f"{path}: was imported; import {source} into it again, and what is missing is made")
    return generate(recipe, path, workers=workers, progress=progress)
