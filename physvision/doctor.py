"""`physvision doctor`: a description of the installation to paste into an issue, and a self-test."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

import numpy as np
import torch

DISTRIBUTION = "physvision"
CODECS = ("h264", "hevc", "vp9", "av1", "mjpeg")
# Extras for people who change physvision, and those of other extras alone.
_DEVELOPMENT = ("dev", "docs", "lint", "test")
_GB = 1e9


def doctor() -> int:
    """Print versions, devices, kernels, codecs, extras, free disk space and the results of a self-test.

    The exit status is 1 if a part of the self-test fails.
    """
    sections = {
        "versions": versions,
        "devices": devices,
        "kernels": kernels,
        "codecs": codecs,
        "extras": extras,
        "disk": disk,
    }
    for title, lines in sections.items():
        print(f"{title}\n" + "\n".join(f"  {line}" for line in lines()))
    print("self-test")
    results = [_run(name, test) for name, test in SELF_TESTS.items()]
    return 0 if all(results) else 1


def versions() -> Iterator[str]:
    """Lines of the versions of Python, of physvision and of all that it requires."""
    from packaging.requirements import Requirement

    yield f"{DISTRIBUTION} {version(DISTRIBUTION)}, Python {platform.python_version()}, {platform.platform()}"
    for text in requires(DISTRIBUTION) or ():
        requirement = Requirement(text)
        if requirement.marker is None:
            yield _installed(requirement.name, str(requirement.specifier), requirement.specifier.contains)


def devices() -> Iterator[str]:
    """Lines of the processor and the graphics processors."""
    yield f"processor: {platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads of torch"
    if not torch.cuda.is_available():
        yield f"CUDA: no device; torch is built for {torch.version.cuda or 'processors alone'}"
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(index)
        yield f"CUDA {index}: {properties.name}, {properties.total_memory / _GB:.1f} GB, torch for {torch.version.cuda}"


def kernels() -> Iterator[str]:
    """Lines of the folder in which Warp keeps compiled kernels."""
    import warp as wp

    from physvision.kernels.precision import start_warp

    start_warp()
    folder = Path(str(wp.config.kernel_cache_dir))
    compiled = [entry for entry in folder.glob("wp_*") if entry.is_dir()]
    size = sum(file.stat().st_size for entry in compiled for file in entry.rglob("*") if file.is_file())
    if compiled:
        yield f"{len(compiled)} compiled, {size / 1e6:.0f} MB, in {folder}"
    else:
        yield f"none compiled yet in {folder}; the first use of an engine compiles its own, which takes minutes"


def codecs() -> Iterator[str]:
    """Lines of the video codecs of FFmpeg."""
    import av
    from av.codec.codec import UnknownCodecError

    def has(name: str, mode: str) -> bool:
        try:
            av.Codec(name, mode)  # pyright: ignore[reportArgumentType]
        except UnknownCodecError:
            return False
        return True

    for mode, verb in (("r", "reads"), ("w", "writes")):
        yield f"{verb} {', '.join(name for name in CODECS if has(name, mode)) or 'none'}"


def extras() -> Iterator[str]:
    """Lines of the optional extras, and the packages of each that are missing."""
    from packaging.requirements import Requirement

    requirements = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    optional = [entry for entry in requirements if entry.marker is not None]
    for name in sorted(metadata(DISTRIBUTION).get_all("Provides-Extra") or ()):
        if name not in _DEVELOPMENT:
            packages = [entry.name for entry in optional if entry.marker and entry.marker.evaluate({"extra": name})]
            missing = [package for package in packages if _version(package) is None]
            yield f"{name}: " + (f"missing {', '.join(missing)}" if missing else "installed")


def disk() -> Iterator[str]:
    """Lines of the free space of the folders that physvision writes to."""
    for title, folder in (("working folder", Path.cwd()), ("temporary files", Path(tempfile.gettempdir()))):
        yield f"{title}: {shutil.disk_usage(folder).free / _GB:.1f} GB free"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _installed(package: str, expected: str, contains: Callable[[str], bool]) -> str:
    """Line of a package: its version, and the range that it should be in if it is not."""
    installed = _version(package)
    if installed is None:
        return f"{package}: NOT INSTALLED, expected {expected}"
    return f"{package} {installed}" + ("" if contains(installed) else f": OUT OF RANGE, expected {expected}")


def _run(name: str, test: Callable[[], None]) -> bool:
    """Run a part of the self-test and print its result; true if it passes."""
    start = time.perf_counter()
    try:
        test()
    except Exception as error:  # whatever a broken installation raises is what the report is for
        print(f"  {name}: FAILED, {type(error).__name__}: {error}")
        return False
    print(f"  {name}: passed in {time.perf_counter() - start:.2f} s", flush=True)
    return True


def _check(name: str, value: float, limit: float) -> None:
    if not value <= limit:
        raise ArithmeticError(f"{name} is {value:.3g}, expected at most {limit:g}")


def check_physics() -> None:
    """Simulate a pendulum for a second: its energy stays, and its gradient is that of differences."""
    from physvision.core import State
    from physvision.physics import articulated

    engine = articulated.chain([1.0], dt=0.01, integrator="runge_kutta_4")
    angles = torch.tensor([[1.0], [1.0 - 1e-5], [1.0 + 1e-5]], dtype=torch.float64, requires_grad=True)
    start = State(angles, torch.zeros_like(angles))
    end = engine.rollout(start, 100).final
    before, after = (sum(engine.energy(state.detach())) for state in (start, end))
    _check("change of the energy", float((after - before).abs().max()), 1e-6)  # pyright: ignore
    (gradient,) = torch.autograd.grad(end.q[0, 0], angles)
    differences = float((end.q[2, 0] - end.q[1, 0]).detach()) / 2e-5
    _check("error of the gradient", abs(float(gradient[0, 0]) - differences), 1e-6)


def check_video() -> None:
    """Write a video, and read it again."""
    from physvision import video

    frames = np.broadcast_to(np.arange(0, 240, 30, dtype=np.uint8)[:, None, None, None], (8, 32, 32, 3)).copy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        video.write(path, frames, 30)
        read = np.stack([frame for _, frame in video.stream(path)])
    _check("difference in frames", abs(len(read) - len(frames)), 0)
    _check("error of the frames", float(np.abs(read.astype(float) - frames).mean()), 5.0)


def check_checkpoint() -> None:
    """Load a pretrained model, and predict a second from blank frames."""
    from physvision.models import load

    model = load("pendulum")
    scene = model.scene
    assert scene is not None
    with torch.no_grad():
        frames = model(torch.zeros(1, scene.frames_in, 1, *scene.size), steps=2).frames
    _check("number of values that are not finite", float((~torch.isfinite(frames)).sum()), 0)


SELF_TESTS: dict[str, Callable[[], None]] = {
    "physics and gradient": check_physics,
    "video": check_video,
    "pretrained model": check_checkpoint,
}
