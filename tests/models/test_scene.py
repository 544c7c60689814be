"""What a checkpoint says of the videos it was made for stays with it and fits the model."""

# pyright: reportAttributeAccessIssue=false

import copy

import pytest
import torch
import yaml

from physvision.core import CheckpointError, InputError, Scene, SceneObject, resources
from physvision.models import Observation, build, load, save

BALL = SceneObject("ball", 0)
VALUES = {
    "title": "a ball",
    "appearance": "one ball",
    "size": (8, 8),
    "color": "gray",
    "fps": 20.0,
    "frames_in": 3,
    "coordinates": {"x": "px"},
    "objects": [BALL],
    "parameters": {},
}


def test_the_shipped_pendulum_says_what_it_was_made_for():
    scene = load("pendulum").scene
    assert (scene.size, scene.color, scene.frames_in) == ((100, 100), "gray", 3)
    assert 1 / scene.fps == load("pendulum").engine.dt
    assert scene.coordinates == {"angle": "rad"}
    assert [entry.name for entry in scene.objects] == ["link 1", "link 2", "link 3"]


def test_a_scene_survives_saving_and_building_changes_no_configuration(tmp_path):
    path = resources.find("pendulum.yaml", "trainers")
    configuration = yaml.safe_load(path.read_text())["model"]["model"]
    before = copy.deepcopy(configuration)
    model = build(configuration)
    assert configuration == before
    assert load(save(tmp_path / "a.safetensors", model)).scene == model.scene == load("pendulum").scene


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"size": (0, 8)}, "width: expected an integer of at least 1"),
        ({"fps": -1.0}, "fps: expected a positive"),
        ({"objects": []}, "at least one object"),
        ({"coordinates": {"x": "furlong"}}, "expected the units rad, m or px, got furlong"),
    ],
)
def test_scenes_that_make_no_sense(change, match):
    with pytest.raises(InputError, match=match):
        Scene(**VALUES | change)


def test_a_scene_of_other_coordinates_than_the_engine():
    configuration = yaml.safe_load(resources.find("pendulum.yaml", "trainers").read_text())["model"]["model"]
    configuration["init_args"]["scene"]["coordinates"] = {"x": "m", "y": "m"}
    with pytest.raises(CheckpointError, match="6 coordinates of all objects, but the engine has 3"):
        build(configuration)


def test_an_encoder_that_knows_how_sure_it_is_says_so():
    model = load("pendulum")
    frames = torch.rand(2, 3, 1, 100, 100)
    assert model.observe(frames).confidence is None

    def observe(given):
        shape = (len(given), 1, 3)
        return Observation(torch.zeros(shape), torch.ones(shape), torch.full(shape, 0.25))

    model.encoder.observe = observe
    observed = model.observe(frames)
    assert float(observed.state.v.sum()) == 6.0
    assert float(observed.confidence.sum()) == 1.5
