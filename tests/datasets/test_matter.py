"""Stirred dye against closed forms, the hanging block against its equilibrium, and both against their frames."""

# pyright: reportCallIssue=false

import numpy as np
import pytest

from physvision.core import InputError
from physvision.datasets import BlockRecipe, DyeRecipe
from physvision.datasets.block.elasticity import Block
from physvision.datasets.dye.spectral import Spectral


def test_a_vortex_fades_as_taylor_and_green_say():
    """ψ = sin x sin y is of one eigenvalue: it carries itself nowhere, and fades as e^(−2νt)."""
    solver, nu = Spectral(24, 0.05, 0.02), 0.05
    x, y = np.meshgrid(*(2 * [np.arange(24) * 2 * np.pi / 24]), indexing="ij")
    start = np.fft.fft2(np.stack([2 * np.sin(x) * np.sin(y), np.sin(x) * np.sin(y)]))
    end = solver.advance(start, 0.7, 30)
    np.testing.assert_allclose(end[0], start[0] * np.exp(-2 * nu * 0.7), atol=1e-7)
    # Dye that follows the stream lines is not carried either.
    np.testing.assert_allclose(end[1], start[1] * np.exp(-2 * 0.02 * 0.7), atol=1e-7)
    u, _ = solver.velocities(start)
    exact = np.sin(x[:, :1]) * (np.sin(y[:1] + 0.2) - np.sin(y[:1] - 0.2)) / 0.4  # the mean of cos y over 0.4
    wide = 0.4 * 24 / (2 * np.pi)
    np.testing.assert_allclose(solver.rectangle_means(u, 24, (0.0, 0.0), (0.0, wide)), exact, atol=1e-12)


def test_dye_is_what_frames_show_and_stays():
    recipe = DyeRecipe(trials=1, frames=3, size=24, modes=48)
    trial = recipe.make("train", 0)
    shown = trial["q"].reshape(3, 24, 24).transpose(0, 2, 1)[:, ::-1]
    assert np.abs(trial["frames"][..., 0] / 255 - shown).max() < 0.51 / 255
    np.testing.assert_allclose(trial["q"].sum(1), trial["q"][0].sum(), rtol=1e-12)
    u, v = trial["v"].reshape(3, 2, 24, 24).transpose(1, 0, 2, 3)
    np.testing.assert_allclose(np.roll(u, -1, 1) - u + np.roll(v, -1, 2) - v, 0.0, atol=1e-12)
    assert np.sqrt((u[0] ** 2 + v[0] ** 2).mean()) == pytest.approx(1.0, rel=0.02)
    energy = (trial["v"] ** 2).sum(1)
    assert (np.diff(energy) < 0).all()
    assert len(recipe.marks({name: value[0] for name, value in trial.items()})) == 64
    finer = DyeRecipe(trials=1, frames=3, size=24, modes=64).make("train", 0)
    np.testing.assert_allclose(trial["q"], finer["q"], atol=1e-6)
    with pytest.raises(InputError, match="substeps"):
        DyeRecipe(trials=1, frames=3, size=8, speed=400.0, substeps=1).make("train", 0)


def test_a_block_swings_about_its_equilibrium_and_is_drawn_where_it_is():
    pytest.importorskip("skfem")
    recipe = BlockRecipe(trials=1, frames=21, noise=0.0, size=48, dt=0.02)
    trial = recipe.make("train", 0)
    places = trial["q"].reshape(21, 3, 2)
    np.testing.assert_allclose(places[0], [[0.0, 0.0], [0.1, 0.0], [0.2, 0.0]], atol=1e-15)
    np.testing.assert_allclose(places[:, 0, 1], places[:, 2, 1], atol=5e-4)  # symmetric, but for the mesh's diagonals
    # It swings about its equilibrium: the mean over time t is off by 1/(ω t), at 35 rad/s by 0.7 %.
    block = Block(0.2, trial["modulus"][0], 0.3, 1000.0, 9.81)
    from scipy.sparse.linalg import spsolve

    still = np.zeros(block.num_dofs)
    still[block.free] = spsolve(block.stiffness.tocsc(), block.weight)
    middle = int(np.abs(block.nodes - [0.1, 0.0]).sum(1).argmin())
    moved, _ = block.motion(0.002, 2000, 5)
    assert moved[:, middle, 1].mean() == pytest.approx(still[block.nodal_dofs[middle, 1]], rel=0.01)
    # A mark's pixels, weighted by how green they are, have their center where it is.
    picture = trial["frames"][10] / 255.0
    green = np.clip(picture[..., 1] - picture[..., ::2].max(-1), 0, None)
    middles = np.arange(48) + 0.5
    observed = np.array([(green * middles).sum(), (green * middles[:, None]).sum()]) / green.sum()
    np.testing.assert_allclose(observed, recipe._pixels(places[10, 1]), atol=0.1)
    assert len(recipe.marks({name: value[0] for name, value in trial.items()})) == 3


@pytest.mark.parametrize(
    ("recipe", "given", "message"),
    [
        (DyeRecipe, {"size": 2}, "size"),
        (DyeRecipe, {"viscosity": (0.1, 0.01)}, "viscosity"),
        (DyeRecipe, {"dt": 0.0}, "dt"),
        (BlockRecipe, {"modulus": (0.0, 1e4)}, "modulus"),
        (BlockRecipe, {"ratio": 0.5}, "ratio"),
    ],
)
def test_nonsense_is_refused(recipe, given, message):
    with pytest.raises(InputError, match=message):
        recipe(**given)
