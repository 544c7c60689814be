"""Configurations that are no text, no YAML or bombs are refused by name, at once and from every command."""

import pytest

from physvision.cli import main
from physvision.core import FileError, InputError
from physvision.core.resources import folder
from physvision.core.yaml_reader import read_yaml

LAUGHS = b"a0: &a0 [ha, ha]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)
)
BAD = [
    ("latin", "title: swing é".encode("latin-1"), "expected text in UTF-8, got the byte 233 at 13"),
    ("broken", b"a: [1, 2\nb: }", "not YAML"),
    ("laughs", LAUGHS, "expected at most 40 levels and 100,000 values"),
    ("itself", b"a: &a [*a]", "expected at most 40 levels and 100,000 values"),
    ("deep", b"[" * 50_000, "a.yaml: nested too deeply, expected at most 40 levels"),
    ("long", b"a: " + b"x" * 2**21, "at most 1,048,576 bytes"),
]


@pytest.mark.parametrize(("name", "content", "match"), BAD, ids=[name for name, _, _ in BAD])
def test_what_is_no_configuration_is_named(tmp_path, name, content, match):
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(InputError, match=match):
        read_yaml(tmp_path / "a.yaml")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize("command", [("fit",), ("generate", "billiards"), ("predict", "a.mp4")])
@pytest.mark.parametrize("in_one_word", [False, True])
def test_every_command_looks_first(tmp_path, capsys, command, in_one_word):
    path = tmp_path / "a.yaml"
    path.write_bytes(LAUGHS)
    option = [f"--config={path}"] if in_one_word else ["--config", str(path)]
    assert main([*command, *option]) == 1
    assert "expected at most 40 levels and 100,000 values" in capsys.readouterr().err


def test_those_that_come_with_physvision_pass():
    files = [path for kind in ("trainers", "datasets") for path in folder(kind).glob("*.yaml")]
    assert len(files) > 5
    for path in files:
        read_yaml(path)
