"""Exported networks do what the checkpoint does, for any number of frames; what cannot be exported says so."""

# pyright: reportCallIssue=false, reportOperatorIssue=false

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from prediction import rolling

from physvision.cli import main
from physvision.core import State, UnsupportedError
from physvision.models import Encoder, Observation, load
from physvision.models.export import export_programs


@pytest.mark.extended
def test_onnx_agrees(tmp_path, capsys):
    assert main(["export", "pendulum", "--format", "onnx", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("agrees to") == 2
    model, frames = load("pendulum"), torch.rand(7, 3, 1, 100, 100)
    with torch.no_grad():
        state = model.encoder(frames)
        rendered = model.decoder(state)
    run = {name: onnxruntime.InferenceSession(tmp_path / f"{name}.onnx").run for name in ("encoder", "decoder")}
    q, v = run["encoder"](["q", "v"], {"frames": frames.numpy()})
    # Angles near ±π may come out on either side.
    turned = np.abs(np.exp(1j * q) - np.exp(1j * state.q.numpy()))
    assert turned.max() < 1e-3
    np.testing.assert_allclose(v, state.v.numpy(), atol=1e-3 * np.abs(v).max())
    (picture,) = run["decoder"](["frame"], {"q": state.q.numpy()})
    np.testing.assert_allclose(picture, rendered.numpy(), atol=1e-4)
    predicted = {prop.key: prop.value for prop in onnx.load(tmp_path / "encoder.onnx").metadata_props}
    assert json.loads(predicted["physvision.scene"])["fps"] == 20.0


def test_torch_programs_agree(tmp_path, capfd, recwarn):
    assert main(["export", "pendulum", "--format", "torch", "--out", str(tmp_path)]) == 0
    assert capfd.readouterr().err == ""
    assert not [entry for entry in recwarn if issubclass(entry.category, RuntimeWarning)]
    model, frames = load("pendulum"), torch.rand(4, 3, 1, 100, 100)
    q, _ = torch.export.load(tmp_path / "encoder.pt2").module()(frames)
    torch.testing.assert_close(q, model.encoder(frames).q)
    rendered = torch.export.load(tmp_path / "decoder.pt2").module()(q)
    torch.testing.assert_close(rendered, model.decoder(State(q, torch.zeros_like(q))))


def test_a_model_file_is_the_checkpoint(tmp_path, capsys):
    assert main(["export", "pendulum", "--out", str(tmp_path / "mine.safetensors")]) == 0
    frames = torch.rand(2, 3, 1, 100, 100)
    mine, theirs = load(tmp_path / "mine.safetensors"), load("pendulum")
    assert torch.equal(mine(frames, 1).trajectory.q, theirs(frames, 1).trajectory.q)
    assert mine.scene == theirs.scene
    assert main(["export", "pendulum", "--out", str(tmp_path / "mine.onnx")]) == 1
    assert "a model file is named NAME.safetensors" in capsys.readouterr().err


def test_what_cannot_be_traced_says_so(tmp_path):
    model = rolling.predictor().model

    class Stubborn(Encoder):
        def observe(self, frames):
            places = torch.from_numpy(np.asarray(frames.sum((2, 3, 4)).numpy())[:, :1, None].repeat(6, 2))
            return Observation(places, places)

    model.encoder = Stubborn()
    with pytest.raises(UnsupportedError, match="the encoder cannot be exported"):
        export_programs(model, tmp_path / "out", "torch")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported_is_said_and_no_more(tmp_path, capfd):
    assert main(["export", "billiards-1", "--format", "torch", "--out", str(tmp_path / "b")]) == 1
    predicted = capfd.readouterr()
    assert predicted.out == ""
    assert len(predicted.err.splitlines()) == 1
    assert "the encoder cannot be exported" in predicted.err
    assert list(tmp_path.iterdir()) == []


def test_a_program_has_its_name_once_it_is_whole(tmp_path, monkeypatch):
    """A kill while it was written left a part of it as decoder.pt2."""
    read, present = torch.export.load, []

    def list_and_read(path):
        present.append([file.name for file in tmp_path.iterdir() if not file.name.startswith(".")])
        return read(path)

    monkeypatch.setattr(torch.export, "load", list_and_read)
    export_programs(load("pendulum"), tmp_path, "torch")
    assert present == [[], ["encoder.pt2"]]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["decoder.pt2", "encoder.pt2"]


def test_a_program_that_does_something_else_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("physvision.models.export._difference", lambda *given: 0.5)
    with pytest.raises(UnsupportedError, match=r"was not kept, it differs from the checkpoint by 5\.0e-01"):
        export_programs(load("pendulum"), tmp_path, "torch")
    assert list(tmp_path.iterdir()) == []
