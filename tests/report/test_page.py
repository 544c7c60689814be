"""A page escapes what it is told, is written whole or not at all, and its folder keeps no leftovers."""

import os
import subprocess

import numpy as np
import pytest

from physvision.core import FileError
from physvision.core.files import partial
from physvision.report import OutputFolder, Page, ParameterRow, image_strip, parameter_table, table


def test_texts_are_escaped_and_markup_is_not(tmp_path):
    page = Page("a <b> & c", introduction="said < heard", notes=["mind > gap"])
    page.section("Numbers < 3", table([["<i>", 5]], ["name", "n"]), text="x < y")
    page.section("Empty")
    text = page.write(tmp_path / "report.html").read_text()
    for words in ("A &lt;b&gt; &amp; c", "said &lt; heard", "mind &gt; gap", "Numbers &lt; 3", "x &lt; y"):
        assert words in text
    assert "<td>&lt;i&gt;</td><td>5</td>" in text
    assert "Empty" not in text
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_a_parameter_is_shown_with_its_interval_and_origin():
    fitted = ParameterRow("length", [1.23456789], "m", "measured in this clip", (1.2, 1.27))
    assumed = ParameterRow("gravity", [9.81], "m/s²", "assumed")
    text = parameter_table([fitted, assumed])
    assert "<td>length</td><td>1.2346 m</td><td>1.2 to 1.27</td><td>measured in this clip</td>" in text
    assert "<td>9.81 m/s²</td><td>–</td><td>assumed</td>" in text
    assert "95 % interval" in text
    assert "interval" not in parameter_table([assumed])


def test_pictures_lie_in_the_page_itself():
    text = image_strip({"1 s": np.zeros((4, 4, 1), np.uint8), "2 s": np.zeros((4, 4, 3), np.uint8)})
    assert text.count('src="data:image/png;base64,') == 2


def test_a_folder_that_was_made_for_nothing_goes_again(tmp_path):
    with pytest.raises(ZeroDivisionError), OutputFolder(tmp_path / "a" / "b") as folder:
        raise ZeroDivisionError(folder)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError), OutputFolder(tmp_path / "a") as folder:
        raise ZeroDivisionError((folder / "kept").write_text(""))
    assert (tmp_path / "a" / "kept").exists()


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    mine = partial(tmp_path / "states.csv")
    theirs = mine.with_name(mine.name.replace(f"-{os.getpid()}.", f"-{dead.pid}."))
    elsewhere = theirs.with_name(f".states.another-machine-{dead.pid}.partial.csv")
    for item in (mine, theirs, elsewhere, tmp_path / ".partial", tmp_path / ".hidden.csv"):
        item.write_text("half")
    with OutputFolder(tmp_path):
        pass
    assert not theirs.exists()
    assert {item.name for item in tmp_path.iterdir()} == {mine.name, elsewhere.name, ".partial", ".hidden.csv"}


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    for path, match in ((tmp_path / "file", "cannot be made a folder"), ("/proc/self/task", "cannot be written to")):
        with pytest.raises(FileError, match=match), OutputFolder(path):
            pass
