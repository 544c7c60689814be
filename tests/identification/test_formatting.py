"""Numbers are rounded by their error."""

import pytest

from physvision.identification.formatting import describe_odds, describe_rivals, in_degrees, round_to_interval
from physvision.identification.parameters import Parameter


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ((1.28463, 1.28412, 1.28521), ("1.28463", "1.28412", "1.28521")),
        ((9.8123, 8.9, 10.7), ("9.81", "8.90", "10.70")),
        ((0.0, 0.0, 2.7756e-17), ("0", "0", "2.8e-17")),
        ((43712.3, 41000.0, 46000.0), ("43700", "41000", "46000")),
        ((-1e-12, -0.5, 0.5), ("0.00", "-0.50", "0.50")),
    ],
)
def test_two_digits_of_the_error_are_shown(numbers, texts):
    assert round_to_interval(*numbers) == texts


def test_angles_are_shown_in_degrees_too():
    angle = Parameter(0.5236, "rad", (0.52, 0.527), (0.5161, 0.5309))
    assert in_degrees(angle) == "  (30.00°, 29.57 to 30.42°)"
    assert in_degrees(Parameter(1.0, "m", (0.9, 1.1), (0.8, 1.2))) == ""


def test_rivals_are_listed_with_their_odds():
    assert describe_rivals("roll", {"roll": 1.0, "slide": 0.5, "spring": 1 / 2417, "pendulum": 1e-30}) == (
        "slide 1 : 2, spring 1 : 2,400"
    )
    assert describe_rivals("roll", {"roll": 1.0}) == "none"
    assert describe_odds(1.0) == "1 : 1"
