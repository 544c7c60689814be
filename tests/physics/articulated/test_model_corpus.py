"""Model files of eight packages, `benchmarks/model_corpus.csv`: they load, and accelerate as in MuJoCo."""

import subprocess
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Files, and those that load. Two files of gymnasium-robotics have MuJoCo's `noslip_iterations`, which is left out.
PACKAGES = {
    "gymnasium": (14, 14), "dm_control": (37, 34), "metaworld": (46, 46), "robosuite": (14, 14),
    "playground": (10, 10), "safety-gymnasium": (4, 3), "example-robot-data": (3, 3),
}  # fmt: skip


@pytest.fixture
def corpus(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return import_module("model_corpus")


@pytest.mark.extended
@pytest.mark.parametrize("package", PACKAGES)
def test_model_files_load_and_accelerate_as_in_mujoco(corpus, package):
    """Of those that load all; without contact, whose points are other than MuJoCo's for boxes, cylinders and meshes."""
    files, folder = corpus.corpus([package]), ROOT / "out" / "model_corpus"
    try:
        corpus.download(files, folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{package} cannot be downloaded: {error.stderr[-200:]!r}")
    refusals = {
        file.path: [corpus.refusal(folder / file.path, contact) for contact in ("event", "compliant")] for file in files
    }
    loading = [path for path, reasons in refusals.items() if not any(reasons)]
    assert (len(files), len(loading)) == PACKAGES[package], refusals
    errors = {path: max(corpus.acceleration_errors(folder / path, ("contact",))[0]) for path in loading}
    assert {path: error for path, error in errors.items() if not error <= corpus.TOLERANCE} == {}
