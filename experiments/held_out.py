"""Windows of held-out trials, for experiments that measure a trained model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from physvision.datasets import DataModule, Sample, WindowShape


def held_out(data: Path, shape: WindowShape, batches: int, split: str = "valid", **options: Any) -> Iterator[Sample]:
    """Yield batches of 16 windows of the validation or the test split, in order.

    Args:
        data: Folder of the data set.
        shape: Shape of the windows.
        batches: Largest number of batches.
        split: Split of the trials, "valid" or "test".
        options: Further options of `DataModule`.
    """
    source = DataModule(str(data), 16, shape, **options)
    source.setup("validate" if split == "valid" else "test")
    yield from islice(source.val_dataloader() if split == "valid" else source.test_dataloader(), batches)
