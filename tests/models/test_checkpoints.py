"""Models come back from their files as they were; files that are damaged, foreign or hostile are refused."""

import json
import pickle

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from physvision.core import CheckpointError, FileError, resources
from physvision.models import build, load, save
from physvision.perception.flow_files import load_flow

CONFIGURATION = yaml.safe_load("""
class_path: physvision.models.PredictiveAutoencoder
init_args:
  encoder:
    class_path: physvision.models.MlpEncoder
    init_args: {frame: [1, 8, 8], coordinates: {size: 2, angles: [0, 1]}, dt: 0.05, hidden: 16}
  engine:
    class_path: physvision.physics.PhysicsLayer
    init_args:
      engine: {class_path: physvision.physics.articulated.chain, init_args: {lengths: [1.0, 2.0], dt: 0.05}}
      learned: {lengths: [1.0, 2.0]}
      leaves: physvision.physics.articulated.chain_properties
  decoder:
    class_path: physvision.models.MlpDecoder
    init_args: {frame: [1, 8, 8], coordinates: {size: 2, angles: [0, 1]}, hidden: 16}
""")


@pytest.fixture
def model():
    made = build(CONFIGURATION)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def test_a_model_comes_back_as_it_was(tmp_path, model):
    path = save(tmp_path / "folder" / "mine.safetensors", model, CONFIGURATION)
    again = load(path)
    frames = torch.rand(2, 3, 1, 8, 8)
    assert torch.equal(again(frames, 4).frames, model(frames, 4).frames)
    assert torch.equal(again.engine.learned.lengths, model.engine.learned.lengths)
    assert not again.training


def test_others_may_read_a_model_file(tmp_path, model):
    plain = tmp_path / "plain.txt"
    plain.touch()
    assert save(tmp_path / "model.safetensors", model, CONFIGURATION).stat().st_mode == plain.stat().st_mode


def test_a_small_file_rounds_large_tensors_alone(tmp_path, model, monkeypatch):
    monkeypatch.setattr("physvision.models.checkpoints._LARGE", 1000)
    path = save(tmp_path / "small.safetensors", model, CONFIGURATION, small=True)
    kept = load_file(path)
    assert kept["encoder.pixels.0.weight"].dtype == torch.float16
    assert kept["decoder.network.0.weight"].dtype == torch.float32
    again = load(path)
    assert again.encoder.pixels[0].weight.dtype == torch.float32
    # Half precision keeps eleven bits.
    torch.testing.assert_close(again.encoder.pixels[0].weight, model.encoder.pixels[0].weight, rtol=2**-11, atol=2**-25)


def test_a_file_cut_short_is_refused(tmp_path, model):
    path = save(tmp_path / "mine.safetensors", model, CONFIGURATION)
    whole = path.read_bytes()
    for length in (0, 5, 200, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="damaged, cut short, or another kind of file"):
            load(path)


class Bomb:
    """Whoever unpickles this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_is_refused_and_never_run(tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "harm")))
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        load(path)
    torch.save({"state_dict": Bomb(tmp_path / "harm")}, path)
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        load(path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("name", ["os.system", "torch.hub.load", "subprocess.run"])
def test_a_configuration_that_names_foreign_code_is_refused(tmp_path, model, name):
    hostile = json.loads(json.dumps(CONFIGURATION).replace("physvision.physics.articulated.chain_properties", name))
    path = save(tmp_path / "bad.safetensors", model, hostile)
    with pytest.raises(CheckpointError, match=f"names '{name}'; a checkpoint may only name parts of physvision"):
        load(path)


def test_another_architecture_is_refused_by_its_first_difference(tmp_path, model):
    wider = json.loads(json.dumps(CONFIGURATION))
    wider["init_args"]["decoder"]["init_args"]["hidden"] = 24
    path = save(tmp_path / "other.safetensors", model, wider)
    with pytest.raises(CheckpointError, match=r"decoder.network.0.weight has shape \(16, 4\), the model's \(24, 4\)"):
        load(path)


def test_safetensors_of_somebody_else_are_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(CheckpointError, match="expected the format 'physvision model 1', got None"):
        load(path)


def test_a_model_that_is_not_there_is_named_with_those_that_are(tmp_path):
    with pytest.raises(FileError, match="neither a file nor one of the models that come with physvision"):
        load("nothing")


def test_models_that_come_with_physvision_load_and_are_small():
    shipped = sorted(resources.folder("models").glob("*.safetensors"))
    for path in shipped:
        assert path.stat().st_size < 12e6
        assert path.with_suffix(".md").exists()
        (load_flow if path.stem == "flow" else load)(path.stem)
