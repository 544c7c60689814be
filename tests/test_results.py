"""The page of results is made from runs, every run can be repeated, and runs of other code are told from today's."""

import json
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from physvision.cli import COMMANDS

ROOT = Path(__file__).parents[1]
RUNS = sorted(ROOT.glob("*/history/*/*.json"))


@pytest.fixture(autouse=True)
def experiments(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "experiments")


def test_the_page_is_made_from_the_runs():
    results = import_module("results")
    page = results.render_page(results.read_runs(), results.read_layout())
    assert page == (ROOT / "docs/results.md").read_text(), "run `python experiments/run.py --page`"
    cells = [cell.strip() for line in page.splitlines() if line.count("|") == 7 for cell in line.split("|")[3:5]]
    numbers = [cell for cell in cells if re.search(r"\d", cell)]
    assert len(numbers) > 50
    for cell in numbers:
        assert re.fullmatch(r"(\*\*)?-?[\d,.]+(e-?\d+)?(\*\*)?", cell), f"{cell!r} is not one value"


COMPARED = {
    "articulated": ["time of a quadruped's step over", "time of its backward step over"],
    "camera": ["time of a picture over", "time of a picture with its gradients over"],
    "contact": ["quadruped, contact=event, forward", "quadruped, mj_step"],
    "learning": ["steps of 4,096 ants", "the same with gradients"],
    "rigid2d": ["chain10, batch 1, ", "ball3, batch 1, "],
}


def test_the_comparison_has_the_numbers_of_the_runs():
    results = import_module("results")
    text = (ROOT / "docs/comparison.md").read_text()
    cells = [cell.strip(" *") for line in text.splitlines() if line.startswith("|") for cell in line.split("|")]
    runs, count = results.read_runs(), 0
    for name, beginnings in COMPARED.items():
        names = {claim for run in runs[name] for claim in run.claims if claim.startswith(tuple(beginnings))}
        for claim in names:
            count += 1
            record = results.latest(runs, name, claim).claims[claim]
            for value in (record["value"], record["reference"]):
                assert value in (None, 1.0) or results.format_value(value) in cells, f"{name}: {claim}"
    assert count == 12
    numbers = [cell for cell in cells if re.match(r"[-−+]?\d", cell)]
    assert len(numbers) > 60
    assert [cell for cell in numbers if not re.fullmatch(r"[-−+]?[\d,.]+", cell)] == []


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_run_can_be_repeated(path):
    run = json.loads(path.read_text())
    assert (ROOT / run["script"]).is_file()
    words = shlex.split(run["command"])
    if words[0] == "physvision":
        assert words[1] in COMMANDS
    else:
        assert words[0] == "python"
        assert run["script"] in words
    assert re.fullmatch(r"[0-9a-f]{7,12}", run["commit"])
    assert path.stem.startswith(f"{run['date'][:10]}-{run['commit']}")
    assert re.fullmatch(r"[0-9a-f]{16}", run["code"])
    names = [claim["name"] for claim in run["claims"]]
    assert names
    assert len(set(names)) == len(names)
    for claim in run["claims"]:
        assert isinstance(claim["value"], int | float)
        assert claim["reference"] is None or claim["source"]


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


SCRIPT = '"""A script."""\nfrom law import energy\nprint(energy(2.0, 3.0))\n'
LAW = """import math
from constants import HALF

def energy(mass, speed):
    'Kinetic.'
    return HALF * mass * math.pow(speed, 2)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Kinetic.", "Kinetic energy, J.", True),
        ("mass", "inertia", True),
        ("energy", "kinetic_energy", True),
        ("2)", "3)", False),
        ("math.pow", "math.fmod", False),
        ("HALF * mass", "HALF * HALF", False),
    ],
)
def test_renamed_code_is_the_same_and_changed_code_is_not(tmp_path, old, new, same):
    code_hash = import_module("code_hash").code_hash
    hashes = []
    for name, change in (("before", lambda text: text), ("after", lambda text: text.replace(old, new))):
        folder = tmp_path / name
        folder.mkdir()
        write(folder, script=change(SCRIPT), law=change(LAW), constants="HALF = 0.5\n", unused=f"OLD = '{name}'\n")
        hashes.append(code_hash(folder, folder / "script.py"))
    assert (hashes[0] == hashes[1]) == same


def test_code_that_is_moved_is_the_same_and_imports_are_followed(tmp_path):
    code_hash = import_module("code_hash").code_hash
    write(tmp_path, script=SCRIPT, law=LAW, constants="HALF = 0.5\n")
    before = code_hash(tmp_path, tmp_path / "script.py")
    moved = tmp_path / "moved"
    moved.mkdir()
    write(moved, script=SCRIPT, law="from motion import energy\n", motion=LAW, constants="HALF = 0.5\n")
    assert code_hash(moved, moved / "script.py") == before
    changed = tmp_path / "changed"
    changed.mkdir()
    write(changed, script=SCRIPT, law=LAW, constants="HALF = 0.25\n")
    assert code_hash(changed, changed / "script.py") != before


def test_imports_of_an_experiment_are_those_of_the_package():
    imported_files = import_module("code_hash").imported_files
    files = {path.relative_to(ROOT).as_posix() for path in imported_files(ROOT, ROOT / "experiments/throw.py")}
    assert "experiments/evolution.py" in files
    # A package whose names are imported when they are first used, and kernels, which are loaded by name.
    assert "physvision/physics/articulated/engine.py" in files or any("articulated/" in name for name in files)
    assert any(name.startswith("physvision/physics/articulated/kernels/") for name in files)
    assert not any(name.startswith(("physvision/learning/", "tests/")) for name in files)


def test_a_new_run_is_compared_with_the_one_that_was_kept(tmp_path, monkeypatch, capsys):
    run, results = import_module("run"), import_module("results")

    def record(folder, value):
        claim = {"name": "step", "value": value, "unit": "µs", "spread": [1.9, 2.2], "reference": None, "source": ""}
        content = {"script": "experiments/throw.py", "command": "python experiments/throw.py", "date": "2026-11-28"}
        path = folder / "throw" / "2026-11-28-abcdef0.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({**content, "claims": [claim]}))

    record(tmp_path / "history", 2.0)
    runs = results.read_runs([tmp_path / "history"])
    for value, good in ((2.3, True), (2.5, False)):
        monkeypatch.setattr(run, "run_script", lambda command, folder, resume, value=value: record(folder, value))
        assert run.check("throw", runs) is good
    assert "OFF  step" in capsys.readouterr().out
    assert run.command_of("throw", runs, ["--seeds", "1"])[1:] == ["experiments/throw.py", "--seeds", "1"]
    with pytest.raises(SystemExit, match="neither a run"):
        run.command_of("thrown", runs, [])


def test_runs_of_other_options_on_one_day_are_kept_beside_each_other(tmp_path, monkeypatch, capsys):
    run = import_module("run")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "command_of", lambda name, runs, options: options)
    monkeypatch.setattr(run, "code_hash", lambda root, script: "0" * 16)

    def measure(options, folder):
        content = {"script": "throw.py", "command": " ".join(options), "date": "2026-11-28", "claims": []}
        (folder / "throw").mkdir()
        (folder / "throw" / "2026-11-28-abcdef0.json").write_text(json.dumps(content))
        return [folder]

    monkeypatch.setattr(run, "run_script", measure)
    for options in (["a"], ["b"], ["a"]):
        run.keep("throw", {}, options)
    names = ["2026-11-28-abcdef0-2.json", "2026-11-28-abcdef0.json"]
    files = sorted((tmp_path / "history" / "throw").iterdir())
    assert [path.name for path in files] == names
    assert [json.loads(path.read_text())["command"] for path in files] == ["b", "a"]


def test_the_numbers_of_the_readme_are_those_of_runs():
    """Values, references, their ratios, numbers in the words of a claim, and seconds as minutes."""
    results = import_module("results")
    claims = [claim for runs in results.read_runs().values() for run in runs for claim in run.claims.values()]
    numbers = set()
    for claim in claims:
        pair = [number for number in (claim["value"], claim["reference"]) if number]
        words = re.findall(r"\d[\d,.]*", f"{claim['name']} {claim['source']}")
        numbers |= {results.format_value(number) for number in pair} | {word.rstrip(",.") for word in words}
        numbers |= {f"{max(pair) / min(pair):.2g}" for _ in pair[1:]}
        numbers |= {str(round(float(word.replace(",", "")) / 60)) for word in words if re.fullmatch(r"[\d,]+", word)}
    section = (ROOT / "README.md").read_text().split("## How good it is")[1].split("##")[0]
    mentioned = re.findall(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d", section)
    assert len(mentioned) > 8
    assert not set(mentioned) - numbers
