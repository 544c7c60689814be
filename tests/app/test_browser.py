"""The page in a browser: from a dropped film to a length, and what people do besides.

Screenshots are written to the folder that SCREENSHOTS names, to be looked at.
"""

import os
import re
import shutil
import signal
import statistics
import time
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pytest
from app.pages import Application, drop, find, find_pendulum, look, parameter, value

from physvision import video
from physvision.app.tasks import SAMPLE
from physvision.datasets.clips import KINDS, Filming, draw, film

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.extended,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; apt-get install chromium"),
]
PATIENCE = 400_000  # ms; machines that run tests are shared


@pytest.fixture(scope="module")
def application():
    application = Application()
    yield application
    application.process.send_signal(signal.SIGINT)
    assert application.process.wait(30) == 0


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """The sample clip: its path, its scale in pixels a meter, and the length of the pendulum in m."""
    sample = draw(*SAMPLE)
    return sample.write(tmp_path_factory.mktemp("film") / "bob.mp4"), sample.view.scale, sample.truth["length"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, application):
    """A function that opens the page; nothing may leave this machine, and no script may fail."""
    contexts, faults = [], []

    def record(request):
        host = urlsplit(request.url).hostname
        if request.url.startswith("http") and host != "127.0.0.1":
            faults.append(request.url)

    def visit(width=1400, height=900, scheme="dark", path=""):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=width < 600
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("request", record)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(application.address + path)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not faults


def test_from_a_dropped_film_to_a_length(visit, application, clip):
    path, scale, length = clip
    page = visit()
    look(page, "start")
    start = time.perf_counter()
    drop(page, path)
    page.wait_for_selector("#objects .object")
    print(f"tracks after {time.perf_counter() - start:.1f} s")
    page.click("#objects input")
    assert not page.is_checked("#objects input")
    page.click("#identify")
    page.wait_for_selector("#message:not([hidden])")
    assert "choose at least one" in page.inner_text("#message")
    page.click("#objects input")
    find_pendulum(page, scale)
    assert value(page, "length") == pytest.approx(length, rel=0.01)
    low, high = re.findall(r"[\d.]+", parameter(page, "length").locator("td").nth(1).inner_text())[-2:]
    assert float(low) < length < float(high)
    look(page, "result")
    try_sliders(page)
    look(page, "what_if")
    page.click("#reset")
    assert value(page, "length") == pytest.approx(length, rel=0.01)
    export(page, application)
    reopen(visit, page, application, path, length)


def try_sliders(page):
    before = page.evaluate("document.querySelector('#canvas').toDataURL()")
    slider = parameter(page, "length").locator("input[type=range]")
    slider.focus()
    length, period = value(page, "length"), value(page, "period")
    for _ in range(25):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
    page.wait_for_selector("#reset:not([disabled])")
    page.wait_for_timeout(1000)
    assert value(page, "length") > 1.05 * length
    ratio = (value(page, "period") / period) ** 2 / (value(page, "length") / length)
    assert ratio == pytest.approx(1, abs=0.01)  # gravity stays
    assert page.evaluate("document.querySelector('#canvas').toDataURL()") != before
    print(f"slider redraws in {statistics.median(page.evaluate('window.physvisionTimings')):.0f} ms at the median")


def export(page, application):
    page.click("#export")
    page.wait_for_selector("#files li:nth-child(9)")
    for link in page.locator("#files a").all():
        answer = page.request.get(application.address.rstrip("/") + link.get_attribute("href"))
        assert answer.ok
        assert len(answer.body()) > 100, link.inner_text()
    assert "--motion pendulum --scale" in page.inner_text("#command")
    with page.expect_popup() as popup:
        page.click("#files a:has-text('report.html')")
    popup.value.wait_for_load_state()
    assert "identified motion" in popup.value.inner_text("h1")
    popup.value.close()


def reopen(visit, page, application, film, length):
    """Save the analysis, open it in another tab, and add its film."""
    link = page.get_attribute("#files a:has-text('analysis.json')", "href")
    saved = film.with_name("analysis.json")
    saved.write_bytes(page.request.get(application.address.rstrip("/") + link).body())
    second = visit()
    second.set_input_files("#saved", saved)
    second.wait_for_selector("#result:not([hidden])")
    assert value(second, "length") == pytest.approx(length, rel=0.01)
    second.set_input_files("#attach-file", film)
    second.wait_for_selector("#thumbs img")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.mp4", b"These are the notes of a lesson, not a film. " * 9, "no film"),
        ("empty.mp4", b"", "empty"),
        ("<img src=x onerror=alert(1)>.mp4", b"\0\0\0\x18ftypmp42" + os.urandom(4000), "not a video"),
        ("analysis.json", b'{"physvision_analysis": 9}', "missing key"),
    ],
)
def test_what_is_no_film_is_refused_with_the_reason(visit, tmp_path, name, content, message):
    page = visit()
    path = tmp_path / name
    path.write_bytes(content)
    drop(page, path)
    page.wait_for_selector("#message:not([hidden])")
    assert message in page.inner_text("#message")


def test_a_film_in_which_nothing_moves_is_refused_with_the_reason(visit, tmp_path):
    page = visit()
    page.set_input_files("#file", video.write(tmp_path / "still.mp4", np.full((30, 48, 64, 3), 90, np.uint8), 30))
    page.wait_for_selector("#message:not([hidden])")
    assert "moves" in page.inner_text("#message")


def test_cancel_two_tabs_and_a_killed_worker(visit, application, clip):
    pages = [visit(), visit()]
    for page in pages:
        page.set_input_files("#file", clip[0])
    for page in pages:
        page.wait_for_selector("#objects .object")
        page.click("#identify")  # all kinds
    pages[0].wait_for_selector("#cancel:visible")
    pages[0].click("#cancel")
    pages[0].wait_for_selector("#message:not([hidden])")
    assert "Canceled" in pages[0].inner_text("#message")
    pages[1].wait_for_selector("#stage:has-text('fitting')")
    os.kill(application.worker(), signal.SIGKILL)
    pages[1].wait_for_selector("#message:not([hidden])")
    assert "SIGKILL" in pages[1].inner_text("#message")
    assert pages[1].locator("#objects .object").count() == 1
    find_pendulum(pages[1])  # by the next worker, from the tracks of the killed one
    page = visit()
    page.click("#sample")
    page.wait_for_selector("#objects .object")


def test_an_own_scene_finds_gravity(visit, clip, tmp_path):
    """The scene is the pendulum of the film under another gravity, which is chosen as unknown."""
    path, scale, length = clip
    scene = tmp_path / "bob.xml"
    scene.write_text(f"""<mujoco><option gravity="0 0 -7"/><worldbody><body pos="0 0 1">
      <joint name="hinge" axis="0 1 0"/><geom type="sphere" size=".001" pos="0 0 {-length}"/>
      </body></worldbody></mujoco>""")
    page = visit()
    drop(page, path)
    page.wait_for_selector("#objects .object")
    page.set_input_files("#scene-file", scene)
    page.wait_for_selector("#scene-unknown input", state="attached")
    page.click("#identify")
    page.wait_for_selector("#message:not([hidden])")
    assert "at least one property" in page.inner_text("#message")
    page.check("#scene-unknown input[value='gravity:z']")
    find(page, scale)
    assert value(page, "gravity:z") == pytest.approx(-9.81, rel=0.01)
    assert "--motion bob.xml --unknown gravity:z" in page.inner_text("#command")
    look(page, "own_scene")


def test_a_phone_and_both_themes(visit, clip):
    from axe_playwright_python.sync_playwright import Axe

    for width, height, scheme in ((390, 844, "dark"), (390, 844, "light"), (1400, 900, "light")):
        page = visit(width, height, scheme)
        check_accessibility(Axe(), page)
        page.set_input_files("#file", clip[0])
        find_pendulum(page)
        page.click("#axes")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 24)"
        assert dark == (scheme == "dark")
        check_accessibility(Axe(), page)
        look(page, f"{width}_{scheme}")
        if width == 390:
            pinch(page)


def pinch(page):
    """Spread two fingers on the first plot: it shows less time, about the same middle."""
    chart = page.locator("#plots canvas").first
    chart.evaluate("(element) => element.scrollIntoView({ block: 'end' })")  # below the film, which stays on top
    box = chart.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)

    def fingers(kind, *offsets):
        points = [{"x": x + offset, "y": y, "id": number} for number, offset in enumerate(offsets)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    low, high = page.evaluate("window.physvisionPlots.range")
    fingers("touchStart", -30, 30)
    for step in range(1, 7):
        fingers("touchMove", -30 - 10 * step, 30 + 10 * step)
    fingers("touchEnd")
    shown = page.evaluate("window.physvisionPlots.range")
    assert (high - low) / (shown[1] - shown[0]) == pytest.approx(3, rel=0.2)
    assert sum(shown) / 2 == pytest.approx((low + high) / 2, abs=0.1 * (high - low))


def check_accessibility(axe, page):
    violations = axe.run(page).response["violations"]
    serious = [entry for entry in violations if entry["impact"] in ("serious", "critical")]
    assert not serious, [(entry["id"], [node["html"] for node in entry["nodes"]]) for entry in serious]


def test_everything_by_keyboard_alone(visit, clip):
    page = visit()
    tab_to(page, "sample")
    page.keyboard.press("Enter")
    page.wait_for_selector("#objects .object")
    page.focus("#main")
    tab_to(page, "canvas")
    for key, frame in (("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("PageDown", 12)):
        page.keyboard.press(key)
        assert f"· {frame}/" in page.inner_text("#clock")
    tab_to(page, "trim-high")
    page.keyboard.press("ArrowLeft")
    tab_to(page, "ruler")
    page.keyboard.press("Space")
    page.keyboard.type("12.8")
    tab_to(page, "motion")
    page.keyboard.type("pend")
    tab_to(page, "identify")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result:not([hidden])")
    assert value(page, "length") > 0


def tab_to(page, name):
    for _ in range(60):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} is not reached by the tab key")


def test_tracks_appear_while_they_are_found(visit, tmp_path):
    """A pendulum of ten seconds in 720p; the times are printed, not judged."""
    motion = KINDS["pendulum"](np.random.default_rng(3))
    clip = film(replace(motion, duration=10.0), Filming(size=(1280, 720), fps=30)).write(tmp_path / "long.mp4")
    first = visit()
    first.click("#sample")  # until the worker runs
    first.wait_for_selector("#objects .object")
    page = visit()
    page.set_input_files("#file", clip)
    start = time.perf_counter()
    page.wait_for_selector("#preview")
    print(f"tracks begin to appear after {time.perf_counter() - start:.1f} s", end=", ")
    look(page, "preview")
    counts = []
    while not page.locator("#objects .object").count():
        counts.append(page.evaluate("Number(document.getElementById('preview')?.dataset.points ?? 0)"))
        page.wait_for_timeout(100)
    lengths = sorted(set(filter(None, counts)))
    assert len(lengths) > 2  # longer and longer
    print(f"all of them are there after {time.perf_counter() - start:.1f} s")


def test_the_first_paint(browser):
    """The time is printed, not judged."""
    times = []
    for _ in range(5):
        application = Application()
        page = browser.new_page()
        page.goto(application.address)
        page.wait_for_selector("#sample")
        times.append(time.perf_counter() - application.begin)
        page.close()
        application.process.send_signal(signal.SIGINT)
        application.process.wait(30)
    print(f"first paint {statistics.median(times):.2f} s after the command, median of five")


def test_cards_of_checkpoints_are_shown_as_markdown(visit, clip):
    page = visit()
    drop(page, clip[0])
    page.wait_for_selector("#checkpoint option[value='billiards-1']", state="attached")
    page.evaluate("() => { const s = document.getElementById('checkpoint'); s.value = 'billiards-1'; s.onchange(); }")
    assert page.locator("#card code").all_text_contents()[0] == "trainers/billiards-1.yaml"
    text = page.evaluate("() => document.getElementById('card').textContent")
    assert "as billiards-3, whose" in text
    assert "`" not in text
