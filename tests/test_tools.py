"""The tools of a release: versions, changelog, and constraints of the oldest dependencies."""

import importlib.util
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.modules["bill_of_materials"] = bill_of_materials = _load("bill_of_materials")
release = _load("release")
dependencies = _load("dependencies")


def test_a_version_grows_and_nothing_else_changes():
    before = '[project]\nversion = "0.9.0"\nother = "0.9.0"\n'
    assert release.set_version(before, "0.10.0") == '[project]\nversion = "0.10.0"\nother = "0.9.0"\n'
    for version in ("0.9.0", "0.8.9", "1.0", "next"):
        with pytest.raises(release.ReleaseError, match="expected a version"):
            release.set_version(before, version)


def test_the_changelog_is_dated():
    before = "# Changes\n\n## [Unreleased]\n\n- A.\n\n## [0.1.0] - 2026-01-01\n\n- B.\n"
    after = release.date_changelog(before, "0.2.0", "2026-12-01")
    assert after == before.replace("[Unreleased]", "[Unreleased]\n\n## [0.2.0] - 2026-12-01")
    with pytest.raises(release.ReleaseError, match="nothing under"):
        release.date_changelog("## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- B.\n", "0.2.0", "2026-12-01")
    with pytest.raises(release.ReleaseError, match="expected a heading"):
        release.date_changelog("# Changes\n", "0.2.0", "2026-12-01")


def test_the_changelog_and_the_version_of_this_tree_can_be_released():
    release.set_version((ROOT / "pyproject.toml").read_text(), "999.0.0")
    release.date_changelog((ROOT / "CHANGELOG.md").read_text(), "999.0.0", "2026-12-01")


def test_every_dependency_has_a_lower_bound():
    bounds = dependencies.lower_bounds((ROOT / "pyproject.toml").read_text())
    assert bounds["numpy"] == "2.0"
    assert bounds["jsonargparse"] == "4.40"
    with pytest.raises(ValueError, match="expected a lower bound"):
        dependencies.lower_bounds('[project]\ndependencies = ["numpy"]')


def test_a_release_lists_what_it_needs():
    packages = bill_of_materials.closure("physvision")
    pins = dict(line.split("==") for line in bill_of_materials.constraints(packages).split())
    assert pins["numpy"] == metadata.version("numpy")
    assert "physvision" not in pins
    assert "pytest" not in pins
    required = {
        bill_of_materials.normalized(name) for name in dependencies.lower_bounds((ROOT / "pyproject.toml").read_text())
    }
    assert required <= set(pins)
    bill = bill_of_materials.bill_of_materials(packages, "0.9.0", "2026-12-01")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    references = [bill["metadata"]["component"]["bom-ref"], *(component["bom-ref"] for component in bill["components"])]
    assert len(set(references)) == len(references) == len(pins) + 1
    assert references[0] == "pkg:pypi/physvision@0.9.0"
    assert sorted(entry["ref"] for entry in bill["dependencies"]) == sorted(references)
    assert all(set(entry["dependsOn"]) <= set(references) for entry in bill["dependencies"])
    assert next(c for c in bill["components"] if c["name"] == "numpy")["licenses"]
