"""The page of the viewer shows every kind of engine, and its buttons and sliders steer the simulation."""

import numpy as np
import pytest
import torch
from viewer.waiting import wait_for

from physvision.core import InputError
from physvision.viewer.opening import EXAMPLES, open_scene

pytest.importorskip("viser")

from physvision.viewer.server import Viewer
from physvision.viewer.session import Session


@pytest.fixture
def opened():
    viewers = []

    def open_viewer(scene, port=18080):
        engine, start, limits = open_scene(scene)
        viewers.append(Viewer(Session(engine, start), limits, port=port))
        return viewers[-1]

    yield open_viewer
    for viewer in viewers:
        viewer.close()


@pytest.mark.parametrize("scene", ["arm", "Pendulum", "cloth", "stack"])
def test_what_a_page_shows_moves_with_the_simulation(opened, scene):
    viewer = opened(scene)
    assert viewer.address.startswith("http://127.0.0.1:")
    placements = [np.array(handle.position) for handle, _ in viewer._view.handles]
    viewer.session.state.v[:] += 0.1
    # Servos would bring an arm back to where it was.
    viewer.session.control[:] = 0.3
    viewer._toggle()
    assert wait_for(lambda: viewer.session.time > 3 * viewer.session.engine.dt)
    viewer._toggle()
    with viewer._lock:
        viewer._refresh()
        poses, _ = viewer._renderer.frames(viewer.session.state)
    for handle, row in viewer._view.handles:
        np.testing.assert_allclose(np.array(handle.position), poses[0, row, :3, 3], atol=1e-5)
    moved = [np.array(handle.position) for handle, _ in viewer._view.handles]
    surfaces = len(viewer._view._deforming)
    assert surfaces or any(np.abs(a - b).max() > 1e-6 for a, b in zip(placements, moved, strict=True))


def test_a_pull_a_slider_and_a_property_reach_the_simulation(opened):
    viewer = opened("CartPole")
    viewer._set_control(0, 5.0)
    assert float(viewer.session.control[0]) == 5.0
    viewer._property.value = next(label for label, row in viewer._rows.items() if row[:2] == ("mass", 0))
    viewer._factor.value = 2.0
    viewer._scale_property()
    own = dict(viewer.session.engine.properties.items())["mass"].reshape(-1)[0]
    assert float(viewer.session.overrides["mass"].reshape(-1)[0]) == pytest.approx(2 * float(own))
    viewer._set_property(-1.0)
    assert "mass" in viewer._message.content
    viewer.pull(0)
    viewer._gizmo.position = (0.7, 0.0, 0.0)
    viewer._move_pull()
    assert viewer.session.pull.target.tolist() == pytest.approx([0.7, 0.0, 0.0])
    assert viewer._take_picture(0.1).shape == (240, 320, 3)


def test_a_click_on_a_rod_pulls_its_body(opened, tmp_path):
    """Bodies without shapes are rods, which come after the shapes and the bodies among the renderer's frames."""
    inertia = '<inertial pos="0 0 -.1" mass="1" diaginertia="1 1 1"/>'
    file = tmp_path / "leg.xml"
    file.write_text(f"""<mujoco><worldbody><geom type="plane" size="1 1 .1" pos="0 0 -2"/>
      <body name="thigh"><joint axis="0 1 0"/>{inertia}<body name="shin" pos="0 0 -.5"><joint axis="0 1 0"/>{inertia}
      <body name="foot" pos="0 0 -.5"><geom size=".1"/></body></body></body></worldbody></mujoco>""")
    viewer, pulled = opened(str(file)), []
    for _, row in viewer._view.handles:
        viewer._pull_frame(row)
        pulled.append((viewer._pulled.value, viewer.session.pull.body))
    assert set(pulled) == {("thigh", 0), ("shin", 1), ("foot", 2)}


def test_scenes_are_found_by_name_and_others_are_named(tmp_path):
    for name in EXAMPLES:
        engine, start, _ = open_scene(name)
        assert bool(torch.isfinite(engine.rollout(start, 2).final.q).all())
    engine, _, limits = open_scene("physvision/Pendulum-v0")
    assert limits == (2.0,)
    with pytest.raises(InputError, match=r"an environment \(Pendulum.*got 'nothing'"):
        open_scene("nothing")
