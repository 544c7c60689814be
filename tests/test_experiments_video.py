"""The claims of experiments with videos hold, on smaller runs than theirs."""

# MuJoCo's compiled module does not tell type checkers what it holds.
# pyright: reportAttributeAccessIssue=false

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from physvision import video
from physvision.datasets import BilliardsRecipe, BlockRecipe, DyeRecipe, PendulumRecipe, generate


@pytest.fixture(autouse=True)
def experiments(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "experiments")
    monkeypatch.setenv("PHYSVISION_CLAIMS", str(tmp_path / "claims"))


def test_metrics_of_a_card_are_measured_through_the_command(tmp_path, monkeypatch, capsys):
    module = import_module("predict_cards")
    monkeypatch.setattr(module, "HORIZONS", {"pendulum": (0.5,)})
    recipe = PendulumRecipe(trials=10, frames=40, seed=1)
    monkeypatch.setitem(module.demo.CLIPS, "pendulum", (lambda fps: recipe, 0.5))
    results = module.main(["pendulum"], videos=1, out=tmp_path)
    assert float(results["pendulum", 0.5]["position now"].max()) < 0.05
    assert float(results["pendulum", 0.5]["reprojection score"].min()) > 0.5
    assert "reprojection score" in capsys.readouterr().out
    assert (tmp_path / "predict_cards.png").stat().st_size > 10_000


def test_pendulums_part_on_film(tmp_path, monkeypatch, capsys):
    module = import_module("chaotic_pendulums")
    monkeypatch.setattr(module, "SECONDS", 1)
    monkeypatch.setattr(module, "STILL", 0.5)
    module.main(tmp_path / "new")
    film, picture = tmp_path / "new" / "pendulum.mp4", tmp_path / "new" / "pendulum.png"
    assert str(film) in capsys.readouterr().out
    clip = video.read(film)
    assert clip.frames.shape == (31, 640, 640, 3)
    moved = (clip.frames[0].int() - clip.frames[-1].int()).abs().amax(-1)
    assert (moved > 50).float().mean() > 0.01
    assert picture.stat().st_size > 10_000


def test_moduli_and_viscosities_are_found_in_videos(tmp_path, monkeypatch):
    """On coarser meshes and grids, whose errors are larger."""
    block = import_module("soft_video")
    monkeypatch.setattr(block, "GUESSES", (1e4, 2e4, 6))
    monkeypatch.setattr(block, "BlockRecipe", lambda: BlockRecipe(size=48, frames=15))
    assert block.main(trials=1, squares=(3, 6), out=tmp_path)
    dye = import_module("fluids")
    monkeypatch.setattr(dye, "DyeRecipe", lambda **given: DyeRecipe(**given | {"frames": 6, "modes": 48}))
    monkeypatch.setattr(dye, "BARS", {"viscosity": 0.1})
    assert dye.viscosity(1, 0, tmp_path, size=24, fineness=(1,))


@pytest.mark.extended
def test_losses_of_billiards_are_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    module = import_module("billiards_losses")
    selected = ("squares of pixels", "network, absolute errors, no losses of states")
    monkeypatch.setattr(module, "VARIANTS", {name: module.VARIANTS[name] for name in selected})
    data = generate(BilliardsRecipe(trials=20, frames=60), tmp_path / "data", workers=1, progress=False)
    rows = module.main(updates=2, batches=2, data=data, runs=tmp_path / "runs")
    assert set(rows) == {"encoder alone", *selected}
    assert all(np.isfinite(value) for row in rows.values() for value in row.values())


def test_failures_are_named(tmp_path, monkeypatch):
    module = import_module("failures")
    monkeypatch.setattr(module, "HORIZONS", (0.25, 1.0))
    assert module.main(tmp_path)
    assert (tmp_path / "failures.png").stat().st_size > 10_000


def test_augmented_patches_show_a_ball_where_they_say_that_it_is():
    """A blob in a patch is turned, mirrored, scaled and displaced with what is said of it."""
    places = import_module("ball_places")
    torch.manual_seed(0)
    side, count = 2 * places.REACH + 1, 64
    at = torch.arange(side) - float(places.REACH)
    place = 2.0 * torch.randn(count, 2)
    columns, rows = at - place[:, :1], at - place[:, 1:]
    blob = torch.exp(-(rows[:, :, None].square() + columns[:, None].square()) / 8.0)[:, None]
    rate = torch.randn(count, 2)
    motion = rate[:, :, None, None].expand(-1, -1, side, side).repeat(1, 2, 1, 1)
    patches = places.Patches(
        blob.new_full((count, 9, side, side), 0.5),
        blob.new_full((count, 3, side, side), 0.5),
        *(blob.repeat(1, 3, 1, 1), motion, torch.ones_like(blob), torch.ones_like(blob)),
        centroid=torch.zeros(count, 2),
        place=place,
        rate=rate,
    )
    crops, _, target, moved = places.augmented(patches, True, 1.0)
    mask = crops[:, -5]
    cells = places.CROP_EXTENT * ((torch.arange(places.SIDE) + 0.5) / places.SIDE - 0.5)
    weight = mask / mask.sum((1, 2), keepdim=True)
    centers = torch.stack([(weight * cells).sum((1, 2)), (weight * cells[:, None]).sum((1, 2))], 1)
    whole = target.norm(dim=1) < 4.0  # the crop holds all of the blob
    assert whole.sum() > count // 2
    torch.testing.assert_close(centers[whole], target[whole], atol=0.05, rtol=0.05)
    torch.testing.assert_close(crops[:, -2:, 32, 32], moved)
    assert (target - place).norm(dim=1).median() > 1.0


def test_a_stopped_training_of_places_goes_on_as_if_never_stopped(tmp_path):
    places = import_module("ball_places")

    def train(state: Path, updates: int) -> torch.Tensor:
        """Train on random numbers; after so many updates the training is stopped."""
        torch.manual_seed(0)
        network, count = torch.nn.Linear(3, 2), 0

        def errors_of() -> tuple[torch.Tensor, torch.Tensor]:
            nonlocal count
            count += 1
            if count > updates:
                raise KeyboardInterrupt
            inputs = torch.randn(8, 3)
            errors = network(inputs) - inputs[:, :2]
            return errors.square().mean(), errors

        try:
            places.descend(network, errors_of, 1000, 1e-2, state)
        except KeyboardInterrupt:
            torch.randn(5)
        return network.weight.detach()

    whole = train(tmp_path / "whole.pt", 1000)
    stopped = train(tmp_path / "state.pt", 700)
    assert not torch.equal(stopped, whole)
    torch.testing.assert_close(train(tmp_path / "state.pt", 500), whole, atol=0.0, rtol=0.0)
