"""Neither the shadow beside a thing nor what it hangs on draws its middle aside."""

import numpy as np
import pytest

from physvision.perception.refinement import Localizer, Target

WALL, BALL = np.array([200.0, 190.0, 195.0]), np.array([210.0, 40.0, 30.0])
RADIUS = 11.0
MIDDLE = np.array([40.3, 38.7])
ROWS, COLUMNS = np.mgrid[:80, :80] + 0.5


def _covered(middle, radius, soft=1.0):
    """The share of each pixel that a disc covers."""
    return np.clip(0.5 + (radius - np.hypot(COLUMNS - middle[0], ROWS - middle[1])) / soft, 0, 1)[..., None]


def _localize(picture):
    behind = np.broadcast_to(WALL, picture.shape).astype(np.float32)
    target = Target(np.arange(3.0), np.tile(MIDDLE, (3, 1)), BALL, 2 * RADIUS)
    localizer = Localizer(behind, np.full(picture.shape[:2], 12.0))
    return localizer.detect(np.round(picture).astype(np.uint8), 1, target, ())


@pytest.mark.parametrize("spoiled", ["shadow", "string"])
def test_a_ball_is_where_it_is_whatever_lies_beside_it(spoiled):
    """Its place to a tenth of a pixel, its radius to what is told of it; the string is as dark as the ball."""
    picture = np.broadcast_to(WALL, (80, 80, 3))
    if spoiled == "shadow":
        picture = picture * (1 - 0.25 * _covered(MIDDLE + np.array([4, 15]), RADIUS, soft=5.0))
    else:
        string = (np.abs(COLUMNS - MIDDLE[0]) < 1) & (MIDDLE[1] > ROWS)
        picture = np.where(string[..., None], [90.0, 80.0, 70.0], picture)
    ball = _covered(MIDDLE, RADIUS)
    result = _localize(picture * (1 - ball) + BALL * ball)
    assert result is not None
    assert np.abs(result.position - MIDDLE).max() < 0.1
    assert np.sqrt(result.area / np.pi) == pytest.approx(RADIUS, abs=0.16)
