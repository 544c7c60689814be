"""Model files that would hang MuJoCo's compiler or take all memory are refused by name, at once."""

import os
import tracemalloc

import pytest

from physvision.core import InputError, ModelError, UnsupportedError
from physvision.physics import articulated
from physvision.physics.articulated.loading.sizes import check_sizes

BODY = '<worldbody><body><joint type="hinge"/><geom size=".1"/></body></worldbody>'


def write(folder, name, content):
    (folder / name).write_text(f"<mujoco>{content}</mujoco>")
    return folder / name


def test_files_that_include_each_other_are_refused(tmp_path):
    write(tmp_path, "a.xml", '<include file="b.xml"/><include file="b.xml"/>' + BODY)
    write(tmp_path, "b.xml", '<include file="a.xml"/><include file="a.xml"/>')
    with pytest.raises(ModelError, match="is included more than once"):
        articulated.load(tmp_path / "a.xml")


def test_an_include_through_a_folder_that_does_not_exist_is_checked(tmp_path):
    write(tmp_path, "a.xml", '<include file="nowhere/../big.xml"/>' + BODY)
    count = 1_000_000_000
    write(tmp_path, "big.xml", f'<worldbody><replicate count="{count}"><geom size=".1"/></replicate></worldbody>')
    with pytest.raises(ModelError, match=f"make {count} copies"):
        articulated.load(tmp_path / "a.xml")


@pytest.mark.parametrize("attribute", ["nuserdata", "nkey", "nuser_body"])
def test_sizes_are_bounded(attribute):
    with pytest.raises(ModelError, match="size '' has 2000000000 numbers"):
        articulated.load(f'<mujoco><size {attribute}="2000000000"/>{BODY}</mujoco>')
    with pytest.raises(ModelError, match="size '' has"):
        articulated.load(f'<mujoco><size memory="100T"/>{BODY}</mujoco>')
    check_sizes('<mujoco><size memory="500M" nuserdata="100" njmax="-1"/></mujoco>', None, "model")


@pytest.mark.parametrize(
    "content",
    [
        '<include file="pipe"/>',
        '<asset><mesh file="pipe"/></asset>',
        '<compiler meshdir="sub"/><asset><mesh file="../pipe"/></asset>',
        '<asset><hfield name="h" file="pipe" size="1 1 1 1"/></asset>',
    ],
)
def test_a_pipe_is_no_file(tmp_path, content):
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "a.xml", content + BODY)
    with pytest.raises(ModelError, match="is a pipe or a device"):
        articulated.load(tmp_path / "a.xml")


def test_nested_includes_are_read_as_mujoco_reads_them(tmp_path):
    write(tmp_path, "a.xml", '<include file="b.xml"/>')
    write(tmp_path, "b.xml", '<include file="c.xml"/>')
    write(tmp_path, "c.xml", BODY)
    assert articulated.load(tmp_path / "a.xml").nq == 1


def test_a_deep_file_is_walked_without_recursion():
    depth = 5000
    text = f"<mujoco><worldbody>{'<body>' * depth}{'</body>' * depth}</worldbody></mujoco>"
    check_sizes(text, None, "model")


def test_files_that_ask_for_too_much_are_refused_before_the_compiler_meets_them(tmp_path):
    """MuJoCo's compiler hangs on the first and crashes on the second."""
    many = '<replicate count="1000" offset="1 0 0"><replicate count="1000"><geom size="1"/></replicate></replicate>'
    model = f"<mujoco><worldbody><body><joint/>{many}</body></worldbody></mujoco>"
    with pytest.raises(ModelError, match="`replicate` elements make 1001000 copies"):
        articulated.load(model)
    field = '<mujoco><asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset></mujoco>'
    with pytest.raises(ModelError, match="hfield 'h' has 10000000000 numbers"):
        articulated.load(field)
    (tmp_path / "inner.xml").write_text(model)
    (tmp_path / "outer.xml").write_text('<mujoco><include file="inner.xml"/></mujoco>')
    with pytest.raises(ModelError, match=r"outer.xml: its `replicate`"):
        articulated.load(str(tmp_path / "outer.xml"))


def test_models_of_very_many_geoms_are_loaded_or_refused_at_once():
    geoms = '<geom size=".1" mass="1"/>' * 8000
    single, double = (f"<body><freejoint/>{geoms}</body>" * count for count in (1, 2))
    tracemalloc.start()
    try:
        assert articulated.load(f"<mujoco><worldbody>{single}</worldbody></mujoco>").nv == 6
        with pytest.raises(
            UnsupportedError, match=r"64,000,000 pairs of geoms may collide; expected at most 4,000,000"
        ):
            articulated.load(f"<mujoco><worldbody>{double}</worldbody></mujoco>")
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


def test_a_gear_beyond_all_numbers_is_refused():
    actuators = '<actuator><position joint="j" gear="1e308"/></actuator>'
    body = '<body><joint name="j"/><geom size=".1"/></body>'
    with pytest.raises(InputError, match=r"expected .*got"):
        articulated.load(f"<mujoco><worldbody>{body}</worldbody>{actuators}</mujoco>")
