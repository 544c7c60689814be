"""Which library keeps the data sets: size, speed of writing, and random windows of 3 + 1 frames a second and core.

    python benchmarks/storage.py [--trials 40] [--seconds 2]

Every candidate that is installed stores the same billiards trials, the frames of a trial in groups, and reads them
from files opened anew. Candidates: pyarrow (Arrow IPC and Parquet), h5py, zarr, tensorstore, pylance, array_record.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from physvision.datasets.billiards.drawing import draw_discs
from physvision.datasets.billiards.simulation import Table, simulate

FRAMES, SIZE, HORIZON = 300, 64, 10
Reader = Callable[[int, int, int], np.ndarray]


def trials(count: int) -> np.ndarray:
    frames = np.zeros((count, FRAMES, SIZE, SIZE, 3), np.uint8)
    start = np.array([[12.0, 12.0], [40.0, 20.0], [30.0, 50.0]])
    table = Table(np.full(3, 3.2), np.ones(3), (SIZE, SIZE))
    for trial in range(count):
        speeds = np.random.default_rng(trial).uniform(-30, 30, (3, 2))
        motion = simulate(table, start, speeds, np.arange(FRAMES) / 30)
        draw_discs(frames[trial], motion.positions, table.radii, np.eye(3))
    return frames


def arrow(folder: Path, frames: np.ndarray, group: int) -> Reader:
    import pyarrow as pa

    rows = frames[0, 0].size
    schema = pa.schema([("frames", pa.binary(rows))])
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 3))
    with pa.OSFile(str(folder / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        for piece in frames.reshape(-1, group * rows):
            column = pa.FixedSizeBinaryArray.from_buffers(schema.field(0).type, group, [None, pa.py_buffer(piece)])
            writer.write_batch(pa.record_batch([column], schema=schema))
    source = pa.memory_map(str(folder / "a.arrow"))
    reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False))

    def read(trial: int, start: int, stop: int) -> np.ndarray:
        pieces = []
        for index in range(start // group, (stop - 1) // group + 1):
            buffer = reader.get_batch(trial * (FRAMES // group) + index).column(0).buffers()[1]
            pieces.append(np.frombuffer(buffer, np.uint8).reshape(group, SIZE, SIZE, 3))
        offset = start // group * group
        return np.concatenate(pieces)[start - offset : stop - offset]

    return read


def parquet(folder: Path, frames: np.ndarray, group: int) -> Reader:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = frames[0, 0].size
    schema = pa.schema([("frames", pa.binary(rows))])
    with pq.ParquetWriter(folder / "a.parquet", schema, compression="zstd", use_dictionary=False) as writer:
        for piece in frames.reshape(-1, group * rows):
            column = pa.FixedSizeBinaryArray.from_buffers(schema.field(0).type, group, [None, pa.py_buffer(piece)])
            writer.write_batch(pa.record_batch([column], schema=schema), row_group_size=group)
    file = pq.ParquetFile(folder / "a.parquet", memory_map=True)

    def read(trial: int, start: int, stop: int) -> np.ndarray:
        first, last = start // group, (stop - 1) // group
        groups = [trial * (FRAMES // group) + index for index in range(first, last + 1)]
        column = file.read_row_groups(groups, use_threads=False).column(0).combine_chunks()
        whole = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, SIZE, SIZE, 3)
        return whole[start - first * group : stop - first * group]

    return read


def hdf5(folder: Path, frames: np.ndarray, group: int) -> Reader:
    import h5py

    with h5py.File(folder / "a.h5", "w") as file:
        chunks = (1, group, SIZE, SIZE, 3)
        file.create_dataset("frames", data=frames, chunks=chunks, compression="gzip", compression_opts=1)
    data = h5py.File(folder / "a.h5", "r")["frames"]
    return lambda trial, start, stop: data[trial, start:stop]


def zarr3(folder: Path, frames: np.ndarray, group: int) -> Reader:
    import zarr

    chunks, shards = (1, group, SIZE, SIZE, 3), (20, FRAMES, SIZE, SIZE, 3)
    store = zarr.create_array(
        str(folder / "a"),
        shape=frames.shape,
        dtype="u1",
        chunks=chunks,
        shards=shards,
        compressors=[zarr.codecs.ZstdCodec(level=3)],
    )
    store[:] = frames
    data = zarr.open_array(str(folder / "a"), mode="r")
    return lambda trial, start, stop: data[trial, start:stop]


def tensorstore3(folder: Path, frames: np.ndarray, group: int) -> Reader:
    import tensorstore

    layout = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": str(folder / "a")},
        "metadata": {
            "shape": list(frames.shape),
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [20, FRAMES, SIZE, SIZE, 3]}},
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [1, group, SIZE, SIZE, 3],
                        "codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 3}}],
                    },
                }
            ],
        },
    }
    tensorstore.open(layout, create=True).result().write(frames).result()
    context = tensorstore.Context({"data_copy_concurrency": {"limit": 1}})
    data = tensorstore.open(layout, context=context).result()
    return lambda trial, start, stop: data[trial, start:stop].read().result()


def lance2(folder: Path, frames: np.ndarray, group: int) -> Reader:
    import lance
    import pyarrow as pa

    rows = frames[0, 0].size
    metadata = {b"lance-encoding:compression": b"zstd"}
    schema = pa.schema([pa.field("frames", pa.binary(), metadata=metadata)])
    table = pa.table([pa.array([frame.tobytes() for frame in frames.reshape(-1, rows)], pa.binary())], schema=schema)
    data = lance.write_dataset(table, folder / "a.lance", data_storage_version="2.1")

    def read(trial: int, start: int, stop: int) -> np.ndarray:
        column = data.take(list(range(trial * FRAMES + start, trial * FRAMES + stop))).column(0)
        return np.stack([np.frombuffer(item.as_buffer(), np.uint8) for item in column]).reshape(-1, SIZE, SIZE, 3)

    return read


def record(folder: Path, frames: np.ndarray, group: int) -> Reader:
    from array_record.python import array_record_module as module

    writer = module.ArrayRecordWriter(str(folder / "a.ar"), f"group_size:{group},zstd:3")
    for frame in frames.reshape(-1, frames[0, 0].size):
        writer.write(frame.tobytes())
    writer.close()
    reader = module.ArrayRecordReader(str(folder / "a.ar"), "readahead_buffer_size:0", file_reader_buffer_size=65536)

    def read(trial: int, start: int, stop: int) -> np.ndarray:
        items = reader.read(list(range(trial * FRAMES + start, trial * FRAMES + stop)))
        return np.stack([np.frombuffer(item, np.uint8) for item in items]).reshape(-1, SIZE, SIZE, 3)

    return read


CANDIDATES = {
    "Arrow IPC, zstd": arrow,
    "Parquet, zstd": parquet,
    "HDF5, gzip 1": hdf5,
    "zarr 3, zstd shards": zarr3,
    "tensorstore, zarr 3": tensorstore3,
    "Lance 2.1, zstd": lance2,
    "ArrayRecord, zstd": record,
}


def measure(candidate, frames: np.ndarray, group: int, seconds: float) -> tuple[float, float, float, float]:
    folder = Path(tempfile.mkdtemp(prefix="storage-"))
    try:
        begin = time.process_time()
        read = candidate(folder, frames, group)
        writing = time.process_time() - begin
        size = sum(entry.stat().st_size for entry in folder.rglob("*") if entry.is_file())
        rng = np.random.default_rng(0)
        count, wall, begin = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < seconds:
            trial, start = int(rng.integers(len(frames))), int(rng.integers(FRAMES - 3 - HORIZON))
            window, target = read(trial, start, start + 3), read(trial, start + 2 + HORIZON, start + 3 + HORIZON)
            if count % 50 == 0:
                assert np.array_equal(window, frames[trial, start : start + 3])
                assert np.array_equal(target, frames[trial, start + 2 + HORIZON, None])
            count += 1
        return size, writing, count / (time.process_time() - begin), count / (time.perf_counter() - wall)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--groups", type=int, nargs="+", default=[4, 10, 20])
    options = parser.parse_args()
    frames = trials(options.trials)
    print(f"{options.trials} trials of {FRAMES} frames, {frames.nbytes / 1e6:.0f} MB; CPU time of all threads")
    heads = ("group", "MB/1000 trials", "write s/1000", "windows/CPU s", "windows/s")
    print(f"{'candidate':22} " + " ".join(f"{head:>14}" for head in heads))
    for name, candidate in CANDIDATES.items():
        for group in options.groups:
            try:
                size, writing, rate, wall_rate = measure(candidate, frames, group, options.seconds)
            except ImportError as error:
                print(f"{name:22} not installed ({error.name})")
                break
            fraction = 1000 / options.trials
            figures = (group, size * fraction / 1e6, writing * fraction, rate, wall_rate)
            print(f"{name:22} " + " ".join(f"{figure:14.0f}" for figure in figures))


if __name__ == "__main__":
    main()
