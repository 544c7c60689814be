"""`physvision export`: a checkpoint as a model file, or its networks for runtimes that know nothing of physvision."""

from __future__ import annotations

import io
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from physvision.core import CheckpointError, InputError, Scene, State, UnsupportedError
from physvision.core.files import atomic_path
from physvision.models import PredictiveAutoencoder
from physvision.models.checkpoints import check_weights_match, load, read_checkpoint, save
from physvision.perception.flow import PyramidFlow, save_flow
from physvision.report import OutputFolder

# Largest relative difference of outputs: float32 sums of some ten thousand terms, added in another order, differ by
# about the square root of that many units in the last place.
MAX_RELATIVE_ERROR = 1e-4
_NUM_EXAMPLES = 5  # frames or windows that are compared; a batch size that nothing was traced with

Runtime = Callable[[Tensor], Sequence[Any]]


class _Encoder(nn.Module):
    """Windows of frames to positions and velocities."""

    def __init__(self, model: PredictiveAutoencoder) -> None:
        super().__init__()
        self.encoder = model.encoder

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        state = self.encoder(frames)
        return state.q, state.v


class _Decoder(nn.Module):
    """Positions to frames, which velocities do not affect."""

    def __init__(self, model: PredictiveAutoencoder) -> None:
        super().__init__()
        self.decoder = model.decoder

    def forward(self, q: Tensor) -> Tensor:
        return self.decoder(State(q, torch.zeros_like(q)))


def export(
    checkpoint: str,
    out: str | None = None,
    format: Literal["model", "onnx", "torch"] = "model",
    small: bool = True,
) -> None:
    """Make a model file of a training, or ONNX or torch programs of a checkpoint's encoder and decoder.

    Args:
        checkpoint: one that comes with physvision, by name, or the path of a model file or of a training's .ckpt.
        out: NAME.safetensors for a model file, otherwise a folder; named after the checkpoint if not given.
        format: "model" is what `physvision predict` reads; "onnx" and "torch" (an exported program, .pt2) run without
            physvision, and are compared with the checkpoint before this command ends.
        small: If true, store large tensors of a model file in half precision.
    """
    path = Path(checkpoint)
    name = path.stem
    if format == "model" and path.suffix == ".ckpt" and path.is_file():
        content = read_checkpoint(checkpoint)
        # A checkpoint of `physvision fit-flow` has a flow network and no model of motion.
        if "flow" in content:
            print(save_flow(out or "flow.safetensors", _flow_network(checkpoint, content)))
            return
    model = load(checkpoint)
    if format == "model":
        target = Path(out or f"{name}.safetensors")
        if target.suffix != ".safetensors":
            raise InputError(f"out: a model file is named NAME.safetensors, got {target}")
        print(save(target, model, small=small))
        return
    for path, error in export_programs(model, Path(out or name), format).items():
        print(f"{path}: agrees to {error:.1e} of its largest number")


def _flow_network(checkpoint: str, content: dict[str, Any]) -> PyramidFlow:
    """Build the flow network of a checkpoint from its content."""
    network = PyramidFlow(**content["flow"])
    weights = {name.removeprefix("network."): value for name, value in content["state_dict"].items()}
    check_weights_match(checkpoint, network.state_dict(), weights)
    network.load_state_dict(weights)
    return network


def export_programs(
    model: PredictiveAutoencoder,
    folder: Path,
    format: Literal["onnx", "torch"],
) -> dict[Path, float]:
    """Export encoder and decoder of a model as programs, and return the relative error of each.

    Raises:
        UnsupportedError: one of them cannot be exported, or what was exported does something else.
    """
    scene = model.scene
    if scene is None:
        raise CheckpointError(
            "the checkpoint does not say what frames it takes; add a `scene:` to its configuration, as "
            "trainers/pendulum.yaml has one"
        )
    generator, (width, height) = torch.Generator().manual_seed(0), scene.size
    frames = torch.rand(_NUM_EXAMPLES, scene.frames_in, scene.channels, height, width, generator=generator)
    errors = {}
    with OutputFolder(folder), torch.no_grad(), _quiet():
        parts = {
            "encoder": (_Encoder(model), frames, ("q", "v")),
            # Positions as the encoder gives them, for which the decoder was trained.
            "decoder": (_Decoder(model), model.observe(frames).positions[:, -1], ("frame",)),
        }
        for name, (module, example, outputs) in parts.items():
            path = folder / f"{name}.{'onnx' if format == 'onnx' else 'pt2'}"
            with atomic_path(path) as hidden:
                # Traced with two samples, tried with another number of them: the batch stays free.
                runtime = _write(module.eval(), example[:2], outputs, hidden, scene, format)
                error = _difference(module, runtime, example)
                if not error <= MAX_RELATIVE_ERROR:
                    raise UnsupportedError(f"{path}: was not kept, it differs from the checkpoint by {error:.1e}")
            errors[path] = error
    return errors


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the output of torch's exporters: whole graphs, and warnings of their dependencies."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _write(
    module: nn.Module,
    example: Tensor,
    outputs: tuple[str, ...],
    path: Path,
    scene: Scene,
    format: str,
) -> Runtime:
    """Write a program to a file, and return a function that runs it."""
    name, kind = ("frames", "encoder") if "q" in outputs else ("q", "decoder")
    try:
        batch = torch.export.Dim("batch", min=1, max=65_535)
        program = torch.export.export(module, (example,), dynamic_shapes=((({0: batch}),)), strict=False)
        if format == "torch":
            archive = io.BytesIO()  # an archive that torch saves to a file has that file's name in it
            torch.export.save(program, archive)
            path.write_bytes(archive.getvalue())
            loaded = torch.export.load(path).module()
            return lambda given: [output.numpy() for output in _tuple(loaded(given))]
        return _write_onnx(program, name, outputs, path, scene)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, torch.onnx.errors.OnnxExporterError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UnsupportedError(
            f"{path.parent}: the {kind} cannot be exported, it computes what a traced program cannot ({reason}); "
            "use the checkpoint with physvision itself"
        ) from error


def _write_onnx(program: Any, name: str, outputs: tuple[str, ...], path: Path, scene: Scene) -> Runtime:
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch's exporter needs it
    except ImportError as error:
        raise InputError(
            f"format: onnx needs packages that are not installed: pip install 'physvision[onnx]' ({error})"
        ) from error
    exported = torch.onnx.export(program, input_names=[name], output_names=list(outputs), verbose=False)
    assert exported is not None
    proto = exported.model_proto
    entry = proto.metadata_props.add()
    entry.key, entry.value = "physvision.scene", json.dumps(asdict(scene))
    onnx.save(proto, os.fspath(path))
    session = onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
    return lambda given: session.run(list(outputs), {name: given.numpy()})


def _difference(module: nn.Module, runtime: Runtime, example: Tensor) -> float:
    """Largest difference of the program's outputs from the module's, relative to the module's largest number."""
    largest = 0.0
    for expected, actual in zip(_tuple(module(example)), runtime(example), strict=True):
        error = np.abs(expected.numpy() - actual).max() / max(float(expected.abs().max()), 1e-6)
        largest = max(largest, float(error)) if np.isfinite(error) else float("inf")
    return largest


def _tuple(value: Any) -> tuple[Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)
