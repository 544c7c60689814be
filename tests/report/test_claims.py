"""Claims of a script are one JSON file for each run, with the commit and the command."""

import json
import subprocess
from dataclasses import asdict

from physvision.report.claims import Claim, write_claims


def test_a_run_is_written_beside_its_script(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks/speed.py", "--rounds", "3 4"])
    script = tmp_path / "benchmarks" / "speed.py"
    script.parent.mkdir()
    script.touch()
    claims = [Claim("step", 2.5, "µs", (2.0, 3.0), (0, 1), 7.5, "peer 1.2"), Claim("ratio", 0.5)]
    path = write_claims(script, claims)
    assert path.parent == script.parent / "history" / "speed"
    assert path.name.endswith("-unknown.json")
    run = json.loads(path.read_text())
    assert run["command"] == "python benchmarks/speed.py --rounds '3 4'"
    assert run["claims"] == json.loads(json.dumps([asdict(claim) for claim in claims]))
    assert run["claims"][0]["reference"] == 7.5


def test_the_commit_says_whether_files_differ_from_it(tmp_path):
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
    assert json.loads(write_claims(script, []).read_text())["commit"] == commit
    script.write_text("pass")
    assert json.loads(write_claims(script, []).read_text())["commit"] == f"{commit}-dirty"
