"""The configurations of the billiards train; options of theirs do what they say."""

import pytest
import torch

from physvision import cli
from physvision.core import Coordinates, State, Trajectory, resources
from physvision.datasets import BilliardsRecipe, DataModule, Sample, WindowShape, generate
from physvision.models import CameraDecoder, Forecast, load, table
from physvision.perception.flow import load_flow
from physvision.physics import PhysicsLayer
from physvision.trainers import Supervision

LEARNED = str(resources.folder("trainers") / "billiards-3.yaml")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Data sets by their number of balls."""
    folder = tmp_path_factory.mktemp("tables")
    recipes = {balls: BilliardsRecipe(trials=10, frames=20, balls=balls, speed=(1.0, 3.0)) for balls in (1, 3)}
    return {
        balls: str(generate(recipe, folder / str(balls), workers=1, progress=False))
        for balls, recipe in recipes.items()
    }


@pytest.mark.parametrize(
    ("names", "balls"),
    [
        (["billiards-1"], 1),
        (["billiards-3"], 3),
        (["billiards-3", "billiards-encoder"], 3),
        (["billiards-3", "billiards-mlp"], 3),
        pytest.param(["billiards-3", "billiards"], 3, marks=pytest.mark.extended),
    ],
)
def test_every_configuration_takes_a_step_from_labels_of_some_trials(tables, tmp_path, monkeypatch, names, balls):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "start.yaml").write_text("model: {stages: {weights: null}}\n")
    configurations = [part for name in names for part in ("--config", f"trainers/{name}.yaml")]
    data = ["--data.path", tables[balls], "--data.batch_size", "4", "--data.labels.fraction", "0.5"]
    brief = ["--trainer.fast_dev_run", "1", "--trainer.accelerator", "cpu", "--data.workers", "0"]
    assert cli.main(["fit", *configurations, "--config", "start.yaml", *data, *brief]) == 0


def test_a_trained_model_is_exported_and_the_camera_takes_the_decoders_place(tables, tmp_path, monkeypatch):
    """One line of YAML: the camera draws the states that the encoder finds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "camera.yaml").write_text(
        "model: {stages: {weights: null}, model: {init_args: {decoder: {init_args: {network: null}}}}}\n"
    )
    data = ["--data.path", tables[3], "--data.batch_size", "4", "--data.labels.fraction", "0.5"]
    brief = ["--trainer.max_epochs", "1", "--trainer.limit_train_batches", "1", "--trainer.limit_val_batches", "0"]
    assert cli.main(["fit", "--config", LEARNED, "--config", "camera.yaml", *data, *brief]) == 0
    assert cli.main(["export", "out/billiards-3/checkpoints/last.ckpt", "--out", "mine.safetensors"]) == 0
    decoder = load("mine.safetensors").decoder
    assert isinstance(decoder, CameraDecoder)
    assert decoder.network is None
    trained, windows = load("billiards-3"), DataModule(tables[3], shape=WindowShape(8, 10)).windows("test")
    batch = windows.__getitems__(list(range(len(windows))))
    with torch.no_grad():
        forecast = trained.eval()(batch.observed, 1, [0])
        looks, alone = forecast.observation.appearance, decoder
        rendered = alone(forecast.trajectory.state(0), forecast.observation.properties, looks)
    true = batch.frames_at([0])[:, 0] / 255.0
    assert (rendered - true).square().mean() < 0.1 * true.square().mean()


def test_the_flow_network_is_trained_and_exported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    brief = [
        "--data.init_args.batches",
        "3",
        "--data.init_args.batch_size",
        "2",
        "--trainer.max_epochs",
        "1",
        "--data.init_args.validation_batches",
        "1",
    ]
    assert cli.main(["fit-flow", "--config", "flow.yaml", "--trainer.accelerator", "cpu", *brief]) == 0
    assert cli.main(["export", "out/flow/checkpoints/last.ckpt", "--out", "mine.safetensors"]) == 0
    network = load_flow("mine.safetensors")
    assert network(torch.rand(1, 3, 20, 20), torch.rand(1, 3, 20, 20)).shape == (1, 2, 20, 20)


def test_data_of_another_frame_rate_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recipe = BilliardsRecipe(trials=10, frames=20, fps=15, balls=1)
    slow = generate(recipe, tmp_path / "slow", workers=1, progress=False)
    assert (
        cli.main(
            ["fit", "--config", "trainers/billiards-1.yaml", "--data.path", str(slow), "--trainer.fast_dev_run", "1"]
        )
        == 1
    )
    assert "15 frames a second, but the engine steps 30 times" in capsys.readouterr().err


def test_the_encoders_loss_is_that_of_its_own_states():
    """Where labeled samples feed their true states onward, the encoder is judged apart."""
    engine = table(1)
    assert not isinstance(engine, PhysicsLayer)
    true = State(torch.tensor([[20.0, 30.0, 0.0]]), torch.tensor([[30.0, 0.0, 0.0]]))
    run = engine.rollout(true, 2)
    number = torch.zeros(1, dtype=torch.long)
    batch = Sample(torch.zeros(1, 3, 3, 4, 4), Trajectory(run.q, run.v), 1, torch.tensor([True]), number, number)
    prediction = Forecast(run, (2,), torch.zeros(1, 1, 3, 4, 4))
    loss = Supervision(Coordinates(3, (2,)))
    exact = loss(prediction, batch, Trajectory(true.q[:, None], true.v[:, None]))
    assert float(exact["loss"]) == pytest.approx(0.0, abs=1e-9)
    off = loss(prediction, batch, Trajectory(true.q[:, None] + torch.tensor([0.3, 0.0, 0.0]), true.v[:, None]))
    assert float(off["encoder"]) == pytest.approx(0.3**2 / 3, rel=1e-5)
    assert float(off["physics"]) == pytest.approx(0.0, abs=1e-9)
