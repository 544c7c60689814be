"""Parts of the application's page that tests of the browser act on."""

import base64
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest


class Application:
    """The command in a process of its own, with its address."""

    def __init__(self):
        command = [sys.executable, "-m", "physvision.cli", "open", "--no-browser"]
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"http://\S+", self.process.stdout.readline())[0]

    def worker(self):
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
        return int(children[0])


def drop(page, path):
    """Drop a file onto the page."""
    content = base64.b64encode(Path(path).read_bytes()).decode()
    page.evaluate(
        """([content, name]) => {
            const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name, { type: "video/mp4" }));
            document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        [content, Path(path).name],
    )


def look(page, name, full=True):
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=full)


def find_pendulum(page, scale=None):
    """Choose the pendulum, drag the ruler, and wait for the result."""
    page.wait_for_selector("#objects .object")
    page.select_option("#motion", "pendulum")
    find(page, scale)


def find(page, scale=None):
    """Drag the ruler, and wait for the result of the kind that is chosen."""
    if scale is not None:
        page.click("#ruler")
        drag_ruler(page, scale)
    page.click("#identify")
    page.wait_for_selector("#result:not([hidden]), #message:not([hidden])")
    assert page.is_visible("#result"), page.inner_text("#message")


def drag_ruler(page, scale):
    """Drag the second end of the ruler to the right, and type the length that the scale gives for it."""
    first, second = page.locator(".handle:visible").all()
    box = second.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    points = [list(map(int, re.findall(r"\d+", handle.get_attribute("aria-label")))) for handle in (first, second)]
    assert points[1][0] > points[0][0] + 128
    for _ in range(2):  # by the keyboard too
        second.press("ArrowRight")
    ends = [float(re.findall(r"\d+", handle.get_attribute("aria-label"))[0]) for handle in (first, second)]
    assert ends[1] - ends[0] == pytest.approx(points[1][0] - points[0][0] + 2, abs=1)
    page.fill("#ruler-length", f"{100 * exact_length(page) / scale:.4f}")


def exact_length(page):
    """Return the distance of the ruler's ends, pixels of the film, from where they are on the screen."""
    centers = [
        page.evaluate("(element) => element.style.left", handle.element_handle())
        for handle in page.locator(".handle:visible").all()
    ]
    pixels = [float(center.removesuffix("px")) for center in centers]
    return (pixels[1] - pixels[0]) * 320 / page.locator("#canvas").bounding_box()["width"]


def parameter(page, label):
    row = page.locator("#parameters tbody tr").filter(has=page.locator(f"th:text-is('{label}')"))
    return row if row.count() else page.locator("#parameters tbody tr").filter(has_text=re.compile(f"^{label}"))


def value(page, label):
    return float(parameter(page, label).locator("td.value").inner_text().split()[0])
