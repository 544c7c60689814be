"""A shard: some trials in one Arrow file, their frames in small compressed groups that are read on their own."""

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

# Frames that are compressed together. Fewer are read faster, more take less room; docs/data.md has the figures.
GROUP = 10
_KEPT_GROUPS = 8
_METADATA = b"physvision"


def encode_shard(
    frame_format: FrameFormat, fields: Mapping[str, Field], about: Mapping, trials: Iterable[Mapping[str, np.ndarray]]
) -> bytes:
    """The bytes of a shard; the same input gives the same bytes.

    Args:
        frame_format: of the frames.
        fields: what each frame is kept with.
        about: what the shard says of itself, plain values.
        trials: their uint8 `frames` and float64 fields.
    """
    schema = _schema(frame_format, fields).with_metadata({_METADATA: json.dumps(about, sort_keys=True).encode()})
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
    """The columns of a shard: pixels, and the numbers of each field."""
    columns = [pa.field("frames", pa.binary(math.prod(frame_format.shape)))]
    columns += [pa.field(name, pa.list_(pa.float64(), math.prod(field.shape))) for name, field in fields.items()]
    return pa.schema(columns)


def _binary(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.uint8))])


def _lists(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(values, np.float64).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)


class RecentGroups(OrderedDict[tuple[str, bool, int], dict[str, np.ndarray]]):
    """The groups read last, of all shards: frames and states of one window lie in the same ones."""

    def __init__(self, capacity: int | None = _KEPT_GROUPS) -> None:
        """Keep `capacity` groups; None for all that are ever read."""
        super().__init__()
        self.capacity = capacity

    def keep(self, key: tuple[str, bool, int], group: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Add `group`, and let go of the oldest."""
        self[key] = group
        if self.capacity is not None and len(self) > self.capacity:
            self.popitem(last=False)
        return group


class ShardReader:
    """Random access to the frames and fields of a shard file. The file is mapped, so that many readers share it.

    Frames and states, which training reads again and again, are decompressed apart from the other fields.
    """

    def __init__(
        self, path: Path, frame_format: FrameFormat, fields: Mapping[str, Field], frames: int, recent: RecentGroups
    ) -> None:
        """Open the shard at `path`, whose trials have `frames` frames each."""
        self.path, self._recent = path, recent
        self._shapes = {"frames": frame_format.shape, **{name: field.shape for name, field in fields.items()}}
        self._schema, self._frames = _schema(frame_format, fields), frames
        self._groups = -(-frames // GROUP)
        often = ["frames", *(name for name in ("q", "v") if name in fields)]
        self._often = frozenset(often)
        self._columns = {True: often, False: [name for name in fields if name not in often]}
        self._readers: dict[bool, pa.RecordBatchFileReader] = {}

    def _reader(self, often: bool) -> pa.RecordBatchFileReader:
        if often not in self._readers:
            file = pa.memory_map(str(self.path))
            schema = pa.ipc.open_file(file).schema
            # Bytes of another type, read as pixels, lie beyond the end of their buffer.
            if not schema.equals(self._schema):
                raise DataError(f"{self.path}: expected the columns {self._schema.names}, got {schema.names}")
            wanted = [index for index, name in enumerate(schema.names) if name in self._columns[often]]
            options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=wanted)
            self._readers[often] = pa.ipc.open_file(file, options=options)
        return self._readers[often]

    def _group(self, often: bool, index: int) -> dict[str, np.ndarray]:
        key = (self.path.name, often, index)
        group = self._recent.get(key)
        if group is None:
            try:
                batch = self._reader(often).get_batch(index)
                # Lengths that are not those of the buffers would be read past their end.
                batch.validate(full=True)
                rows = min(GROUP, self._frames - index % self._groups * GROUP)
                group = {name: self._array(name, batch.column(name), rows) for name in self._columns[often]}
            except Exception as error:  # of a damaged file pyarrow raises whatever it comes across
                raise DataError(
                    f"{self.path}: the shard is damaged ({error}); "
                    f"make it again with: physvision repair {self.path.parent}"
                ) from error
            self._recent.keep(key, group)
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
        """A copy of `frames` or a field, of frames `start` to `stop` (excluded) of the shard's trial number `trial`."""
        often = name in self._often
        first, last = start // GROUP, (stop - 1) // GROUP
        pieces = [
            self._group(often, trial * self._groups + index)[name][max(start - index * GROUP, 0) : stop - index * GROUP]
            for index in range(first, last + 1)
        ]
        return np.concatenate(pieces)
