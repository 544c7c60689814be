"""In a browser the viewer shows a robot, runs, pulls, and asks nothing from other machines."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from physvision.viewer.opening import open_scene
from physvision.viewer.session import Session

pytest.importorskip("viser")
sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")

from physvision.viewer.server import Viewer  # noqa: E402


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
@pytest.mark.parametrize("scene", os.environ.get("PHYSVISION_VIEWED", "quadruped").split(","))
def test_a_page_shows_a_scene_and_its_buttons_work(scene, tmp_path):
    """Screenshots go to PHYSVISION_SCREENSHOTS; PHYSVISION_VIEWED lists the scenes."""
    folder = Path(os.environ.get("PHYSVISION_SCREENSHOTS", tmp_path))
    engine, start, limits = open_scene(scene)
    viewer = Viewer(Session(engine, start), limits, port=18090)
    foreign = []
    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page(viewport={"width": 1000, "height": 640})
        own = ("http://127.0.0.1", "ws://127.0.0.1", "http://localhost", "ws://localhost", "blob:", "data:")
        page.on("request", lambda request: request.url.startswith(own) or foreign.append(request.url))
        page.goto(viewer.address)
        run = page.get_by_role("button", name="Run", exact=True)
        run.wait_for(timeout=240_000)
        time.sleep(10)
        first = page.screenshot(path=folder / f"{Path(scene).stem}.png")
        pixels = np.array(list(first[:4]))
        run.click(timeout=120_000)
        end = time.monotonic() + 60
        while viewer.session.time < 0.2 and time.monotonic() < end:
            time.sleep(0.1)
        browser.close()
    moved = viewer.session.time
    viewer.close()
    assert pixels.tolist() == [0x89, 0x50, 0x4E, 0x47]
    assert moved >= 0.2
    assert foreign == []
