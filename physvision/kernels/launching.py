"""Launch Warp kernels on torch memory: arrays, structs, and slices of a batch on several cores."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from threading import Timer
from typing import Any

import numpy as np
import torch
import warp as wp
from torch import Tensor
from torch._functorch.pyfunctorch import (
    VmapInterpreter,
    retrieve_all_functorch_interpreters,
    temporarily_clear_interpreter_stack,
)

# Below this much work a second thread costs more than it saves.
LEAST_MICROSECONDS_A_THREAD = 200.0

# A launch that is shorter is not worth a thread that waits for the user to interrupt it.
LEAST_MICROSECONDS_TO_STOP = 5000.0


def array(tensor: Tensor, dtype: Any = None) -> wp.array:
    """The memory of `tensor` as a Warp array; strides are kept, zero strides of expanded tensors too."""
    return wp.from_torch(_strided(tensor), dtype=dtype, requires_grad=False)


def argument(tensor: Tensor, dtype: Any = None) -> Any:
    """The memory of `tensor` as an argument of a kernel: as `array`, in half the time, but no field of a struct."""
    return wp.from_torch(tensor.detach(), dtype=dtype, requires_grad=False, return_ctype=True)


def fill(struct: Any, name: str, tensor: Tensor, dtype: Any = None) -> None:
    """Let an array of a struct lie where `tensor` does, which the struct keeps alive.

    In a third of the time that an assignment takes, which makes an object of the array first and checks its kind.
    """
    held = struct.__dict__[name] = _strided(tensor)
    setattr(struct.__ctype__(), name, wp.from_torch(held, dtype=dtype, requires_grad=False, return_ctype=True))


def _strided(tensor: Tensor) -> Tensor:
    """The tensor without its gradient; what is empty may have any strides, and Warp asks for its own."""
    return tensor.detach() if tensor.numel() else torch.empty_like(tensor, memory_format=torch.contiguous_format)


@contextmanager
def outside_transforms() -> Iterator[None]:
    """Make tensors that outlast torch's functional transforms: within one a new tensor has no memory of its own."""
    with temporarily_clear_interpreter_stack():
        yield


def inside_map() -> bool:
    """Whether `torch.func.vmap` (or `jacrev`, which is one) is calling."""
    return any(isinstance(each, VmapInterpreter) for each in retrieve_all_functorch_interpreters())


def launch(
    kernel: wp.Kernel,
    batch: int,
    inputs: Sequence[Any],
    device: torch.device,
    microseconds: float,
    inner: tuple[int, ...] = (),
    stop: np.ndarray | None = None,
    together: int = 1,
) -> None:
    """Run `kernel(first, *inputs)` for `batch` worlds.

    On a CPU a launch has one thread. A launch releases the interpreter's lock, so slices of the batch run on as many
    cores as torch may use; each world is computed by the same instructions wherever it runs.

    Args:
        kernel: its first argument is the world that its first thread stands for.
        batch: number of worlds.
        inputs: the other arguments.
        device: where the memory lies.
        microseconds: a guess at the whole time on one core.
        inner: further dimensions of the launch, after that of the worlds.
        stop: a number that the kernel reads, and ends early if it is not zero; set where the user interrupts.
        together: worlds in a row, of which `batch` is a multiple, that one core has to do.
    """
    if not batch:
        return
    _compile(kernel, device)
    if device.type == "cuda":
        stream = wp.stream_from_torch(torch.cuda.current_stream(device))
        wp.launch(kernel, dim=(batch, *inner), inputs=[0, *inputs], device=wp.device_from_torch(device), stream=stream)
        return
    groups = batch // together
    threads = _threads(groups, microseconds)
    if threads == 1 and (stop is None or microseconds < LEAST_MICROSECONDS_TO_STOP):
        wp.launch(kernel, dim=(batch, *inner), inputs=[0, *inputs], device="cpu")
        return
    jobs = [
        _pool(threads).submit(
            wp.launch,
            kernel,
            dim=((end - start) * together, *inner),
            inputs=[start * together, *inputs],
            device="cpu",
        )
        for start, end in _slices(groups, threads)
    ]
    try:
        for job in jobs:
            job.result()
    except KeyboardInterrupt:
        if stop is not None:
            stop[0] = 1
            wait(jobs)
            stop[0] = 0
        raise


class Shelf:
    """Repeated launches by what they are for, each lent to one caller at a time, the last few kept."""

    def __init__(self, size: int = 16) -> None:
        self._idle: dict[Any, list[Any]] = {}
        self._size = size

    def take(self, key: Any, device: torch.device, make: Callable[[], Any]) -> Any:
        """One that nobody uses; `give` takes it back."""
        idle = self._idle.get((key, _stream(device)))
        return idle.pop() if idle else make()

    def give(self, key: Any, device: torch.device, recorded: Any) -> None:
        """Keep it for the next call on the same stream, which waits for this one."""
        self._idle.setdefault((key, _stream(device)), []).append(recorded)
        while len(self._idle) > self._size:
            del self._idle[next(iter(self._idle))]


def _stream(device: torch.device) -> int | None:
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None


def _threads(batch: int, microseconds: float) -> int:
    return min(torch.get_num_threads(), batch, max(1, int(microseconds / LEAST_MICROSECONDS_A_THREAD)))


def _slices(batch: int, threads: int) -> list[tuple[int, int]]:
    return list(pairwise(batch * k // threads for k in range(threads + 1)))


def is_short(batch: int, microseconds: float, device: torch.device) -> bool:
    """Whether a launch is made by the calling thread alone."""
    return device.type == "cpu" and _threads(batch, microseconds) == 1 and batch > 0


class _Packed:
    """A launch on a CPU whose arguments stay packed as the compiled kernel reads them.

    Warp's own recorded launch packs them again each time, which takes as long as a short simulation.
    """

    def __init__(self, command: Any) -> None:
        bounds, *given = command.params
        names = [each.label for each in command.kernel.adj.args]
        fields = [(name, type(each)) for name, each in zip(names, given, strict=True)]
        arguments = type("Arguments", (ctypes.Structure,), {"_fields_": fields})(*given)
        self._names, self._arguments, self._held = names, arguments, command
        self._places: dict[tuple[int, str | None], Any] = {}
        self._call = partial(command.hooks.forward, ctypes.byref(bounds), ctypes.byref(arguments))

    def move(self, at: int, place: int, name: str | None) -> None:
        key = at, name
        if key not in self._places:
            found = getattr(self._arguments, self._names[at if at < 0 else at + 1])
            self._places[key] = found if name is None else getattr(found, name)
        self._places[key].data = place

    def replace(self, at: int, value: Any) -> None:
        self._held.set_param_at_index(at + 1, value)
        setattr(self._arguments, self._names[at + 1], self._held.params[at + 2])
        self._places.clear()

    def launch(self) -> None:
        self._call()


class _Recorded:
    """Warp's recorded launch, for a GPU."""

    def __init__(self, command: Any) -> None:
        self._command = command

    def move(self, at: int, place: int, name: str | None) -> None:
        given = self._command.params[at if at < 0 else at + 2]  # behind the bounds and the first world
        (given if name is None else getattr(given, name)).data = place

    def replace(self, at: int, value: Any) -> None:
        self._command.set_param_at_index(at + 1, value)

    def launch(self, stream: Any) -> None:
        self._command.launch(stream=stream)


class Repeated:
    """A launch that is made again and again: its arguments are packed once, and memory takes new places."""

    def __init__(
        self,
        kernel: wp.Kernel,
        batch: int,
        inputs: Sequence[Any],
        device: torch.device,
        microseconds: float = 0.0,
        held: object = None,
        inner: tuple[int, ...] = (),
    ) -> None:
        """Pack the arguments.

        Args:
            kernel: as in `launch`.
            batch: number of worlds, at least one.
            inputs: the kernel's arguments but for the first; arrays made by `argument`.
            device: where the memory lies.
            microseconds: a guess at the whole time on one core.
            held: what they point to and nobody else keeps alive.
            inner: further dimensions of the launch, after that of the worlds.
        """
        _compile(kernel, device)
        self._held, self._device = held, device
        self._replaced: dict[int, Any] = {}
        threads = 1 if device.type == "cuda" else _threads(batch, microseconds)
        where = wp.device_from_torch(device)
        kind = _Recorded if device.type == "cuda" else _Packed
        self._commands: list[Any] = [
            kind(wp.launch(kernel, dim=(end - start, *inner), inputs=[start, *inputs], device=where, record_cmd=True))
            for start, end in _slices(batch, threads)
        ]

    def move(self, at: int, tensor: Tensor, name: str | None = None) -> None:
        """Let argument `at`, or its array of this name, lie where `tensor` does, which has the strides of the first."""
        place = tensor.data_ptr()
        for command in self._commands:
            command.move(at, place, name)

    def replace(self, at: int, value: Any) -> None:
        """Give argument `at` another value."""
        if self._replaced.get(at) is not value:
            for command in self._commands:
                command.replace(at, value)
            self._replaced[at] = value

    def run(self) -> None:
        """Launch."""
        if self._device.type == "cuda":
            self._commands[0].launch(stream=wp.stream_from_torch(torch.cuda.current_stream(self._device)))
        elif len(self._commands) == 1:
            self._commands[0].launch()
        else:
            list(_pool(len(self._commands)).map(lambda command: command.launch(), self._commands))


@cache
def _compile(kernel: wp.Kernel, device: torch.device) -> None:
    """Load the kernel's code; where it has to be compiled, once a version, that takes seconds: say so."""
    patience = Timer(1.0, lambda: print("physvision: compiling kernels, once on this machine …", file=sys.stderr))
    patience.start()
    kernel.module.load(wp.get_device(str(device)), 1 if device.type == "cpu" else 256)
    patience.cancel()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="physvision")


if hasattr(os, "register_at_fork"):
    # Threads do not live on in a forked process, which would wait for them for ever: it makes its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
