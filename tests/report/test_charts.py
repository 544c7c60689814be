"""Charts draw the numbers they are given, and carry them for the page's script."""

import json
import re

import numpy as np
import pytest

from physvision.report import Curve, charts, path_chart, phase_chart, time_chart


def paths(text):
    return [
        [tuple(map(float, point.split())) for point in re.split("[ML]", result)[1:]]
        for result in re.findall(r'<path d="([^"]*)"', text)
    ]


def test_numbers_of_a_chart_are_those_it_draws():
    times, values = np.linspace(0, 2, 5), np.array([0.0, 1.0, np.nan, 3.0, 2.0])
    text = time_chart("height", "m", times, [Curve("ball", values, (1, 2, 3))])
    data = json.loads(re.search(r'json">(.*?)</script>', text)[1])
    assert data["values"] == [[0.0, 1.0, None, 3.0, 2.0]]
    # Two pieces, parted by what is missing; the ends of time are the ends of the frame.
    assert re.sub(r"[^ML]", "", re.search(r'<path d="([^"]*)"', text)[1]) == "MLML"
    left, right, top, bottom = data["frame"]
    (points,) = paths(text)
    assert points[0] == (left, bottom)
    assert points[-1][0] == right
    assert points[2][1] == top


def test_a_line_of_angles_does_not_cross_the_page_where_it_wraps():
    values = np.array([3.0, 3.1, -3.1, -3.0])
    text = time_chart("angle", "rad", np.arange(4.0), [Curve("link", values, (1, 2, 3))], wraps=True)
    assert re.sub(r"[^ML]", "", re.search(r'<path d="([^"]*)"', text)[1]) == "MLML"


def test_a_circle_in_the_phase_plane_is_closed_and_fills_its_frame():
    angle = np.linspace(0, 2 * np.pi, 73)
    circle = np.stack([np.sin(angle), 5 * np.cos(angle)], 1)
    text = phase_chart("phase", "angle, rad", "rate, rad/s", [Curve("link", circle, (1, 2, 3))])
    (points,) = paths(text)
    assert points[0] == points[-1]
    x, y = np.array(points).T
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', text).groups())
    assert np.ptp(x) > 0.8 * width
    assert np.ptp(y) > 0.8 * height
    assert "rate, rad/s over angle, rad" in text


def test_a_path_is_drawn_where_the_picture_has_it():
    observed = np.array([[10.0, 20.0], [12.0, 24.0], [np.nan, np.nan]])
    lines = [Curve("ball", observed, (1, 2, 3)), Curve("", observed[:2] + 5, (1, 2, 3), "dotted")]
    text = path_chart("paths", (64, 48), lines)
    assert 'points="10.00,20.00 12.00,24.00"' in text
    assert '<circle cx="15.00" cy="25.00"' in text
    assert text.count('class="key') == 1


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.2, 3.2), (1e-9, 2e-9), (99.0, 101.0), (-1e6, 0.0)])
def test_ticks_are_round_and_within(low, high):
    ticks = charts._ticks(low, high)
    assert 3 <= len(ticks) <= 8
    assert min(ticks) >= low - 1e-9 * abs(low)
    assert max(ticks) <= high + 1e-9 * abs(high)
