"""A scene in a mirror, or played backwards, is what the simulator makes of the mirrored, or reversed, start."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from physvision.core import Coordinates, InputError, Trajectory
from physvision.datasets import PendulumRecipe, Sample
from physvision.trainers import PredictionTraining, SampleSettings, Supervision
from physvision.trainers.symmetries import transformed

RECIPE = PendulumRecipe(trials=10, frames=8, lengths=(1.5, 1.0), size=30, samples=3)
GIVEN = 3


class Given(np.random.Generator):
    """A generator that says what it was told to."""

    def __init__(self, *values):
        super().__init__(np.random.PCG64(0))
        self.values = list(values)

    def uniform(self, low, high, count):
        return self.values.pop(0)


def batch(q, v):
    """One sample of a pendulum that starts in this state."""
    trial = RECIPE.trial(Given(q, v))
    frames = torch.from_numpy(trial["frames"]).permute(0, 3, 1, 2)[None]
    true = Trajectory(*(torch.from_numpy(trial[name])[None] for name in ("q", "v")))
    number = torch.zeros(1, dtype=torch.long)
    return Sample(frames, true, GIVEN, torch.tensor([True]), number, number)


def same(observed, expected):
    # A sample of an edge that is hit by a hair from one side may be missed by a hair from the other.
    assert (observed.frames.int() - expected.frames.int()).abs().float().mean() < 0.2
    for name in ("q", "v"):
        single, reference = (getattr(sample.trajectory, name) for sample in (observed, expected))
        torch.testing.assert_close(single, reference, rtol=1e-6, atol=1e-6)
    assert observed.given == expected.given


def test_a_mirror_shows_the_mirrored_motion():
    q, v = np.array([0.7, -2.0]), np.array([0.5, 3.0])
    same(transformed(batch(q, v), ["mirror"]), batch(-q, -v))


def test_a_motion_played_backwards_starts_at_its_end():
    there = batch(np.array([0.7, -2.0]), np.array([0.5, 3.0]))
    end = there.trajectory.final
    same(transformed(there, ["reversal"]), batch(end.q[0].numpy(), -end.v[0].numpy()))
    same(transformed(transformed(there, ["reversal", "mirror"]), ["mirror", "reversal"]), there)


def test_samples_without_states_have_symmetries_too():
    observed = replace(batch(np.array([0.7, -2.0]), np.zeros(2)), trajectory=None)
    shown = transformed(observed, ["mirror", "reversal"])
    assert torch.equal(shown.frames, observed.frames.flip(1, -1))
    assert shown.trajectory is None
    assert transformed(observed, []) == observed


def test_each_symmetry_is_applied_to_half_of_the_updates_alike_in_every_process(training, monkeypatch):
    module, again = (training(samples=SampleSettings(symmetries=("mirror", "reversal"))) for _ in range(2))
    selected = []
    for update in range(400):
        monkeypatch.setattr(PredictionTraining, "global_step", update)
        selected.append(tuple(module._sampled_symmetries()))
        assert selected[-1] == tuple(again._sampled_symmetries())
    for kind in ((), ("mirror",), ("reversal",), ("mirror", "reversal")):
        assert abs(selected.count(kind) / len(selected) - 0.25) < 0.08, kind


def test_a_mirror_of_lengths_is_refused(training):
    with pytest.raises(InputError, match="not angles alone"):
        PredictionTraining(
            training().model, Supervision(Coordinates(2, (0,))), samples=SampleSettings(symmetries=("mirror",))
        )
