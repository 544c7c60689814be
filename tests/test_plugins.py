"""Modules of one's own: named by --import on every command, and by nothing else."""

import os
import subprocess
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
import torch
import yaml

import physvision
from physvision import cli
from physvision.core import InputError
from physvision.core.registry import look_up
from physvision.models import load
from physvision.plugins import load_plugins

EYE = '''
from jaxtyping import Shaped
from torch import Tensor, nn

from physvision.core import Coordinates, brightness
from physvision.models import ClipContext, Encoder, Observation, register

{decorator}
class Eye(Encoder):
    """Two layers that read the angle in each frame."""

    def __init__(self, pixels: int, dt: float) -> None:
        super().__init__()
        self.coordinates, self.dt = Coordinates(1, (0,)), dt
        self.layers = nn.Sequential(nn.Linear(pixels, 16), nn.Tanh(), nn.Linear(16, 1))

    def observe(self, frames, context=None):
        angle = self.layers(brightness(frames).flatten(2))
        return Observation(angle, angle.diff(dim=1) / self.dt)
'''
SCENE = """<mujoco><option timestep="0.01" gravity="0 0 -9.81"/><worldbody><body><joint type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -1" size=".1" mass="1"/></body></worldbody></mujoco>"""
WIDTH, HEIGHT = 24, 18


def configuration(encoder: str) -> dict:
    """A pendulum in front of a camera, whose states nobody knows."""
    dt = 1 / 30
    engine = {"class_path": "physvision.physics.articulated.load", "init_args": {"source": "scene.xml", "dt": dt}}
    view = {"engine": engine, "size": [WIDTH, HEIGHT], "position": [0, -3.5, -0.5], "target": [0, 0, -0.5], "fov": 0.7}
    camera = {"class_path": "physvision.models.SceneCamera", "init_args": view}
    network = {
        "class_path": "physvision.models.LayerNetwork",
        "init_args": {"inputs": 20, "channels": 3, "width": 0.0625},
    }
    model = {
        "encoder": {"class_path": encoder, "init_args": {"pixels": 3 * WIDTH * HEIGHT, "dt": dt}},
        "engine": engine,
        "decoder": {
            "class_path": "physvision.models.CameraDecoder",
            "init_args": {"camera": camera, "network": network},
        },
        "max_speed": 30.0,
        "scene": {
            "title": "a pendulum",
            "appearance": "a bob on a string",
            "size": [WIDTH, HEIGHT],
            "color": "rgb",
            "fps": 30.0,
            "frames_in": 3,
            "coordinates": {"angle": "rad"},
            "objects": [{"name": "rod", "body": 0, "points": [[0, 0, 0], [0, 0, -1]]}],
            "parameters": {},
        },
    }
    checkpoints = {"dirpath": "out/own/checkpoints", "save_last": True, "every_n_train_steps": 2}
    return {
        "seed_everything": 0,
        "trainer": {
            "default_root_dir": "out/own",
            "max_steps": 2,
            "accelerator": "cpu",
            "enable_progress_bar": False,
            "logger": {
                "class_path": "lightning.pytorch.loggers.TensorBoardLogger",
                "init_args": {"save_dir": "out/own"},
            },
            "callbacks": [{"class_path": "lightning.pytorch.callbacks.ModelCheckpoint", "init_args": checkpoints}],
        },
        "model": {
            "model": {"class_path": "physvision.models.PredictiveAutoencoder", "init_args": model},
            "supervision": {"coordinates": {"size": 1, "angles": [0]}},
            "forecast": {"horizon_schedule": {0: 3}, "eval_steps": [0, 5]},
            "optimization": {"warmup_updates": 0},
        },
        "data": {"path": "data/m", "batch_size": 4, "shape": {"horizon": 5}},
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the module of a user, whose names are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (tmp_path / "scene.xml").write_text(SCENE)
    return tmp_path


def write_module(folder, name, decorator):
    (folder / f"{name}.py").write_text(EYE.format(decorator=decorator))


def test_a_module_is_imported_when_it_is_named_and_only_then(folder, capsys):
    write_module(folder, "own_eyes", '@register("own.Eye")')
    (folder / "a.yaml").write_text(yaml.safe_dump(configuration("own.Eye")))
    assert cli.main(["fit", "--config", "a.yaml"]) == 1
    assert "names 'own.Eye', which is not registered" in (text := capsys.readouterr().err)
    assert "--import MODULE" in text
    assert "own_eyes" not in sys.modules
    assert cli.main(["fit", "--import", "own_eyes", "--config", "a.yaml"]) == 1
    assert "data/m" in capsys.readouterr().err
    assert look_up("own.Eye").__module__ == "own_eyes"
    with pytest.raises(InputError, match=r"names 'own\.Ear', which is not registered.*registered so far: .*own\.Eye"):
        look_up("own.Ear")


def test_every_command_takes_the_option(folder, capsys):
    (folder / "own_mark.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    for command in cli.COMMANDS:
        sys.modules.pop("own_mark", None)
        (folder / "imported").unlink(missing_ok=True)
        arguments = [command, "--import=own_mark", "--help"]
        with suppress(SystemExit):
            assert cli.main(arguments) == 0
        assert (folder / "imported").exists(), command
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("import no_such_package", "ModuleNotFoundError while it is imported.*No module named 'no_such_package'"),
        ("from physvision.models import Nothing", "ImportError while it is imported.*broken.py, line 1.*'Nothing'"),
        ("1 / 0", "ZeroDivisionError while it is imported.*broken.py, line 1: division by zero"),
    ],
)
def test_an_error_of_a_module_is_shown_as_what_it_is(folder, text, match):
    (folder / "broken.py").write_text(text)
    with pytest.raises(InputError, match=f"(?s)--import broken: {match}"):
        load_plugins(["broken"])
    with pytest.raises(InputError, match=r"--import nowhere\.eyes: there is no such module"):
        load_plugins(["nowhere.eyes"])


def test_an_entry_point_is_loaded_by_its_name_alone(folder):
    write_module(folder, "packaged_eyes", '@register("packaged.Eye")')
    (folder / "packaged-1.0.dist-info").mkdir()
    (folder / "packaged-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: packaged\nVersion: 1.0\n")
    points = "[physvision.plugins]\neyes = packaged_eyes\n"
    (folder / "packaged-1.0.dist-info" / "entry_points.txt").write_text(points)
    code = """import sys; from physvision import cli
for option in ([], ["--import", "eyes"]):
    cli.main(["verify", *option, "nothing"])
    print("loaded" if "packaged_eyes" in sys.modules else "not loaded")"""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path(physvision.__file__).parents[1])]),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert [line for line in done.stdout.splitlines() if line.endswith("loaded")] == ["not loaded", "loaded"]


@pytest.mark.extended
def test_a_clip_of_ones_own_is_learned_from_with_an_encoder_of_ones_own(folder, capsys):
    """From a clip without labels: import, fit, resume, test, export and predict."""
    from physvision import video
    from physvision.datasets import DataModule
    from physvision.datasets.clips import Filming, draw

    write_module(folder, "filmed_eyes", '@register("filmed.Eye")')
    clip = draw("pendulum", 3, Filming(size=(96, 72), fps=30, exposure=0.3, noise=2, shake=0.2))
    video.write("clip.mp4", list(islice(clip.frames(), 120)), 30)
    assert cli.main(["import", "clip.mp4", "--out", "data/m", "--size", f"{WIDTH},{HEIGHT}"]) == 0
    source = DataModule("data/m", batch_size=4)
    source.setup("fit")
    batch = next(iter(source.train_dataloader()))
    assert batch.trajectory is None
    assert batch.frames.shape == (4, 13, 3, HEIGHT, WIDTH)

    (folder / "a.yaml").write_text(yaml.safe_dump(configuration("filmed.Eye")))
    common = ["--import", "filmed_eyes"]
    last = "out/own/checkpoints/last.ckpt"
    assert cli.main(["fit", *common, "--config", "a.yaml"]) == 0
    first = torch.load(last, weights_only=True)
    assert cli.main(["fit", *common, "--config", "a.yaml", "--ckpt_path", last, "--trainer.max_steps", "4"]) == 0
    second = torch.load(last, weights_only=True)
    assert (first["global_step"], second["global_step"]) == (2, 4)
    changed = [
        name for name, value in first["state_dict"].items() if not torch.equal(value, second["state_dict"][name])
    ]
    # The loss of frames reaches the encoder, through the engine and the camera.
    assert {"model.encoder.layers.0.weight", "model.decoder.shape_codes"} <= set(changed)
    assert cli.main(["test", *common, "--config", "a.yaml", "--ckpt_path", last]) == 0
    assert cli.main(["export", *common, last, "--out", "mine.safetensors"]) == 0
    given = ["predict", *common, "clip.mp4", "--checkpoint", "mine.safetensors", "--fps", "30", "--size"]
    assert cli.main([*given, f"{WIDTH},{HEIGHT}", "--out", "p", "--horizon", "0.2", "--force", "--no-film"]) == 0
    assert (folder / "p" / "states.csv").exists()
    (folder / "scene.xml").unlink()
    # The checkpoint holds the mechanism itself.
    assert load("mine.safetensors").engine.joint_names == load(last).engine.joint_names
    assert any((folder / "out" / "own").rglob("events.out.tfevents*"))


@pytest.mark.parametrize(
    ("decorator", "match"),
    [("", "Eye is not registered"), ('@register("warned.Eye")', None)],
    ids=["plain", "registered"],
)
def test_training_warns_of_what_could_not_be_loaded_again(folder, decorator, match):
    from physvision.models import CameraDecoder, PredictiveAutoencoder, SceneCamera
    from physvision.physics import articulated
    from physvision.trainers.checkpoints import fault_of_loading

    name = "warned_eyes" if decorator else "plain_eyes"
    write_module(folder, name, decorator)
    load_plugins([name])
    engine = articulated.load(SCENE, dt=1 / 30)
    camera = SceneCamera(engine, (WIDTH, HEIGHT), position=(0, -3.5, 0), fov=0.7)
    model = PredictiveAutoencoder(sys.modules[name].Eye(3 * WIDTH * HEIGHT, 1 / 30), engine, CameraDecoder(camera))
    fault = fault_of_loading(model)
    if match is None:
        assert fault is None
    else:
        assert fault is not None
        assert match in fault
        assert '@register("my.Eye")' in fault
