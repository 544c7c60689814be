"""The part of a clip that a law was fitted to: nothing is drawn, written or charted after its end."""

import csv
import json
import re

import pytest
from identification.clip_tracks import throw_at_a_wall

from physvision.identification import identify
from physvision.identification.output import save_results

IMPACT = 0.7  # s


@pytest.fixture(scope="module")
def result():
    return identify([throw_at_a_wall()], "projectile", {"gravity": 9.81}, size=(432, 240))


def test_a_warning_names_the_part_that_was_fitted(result):
    start, end = result.span
    assert 0.25 < start < 0.4
    assert IMPACT - 0.03 < end < IMPACT + 0.015
    (warning,) = [text for text in result.warnings if "do not follow the law" in text]
    assert f"Fitted from {start:.2f} to {end:.2f} s" in warning


def test_columns_and_charts_end_with_the_last_sample_that_was_used(result, tmp_path):
    save_results(result, tmp_path, [throw_at_a_wall()], draw_video=False)
    with (tmp_path / "states.csv").open() as file:
        rows = list(csv.DictReader(file))
    filled = [float(row["time_s"]) for row in rows if row["ball_fitted_y_px"]]
    assert filled[0] == pytest.approx(result.span[0], abs=1e-6)
    assert filled[-1] == pytest.approx(result.span[1], abs=1e-6)
    assert len(rows) == 480
    page = (tmp_path / "report.html").read_text()
    charts = [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', page)]
    assert max(time for chart in charts for time in chart["t"]) <= IMPACT + 0.015
    heights = [chart for chart in charts if any("fitted" in name for name in chart["names"])]
    assert max(value for chart in heights for row in chart["values"] for value in row if value is not None) < 432
    assert json.loads((tmp_path / "parameters.json").read_text())["fitted_span_s"] == pytest.approx(result.span)
