"""A clip's states and parameters are those of the simulator that made it, and a motion without a law is named."""

import numpy as np
import pytest
import torch
from prediction import other_physics as simulator

from physvision.core import State
from physvision.models import load
from physvision.prediction.clip_fit import ClipFit
from physvision.prediction.law_check import law_differences

NOISE = {"billiards-3": 0.005, "pendulum": 0.004}  # px, rad: those of the encoders on clean frames


def fitted(name, physics, frames, seed, batch=32):
    """Fit of a clip whose encoder has white errors, the true positions, and the states of the last batch."""
    model = load(name)
    is_table = name != "pendulum"
    x, v = (simulator.discs if is_table else simulator.rods)(physics, frames, seed)
    random = np.random.default_rng(seed)
    if is_table:
        x, v = (np.concatenate([part, np.zeros_like(part[..., :1])], -1).reshape(frames, -1) for part in (x, v))
    noisy = x + NOISE[name] * random.standard_normal(x.shape)
    rates = v + 2 * NOISE[name] / model.engine.dt * random.standard_normal(x.shape)
    if is_table:
        noisy[:, 2::3] = rates[:, 2::3] = 0.0
    fit, states = ClipFit(model), None
    for first in range(0, frames, batch):
        observed = State(*(torch.from_numpy(part[first : first + batch]).float() for part in (noisy, rates)))
        states = fit.update(observed, torch.ones(len(observed.q), 3))
    fit.fit()
    return fit, model, x, states


def differences(fit, model):
    return [text for _, text in law_differences(fit, model.scene)]


@pytest.mark.parametrize(
    ("physics", "truth"),
    [
        (simulator.Discs(restitution=0.7), {"restitution": 0.7}),
        pytest.param(simulator.Discs(deceleration=8.0), {"sliding deceleration": 8.0}, marks=pytest.mark.extended),
        pytest.param(
            simulator.Discs(masses=(4.0, 1.0, 1.0)),
            {"mass of green / red": 0.25, "mass of blue / red": 0.25},
            marks=pytest.mark.extended,
        ),
        pytest.param(
            simulator.Discs(margin=(6.0,) * 4),
            {"left wall": 6.0, "upper wall": 6.0, "right wall": 58.0, "lower wall": 58.0},
            marks=pytest.mark.extended,
        ),
    ],
)
def test_a_table_is_found_in_its_balls_motion(physics, truth):
    fit, model, _, _ = fitted("billiards-3", physics, 160, 2)
    estimates = {item.parameter.name: item for item in fit.estimates()}
    for name, value in truth.items():
        low, high = estimates[name].interval(0.999)
        assert low < value < high
        assert high - low < 0.1 * max(1.0, value)
        assert estimates[name].differs
    others = [item for name, item in estimates.items() if name not in truth]
    assert not any(item.differs for item in others), others
    assert len(differences(fit, model)) == len(truth)


def test_gravity_is_found_in_the_swing_of_rods():
    fit, model, _, _ = fitted("pendulum", simulator.Rods(gravity=1.62), 100, 1)
    gravity = fit.estimates()[0]
    low, high = gravity.interval(0.999)
    assert low < 1.62 < high < 2.2
    assert gravity.differs
    assert any("gravity is" in text for text in differences(fit, model))


@pytest.mark.parametrize(("name", "physics"), [("billiards-3", simulator.Discs()), ("pendulum", simulator.Rods())])
def test_a_clip_of_the_checkpoints_physics_is_predicted_by_it(name, physics):
    fit, model, x, states = fitted(name, physics, 96, 5)
    assert fit.leaves() is None
    assert differences(fit, model) == []
    # A window of many frames is several times as exact as each of them.
    error = states.smoothed.q.numpy() - x[-len(states.smoothed.q) :]
    assert np.sqrt(np.square(error[np.abs(error) > 0]).mean()) < 0.7 * NOISE[name]


def test_a_motion_without_a_law_is_named():
    fit, model, _, _ = fitted("billiards-3", simulator.Discs(bend=40.0), 96, 3)
    assert any("follows no law" in text for text in differences(fit, model))


def test_links_that_do_not_turn_are_named():
    fit, model, _, _ = fitted("pendulum", simulator.Rods(welded=True), 64, 4)
    assert "link 3 does not turn against the link before: only 2 links move" in differences(fit, model)


def test_the_simulators_laws():
    x, v = simulator.discs(simulator.Discs(masses=(4.0, 1.0, 1.0)), 200, 2)
    energy = (np.array([4.0, 1.0, 1.0]) * np.square(v).sum(-1)).sum(1)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)
    assert x.min() >= simulator.RADIUS - 1e-6
    frames = simulator.draw_discs(x[:1])
    np.testing.assert_allclose(frames.sum() / 255, 3 * np.pi * simulator.RADIUS**2, rtol=0.01)
