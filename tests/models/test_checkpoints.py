"""Models come back from their files as they were; files that are damaged, foreign or hostile are refused."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

import json
import pickle
from copy import deepcopy
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from physvision.control.pixels import load_policy
from physvision.core import CheckpointError, FileError, resources
from physvision.core.weights import describe_weights, read_state_dict, write_weights
from physvision.models import PredictiveAutoencoder, build, load, save
from physvision.models.checkpoints import FORMAT, read_checkpoint
from physvision.perception.flow import load_flow
from physvision.physics.articulated import Articulation, scenes
from physvision.physics.rigid2d import World

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
    result = build(CONFIGURATION)
    with torch.no_grad():
        for parameter in result.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return result


def test_a_model_comes_back_as_it_was(tmp_path, model):
    path = save(tmp_path / "folder" / "mine.safetensors", model)
    again = load(path)
    frames = torch.rand(2, 3, 1, 8, 8)
    assert torch.equal(again(frames, 4).frames, model(frames, 4).frames)
    assert torch.equal(again.engine.learned.lengths, model.engine.learned.lengths)
    assert not again.training


def test_the_same_weights_are_the_same_bytes(tmp_path):
    tensors = {"ä": torch.rand(3, 5), "a": torch.arange(4, dtype=torch.int32), "empty": torch.zeros(0)}
    files = [write_weights(tmp_path / str(number), tensors, {"größe": 3}, "kind") for number in range(20)]
    assert len({file.read_bytes() for file in files}) == 1
    assert describe_weights(files[0]) == ("kind", {"größe": 3})
    for name, value in load_file(files[0]).items():
        assert torch.equal(value, tensors[name])


def test_others_may_read_a_model_file(tmp_path, model):
    plain = tmp_path / "plain.txt"
    plain.touch()
    assert save(tmp_path / "model.safetensors", model).stat().st_mode == plain.stat().st_mode


def test_a_small_file_rounds_large_tensors_alone(tmp_path, model, monkeypatch):
    monkeypatch.setattr("physvision.models.checkpoints._LARGE", 1000)
    path = save(tmp_path / "small.safetensors", model, small=True)
    retained = load_file(path)
    assert retained["encoder.pixels.0.weight"].dtype == torch.float16
    assert retained["decoder.network.0.weight"].dtype == torch.float32
    again = load(path)
    assert again.encoder.pixels[0].weight.dtype == torch.float32
    # Half precision keeps eleven bits.
    torch.testing.assert_close(again.encoder.pixels[0].weight, model.encoder.pixels[0].weight, rtol=2**-11, atol=2**-25)


def test_a_file_cut_short_is_refused(tmp_path, model):
    path = save(tmp_path / "mine.safetensors", model)
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


def test_a_checkpoint_that_is_not_there_is_not_called_damaged(tmp_path):
    with pytest.raises(CheckpointError, match=r"last\.ckpt: no such file"):
        read_checkpoint(tmp_path / "last.ckpt")


def written(path, configuration, tensors=None):
    """A model file of any configuration."""
    return write_weights(path, tensors or {}, configuration, FORMAT)


FOREIGN = [
    "os.system",
    "torch.hub.load",
    "physvision.core.weights.os.system",
    "physvision.cli.sys.breakpointhook",
    "physvision.models.checkpoints.load",
    "chain_properties",
    "",
]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("place", ["class_path", "leaves"])
def test_a_configuration_that_names_foreign_code_is_refused(tmp_path, monkeypatch, name, place):
    called = []
    monkeypatch.setattr("sys.breakpointhook", lambda *_, **__: called.append(name))
    hostile = deepcopy(CONFIGURATION)
    layer = hostile["init_args"]["engine"]["init_args"]
    if place == "leaves":
        layer["leaves"] = name
    else:
        layer["engine"]["class_path"] = name
    with pytest.raises(CheckpointError, match=f"names '{name}', which is not registered; .* may name classes"):
        load(written(tmp_path / "bad.safetensors", hostile))
    assert called == []


def test_only_what_a_place_asks_for_is_built(tmp_path):
    wrong = deepcopy(CONFIGURATION)
    wrong["init_args"]["encoder"] = wrong["init_args"]["decoder"]
    with pytest.raises(CheckpointError, match=r"encoder: expected a Encoder, physvision\.models\.MlpDecoder makes"):
        load(written(tmp_path / "bad.safetensors", wrong))
    with pytest.raises(CheckpointError, match=r"expected a PredictiveAutoencoder, physvision\.models.MlpDecoder makes"):
        load(written(tmp_path / "bad.safetensors", CONFIGURATION["init_args"]["decoder"]))


@pytest.mark.parametrize(
    ("place", "value", "match"),
    [
        (("decoder", "hidden"), 10**9, r"needs tensors of more than 20,0\d\d,\d\d\d numbers"),
        (("decoder", "hidden"), "16", r"decoder\.hidden: expected int, got '16'"),
        (("decoder", "hidden"), None, r"decoder\.hidden: expected int, got None"),
        (("encoder", "coordinates"), [2], r"encoder\.coordinates: expected the fields of a Coordinates, got \[2\]"),
        (("encoder", "coordinates"), {"size": 2, "angle": []}, r"unknown key 'angle'; expected size, angles"),
        (("encoder", "frame"), [1, 8], r"encoder\.frame: expected 3 values, got \[1, 8\]"),
        (("encoder", "wings"), 2, r"encoder: unknown key 'wings'; expected frame, coordinates"),
        (("engine", "learned"), [1.0], r"engine\.learned: expected a mapping, got \[1\.0\]"),
        (("engine", "engine"), None, r"engine\.engine: expected an object, .* got None"),
        (("engine", "engine", "lengths"), [1.0] * 20_000, r"a list of 20,000 values; expected at most 1,000"),
    ],
)
def test_arguments_that_make_no_sense_are_named(tmp_path, place, value, match):
    wrong = deepcopy(CONFIGURATION)
    inner = wrong
    for key in place[:-1]:
        inner = inner["init_args"][key]
    inner["init_args"][place[-1]] = value
    with pytest.raises(CheckpointError, match=match):
        load(written(tmp_path / "bad.safetensors", wrong))


def places_in(value, path=()):
    """The path to every value inside nested mappings and lists, the outermost included."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places_in(part, (*path, key))


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize(
    "values",
    [
        pytest.param((None, {"": None}, -1), id="a few"),
        pytest.param(([], {}, [None], "1", 0, 1.5, float("nan"), True), marks=pytest.mark.extended, id="the others"),
    ],
)
def test_whatever_stands_in_a_place_loads_or_is_refused_with_our_error(tmp_path, model, values):
    """Lists and None where a mapping belongs, mappings and text where a number does, and so on at every place."""
    refused, places = 0, list(places_in(CONFIGURATION))
    for place in places:
        for value in values:
            wrong = deepcopy({"": CONFIGURATION})
            *outer, final = ("", *place)
            inner = wrong
            for key in outer:
                inner = inner[key]
            inner[final] = value
            described = {"format": FORMAT, "configuration": json.dumps(wrong[""])}
            save_file(model.state_dict(), tmp_path / "bad.safetensors", described)
            try:
                load(tmp_path / "bad.safetensors")
            except CheckpointError:
                refused += 1
            except Exception as error:
                pytest.fail(f"{value!r} at {place}: {error!r}")
    assert refused > 0.6 * len(places) * len(values)


def test_deep_nesting_is_refused(tmp_path):
    for depth in (100, 100_000):
        text = '{"class_path": ' * depth + "1" + "}" * depth
        save_file({}, tmp_path / "deep.safetensors", {"format": FORMAT, "configuration": text})
        with pytest.raises(CheckpointError, match=r"expected at most 40 levels|cannot be read"):
            load(tmp_path / "deep.safetensors")


def test_another_architecture_is_refused_by_its_first_difference(tmp_path, model):
    wider = deepcopy(CONFIGURATION)
    wider["init_args"]["decoder"]["init_args"]["hidden"] = 24
    path = written(tmp_path / "other.safetensors", wider, model.state_dict())
    with pytest.raises(CheckpointError, match=r"0\.weight has shape \(16, 4\), the model's \(24, 4\)"):
        load(path)


def test_tensors_without_numbers_are_refused(tmp_path, model):
    weights = {f"model.{name}": value for name, value in model.state_dict().items()}
    name = "model.decoder.network.0.weight"
    shape = tuple(weights[name].shape)
    bad = {
        "dense": [torch.empty(shape, device="meta"), torch.eye(*shape).to_sparse()],
        r"holds torch\.int64": [torch.zeros(shape, dtype=torch.long)],
        "is a list, not a tensor": [[1.0, 2.0]],
    }
    for match, values in bad.items():
        for value in values:
            whole = {"state_dict": {**weights, name: value}, "configuration": json.dumps(CONFIGURATION)}
            torch.save(whole, tmp_path / "bad.ckpt")
            with pytest.raises(CheckpointError, match=match):
                load(tmp_path / "bad.ckpt")
    for states in ([], None, 3, {1: torch.zeros(2)}):
        torch.save({"state_dict": states, "configuration": "{}"}, tmp_path / "bad.ckpt")
        with pytest.raises(CheckpointError, match="is no checkpoint of a training"):
            load(tmp_path / "bad.ckpt")


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
        {"flow": load_flow, "tabletop-flow": load_flow, "pendulum-pixels": load_policy}.get(path.stem, load)(path.stem)


@pytest.mark.parametrize("links", [10**4 + 1, 10**6, 10**12])
def test_a_checkpoint_of_a_million_links_is_refused_at_once(tmp_path, links):
    cartpole = {"class_path": "physvision.physics.articulated.cartpole", "init_args": {"links": links}}
    write_weights(tmp_path / "m.safetensors", {}, cartpole, FORMAT)
    with pytest.raises(CheckpointError, match="links: expected an integer"):
        load(tmp_path / "m.safetensors", Articulation)


def test_the_work_of_building_a_checkpoint_is_limited(tmp_path, monkeypatch):
    cartpole = {"class_path": "physvision.physics.articulated.cartpole", "init_args": {"links": 100}}
    engine = build(cartpole, Articulation)
    save(tmp_path / "m.safetensors", engine)
    assert load(tmp_path / "m.safetensors", Articulation).nq == 101
    monkeypatch.setattr("physvision.models.checkpoints._BUILD_CALLS", 10_000)
    with pytest.raises(CheckpointError, match="needs more than 10,000 calls"):
        load(tmp_path / "m.safetensors", Articulation)


def test_a_checkpoint_of_a_model_file_needs_the_file_no_more(tmp_path):
    source = tmp_path / "swing.xml"
    source.write_text(scenes.path("cart").read_text())
    arguments = {"source": str(source), "dt": 0.01}
    engine = build({"class_path": "physvision.physics.articulated.load", "init_args": arguments}, Articulation)
    save(tmp_path / "m.safetensors", engine)
    source.unlink()
    again = load(tmp_path / "m.safetensors", Articulation)
    start = engine.initial_state()
    assert torch.equal(again.rollout(start, 5).q, engine.rollout(start, 5).q)


def test_a_checkpoint_of_many_balls_ends_by_its_work(tmp_path, monkeypatch):
    """Bodies are counted in one pass, and no other alternative of an annotation is tried once the limit is reached."""
    monkeypatch.setattr("physvision.models.checkpoints._BUILD_CALLS", 100_000)
    model = describe_weights(resources.folder("models") / "billiards-1.safetensors")[1]
    motion = model["init_args"]["encoder"]["init_args"]["motion"]  # a TableMotion or None
    table = motion["init_args"]["engine"]
    table["init_args"]["balls"] = 10**5
    for configuration, kind in ((table, World), (model, PredictiveAutoencoder)):
        write_weights(tmp_path / "m.safetensors", {}, configuration, FORMAT)
        with pytest.raises(CheckpointError, match="needs more than 100,000 calls"):
            load(tmp_path / "m.safetensors", kind)


@pytest.mark.parametrize("read", [read_checkpoint, read_state_dict])
def test_a_compressed_checkpoint_is_refused_before_it_grows(tmp_path, read):
    torch.save({"state_dict": {"model.a": torch.zeros(2**20)}}, tmp_path / "a.ckpt")
    path = tmp_path / "b.ckpt"
    with ZipFile(tmp_path / "a.ckpt") as source, ZipFile(path, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert path.stat().st_size < 2**14
    with pytest.raises(CheckpointError, match=r"would grow to 4,19.,... bytes"):
        read(path)
