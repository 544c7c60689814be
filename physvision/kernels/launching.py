"""Launches of Warp kernels on torch memory: arrays, structs, and slices of a batch on several cores."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
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

# Below this work per thread, µs, another thread costs more than it saves.
MIN_THREAD_MICROSECONDS = 200.0

# A launch shorter than this, µs, cannot be interrupted by the user, which takes another thread.
MIN_INTERRUPTIBLE_MICROSECONDS = 5000.0


def array(tensor: Tensor, dtype: Any = None) -> wp.array:
    """Warp array over the memory of a tensor, with its strides, including zero strides of expanded tensors."""
    return wp.from_torch(_strided(tensor), dtype=dtype, requires_grad=False)


def argument(tensor: Tensor, dtype: Any = None) -> Any:
    """Kernel argument over the memory of a tensor, made in half the time of `array`, but not for fields of structs."""
    return wp.from_torch(tensor.detach(), dtype=dtype, requires_grad=False, return_ctype=True)


def fill(struct: Any, name: str, tensor: Tensor, dtype: Any = None) -> None:
    """Set an array field of a struct to the memory of a tensor, which the struct keeps alive.

    A dotted name leads through sub-structs. This takes a third of the time of an assignment, which first makes an
    array object and checks its type.
    """
    *groups, name = name.split(".")
    for group in groups:
        struct = getattr(struct, group)
    detached = struct.__dict__[name] = _strided(tensor)
    setattr(struct.__ctype__(), name, wp.from_torch(detached, dtype=dtype, requires_grad=False, return_ctype=True))


def _strided(tensor: Tensor) -> Tensor:
    """Detached tensor; an empty one may have any strides, and Warp expects contiguous ones."""
    return tensor.detach() if tensor.numel() else torch.empty_like(tensor, memory_format=torch.contiguous_format)


@contextmanager
def outside_transforms() -> Iterator[None]:
    """Leave torch's functional transforms, in which new tensors have no memory of their own."""
    with temporarily_clear_interpreter_stack():
        yield


def inside_vmap() -> bool:
    """If true, the caller is inside `torch.func.vmap` (or `jacrev`, which uses it)."""
    interpreters = retrieve_all_functorch_interpreters()
    return any(isinstance(interpreter, VmapInterpreter) for interpreter in interpreters)


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

    On a CPU a launch has one thread and releases the interpreter's lock, so slices of the batch run on as many cores as
    torch may use; each world is computed by the same instructions wherever it runs.

    Args:
        kernel: Kernel whose first argument is the world of its first thread.
        batch: Number of worlds.
        inputs: Other arguments of the kernel.
        device: Device of the memory.
        microseconds: Estimated time on one core, µs.
        inner: Further dimensions of the launch, after that of the worlds.
        stop: Flag, set when the user interrupts, at which the kernel ends early; None for none.
        together: Number of adjacent worlds, of which `batch` is a multiple, that one core must compute.
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
    if threads == 1 and (stop is None or microseconds < MIN_INTERRUPTIBLE_MICROSECONDS):
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


class LaunchCache:
    """Recorded launches by key, each lent to one caller at a time; the last few keys stay."""

    def __init__(self, size: int = 16) -> None:
        self._idle: dict[Any, list[Any]] = {}
        self._size = size

    def take(self, key: Any, device: torch.device, make: Callable[[], Any]) -> Any:
        """Take a launch that no other caller uses, or make one; `give_back` returns it."""
        idle = self._idle.get((key, _stream(device)))
        return idle.pop() if idle else make()

    def give_back(self, key: Any, device: torch.device, recorded: Any) -> None:
        """Return a launch for the next call on the same stream, which waits for this one."""
        self._idle.setdefault((key, _stream(device)), []).append(recorded)
        while len(self._idle) > self._size:
            del self._idle[next(iter(self._idle))]


def _stream(device: torch.device) -> int | None:
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None


def _threads(batch: int, microseconds: float) -> int:
    return min(torch.get_num_threads(), batch, max(1, int(microseconds / MIN_THREAD_MICROSECONDS)))


def _slices(batch: int, threads: int) -> list[tuple[int, int]]:
    return list(pairwise(batch * k // threads for k in range(threads + 1)))


def is_short(batch: int, microseconds: float, device: torch.device) -> bool:
    """If true, a launch uses the calling thread only."""
    return device.type == "cpu" and _threads(batch, microseconds) == 1 and batch > 0


@cache
def _packed_type(fields: tuple[tuple[str, type], ...]) -> type[ctypes.Structure]:
    """Struct of a kernel's arguments."""
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


class _Packed:
    """Recorded launch on a CPU whose arguments stay packed for the compiled kernel.

    Warp's own recorded launch packs them again each time, which takes as long as a short simulation.
    """

    def __init__(self, command: Any) -> None:
        bounds, *values = command.params
        names = [argument.label for argument in command.kernel.adj.args]
        arguments = _packed_type(tuple((name, type(value)) for name, value in zip(names, values, strict=True)))(*values)
        command.fwd_args = None  # would keep the memory of the first call
        self._names, self._arguments, self._command = names, arguments, command
        self._arrays: dict[tuple[int, str | None], Any] = {}
        self._call = partial(command.hooks.forward, ctypes.byref(bounds), ctypes.byref(arguments))

    def set_memory(self, index: int, address: int, name: str | None) -> None:
        key = index, name
        if key not in self._arrays:
            value = getattr(self._arguments, self._names[index if index < 0 else index + 1])
            self._arrays[key] = value if name is None else getattr(value, name)
        self._arrays[key].data = address

    def replace(self, index: int, value: Any) -> None:
        self._command.set_param_at_index(index + 1, value)
        setattr(self._arguments, self._names[index + 1], self._command.params[index + 2])
        self._arrays.clear()

    def launch(self) -> None:
        self._call()


class _Command:
    """Warp's own recorded launch, for a GPU."""

    def __init__(self, command: Any) -> None:
        self._command = command

    def set_memory(self, index: int, address: int, name: str | None) -> None:
        value = self._command.params[index if index < 0 else index + 2]  # behind the bounds and the first world
        (value if name is None else getattr(value, name)).data = address

    def replace(self, index: int, value: Any) -> None:
        self._command.set_param_at_index(index + 1, value)

    def launch(self, stream: Any) -> None:
        self._command.launch(stream=stream)


class RecordedLaunch:
    """Launch that is repeated: its arguments are packed once, and only addresses of memory change."""

    def __init__(
        self,
        kernel: wp.Kernel,
        batch: int,
        inputs: Sequence[Any],
        device: torch.device,
        microseconds: float = 0.0,
        references: object = None,
        inner: tuple[int, ...] = (),
    ) -> None:
        """Pack the arguments of a launch.

        Args:
            kernel: Kernel as in `launch`.
            batch: Number of worlds, at least one.
            inputs: Arguments of the kernel except the first; arrays made by `argument`.
            device: Device of the memory.
            microseconds: Estimated time on one core, µs.
            references: Owners of memory behind the arguments that must stay alive.
            inner: Further dimensions of the launch, after that of the worlds.
        """
        _compile(kernel, device)
        self._references, self._device = references, device
        self._replaced: dict[int, Any] = {}
        threads = 1 if device.type == "cuda" else _threads(batch, microseconds)
        warp_device = wp.device_from_torch(device)
        kind = _Command if device.type == "cuda" else _Packed
        self._commands: list[Any] = [
            kind(
                wp.launch(
                    kernel, dim=(end - start, *inner), inputs=[start, *inputs], device=warp_device, record_cmd=True
                )
            )
            for start, end in _slices(batch, threads)
        ]

    def set_memory(self, index: int, tensor: Tensor, name: str | None = None) -> None:
        """Let an array read and write the memory of a tensor, which has the strides of the recorded one.

        Args:
            index: Index of the argument behind the first, which may be negative.
            tensor: Tensor whose memory is used.
            name: Name of the array in a struct; None if the argument is the array.
        """
        address = tensor.data_ptr()
        for command in self._commands:
            command.set_memory(index, address, name)

    def replace(self, index: int, value: Any) -> None:
        """Replace the value of an argument."""
        if self._replaced.get(index) is not value:
            for command in self._commands:
                command.replace(index, value)
            self._replaced[index] = value

    def run(self) -> None:
        """Launch the kernel with the recorded arguments."""
        if self._device.type == "cuda":
            self._commands[0].launch(stream=wp.stream_from_torch(torch.cuda.current_stream(self._device)))
        elif len(self._commands) == 1:
            self._commands[0].launch()
        else:
            list(_pool(len(self._commands)).map(lambda command: command.launch(), self._commands))


def describe_kernel(kernel: wp.Kernel) -> str:
    """Describe a kernel in words: "gradient of rollout (articulated, event contact, float64)"."""
    # The functions that a kernel from a template is made with say what it is for.
    contents = [cell.cell_contents for cell in kernel.func.__closure__ or ()]
    modules = [part.func.__module__ for part in contents if isinstance(part, wp.Function)]
    package, _, path = (modules or [kernel.func.__module__])[-1].partition(".kernels")
    parts = path.split(".")
    name, backward, _ = kernel.key.rpartition("__")[2].partition("_backward")
    precision = [word for word in parts[0].split("_") if word.startswith("float")]
    details = [package.rpartition(".")[2], parts[-1].replace("_", " "), *precision]
    return f"{'gradient of ' if backward else ''}{name.replace('_', ' ')} ({', '.join(details)})"


@cache
def _compile(kernel: wp.Kernel, device: torch.device) -> None:
    """Load the code of a kernel, with a message if it must be compiled, which takes seconds."""
    block_dim = 1 if device.type == "cpu" else 256
    is_compiled = Path(str(wp.config.kernel_cache_dir), kernel.module.get_module_identifier(block_dim)).exists()
    message = f"physvision: compiling {describe_kernel(kernel)}; this machine keeps it for later …"
    timer = Timer(1.0, lambda: print(message, file=sys.stderr))
    if not is_compiled:
        timer.start()
    kernel.module.load(wp.get_device(str(device)), block_dim)
    timer.cancel()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="physvision")


if hasattr(os, "register_at_fork"):
    # A forked process has no threads and would wait for them forever, so it makes its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
