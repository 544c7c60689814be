"""What scripts share: their claims as one JSON file for each run, and long runs that go on where they stopped."""

import json
import subprocess
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture
def claims_module(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "experiments")
    return import_module("claims")


@pytest.fixture
def cached_results(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "experiments")
    return import_module("result_cache").cached_results


def test_a_run_is_written(tmp_path, monkeypatch, claims_module):
    monkeypatch.setenv("PHYSVISION_CLAIMS", str(tmp_path / "kept"))
    monkeypatch.setattr("sys.argv", ["benchmarks/speed.py", "--rounds", "3 4"])
    script = tmp_path / "benchmarks" / "speed.py"
    script.parent.mkdir()
    script.touch()
    Claim = claims_module.Claim
    claims = [Claim("step", 2.5, "µs", (2.0, 3.0), (0, 1), 7.5, "peer 1.2"), Claim("ratio", 0.5)]
    path = claims_module.write_claims(script, claims)
    assert path.parent == tmp_path / "kept" / "speed"
    assert path.name.endswith("-unknown.json")
    run = json.loads(path.read_text())
    assert run["command"] == "python benchmarks/speed.py --rounds '3 4'"
    assert run["claims"] == json.loads(json.dumps([asdict(claim) for claim in claims]))
    assert run["claims"][0]["reference"] == 7.5


def test_the_commit_says_whether_files_differ_from_it(tmp_path, monkeypatch, claims_module):
    monkeypatch.chdir(tmp_path)  # without a folder, claims go to out/claims

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    script = tmp_path / "speed.py"
    script.touch()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    commit = git("rev-parse", "--short", "HEAD").strip()
    assert json.loads(claims_module.write_claims(script, []).read_text())["commit"] == commit
    script.write_text("pass")
    assert json.loads(claims_module.write_claims(script, []).read_text())["commit"] == f"{commit}-dirty"


def test_what_was_interrupted_goes_on_where_it_stopped(tmp_path, cached_results):
    path, worked = tmp_path / "folder" / "squares.jsonl", []

    def square(number):
        if number == 3 and 3 not in worked:
            worked.append(3)
            raise KeyboardInterrupt
        worked.append(number)
        return {"number": number, "square": number**2}

    def number(result):
        return result["number"]

    with pytest.raises(KeyboardInterrupt):
        cached_results(path, range(5), square, number)
    results = cached_results(path, range(5), square, number)
    assert worked == [0, 1, 2, 3, 3, 4]
    assert {key: result["square"] for key, result in results.items()} == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}


def test_a_check_takes_nothing_from_what_was_measured_before(tmp_path, cached_results, monkeypatch):
    path = tmp_path / "squares.jsonl"
    path.write_text('{"number": 2, "square": 5}\n')
    monkeypatch.setenv(import_module("result_cache").NO_CACHE, "1")
    results = cached_results(path, [2], lambda n: {"number": n, "square": n**2}, lambda result: result["number"])
    assert results == {2: {"number": 2, "square": 4}}
    assert path.read_text() == '{"number": 2, "square": 5}\n'


def test_every_process_sees_what_the_others_found(tmp_path, cached_results):
    path = tmp_path / "squares.jsonl"
    for part in (range(0, 6, 2), range(1, 6, 2)):
        results = cached_results(path, part, lambda n: {"number": n}, lambda result: result["number"])
    assert sorted(results) == list(range(6))
    assert sorted(cached_results(path, (), lambda n: {}, lambda result: result["number"])) == list(range(6))
