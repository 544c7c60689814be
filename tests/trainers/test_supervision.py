"""The loss has the values worked out by hand, and hides what has no label."""

import math
from dataclasses import replace

import pytest
import torch

from physvision.core import Coordinates, InputError, Trajectory
from physvision.datasets import Sample
from physvision.models import Forecast
from physvision.trainers import PredictionMetrics, StateLossSettings, Supervision

SPIN = Coordinates(2, (0,))


def case(labeled):
    """Errors: angle 2π + 0.1, position 0.3, velocities 0.5 and 4; frames a tenth too bright."""
    batch = len(labeled)
    true = torch.zeros(batch, 3, 2)
    q = true + torch.tensor([2 * math.pi + 0.1, 0.3])
    v = true + torch.tensor([0.5, -4.0])
    frames = torch.rand(batch, 2, 1, 12, 12)
    prediction = Forecast(Trajectory(q.requires_grad_(), v.requires_grad_()), (0, 2), frames + 0.1)
    known = torch.tensor(labeled)
    hide = torch.where(known, 0.0, math.nan)[:, None, None]
    number = torch.zeros(batch, dtype=torch.long)
    return prediction, Sample(frames[:, [0, 1, 1]], Trajectory(true + hide, true + hide), 1, known, number, number)


# With scales of 0.2 and 2: the angle's chord, below its scale, the length, above it, and one velocity each way.
STATE = ((2 * math.sin(0.05) / 0.2) ** 2 + (2 * 0.3 / 0.2 - 1) + 0.5 * (0.25**2 + 2 * 2 - 1)) / 2


@pytest.mark.parametrize("labeled", [(True, True), (True, False), (False, False)])
def test_the_terms_have_their_values(labeled):
    prediction, batch = case(labeled)
    loss = Supervision(
        SPIN,
        encoder_weight=3.0,
        physics_weight=5.0,
        frame_weight=7.0,
        state_loss=StateLossSettings(velocity_weight=0.5, position_scale=0.2, velocity_scale=2.0),
    )
    terms = loss(prediction, batch)
    fraction = sum(labeled) / 2
    assert terms["encoder"].item() == pytest.approx(3 * fraction * STATE, rel=1e-4)
    assert terms["physics"].item() == pytest.approx(5 * fraction * STATE, rel=1e-4)
    assert terms["frames"].item() == pytest.approx(7 * 0.01, rel=1e-4)
    assert terms["loss"].item() == pytest.approx(sum(terms[name].item() for name in ("encoder", "physics", "frames")))
    terms["loss"].backward()
    assert bool(torch.isfinite(prediction.trajectory.q.grad).all())
    taught = (prediction.trajectory.q.grad.flatten(1) != 0).any(1)
    assert taught.tolist() == list(labeled)


def test_the_encoders_states_are_judged_where_they_are_given():
    prediction, batch = case((True, False))
    loss = Supervision(SPIN)
    own = loss(prediction, batch)
    for value in (1, 3):
        right = Trajectory(torch.zeros(2, value, 2), torch.zeros(2, value, 2))
        verdict = loss(prediction, batch, right)
        assert float(verdict["encoder"]) == 0.0 < float(own["encoder"])
        assert torch.equal(verdict["physics"], own["physics"])


def test_the_encoders_states_at_several_frames_count_alike():
    prediction, batch = case((True, True))
    loss = Supervision(SPIN)
    off = torch.zeros(2, 3, 2)
    off[:, 2, 1] = 0.6
    verdict = loss(prediction, batch, Trajectory(off, torch.zeros(2, 3, 2)))
    assert float(verdict["encoder"]) == pytest.approx(0.36 / 3 / 2)


def test_measures_are_those_of_the_definition():
    prediction, batch = case((True, True))
    prediction = Forecast(prediction.trajectory, (0, 2), 0.5 * (prediction.frames - 0.1) + 0.1)
    metrics = PredictionMetrics(SPIN, (0, 2), dt=0.5)
    metrics.update(prediction, replace(batch, frames=0.5 * batch.frames))
    result = metrics.compute()
    assert float(result["state_error/1s"]) == pytest.approx((0.1 + 0.3) / 2, rel=1e-4)
    assert float(result["velocity_error/0s"]) == pytest.approx(4.5 / 2)
    assert float(result["frame_error_mean/1s"]) == pytest.approx(0.01, rel=1e-4)
    assert float(result["frame_error_sum/1s"]) == pytest.approx(1.44, rel=1e-4)
    assert float(result["psnr/1s"]) == pytest.approx(20.0, rel=1e-4)
    assert metrics.compute() == {}


def test_the_median_is_that_of_predictions_whatever_the_batches():
    metrics = PredictionMetrics(SPIN, (0, 2), dt=0.5)
    for offsets in ((0.2, 7.0), (1.4,)):
        prediction, batch = case((True,) * len(offsets))
        batch.trajectory.q[:, 1:] -= torch.tensor(offsets)[:, None, None] * torch.tensor([0.0, 1.0])
        metrics.update(prediction, batch)
    result = metrics.compute()
    assert float(result["state_error_median/1s"]) == pytest.approx((0.1 + 0.3 + 1.4) / 2, rel=1e-4)
    assert float(result["state_error/1s"]) == pytest.approx((0.1 + 0.3 + 8.6 / 3) / 2, rel=1e-4)


@pytest.mark.parametrize("name", ["position_scale", "velocity_scale"])
def test_a_scale_of_zero_is_refused(name):
    with pytest.raises(InputError, match=f"{name}: expected a positive"):
        StateLossSettings(**{name: 0.0})
