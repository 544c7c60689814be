"""Intervals hold about as often as they say, on places that drawn clips would show."""

import pytest
from identification.drawn import tracks_of

from physvision.datasets.clips import draw
from physvision.identification import identify


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    inside = {"interval_68": [], "interval_95": []}
    for kind in ("spring", "circular", "roll"):
        for seed in range(6):
            clip = draw(kind, seed)
            told = {**clip.known, **{name: value for name, value in clip.options.items() if name == "scale"}}
            found = identify(
                tracks_of(clip, seed), kind, told, size=clip.filming.size, fps=clip.options.get("fps")
            ).parameters
            for name, each in found.items():
                if each.identifiable and name in clip.truth:
                    for share, held in inside.items():
                        low, high = getattr(each, share)
                        held.append(low <= clip.truth[name] <= high)
    # Parameters of one clip go together, so a clip counts as one: three deviations of 18 tries.
    for share, probability in (("interval_68", 0.68), ("interval_95", 0.95)):
        held = sum(inside[share]) / len(inside[share])
        assert abs(held - probability) < 3 * (probability * (1 - probability) / 18) ** 0.5, (share, held)
