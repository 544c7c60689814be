"""The work of loading a model file grows with its bodies, not with the pairs of them."""

import sys

import pytest

from physvision.physics import articulated
from physvision.physics.articulated import scenes


def calls_of_loading(source):
    """Number of calls of Python functions while a model is loaded."""
    articulated.load(source)
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        articulated.load(source)
    finally:
        sys.setprofile(None)
    return count


def free_spheres(count):
    bodies = "".join(f'<body pos="{k} 0 1"><freejoint/><geom size=".1"/></body>' for k in range(count))
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


def motors(count):
    """A row of hinges with servos, whose torque is limited at the joint."""
    body = '<body pos="{0} 0 0"><joint name="j{0}" actuatorfrcrange="-1 1"/><geom size=".1" contype="0"/></body>'
    bodies = "".join(body.format(k) for k in range(count))
    servos = "".join(f'<position joint="j{k}" kp="1" forcerange="-1 1"/>' for k in range(count))
    return f"<mujoco><worldbody>{bodies}</worldbody><actuator>{servos}</actuator></mujoco>"


@pytest.mark.parametrize("model", [free_spheres, motors])
def test_loading_is_linear(model):
    first, last = (calls_of_loading(model(count)) for count in (25, 100))
    assert last < 4.2 * first


def test_ten_quadrupeds_take_ten_times_the_work_of_one():
    assert calls_of_loading(scenes.path("ten_quadrupeds")) < 12 * calls_of_loading(scenes.path("quadruped"))
