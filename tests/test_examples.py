"""Every example runs as it stands, is short, and leaves a picture."""

import os
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short(example):
    assert len(example.read_text().splitlines()) <= 60


@pytest.mark.extended
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_leave_a_picture(example, tmp_path):
    picture = tmp_path / "picture.png"
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, str(example), str(picture)], cwd=tmp_path, env=environment, check=True)
    pixels = cv2.imread(str(picture))
    assert pixels is not None
    assert pixels.std() > 5.0  # not blank
