"""The pages build without a link that leads nowhere, and the code in them does what it says."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from physvision.identification.scene_names import find_entry
from physvision.physics.articulated import load, scenes
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.fluid import FlowProperties
from physvision.physics.soft import SoftProperties

ROOT = Path(__file__).parents[1]


def run(page):
    """The names that a page's code leaves, run from its top to its end."""
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL):
        exec(compile(block, page, "exec"), names)
    return names


def test_your_own_video(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run("own_video.md")
    assert (tmp_path / "out/mine/report.html").exists()
    assert names["prediction"].states.q.shape == (38, 3)
    assert names["prediction"].future.q.shape == (1, 11, 3)
    assert names["prediction"].future_frames.shape == (11, 1, 100, 100)
    assert names["latest"].equal(names["prediction"].states.q[-1])


def test_learning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("learning.md")
    about = json.loads((tmp_path / "out/one-link/config.json").read_text())
    assert about["seed"] == 1
    assert len((tmp_path / "out/one-link/progress.jsonl").read_text().splitlines()) == 2


def test_your_own_scene():
    names = run("own_scene.md")
    assert names["frames"].shape == (60, 3, 48, 48)
    assert names["picture"].max() > names["picture"].min()
    # Half a second of bounces by a velocity from two frames: pixels, of a ball of radius 4.
    assert float(names["error"]) < 1.5


def test_your_own_parameters():
    names = run("own_parameters.md")
    lengths = names["lengths"].tolist()
    assert lengths == pytest.approx([0.7, 1.2], rel=0.01)
    assert names["layer"].learned_values["lengths"].tolist() == pytest.approx([1.0, 1.0])


def test_properties_are_those_of_the_engine():
    """The table is `TreeProperties.table()`."""
    assert TreeProperties.table() in (ROOT / "docs/articulated.md").read_text()


def test_contact():
    assert float(run("contact.md")["gradient"][0, 2]) != 0.0


def test_soft():
    assert SoftProperties.table() in (ROOT / "docs/soft.md").read_text()
    assert float(run("soft.md")["gradient"][0]) > 0.0


def test_fluid():
    assert FlowProperties.table() in (ROOT / "docs/fluid.md").read_text()
    assert float(run("fluid.md")["gradient"]) < 0.0


def test_camera():
    names = run("camera.md")
    assert names["frames"].shape == (1, 3, 64, 96)
    # The ball is visible in the center, and covers as much as it is near.
    assert names["masks"].max() == 1.0
    assert float(names["visible"].depth[0, 32, 48]) == pytest.approx(26**0.5 - 0.5, abs=0.01)


def test_the_plane():
    assert run("rigid2d.md")["trajectory"].q.shape == (64, 101, 3)


def test_robots():
    assert "racecar" in scenes.names()
    assert run("robots.md")["engine"].dt == 1e-3


def test_control():
    pytest.importorskip("gymnasium", reason="pip install 'physvision[environments]' brings environments")
    names = run("control.md")
    assert float(names["result"].cost) < 0.5 * float(names["result"].cost_history[0])
    assert float(names["policy"].trajectory.final.q[0, 1].cos()) > 0.95
    assert names["obs"].shape == (8, 5)


@pytest.mark.extended
def test_every_link_leads_somewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="pip install 'physvision[docs]' builds the pages")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in (ROOT / "docs").glob("**/*.md"):
        result = page.relative_to(ROOT / "docs").with_suffix("")
        built = tmp_path / "site" / (result if result.name != "index" else result.parent) / "index.html"
        assert built.exists(), f"{page} is not among the pages that are built"
    # The reference holds what docstrings say.
    assert "States and predictions of a whole video" in (tmp_path / "site/reference/predict/index.html").read_text()


def test_a_scene_of_ones_own():
    """The arm of the page can be loaded, and what it says is unknown is there."""
    page = (ROOT / "docs/identify.md").read_text()
    arm = load(re.search(r"<mujoco>.*?</mujoco>", page, re.DOTALL).group())
    for name in re.findall(r"--unknown (\S+?)=", page):
        assert find_entry(arm, name).mask.sum() == 1
    block = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    names: dict = {}
    exec(compile(block, "identify.md", "exec"), names)
    assert names["rod"].follow == list(names["arm"].body_names)


# Packages whose names are for users, besides those of the first level.
INNER = "control/pixels control/policies datasets/clips physics/articulated physics/fluid physics/lcp physics/particle"
INNER += " physics/rigid2d physics/soft"
NOT_FOR_USERS = {"app", "kernels"}


def test_every_public_name_stands_in_the_reference():
    """A name that a package re-exports is on a page, by itself or with the module that defines it."""
    pages = "".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    entries = set(re.findall(r"^::: physvision\.(\S+)", pages, re.MULTILINE))
    documented = {entry.rpartition(".")[2] for entry in entries}
    package = ROOT / "physvision"
    folders = [init.parent for init in package.glob("*/__init__.py") if init.parent.name not in NOT_FOR_USERS]
    missing, count = [], 0
    for folder in [*folders, *(package / name for name in INNER.split())]:
        body = ast.parse((folder / "__init__.py").read_text()).body
        for node in (item for item in body if isinstance(item, ast.ImportFrom) and item.module):
            module = str(node.module).removeprefix("physvision.")
            for alias in node.names:
                count += alias.name == alias.asname
                if alias.name == alias.asname and alias.name not in documented and module not in entries:
                    missing.append(f"{folder.name}.{alias.name}")
    assert count > 300
    assert not missing, missing
