"""Requests and saved analyses are read by the strict reader, and tracks survive being saved."""

import json
import math
import shlex

import numpy as np
import pytest

from physvision.app.schema import (
    IdentifyRequest,
    Ruler,
    SavedAnalysis,
    SavedTrack,
    SimulateRequest,
    TrackRequest,
    read_request,
    to_json,
)
from physvision.core import InputError
from physvision.identification.command import build_parser
from physvision.perception import Track

REQUESTS = [TrackRequest, IdentifyRequest, SimulateRequest, SavedAnalysis]


def make_track(count=40):
    times = np.arange(count) / 30
    positions = np.stack([100 + 50 * np.sin(5 * times), 80 + 10 * np.cos(9 * times)], 1)
    observed = np.arange(count) != 7
    return Track(times, positions, np.where(observed, 0.1, np.inf), observed, radius=4.0, color=(1.0, 0.5, 0.0))


def saved(**changes):
    analysis = SavedAnalysis(1, "a.mp4", (320.0, 240.0), (SavedTrack.of(make_track()),), IdentifyRequest(), "pendulum")
    return {**json.loads(to_json(analysis)), **changes}


def test_a_saved_track_is_the_track():
    track = make_track()
    again = SavedAnalysis.read(json.dumps(saved())).tracks[0].track("track")
    assert np.array_equal(again.observed, track.observed)
    assert np.allclose(again.positions, track.positions, rtol=1e-6)
    assert np.allclose(again.times, track.times, rtol=1e-6)
    assert (again.radius, again.color, again.name) == (track.radius, track.color, track.name)


def hostile_texts():
    plain = ["", "null", "[]", "3", '"text"', "{", "\x00", "[" * 10_000, '{"a":' * 10_000, "NaN", '{"motion": NaN}']
    plain += [
        '{"motion": "a", "motion": "b"}',
        '{"__class__": "os.system"}',
        '{"class_path": "os.system", "init_args": {}}',
    ]
    plain += [json.dumps({"known": {"gravity": [1e400, 0]}}), json.dumps({"objects": list(range(5000))})]
    keys = ("crop", "start", "objects", "ruler", "known", "values", "click", "origin")
    values = ("<script>", [1.5], {"a": {"b": 1}}, [[[]]], True, "1; rm -rf /", {"class_path": "os.system"})
    plain += [json.dumps({key: value}) for key in keys for value in values]
    return plain


@pytest.mark.parametrize("kind", REQUESTS)
def test_hostile_requests_are_refused(kind):
    for text in hostile_texts()[1:]:
        with pytest.raises(InputError):
            read_request(kind, text)


@pytest.mark.parametrize(
    "changes",
    [
        {"physvision_analysis": 2},
        {"tracks": []},
        {"size": [0, 240]},
        {"size": [1e9, 240]},
        {"more": 1},
        {"motion": None},
        {"odds": {"pendulum": "1"}},
        {"tracks": [{**saved()["tracks"][0], "x": "1 2 3"}]},
        {"tracks": [{**saved()["tracks"][0], "x": saved()["tracks"][0]["x"].replace("100", "__import__('os')", 1)}]},
        {"tracks": [{**saved()["tracks"][0], "sigma": " ".join(["-1"] * 40)}]},
        {"tracks": [{**saved()["tracks"][0], "sigma": " ".join(["nan"] * 40)}]},
        {"tracks": [{**saved()["tracks"][0], "times": " ".join(["1"] * 40)}]},
        {"tracks": [{**saved()["tracks"][0], "times": " ".join(["0"] * 200_000)}]},
        {"tracks": [{**saved()["tracks"][0], "unit": "miles"}]},
    ],
)
def test_damaged_analyses_are_refused(changes):
    def read():
        return [track.track("track") for track in SavedAnalysis.read(json.dumps(saved(**changes))).tracks]

    with pytest.raises(InputError):
        read()


def test_a_ruler_gives_the_scale():
    ruler = Ruler((10.0, 10.0, 40.0, 50.0), 0.25, 0.005)
    scale = IdentifyRequest(ruler=ruler).known_values()["scale"]
    assert math.isclose(scale.value, 200)
    assert math.isclose(scale.std, 200 * 0.02)
    for points, length in (((1.0, 1.0, 1.0, 1.0), 1.0), ((0.0, 0.0, 1.0, 1.0), 0.0), ((0.0, 0.0, 1.0, 1.0), -1.0)):
        with pytest.raises(InputError, match="ruler"):
            IdentifyRequest(ruler=Ruler(points, length)).known_values()


def test_the_command_line_does_the_same():
    ruler = Ruler((10.0, 10.0, 40.0, 50.0), 0.25, 0.005)
    request = IdentifyRequest("pendulum", known={"gravity": (9.81, 0.01)}, ruler=ruler, fps=240.0, start=0.5, stop=2.0)
    words = shlex.split(request.command("it's; rm -rf.mp4", (1.0, 2.0, 3.0, 4.0), 1))
    options = build_parser().parse_args(words[2:])
    assert options.video == "it's; rm -rf.mp4"
    assert options.known == ["gravity=9.81±0.01"]
    assert options.scale == "10.00,10.00,40.00,50.00=0.25±0.005"
    assert (options.fps, options.start, options.stop, options.crop) == (240, 0.5, 2.0, "1,2,3,4")
