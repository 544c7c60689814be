"""Shards: some trials in one Arrow file, their frames in small compressed groups that are read on their own."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from physvision.core import DataError
from physvision.datasets.recipe import Field, FrameFormat

# Frames that are compressed together. Fewer are read faster, more take less memory; docs/data.md has the figures.
GROUP = 10
CACHED_GROUPS = 8
_METADATA = b"physvision"
_TRAINING_COLUMNS = frozenset({"frames", "q", "v", "extrinsics"})
_COLUMN_SETS = ("training", "masks", "rest")


def encode_shard(
    frame_format: FrameFormat,
    fields: Mapping[str, Field],
    metadata: Mapping,
    trials: Iterable[Mapping[str, np.ndarray]],
) -> bytes:
    """Encode a shard; equal input gives equal bytes.

    Args:
        frame_format: Size and rate of the frames.
        fields: Fields stored beside each frame.
        metadata: Description of the shard, plain values.
        trials: Uint8 `frames` and the fields of each trial.
    """
    schema = _schema(frame_format, fields).with_metadata({_METADATA: json.dumps(metadata, sort_keys=True).encode()})
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 3), use_threads=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for trial in trials:
            for start in range(0, len(trial["frames"]), GROUP):
                part = slice(start, start + GROUP)
                arrays = [_binary(schema.field(0).type, trial["frames"][part])]
                arrays += [_lists(schema.field(name).type, trial[name][part]) for name in fields]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
    return sink.getvalue().to_pybytes()


def _schema(frame_format: FrameFormat, fields: Mapping[str, Field]) -> pa.Schema:
    """Columns of a shard: pixels, and the numbers of each field."""
    columns = [pa.field("frames", pa.binary(math.prod(frame_format.shape)))]
    columns += [
        pa.field(name, pa.list_(pa.type_for_alias(field.dtype), math.prod(field.shape)))
        for name, field in fields.items()
    ]
    return pa.schema(columns)


def _binary(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.uint8))])


def _lists(kind: pa.FixedSizeListType, values: np.ndarray) -> pa.Array:
    dtype = pa.array([], kind.value_type).to_numpy(zero_copy_only=False).dtype  # `to_pandas_dtype` may need pandas
    numbers = np.ascontiguousarray(values, dtype).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), type=kind)


class RecentGroups(OrderedDict[tuple[str, str, int], dict[str, np.ndarray]]):
    """Cache of the groups read last, of all shards: frames and states of one window lie in the same ones."""

    def __init__(self, capacity: int | None = None) -> None:
        """Cache `capacity` groups; None for all that are ever read."""
        super().__init__()
        self.capacity = capacity

    def store(self, key: tuple[str, str, int], group: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Add `group` and drop the oldest one."""
        self[key] = group
        if self.capacity is not None and len(self) > self.capacity:
            self.popitem(last=False)
        return group


class ShardReader:
    """Random access to the frames and fields of a shard file. The file is mapped, so that many readers share it.

    Frames, states and camera poses, which training reads again and again, are decompressed together; masks and the
    other fields are decompressed on their own, when they are asked for.
    """

    def __init__(
        self, path: Path, frame_format: FrameFormat, fields: Mapping[str, Field], frames: int, recent: RecentGroups
    ) -> None:
        """Open a shard file.

        Args:
            path: Path of the file.
            frame_format: Size and rate of its frames.
            fields: Fields stored beside each frame.
            frames: Number of frames of each of its trials.
            recent: Cache of decompressed groups.
        """
        self.path, self._recent = path, recent
        self._shapes = {"frames": frame_format.shape, **{name: field.shape for name, field in fields.items()}}
        self._schema, self._frames = _schema(frame_format, fields), frames
        self._groups = -(-frames // GROUP)
        # Columns that are decompressed together, by the name of their set.
        self._set_names = {
            name: "training" if name in _TRAINING_COLUMNS else "masks" if name == "masks" else "rest"
            for name in self._shapes
        }
        self._columns = {key: [name for name in self._shapes if self._set_names[name] == key] for key in _COLUMN_SETS}
        self._readers: dict[str, pa.RecordBatchFileReader] = {}

    def _reader(self, column_set: str) -> pa.RecordBatchFileReader:
        if column_set not in self._readers:
            file = pa.memory_map(str(self.path))
            schema = pa.ipc.open_file(file).schema
            # Bytes of another type, read as pixels, lie beyond the end of their buffer.
            if not schema.equals(self._schema):
                raise DataError(f"{self.path}: expected the columns {self._schema.names}, got {schema.names}")
            included = [index for index, name in enumerate(schema.names) if self._set_names[name] == column_set]
            options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=included)
            self._readers[column_set] = pa.ipc.open_file(file, options=options)
        return self._readers[column_set]

    def _group(self, column_set: str, index: int) -> dict[str, np.ndarray]:
        key = (self.path.name, column_set, index)
        group = self._recent.get(key)
        if group is None:
            try:
                batch = self._reader(column_set).get_batch(index)
                # Lengths that are not those of the buffers would be read past their end.
                batch.validate(full=True)
                rows = min(GROUP, self._frames - index % self._groups * GROUP)
                group = {name: self._array(name, batch.column(name), rows) for name in self._columns[column_set]}
            except Exception as error:  # of a damaged file pyarrow raises whatever it comes across
                raise DataError(
                    f"{self.path}: the shard is damaged ({error}); "
                    f"make it again with: physvision repair {self.path.parent}"
                ) from error
            self._recent.store(key, group)
        return group

    def _array(self, name: str, column: pa.Array, rows: int) -> np.ndarray:
        inner = column if name == "frames" else column.values
        if len(column) != rows or column.null_count or inner.null_count:
            raise DataError(f"expected {rows} rows of {name}, got {len(column)} with {column.null_count} missing")
        if name == "frames":
            values = np.frombuffer(column.buffers()[1], np.uint8)[: rows * math.prod(self._shapes[name])]
        else:
            values = inner.to_numpy()
        return values.reshape(rows, *self._shapes[name])

    def read(self, name: str, trial: int, start: int, stop: int) -> np.ndarray:
        """Copy of `frames` or a field, of frames `start` to `stop` (excluded) of the shard's trial number `trial`."""
        first, last = start // GROUP, (stop - 1) // GROUP
        parts = [
            self._group(self._set_names[name], trial * self._groups + index)[name][
                max(start - index * GROUP, 0) : stop - index * GROUP
            ]
            for index in range(first, last + 1)
        ]
        return np.concatenate(parts)
