"""The report opens from the disk in a browser: nothing is fetched, everything is drawn, the numbers can be read out."""

# pyright: reportAttributeAccessIssue=false

import json
import re
import shutil
import subprocess
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from prediction import rolling

from physvision.prediction import save

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

# Asks the page what a person would look for, and writes the answers into its title.
QUESTIONS = """
<script>
addEventListener("error", event => { window.failed = String(event.message); });
addEventListener("load", () => setTimeout(() => {
  const film = document.querySelector("video"), chart = document.querySelector("figure.chart");
  const box = chart.querySelector("svg").getBoundingClientRect();
  const at = { clientX: box.left + 0.7 * box.width, clientY: box.top + 50, bubbles: true };
  chart.querySelector("svg").dispatchEvent(new MouseEvent("mousemove", at));
  document.title = JSON.stringify({
    failed: window.failed ?? "", charts: document.querySelectorAll("figure.chart").length,
    ready: document.documentElement.dataset.ready, tip: chart.querySelector(".tip").innerText,
    shown: chart.querySelector(".tip").style.display, cursors: document.querySelectorAll(".cursor.on").length,
    plays: film.canPlayType('video/mp4; codecs="avc1.64001f"'), width: film.videoWidth, length: film.duration,
    fetched: performance.getEntriesByType("resource").map(each => each.name.slice(0, 60)),
    wide: document.documentElement.scrollWidth <= innerWidth,
  });
}, 500));
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    finished = []
    video = rolling.film(folder / "a <b> & c.mkv", 60)
    data = save(rolling.predictor(), video, folder, on_finish=lambda *results: finished.append(results))
    assert data.notes() == []
    ((final, paths),) = finished
    assert final is data
    assert folder / "report.html" in paths
    return folder / "report.html"


def test_the_page_holds_everything_itself(page):
    text = page.read_text()
    addresses = re.findall(r'(?:src|href)="([^"]{0,40})', text)
    assert addresses
    assert all(address.startswith(("data:video/mp4;base64,", "data:image/png;base64,")) for address in addresses)
    assert "http" not in re.sub(r'"data:[^"]*"', "", text)
    assert "a &lt;b&gt; &amp; c.mkv" in text
    assert "<b> & c" not in text
    for words in ("Predicted and observed motion", "Energy", "What happens next", "Physical parameters", "Settings"):
        assert f"<h2>{words}</h2>" in text
    assert "<td>mass</td><td>1 kg</td><td>assumed, given to the checkpoint</td>" in text
    assert text.count('<script type="application/json">') == text.count('<figure class="chart">')


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed; on Debian: apt install chromium")
def test_the_page_opens_in_a_browser(page, tmp_path):
    requested = tmp_path / "asked.html"
    requested.write_text(page.read_text().replace("<main>", QUESTIONS + "<main>"))
    browser = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    common = ["--window-size=1280,1800", "--hide-scrollbars", "--virtual-time-budget=6000"]
    dumped = subprocess.run(
        [*browser, *common, "--dump-dom", requested.as_uri()], capture_output=True, text=True, timeout=200
    )
    output = json.loads(re.search(r"<title>(\{.*?\})</title>", dumped.stdout)[1].replace("&amp;", "&"))
    assert output["failed"] == ""
    assert output["charts"] >= 6
    assert int(output["ready"]) == output["charts"]
    assert output["shown"] == "block"
    assert re.search(r"\d s\nred ball: [\d.]+ px", output["tip"])
    assert output["cursors"] >= 1
    assert output["wide"]
    assert all(name.startswith("data:") for name in output["fetched"])
    if output["plays"]:
        assert output["width"] > 1000
        assert abs(output["length"] - 58 / rolling.FPS) < 0.1
    picture = tmp_path / "page.png"
    subprocess.run(
        [*browser, *common, f"--screenshot={picture}", page.as_uri()], capture_output=True, timeout=200, check=True
    )
    observed = cv2.imread(str(picture))
    assert observed.shape[:2] == (1800, 1280)
    # The three colors of lines and the text are there, on the dark ground.
    for color in ((255, 115, 115), (115, 255, 115), (226, 232, 240), (14, 17, 24)):
        assert (np.abs(observed[..., ::-1].astype(int) - color).max(-1) < 24).sum() > 200


def test_objects_that_are_absent_have_no_results(tmp_path):
    """The second ball is found from frame 12 on, until then its slot is empty."""
    instance = rolling.predictor(horizon=0.25)
    observe, model = instance.model.encoder.observe, instance.model
    model.property_leaves = lambda properties: {"mass": properties["mass"]}
    present = torch.tensor([[1.0, float(index >= 10)] for index in range(28)])

    def observe_some(frames):
        count = len(frames)
        properties = {"present": present[:count], "mass": torch.tensor([[1.0, 7.0]]).expand(count, -1)}
        return replace(observe(frames), properties=properties)

    model.encoder.observe = observe_some
    data = save(instance, rolling.film(tmp_path / "film.mkv", 30), tmp_path / "later", force=True)
    rows = data.rows
    assert np.isfinite(rows["position"][:, 0]).all()
    np.testing.assert_array_equal(np.isfinite(rows["position"][:, 1, 0]), present[:, 1] > 0.5)
    np.testing.assert_array_equal(np.isfinite(rows["predicted_position"][:, 1, 0]), np.arange(28) >= 15)
    assert np.isfinite(rows["q"]).all()
    assert data.errors()["x"][0] < 0.2
    assert data.present_objects == [0, 1]
    present = torch.tensor([[1.0, 0.0]]).expand(28, -1)
    data = save(instance, tmp_path / "film.mkv", tmp_path / "never", force=True)
    assert data.present_objects == [0]
    assert {row.name: row.text for row in data.parameters}["mass"] == "1 kg"
    page = (tmp_path / "never" / "report.html").read_text()
    assert "red ball" in page
    assert "green ball" not in page
