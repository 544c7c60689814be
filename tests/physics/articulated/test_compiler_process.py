"""MuJoCo compiles model files in a process of limited memory and time, which is reused and replaced when it ends."""

import multiprocessing
import os
from dataclasses import replace

import numpy as np
import pytest

from physvision.core import ModelError
from physvision.physics import articulated
from physvision.physics.articulated import scenes
from physvision.physics.articulated.loading import model_files
from physvision.physics.articulated.loading.mujoco_compiler import CompilerRequest, compile_request

BODY = '<worldbody><body name="b"><joint type="hinge"/><geom size=".1"/></body></worldbody>'
INLINE = f"<mujoco>{BODY}</mujoco>"


@pytest.fixture
def process(monkeypatch):
    """Process of a second and a gigabyte, and compilation without the checks that come before."""
    limits = replace(model_files.SETTINGS, max_compiler_seconds=1, max_compiler_memory=1_500_000_000)
    monkeypatch.setattr(model_files, "SETTINGS", limits)
    process = model_files._CompilerProcess()
    yield process
    process.close()


def test_the_process_is_reused_and_its_models_are_those_of_mujoco():
    model, _ = model_files.compile_model(INLINE)
    running = model_files._process._process
    assert running is not None
    again, _ = model_files.compile_model(scenes.path("quadruped").read_text())
    assert model_files._process._process is running
    own, _ = model_files.compile_model(scenes.path("quadruped"))
    assert model.body(1).name == "b"
    for name in ("body_mass", "geom_size", "actuator_gainprm", "key_qpos"):
        np.testing.assert_array_equal(getattr(again, name), getattr(own, name))


def test_own_scenes_need_no_process(monkeypatch):
    monkeypatch.setattr(model_files, "_start", lambda: pytest.fail("a process was started"))
    monkeypatch.setattr(model_files, "_process", model_files._CompilerProcess())
    model_files.compile_model(scenes.path("arm"))


def test_a_model_that_takes_too_long_ends_its_process(process, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.xml").write_text(f'<mujoco><include file="pipe"/>{BODY}</mujoco>')
    process.compile(CompilerRequest(INLINE, is_inline=True))
    with pytest.raises(ModelError, match="takes more than 1 s"):
        process.compile(CompilerRequest(str(tmp_path / "a.xml"), is_inline=False))
    assert process.compile(CompilerRequest(INLINE, is_inline=True))


@pytest.mark.parametrize(
    "content",
    [
        '<size nuserdata="2000000000"/>',
        '<asset><texture name="t" type="2d" builtin="flat" width="30000" height="30000"/></asset>',
    ],
)
def test_a_model_that_takes_too_much_memory_is_refused(process, content):
    with pytest.raises(ModelError, match=r"needs more than 1\.5 GB|MuJoCo's compiler ended"):
        process.compile(CompilerRequest(f"<mujoco>{content}{BODY}</mujoco>", is_inline=True))
    assert process.compile(CompilerRequest(INLINE, is_inline=True))


def test_what_earlier_models_left_takes_nothing_from_a_model(process, monkeypatch):
    processes, ask = [], process._request

    def lacks_memory_once(request):
        processes.append(process._process)
        answer = ask(request)
        return ({"error": "MemoryError", "message": ""}, b"") if len(processes) == 2 else answer

    process.compile(CompilerRequest(INLINE, is_inline=True))
    monkeypatch.setattr(process, "_request", lacks_memory_once)
    processes.append(None)
    assert process.compile(CompilerRequest(INLINE, is_inline=True))
    assert processes[1] is not None
    assert processes[2] is None  # it was ended, and a fresh one asked


def test_files_that_include_each_other_end(process, tmp_path):
    for name, included in ("ab", "ba"):
        include = f'<include file="{included}.xml"/>'
        (tmp_path / f"{name}.xml").write_text(f"<mujoco>{include}{include}{BODY}</mujoco>")
    with pytest.raises(ModelError):
        process.compile(CompilerRequest(str(tmp_path / "a.xml"), is_inline=False))


def test_a_killed_process_is_replaced(process):
    process.compile(CompilerRequest(INLINE, is_inline=True))
    process._process.kill()
    process._process.wait()
    assert process.compile(CompilerRequest(INLINE, is_inline=True))


def test_an_interrupted_answer_reaches_no_later_request(process, monkeypatch):
    def interrupt(header):
        raise KeyboardInterrupt

    process.compile(CompilerRequest(INLINE, is_inline=True))
    with monkeypatch.context() as context:
        context.setattr(model_files.json, "loads", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process.compile(CompilerRequest("<mujoco/>", is_inline=True))
    binary = process.compile(CompilerRequest(INLINE, is_inline=True))
    assert model_files._load_binary(binary).nbody == compile_request(CompilerRequest(INLINE, is_inline=True)).nbody


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
def test_a_fork_has_a_process_of_its_own():
    articulated.load(INLINE)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_bodies, [INLINE] * 8) == [2] * 8
    assert _bodies(INLINE) == 2


def test_bodies_in_bodies_by_the_hundred_are_an_error():
    with pytest.raises(ModelError):
        articulated.load(f"<mujoco><worldbody>{'<body>' * 500}{'</body>' * 500}</worldbody></mujoco>")


def _bodies(source):
    return model_files.compile_model(source)[0].nbody
