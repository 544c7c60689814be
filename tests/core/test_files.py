"""Files are complete or absent, and what killed processes left behind is removed."""

import signal
import subprocess
import sys

import pytest

from physvision.core.files import atomic_path

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
