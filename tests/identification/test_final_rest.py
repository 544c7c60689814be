"""A long rest at the end of a clip, which says nothing more about the motion before it."""

import numpy as np
from identification.test_signatures import track

from physvision.identification.settings import TrackSettings
from physvision.identification.track_preparation import shorten_final_rest, trim_final_rest


def test_a_rest_is_used_for_half_as_long_as_the_motion_before_it():
    times = np.arange(300) / 30
    along = 80 * np.minimum(times, 2.0) * (4 - np.minimum(times, 2.0))
    (short,) = shorten_final_rest([track(times, np.stack([50 + along, 200 + 0 * along], 1), 0.1)], TrackSettings())
    last = times[short.observed][-1]
    # The last hundredth of the way counts as rest: it begins √0.01 · 2 s before the stop.
    assert abs(last - 1.5 * 1.8) < 0.1
    assert np.isinf(short.sigma[~short.observed]).all()


def test_nothing_is_cut_while_another_object_moves():
    times = np.arange(300) / 30
    resting = track(times, np.stack([50 + 80 * np.minimum(times, 1.0), 200 + 0 * times], 1), 0.1)
    moving = track(times, np.stack([50 + 40 * times, 300 + 0 * times], 1), 0.1, seed=1)
    assert all(part.observed.all() for part in shorten_final_rest([resting, moving], TrackSettings()))


def test_what_trembles_in_its_place_is_left_out_and_not_left_empty():
    times = np.arange(60) / 30
    stops = np.stack([50 + 80 * np.minimum(times, 1.0), 200 + 0 * times], 1)
    moving, trembling = track(times, stops, 0.1), track(times, np.full((60, 2), 90.0), 0.1, seed=1)
    (left,), notes = trim_final_rest([moving, trembling], TrackSettings())
    assert left.name == moving.name
    assert any("rests from" in note for note in notes)
    assert trim_final_rest([trembling], TrackSettings()) == ([trembling], [])
