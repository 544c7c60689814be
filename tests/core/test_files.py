"""Files are complete or absent, and what killed processes left behind is removed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from physvision.camera import read_calibration
from physvision.core import DataError, FileError, InputError
from physvision.core.files import atomic_path, read_content, read_text
from physvision.core.tables import read_table
from physvision.core.yaml_reader import read_yaml
from physvision.datasets.folder import DataFolder
from physvision.physics import articulated

# Writes half of a file and is killed.
KILLED = """
import os, signal, sys
from pathlib import Path
from physvision.core.files import atomic_path
with atomic_path(Path(sys.argv[1])) as hidden:
    hidden.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_file_in_a_folder_removes_what_a_killed_process_left(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "a.txt"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    with atomic_path(tmp_path / "b.txt") as hidden:
        hidden.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def interrupted(path):
    with atomic_path(path) as hidden:
        hidden.write_text("half")
        raise ZeroDivisionError


def test_an_error_leaves_the_existing_file(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(ZeroDivisionError):
        interrupted(tmp_path / "a.txt")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def read_data_folder(path):
    path.rename(path.parent / "dataset.json")
    return DataFolder(path.parent).description()


def read_checksums(path):
    path.rename(path.parent / "checksums.sha256")
    return DataFolder(path.parent).checksums()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    "read", [read_table, read_yaml, read_calibration, articulated.load, read_data_folder, read_checksums]
)
def test_only_files_are_read(tmp_path, read, kind):
    path = tmp_path / "a.xml"
    make = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}
    make[kind](path)
    with pytest.raises((FileError, DataError), match=r"cannot be read|there is no model file"):
        read(path)


def test_a_file_is_read_up_to_a_size(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfab\xe9")
    with pytest.raises(InputError, match="of at most 5 bytes"):
        read_content(path, 5)
    with pytest.raises(InputError, match=r"expected text in UTF-8, got the byte 233 at 5; save it as UTF-8"):
        read_text(path, 6)
    path.write_bytes(b"\xef\xbb\xbfab")
    assert read_text(path, 6) == "ab"
