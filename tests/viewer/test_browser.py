"""In a browser the viewer shows a robot, runs, pulls, and asks nothing from other machines."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from viewer.waiting import wait_for

from physvision.viewer.opening import open_scene
from physvision.viewer.session import Session

pytest.importorskip("viser")
sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")

from physvision.viewer.server import Viewer  # noqa: E402

pytestmark = [
    pytest.mark.extended,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"),
]
CART = """<mujoco><option gravity="0 0 0"/><worldbody><body name="cart"><joint name="x" type="slide" axis="1 0 0"/>
  <geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody>
  <actuator><motor name="push" joint="x" ctrlrange="-2 2" ctrllimited="true"/></actuator></mujoco>"""


@pytest.fixture
def visit():
    """A function that opens the page of a scene in a window, and returns its viewer and the page."""
    viewers, foreign = [], []
    own = ("http://127.0.0.1", "ws://127.0.0.1", "http://localhost", "ws://localhost", "blob:", "data:")
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)

        def visit(scene, width, height):
            engine, start, limits = open_scene(scene)
            viewers.append(Viewer(Session(engine, start), limits, port=18090))
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(240_000)
            page.on("request", lambda request: request.url.startswith(own) or foreign.append(request.url))
            page.goto(viewers[-1].address)
            page.get_by_role("button", name="Run", exact=True).wait_for()
            return viewers[-1], page

        yield visit
        browser.close()
    for viewer in viewers:
        viewer.close()
    assert foreign == []


@pytest.mark.parametrize("scene", os.environ.get("PHYSVISION_VIEWED", "quadruped").split(","))
def test_a_page_shows_a_scene_and_its_buttons_work(visit, scene, tmp_path):
    """Screenshots go to PHYSVISION_SCREENSHOTS; PHYSVISION_VIEWED lists the scenes."""
    folder = Path(os.environ.get("PHYSVISION_SCREENSHOTS", tmp_path))
    viewer, page = visit(scene, 1000, 640)
    page.wait_for_timeout(10_000)  # of drawing by software
    first = page.screenshot(path=folder / f"{Path(scene).stem}.png")
    assert first.startswith(b"\x89PNG")
    page.get_by_role("button", name="Run", exact=True).click()
    assert wait_for(lambda: viewer.session.time >= 0.2)


def test_a_slider_and_a_drag_change_the_motion(visit, tmp_path):
    """A cart is pushed by its motor, and then pulled the other way by a spring whose end the mouse drags."""
    (tmp_path / "cart.xml").write_text(CART)
    viewer, page = visit(str(tmp_path / "cart.xml"), 1100, 360)
    session = viewer.session
    page.get_by_role("slider").nth(1).focus()  # the first one is the speed
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert wait_for(lambda: float(session.control[0]) > 0.3)
    page.get_by_role("button", name="Run", exact=True).click()
    assert wait_for(lambda: float(session.state.q[0, 0]) > 0.02)
    page.get_by_role("button", name="Pause", exact=True).click()
    assert wait_for(lambda: not session.running)
    page.get_by_role("button", name="Reset", exact=True).click()
    assert wait_for(lambda: session.time == 0)

    page.mouse.click(*pixel(viewer, page, (0, 0, 0)), delay=300)
    assert wait_for(lambda: session.pull is not None)
    for _ in range(3):  # a press before the handle is drawn turns the camera instead
        draw(page, 20)
        drag(viewer, page, np.add(session.pull.target, (0.12, 0, 0)), (-0.4, 0, 0))  # by the arrow along x
        if wait_for(lambda: session.pull.target[0] < -0.3, 20):
            break
    assert session.pull.target[0] < -0.3
    page.get_by_role("button", name="Run", exact=True).click()
    assert wait_for(lambda: float(session.state.q[0, 0]) < -0.2)


def draw(page, frames):
    """Wait until the page has drawn a number of frames, which may take a second each."""
    page.evaluate(
        "n => new Promise(end => { const tick = () => n-- ? requestAnimationFrame(tick) : end(); tick() })", frames
    )


def drag(viewer, page, begin, end):
    """Drag the mouse between two points of the world."""
    path = [pixel(viewer, page, begin + part * (np.asarray(end) - begin)) for part in np.linspace(0, 1, 9)]
    page.mouse.move(*path[0])
    draw(page, 4)
    page.mouse.down()
    for place in path[1:]:
        draw(page, 3)
        page.mouse.move(*place)
    draw(page, 4)
    page.mouse.up()


def pixel(viewer, page, point):
    """Where the page shows a point of the world, by the camera that the page states."""
    (client,) = viewer.server.get_clients().values()
    camera, box = client.camera, page.locator("canvas").first.bounding_box()
    turn = Rotation.from_quat(camera.wxyz, scalar_first=True)
    x, y, z = turn.inv().apply(np.asarray(point) - camera.position)
    focal = box["height"] / 2 / np.tan(camera.fov / 2)
    return box["x"] + box["width"] / 2 + focal * x / z, box["y"] + box["height"] / 2 + focal * y / z
