"""The pages build without a link that leads nowhere, and the code in them does what it says."""

import ast
import math
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from snippets import read_commands

from physvision.cli import COMMANDS, TRAINING
from physvision.identification.scene_names import find_entry
from physvision.physics.articulated import load
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.fluid import FlowProperties
from physvision.physics.soft import SoftProperties

ROOT = Path(__file__).parents[1]


def test_properties_are_those_of_the_engine():
    """The table is `TreeProperties.table()`."""
    assert TreeProperties.table() in (ROOT / "docs/articulated.md").read_text()


def test_soft():
    assert SoftProperties.table() in (ROOT / "docs/soft.md").read_text()


def test_fluid():
    assert FlowProperties.table() in (ROOT / "docs/fluid.md").read_text()


def test_figures_of_derivations(tmp_path, monkeypatch):
    """They are on pages, and their curves have the derivatives that the pages derive."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    module = import_module("derivations")
    module.main(tmp_path)
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    for name in module.FIGURES:
        assert (tmp_path / f"{name}.svg").stat().st_size > 10_000
        assert (ROOT / f"docs/images/{name}.svg").exists()
        assert f"](images/{name}.svg)" in pages

    def slope(impact):
        low, high = (float(module.height(start, np.array(0.8), impact)) for start in (1 - 1e-6, 1 + 1e-6))
        return (high - low) / 2e-6

    assert slope(None) == pytest.approx(0.578, abs=1e-3)
    assert slope(math.sqrt(0.2)) == pytest.approx(1.0, abs=1e-3)
    assert (module.covered(-1.99) - module.covered(-2.01)) / 0.02 == pytest.approx(1.0, abs=0.02)


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
    # The reference holds what docstrings and parsers say.
    assert 'id="learn-sac"' in (tmp_path / "site/reference/commands/index.html").read_text()
    assert "States and predictions of a whole video" in (tmp_path / "site/reference/predict/index.html").read_text()


def test_a_scene_of_ones_own():
    """The arm of the page can be loaded, and what it says is unknown is there."""
    page = (ROOT / "docs/identify.md").read_text()
    arm = load(re.search(r"<mujoco>.*?</mujoco>", page, re.DOTALL).group())
    for name in re.findall(r"--unknown (\S+?)=", page):
        assert find_entry(arm, name).mask.sum() == 1


# A number may have thousands separators, an exponent or a power of ten; the 1 of the unit 1/m is none. A value may be
# "5 of 5", "9 to 12" or "0.3 ± 0.1".
NUMBER = r"[-−+±<>≤≥~]?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:e[-−]?\d+)?(?: ?[·×] ?10[⁻⁰¹²³⁴-⁹]+)?(?!/[a-z])"
UNIT = r"(?:1/\w|[^\d;,()|/]|(?<=\w)/(?=\w))*?"
VALUE = rf"(?:{NUMBER}(?: (?:±|to|of) {NUMBER})?|[–—]){UNIT}"
SEVERAL_VALUES = re.compile(
    rf"(?:(?:at most|at least|about|from) )?{VALUE}(?:;| /|,(?!\d{{3}})| and| or| \\\|)\s+(?:[–—]|{NUMBER})"  # 0.1, 0.2
    rf"|{VALUE}\({NUMBER}\D*\)"  # 0.57 (101 %)
    rf"|.*\d[^;]*;\s*(?:at \w+ )?{NUMBER}"  # up after 0.1 s; 0.2 s
)


def has_several_values(cell: str) -> bool:
    """If true, a cell of a table holds more than one value; code and the targets of links do not count."""
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", cell)).replace("*", "").strip()
    return bool(SEVERAL_VALUES.match(text))


def read_cells(page: Path) -> list[tuple[int, str]]:
    """Cells of a page's tables, outside of code, with the numbers of their lines."""
    cells, fenced = [], False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fenced ^= line.strip().startswith("```")
        if line.strip().startswith("|") and not fenced:
            cells += [(number, cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    return cells


SEVERAL_EXAMPLES = [
    "0.1; 0.2",
    "0.1, 0.2",
    "3 / 4",
    "2.0 \\| 3.0",
    "**0.1, 0.2**",
    "4, 0.65",
    "0.8, —, 0.319",
    "5,000; 3,000",
    "2,300, 2,700, 1,800",
    "1.4 · 10⁻³, 5.2 · 10⁻⁴",
    "30 1/s; 20 1/s",
    "5 of 5; 4 of 5",
    "13,000, 2,626 and 572",
    "0.57 (101 %)",
    "up after 0.1 s; 0.2 s",
]
ONE_EXAMPLES = [
    "5,706",
    "90 to 99",
    "0.3 ± 0.1",
    "1.4 · 10⁻³",
    "9.36 to 10.24 m/s²",
    "30 1/s",
    "1/m, 1/cm",
    "5 of 5",
    "288 × 96",
    "1e-5",
    "5/7 of it",
    "2026-11-24",
    "1,215 (900 to 5,085)",
    "`0.1, 0.2`",
    "(joints, 2, 2)",
    "at most 1.2e-7",
    "64 balls, in 3 rows; seen from above",
]


def test_cells_of_tables_hold_one_value():
    """A table's cell has one value: columns, rows or further tables take the others."""
    assert [cell for cell in SEVERAL_EXAMPLES if not has_several_values(cell)] == []
    assert [cell for cell in ONE_EXAMPLES if has_several_values(cell)] == []
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    cells = [(page.name, number, cell) for page in pages for number, cell in read_cells(page)]
    assert len(cells) > 2000
    assert [entry for entry in cells if has_several_values(entry[2])] == []


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


@pytest.mark.extended
def test_commands_of_pages_are_those_of_the_parsers(monkeypatch):
    """The reference lists every option, and pages name no command or option that does not exist."""
    pytest.importorskip("mkdocs", reason="pip install 'physvision[docs]' builds the pages")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    sections = dict(
        re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", import_module("command_pages").render_commands(), re.M | re.S)
    )
    assert list(sections) == list(COMMANDS)
    assert "- `--fps`: Frame rate to resample the video to" in sections["predict"]
    assert "- `--dt` (default `0.01`): Time step, s." in sections["simulate"]
    known = {name: set(re.findall(r"`(--[\w.-]+)", section)) for name, section in sections.items()}
    for name in ("validate", "test"):
        assert "(#fit)" in sections[name]
        known[name] = known["fit"]
    commands = [(page, words) for page, (_, *words) in read_commands() if not words[0].startswith("-")]
    assert len(commands) > 60
    for page, (command, *words) in commands:
        for option in (word.partition("=")[0] for word in words if word.startswith("--")):
            # Sections of a configuration have fields of the class that they name.
            inner = command in TRAINING and option.startswith(("--data.", "--model.", "--trainer."))
            assert inner or option in known[command] | {"--help", "--import"}, f"{page}: {command} {option}"
