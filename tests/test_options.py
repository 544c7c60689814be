"""Options of commands from files: plain values that fit the annotations, and nothing that is imported."""

import functools
import sys
from dataclasses import dataclass

import pytest
import yaml

from physvision import cli
from physvision.core import resources
from physvision.learning import command as learning
from physvision.options import run_function

LEARN = {"ant": "shac", "compliant-ant": "shac", "links": "mbpo"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a module that must not be imported."""
    (tmp_path / "evilmod.py").write_text("from pathlib import Path\nPath('imported').touch()\nclass Length: pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    assert "evilmod" not in sys.modules
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize("name", LEARN)
def test_every_shipped_configuration_of_learning_is_read(folder, monkeypatch, name):
    """The algorithm is replaced, by a function of the same signature."""
    calls = []

    @functools.wraps(learning.learn)
    def learn(*given, **options):
        calls.append((given[0], options))
        return []

    algorithm = LEARN[name]
    settings = learning.COMMANDS[algorithm][1]
    monkeypatch.setitem(learning.COMMANDS, algorithm, (learn, settings))
    values = yaml.safe_load((resources.folder("trainers") / f"{name}.yaml").read_text())
    path = f"{name}.yaml" if name == "ant" else f"trainers/{name}.yaml"
    assert cli.main(["learn", algorithm, "--config", path, "--schedule.eval_every", "7"]) == 0
    ((built, options),) = calls
    assert type(built) is settings
    assert (options["env"], str(options["out"])) == (values["env"], values["out"])
    assert options["schedule"].total_steps == values["schedule"]["total_steps"]
    assert options["schedule"].eval_every == 7
    assert built.horizon == values["horizon"]


EVIL = {"class_path": "evilmod.Length"}


@pytest.mark.parametrize(
    ("command", "values"),
    [
        (["learn", "sac"], {"schedule": EVIL}),
        (["learn", "sac"], {"sac": EVIL}),
        (["learn", "mbpo"], {"off_policy": {"sac": EVIL}}),
        (["learn", "sac"], {"num_envs": "evilmod.Length"}),
        (["learn", "sac"], {"length": EVIL}),
        (["generate", "pendulum"], {"recipe": EVIL}),
        (["generate", "pendulum"], {"frames": EVIL}),
        (["generate", "pendulum"], {"executor": EVIL}),
        (["generate", "pendulum"], {"config": "other.yaml"}),
        (["predict", "a.mp4"], {"checkpoint": EVIL}),
        (["export", "pendulum"], {"format": "evilmod.Length"}),
        (["control", "pendulum"], {"seed": EVIL}),
    ],
)
def test_no_file_names_code(folder, capsys, command, values):
    (folder / "a.yaml").write_text(yaml.safe_dump(values))
    assert cli.main([*command, "--config", "a.yaml"]) == 1
    assert f"physvision {command[0]}: " in capsys.readouterr().err


def test_a_group_of_options_is_no_file(folder, capsys):
    (folder / "a.yaml").write_text(yaml.safe_dump(EVIL))
    assert cli.main(["learn", "sac", "--schedule", "a.yaml"]) == 1
    assert "--schedule.NAME VALUE" in capsys.readouterr().err


def test_options_lie_above_the_values_of_files(folder):
    def function(video: str, fps: float = 1.0, sizes: tuple[int, int] = (1, 2), force: bool = False):
        return video, fps, sizes, force

    (folder / "a.yaml").write_text("video: x.mp4\nfps: 2\nsizes: [3, 4]\n")
    (folder / "b.yaml").write_text("fps: 3\n")
    files = ["--config", "a.yaml", "--config=b.yaml"]
    assert run_function("p", function, files) == ("x.mp4", 3.0, (3, 4), False)
    assert run_function("p", function, [*files, "--fps", "9", "--force"]) == ("x.mp4", 9.0, (3, 4), True)


@dataclass(frozen=True)
class Clip:
    """A video and its rate."""

    video: str
    fps: float = 1.0


def test_fields_of_a_functions_settings_are_options_of_its_command(folder):
    """Required ones stand by position, also where they are fields; a configuration names them as the options do."""

    def function(clip: Clip, force: bool = False):
        return clip, force

    (folder / "a.yaml").write_text("fps: 2\nforce: true\n")
    command = (function, Clip)
    assert run_function("p", command, ["x.mp4"]) == (Clip("x.mp4"), False)
    assert run_function("p", command, ["x.mp4", "--config", "a.yaml"]) == (Clip("x.mp4", 2.0), True)
    assert run_function("p", command, ["--fps", "3", "x.mp4", "--config", "a.yaml"]) == (Clip("x.mp4", 3.0), True)
