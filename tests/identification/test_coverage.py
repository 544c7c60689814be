"""Intervals hold about as often as they say, on places that drawn clips would show."""

import pytest
from identification.clip_tracks import tracks_of

from physvision.datasets.clips import draw
from physvision.identification import identify


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    inside = {"interval_68": [], "interval_95": []}
    for kind in ("spring", "circular", "roll"):
        for seed in range(6):
            clip = draw(kind, seed)
            known_values = {**clip.known, **{name: value for name, value in clip.options.items() if name == "scale"}}
            parameters = identify(
                tracks_of(clip, seed), kind, known_values, size=clip.filming.size, fps=clip.options.get("fps")
            ).parameters
            for name, parameter in parameters.items():
                if parameter.identifiable and name in clip.truth:
                    for interval, hits in inside.items():
                        low, high = getattr(parameter, interval)
                        hits.append(low <= clip.truth[name] <= high)
    # Parameters of one clip go together, so a clip counts as one: three deviations of 18 tries.
    for interval, probability in (("interval_68", 0.68), ("interval_95", 0.95)):
        hits = sum(inside[interval]) / len(inside[interval])
        assert abs(hits - probability) < 3 * (probability * (1 - probability) / 18) ** 0.5, (interval, hits)
