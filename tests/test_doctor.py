"""`physvision doctor` describes an installation, and names what is wrong with it."""

import re
from importlib.metadata import version

import pytest
from packaging.specifiers import SpecifierSet

from physvision import cli, doctor


def test_an_installation_is_described_and_passes_its_self_test(capsys):
    assert cli.main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert re.findall(r"^\S.*$", output, re.MULTILINE) == [
        *("versions", "devices", "kernels", "codecs", "extras", "disk", "self-test")
    ]
    assert f"  torch {version('torch')}" in output
    assert re.search(r"^  [1-9]\d* compiled, \d+ MB, in /", output, re.MULTILINE)
    assert re.search(r"^  reads .*h264", output, re.MULTILINE)
    assert re.search(r"^  onnx: ", output, re.MULTILINE)
    assert "lint: " not in output
    assert len(re.findall("passed in", output)) == len(doctor.SELF_TESTS)


def test_a_part_that_fails_is_named_and_the_others_run(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "SELF_TESTS", {"one": lambda: 1 // 0, "two": lambda: None})
    assert doctor.doctor() == 1
    output = capsys.readouterr().out
    assert "  one: FAILED, ZeroDivisionError: " in output
    assert "  two: passed in" in output


def test_packages_that_are_missing_or_out_of_range_are_named(monkeypatch):
    monkeypatch.setattr(doctor, "_version", {"torch": "1.0"}.get)
    lines = list(doctor.versions())[1:]
    assert any(re.fullmatch(r"torch 1.0: OUT OF RANGE, expected .*>=2.*", line) for line in lines)
    assert any(re.fullmatch(r"numpy: NOT INSTALLED, expected >=.*", line) for line in lines)
    assert "onnx: missing onnx, onnxruntime, onnxscript" in list(doctor.extras())


def test_a_wrong_result_fails():
    doctor._check("error", 1.0, 1.0)
    for wrong in (1.1, float("nan")):
        with pytest.raises(ArithmeticError, match=r"error is .*, expected at most 1"):
            doctor._check("error", wrong, 1.0)
    assert doctor._installed("pytest", "<1", SpecifierSet("<1").contains).endswith(": OUT OF RANGE, expected <1")
