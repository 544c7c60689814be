"""The pendulum's states against mechanics written out by hand, its frames against its states."""

import math

import numpy as np
import pytest

from physvision.core import InputError
from physvision.datasets import PendulumRecipe


def joints(recipe, q):
    """Ends of the links in the plane of motion, from angles against the vertical: (frames, links + 1, 2), x and z."""
    turned = np.cumsum(q, axis=1)
    steps = np.asarray(recipe.lengths)[:, None] * np.stack([-np.sin(turned), -np.cos(turned)], axis=2)
    return np.concatenate([np.zeros((len(q), 1, 2)), np.cumsum(steps, axis=1)], axis=1)


def energy(recipe, q, v):
    """Rods of even mass: their centers' and their own rotation's kinetic energy, and their height's."""
    turned, rates = np.cumsum(q, axis=1), np.cumsum(v, axis=1)
    lengths, masses = np.asarray(recipe.links.lengths), np.asarray(recipe.links.masses)
    swing = lengths[:, None] * rates[..., None] * np.stack([-np.cos(turned), np.sin(turned)], axis=2)
    ends = np.concatenate([np.zeros((len(q), 1, 2)), np.cumsum(swing, axis=1)], axis=1)
    centers = 0.5 * (ends[:, 1:] + ends[:, :-1])
    kinetic = 0.5 * (masses * (centers**2).sum(2) + masses * lengths**2 / 12 * rates**2).sum(1)
    height = joints(recipe, q)
    return kinetic + (masses * recipe.gravity * 0.5 * (height[:, 1:, 1] + height[:, :-1, 1])).sum(1)


@pytest.mark.parametrize("lengths", [(3.0, 3.0, 3.0), (1.0, 5.0, 0.5), (2.0,), (1.0, 1.0, 1.0, 1.0)])
def test_energy_is_kept(lengths):
    recipe = PendulumRecipe(
        lengths=lengths, masses=tuple(1.0 + 0.5 * i for i in range(len(lengths))), samples=1, size=4
    )
    trial = recipe.make("train", 0)
    energies = energy(recipe, trial["q"], trial["v"])
    # Fourth order in steps of 2.5 ms: (rate · step)⁵ a step, rates of up to about 20 a second in the shortest link.
    scale = np.abs(energies).max() + recipe.gravity * sum(lengths)
    assert np.abs(energies - energies[0]).max() < 1e-4 * scale


def test_a_single_rod_swings_with_its_period():
    """A rod hinged at its end: ω² = 3 g / (2 l) for small angles."""
    recipe = PendulumRecipe(lengths=(3.0,), angle=0.01, speed=0.0, frames=400, samples=1, size=4)
    trial = recipe.make("train", 2)
    omega = math.sqrt(3 * 9.81 / (2 * 3.0))
    expected = trial["q"][0, 0] * np.cos(omega * 0.05 * np.arange(400))
    # The period grows by θ²/16, 6e-6 of it: 2e-4 rad of phase in 20 s.
    np.testing.assert_allclose(trial["q"][:, 0], expected, atol=0.01 * 3e-4)


def test_damping_takes_energy():
    recipe = PendulumRecipe(damping=2.0, samples=1, size=4)
    trial = recipe.make("train", 0)
    energies = energy(recipe, trial["q"], trial["v"])
    assert (np.diff(energies) < 1e-9).all()
    assert (trial["joint_damping"] == 2.0).all()


@pytest.mark.parametrize("lengths", [(3.0, 3.0, 3.0), (1.0, 4.0)])
def test_links_are_seen_where_their_states_say(lengths):
    """Each link's level at its middle, and its light centerd on its middle line; the projection is written out here."""
    recipe = PendulumRecipe(lengths=lengths, frames=40)
    trial = recipe.make("train", 0)
    distance = 4.0 * (sum(lengths) + recipe.radius)
    focal = 50.0 / (1.1 / 4.0)
    places = 50.0 + focal * joints(recipe, trial["q"]) * [1.0, -1.0] / distance
    levels = np.rint(255 * np.linspace(1.0, 0.4, len(lengths)))
    for frame in range(40):
        picture = trial["frames"][frame, ..., 0]
        for link, level in enumerate(levels):
            start, end = places[frame, link], places[frame, link + 1]
            rest = np.delete(places[frame], [link, link + 1], 0)
            middle = 0.5 * (start + end)
            if len(rest) and np.linalg.norm(rest - middle, axis=1).min() < 0.6 * np.linalg.norm(end - start):
                continue  # another link may lie in front
            column, row = np.floor(middle).astype(int)
            assert picture[row, column] == level
    light = trial["frames"][..., 0] > 0
    reach = places.reshape(40, -1, 2)
    margin = focal * recipe.radius / distance * 1.2 + 1
    for frame in range(40):
        rows, columns = np.nonzero(light[frame])
        assert columns.min() >= reach[frame, :, 0].min() - margin
        assert columns.max() <= reach[frame, :, 0].max() + margin
        assert rows.min() >= reach[frame, :, 1].min() - margin
        assert rows.max() <= reach[frame, :, 1].max() + margin


def test_a_hanging_rods_edges_are_averaged():
    """A rod that hangs still: as wide as its outline seen from the camera, to a tenth of a pixel."""
    recipe = PendulumRecipe(lengths=(6.0,), angle=0.0, speed=0.0, frames=1, samples=8)
    picture = recipe.make("train", 0)["frames"][0, ..., 0] / 255.0
    distance, focal = 4.0 * 6.35, 50.0 / (1.1 / 4.0)
    width = 2 * focal * 0.35 / math.sqrt(distance**2 - 0.35**2)
    assert picture[65].sum() == pytest.approx(width, abs=0.1)
    np.testing.assert_allclose(picture, picture[:, ::-1], atol=1e-9)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"lengths": (3.0, math.nan)}, r"lengths\[1\]: expected a finite number above 0, got nan"),
        ({"lengths": ()}, "one or more links"),
        ({"masses": (1.0, 1.0)}, "one for each of 3 links"),
        ({"dt": 0.0}, "dt"),
        ({"substeps": 0}, "substeps"),
        ({"damping": -1.0}, "damping"),
    ],
)
def test_values_that_make_no_sense_raise(values, match):
    with pytest.raises(InputError, match=match):
        PendulumRecipe(**values)
