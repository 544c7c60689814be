"""What the README says to type works."""

import re
import shlex
from pathlib import Path

import pytest

from physvision.cli import COMMANDS

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]


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
