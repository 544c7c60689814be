"""Compilation of model files: read, checked, and compiled by MuJoCo in a process of limited memory and time."""

# MuJoCo's compiled module has no types for type checkers.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco

from physvision.core import FileError, ModelError
from physvision.core.files import read_text
from physvision.core.resources import is_file
from physvision.physics.articulated.loading import mujoco_compiler
from physvision.physics.articulated.loading.mujoco_compiler import CompilerRequest, compile_request, encode_request
from physvision.physics.articulated.loading.sizes import check_sizes
from physvision.physics.articulated.settings import SETTINGS

INLINE = "the inline XML"
# Model files of physvision itself, which are compiled in this process.
_SHIPPED_SCENES = Path(__file__).resolve().parents[1] / "scenes"


def compile_model(
    source: str | os.PathLike[str],
    base: str = "auto",
    packages: Sequence[str | os.PathLike[str]] = (),
    *,
    visual: bool = False,
) -> tuple[mujoco.MjModel, str]:
    """MuJoCo's model of a file as `load` simulates it, and the name of the file for messages.

    Args:
        source: Path of the file, or the XML itself.
        base: Base of a root body without a joint, as in `load`.
        packages: Folders that hold the packages of meshes.
        visual: If true, visual elements of URDF are kept.

    Raises:
        FileError: The file or a mesh does not exist or cannot be read.
        ModelError: The file is no model, or MuJoCo takes more memory or time for it than allowed.
    """
    text = os.fspath(source)
    inline = _is_inline(text)
    name = INLINE if inline else text
    content = read_source(source)
    check_sizes(content, None if inline else Path(text).parent, name)
    request = CompilerRequest(
        # The process has another working folder.
        source=text if inline else os.path.join(os.getcwd(), text),  # noqa: PTH109, PTH118  with its `..` and links
        is_inline=inline,
        content=content if visual and is_urdf(content) else None,
        base=base,
        packages=tuple(str(Path(folder).absolute()) for folder in packages),
    )
    try:
        if not inline and Path(text).resolve().parent == _SHIPPED_SCENES:
            return compile_request(request), name
        return _load_binary(_process.compile(request)), name
    except OSError as error:
        raise FileError(f"{name}: {error}") from error
    except (ValueError, MemoryError) as error:
        raise ModelError(f"{name}: {error}") from error


def read_source(source: str | os.PathLike[str]) -> str:
    """XML of a model, of which `source` is the path, or the XML itself."""
    text = os.fspath(source)
    if _is_inline(text):
        return text
    if not is_file(Path(text)):
        raise FileError(f"there is no model file {text!r}")
    return read_text(text, SETTINGS.max_model_file)


def is_urdf(content: str) -> bool:
    """If true, the XML of a model is URDF, not MJCF."""
    return "<robot" in content and "<mujoco" not in content.split("<robot")[0]


def _is_inline(source: str) -> bool:
    return source.lstrip().startswith("<")


def _load_binary(binary: bytes) -> mujoco.MjModel:
    return mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": binary})


class _CompilerProcess:
    """Process that compiles models, started when it is first needed, and again after it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._has_compiled = False  # since it was started

    def compile(self, request: CompilerRequest) -> bytes:
        """Compile a model and return it in MuJoCo's binary format.

        Raises:
            OSError: A mesh of a package does not exist, or no process can be started.
            ValueError: The file is no model, or takes more memory or time than allowed.
        """
        with self._lock:
            answer, binary = self._request(request)
            if _lacks_memory(answer) and self._process is not None and self._has_compiled:
                # Earlier models may have left the process less memory than one model may take.
                self._end(self._process)
                answer, binary = self._request(request)
            self._has_compiled = True
        if "error" in answer:
            raise OSError(answer["message"]) if answer["error"] == "OSError" else _compiler_error(answer)
        return binary

    def _request(self, request: CompilerRequest) -> tuple[dict[str, Any], bytes]:
        """Send a request to the process, started if there is none, and return its answer and the model."""
        if self._process is None or self._process.poll() is not None:
            self._process, self._has_compiled = _start(), False
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise OSError("the process of MuJoCo's compiler has no pipes")
        answer, binary = {}, b""
        try:
            process.stdin.write(encode_request(request))
            process.stdin.flush()
            header = process.stdout.readline()
            answer = json.loads(header) if header else {}
            binary = process.stdout.read(int(answer.get("size", 0)))
        except BrokenPipeError:
            pass
        except BaseException:
            # Its late answer must not be read as that to the next request.
            self._end(process)
            raise
        if "error" not in answer and (not binary or len(binary) < answer["size"]):
            raise ModelError(f"MuJoCo's compiler {_reason(self._end(process))}")
        return answer, binary

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._end(self._process)

    def forget(self) -> None:
        """Leave the process to the parent, of which this one is a fork."""
        if self._process is not None:
            self._process.returncode = 0
        self.__init__()

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """End a process that no longer answers, and return its exit code."""
        self._process = None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _start() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [
            *(sys.executable, "-P", mujoco_compiler.__file__),
            *(str(SETTINGS.max_compiler_memory), str(SETTINGS.max_compiler_seconds)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
        env=environment,
        start_new_session=True,
    )


def _lacks_memory(answer: dict[str, Any]) -> bool:
    return "error" in answer and (answer["error"] == "MemoryError" or "allocat" in answer["message"])


def _compiler_error(answer: dict[str, Any]) -> ModelError:
    if _lacks_memory(answer):
        return ModelError(f"MuJoCo's compiler needs more than {SETTINGS.max_compiler_memory / 1e9:g} GB for it")
    return ModelError(answer["message"])


def _reason(code: int) -> str:
    """Describe the end of the compiler's process."""
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        return f"takes more than {SETTINGS.max_compiler_seconds} s for it"
    return f"ended with {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


_process = _CompilerProcess()
atexit.register(_process.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forget)
