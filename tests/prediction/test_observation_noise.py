"""Errors of what an encoder sees, and the probability that follows from them."""

import math

import numpy as np
import pytest
import torch
from prediction import other_physics as simulator

from physvision.models import load
from physvision.prediction.confidence import confidence
from physvision.prediction.observation_noise import ObservationNoise
from physvision.prediction.settings import ClipFitSettings

SETTINGS = ClipFitSettings()


@pytest.fixture(scope="module")
def scene():
    return load("billiards-3").scene


def straight(frames, start, step):
    """Three discs, of which the first moves from a place by a step a frame and the others rest in two corners."""
    path = torch.tensor([[20.0, 10.0, 50.0, 50.0, 10.0, 50.0]]).repeat(frames, 1).double()
    path[:, :2] = torch.tensor(start) + torch.arange(frames)[:, None] * torch.tensor(step)
    return path[None]


def test_errors_are_measured_where_discs_move(scene):
    x = simulator.discs(simulator.Discs(), 400, 1)[0].reshape(20, 20, 6)
    noise = ObservationNoise(scene, 6, SETTINGS, angles=False)
    noise.measure(torch.from_numpy(x + 0.01 * np.random.default_rng(0).standard_normal(x.shape)))
    assert ((noise.std > 0.007) & (noise.std < 0.013)).all()


def test_frames_of_a_disc_that_rests_say_the_same(scene):
    noise = ObservationNoise(scene, 6, SETTINGS, angles=False)
    std = noise.observation_std(straight(20, [15.0, 20.0], [1.0, 0.0]))[0]
    usual = float(noise.std[0] * noise.inflation[0])
    assert float(std[10, 0]) == pytest.approx(usual * math.sqrt(1.2), rel=0.1)
    assert float(std[10, 2]) == pytest.approx(usual * math.sqrt(20))


def test_a_disc_near_the_border_counts_little(scene):
    noise = ObservationNoise(scene, 6, SETTINGS, angles=False)
    std = noise.observation_std(straight(20, [4.0, 20.0], [1.0, 0.0]))[0, :, 0]
    expected = SETTINGS.contact_error * simulator.RADIUS
    assert (std[:2] >= expected).all()
    assert (std[8:] < 0.5 * expected).all()


def test_a_link_that_is_hidden_for_some_frames_counts_little_there():
    random = np.random.default_rng(0)
    q = simulator.rods(simulator.Rods(), 160, 1)[0].reshape(10, 16, 3) + 0.004 * random.standard_normal((10, 16, 3))
    q[3, 6:10, 2] += 0.1 * random.standard_normal(4)
    noise = ObservationNoise(load("pendulum").scene, 3, SETTINGS, angles=True)
    noise.measure(torch.from_numpy(q))
    std = noise.observation_std(torch.from_numpy(q))
    assert float(std[3, 7, 2]) > 3 * float(std[2, 7, 2])


@pytest.mark.parametrize("name", ["billiards-3", "pendulum"])
def test_nine_in_ten_are_where_they_are_said_to_be_with_ninety_percent(name):
    scene = load(name).scene
    is_table = name != "pendulum"
    random = np.random.default_rng(0)
    reach = 0.5 * simulator.RADIUS if is_table else 0.1
    for std in (0.1 * reach, 0.5 * reach, reach):
        probability = confidence(torch.full((1, scene.positions), std), scene)
        off = np.linalg.norm(std * random.standard_normal((20_000, 2 if is_table else 1)), axis=1)
        np.testing.assert_allclose(probability.numpy(), (off < reach).mean(), atol=0.01)
    assert confidence(torch.full((1, scene.positions), torch.nan), scene).isnan().all()
