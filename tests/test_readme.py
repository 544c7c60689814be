"""What the README says to type works."""

import re
import shlex
from pathlib import Path

import pytest

from physvision.cli import COMMANDS

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def run_blocks(page: str) -> dict:
    """Run the Python blocks of a page one after another, and return the names that they leave."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_the_readme_runs():
    names = run_blocks("README.md")
    assert names["swing"].q.shape == (1, 201, 3)
    assert names["lengths"].grad.abs().min() > 0


def test_the_tour_runs():
    names = run_blocks("docs/tour.md")
    assert names["swing"].q.shape == (1, 201, 3)
    assert names["tip"].shape == (1, 3)
    assert names["logarithms"].grad.abs().min() > 0
    assert names["A"].shape == (64, 4, 4)
    assert names["frame"].shape == (1, 3, 64, 64)
    assert names["speed"].grad[0, 0] > 0


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_what_it_names_is_there(text):
    content = text.read_text()
    links = re.findall(r"\]\((?!http)([^)#]+)", content)
    scripts = re.findall(r"(?:python|bash) ((?:experiments|benchmarks|datasets)/\S+?\.py)", content)
    for path in [*links, *(ROOT / script for script in scripts)]:
        assert (text.parent / path).exists(), f"{text.name} names {path}"
    for command in re.findall(r"^    physvision (\w+)", content, re.MULTILINE):
        assert command in COMMANDS


def test_its_make_targets_exist():
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for text in TEXTS:
        for line in re.findall(r"^    make (.+)$", text.read_text(), re.MULTILINE):
            assert shlex.split(line, comments=True)[0] in targets
