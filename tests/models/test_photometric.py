"""Of all motions of an engine, the one whose rendered frames are closest to the given ones is found."""

import pytest
import torch

from physvision.core import Coordinates, InputError, State
from physvision.models import (
    CameraDecoder,
    Encoder,
    Observation,
    PendulumCamera,
    PhotometricSettings,
    PredictiveAutoencoder,
)
from physvision.models.consistency import consistent_state, motion_residual
from physvision.models.photometric import photometric_motion
from physvision.physics import articulated

ANGLES, TRUST, TIMES, NOISE = Coordinates(2, (0, 1)), 20.0, 7, 0.05
DECODER = CameraDecoder(
    PendulumCamera(2, 40, 25.0, 80.0, lengths=[3.0, 3.0]), codes=1, channels=1, colors=((1.0,), (0.5,))
)
ENGINE = articulated.chain([3.0, 3.0], dt=0.05, integrator="runge_kutta_4")


@torch.no_grad()
def render(path, times):
    state = State(path.flatten(0, 1), torch.zeros_like(path.flatten(0, 1)))
    return DECODER(state).unflatten(0, path.shape[:2])


def moving(batch):
    torch.manual_seed(3)
    start = State(2 * torch.rand(batch, 2) - 1, 2 * torch.rand(batch, 2) - 1)
    return ENGINE.rollout(start, TIMES - 1)


def misread(motion):
    """Positions with errors, half of each common to all frames, as an encoder has them, and the last velocity."""
    common, own = NOISE * torch.randn_like(motion.q[:, :1]), NOISE * torch.randn_like(motion.q)
    return motion.q + common + own, motion.v[:, -1] + TRUST * NOISE * torch.randn_like(motion.v[:, -1])


def fitted(positions, velocity, frames, settings=None):
    problem = motion_residual(ENGINE, ANGLES, positions, velocity, TRUST)
    return photometric_motion(*problem, ANGLES, render, frames, settings or PhotometricSettings())


class Misreading(Encoder):
    """An encoder that reads the same positions whatever it is shown."""

    coordinates = ANGLES

    def __init__(self, positions, velocity):
        super().__init__()
        self.read = Observation(positions, velocity[:, None])

    def observe(self, frames, context=None):
        return self.read


def test_frames_tell_a_motion_better_than_the_positions_that_are_read_in_them():
    motion = moving(12)
    read = misread(motion)
    result = fitted(*read, render(motion.q, range(TIMES)))
    before = consistent_state(ENGINE, ANGLES, *read, TRUST)
    off = (result.q - motion.q)[:, -1].abs()
    # Links are ten pixels long, so that a hundredth of a radian is a tenth of a pixel.
    assert off.median() < 0.002
    assert off.max() < 0.03
    assert (result.v - motion.v)[:, -1].abs().median() < 0.01
    assert off.median() < 0.05 * (before.q - motion.q[:, -1]).abs().median()
    # All frames lie on one motion of the engine.
    again = ENGINE.rollout(result.state(0), TIMES - 1)
    torch.testing.assert_close(result.q, again.q, rtol=0, atol=1e-4)


def test_where_frames_show_nothing_it_is_the_motion_closest_to_the_positions():
    motion = moving(6)
    read = misread(motion)
    problem = motion_residual(ENGINE, ANGLES, *read, TRUST)

    def nothing(path, times):
        return path.new_zeros(*path.shape[:2], 1, 4, 4)

    result = photometric_motion(*problem, ANGLES, nothing, torch.zeros(6, TIMES, 1, 4, 4), PhotometricSettings())
    expected = consistent_state(ENGINE, ANGLES, *read, TRUST)
    torch.testing.assert_close(result.q[:, -1], expected.q, rtol=0, atol=1e-3)
    torch.testing.assert_close(result.v[:, -1], expected.v, rtol=0, atol=1e-2)


def test_a_model_in_evaluation_starts_at_the_motion_in_the_frames():
    motion = moving(4)
    positions, velocity = misread(motion)
    positions[3] = torch.nan
    frames = render(motion.q, range(TIMES))
    settings = PhotometricSettings(frames=3)
    encoder = Misreading(positions, velocity)
    model = PredictiveAutoencoder(encoder, ENGINE, DECODER, consistency=TRUST, photometric=settings).eval()
    forecast = model(frames, 4)
    expected = ENGINE.rollout(State(motion.q[:3, -1], motion.v[:3, -1]), 4)
    torch.testing.assert_close(forecast.trajectory.q[:3], expected.q, rtol=0, atol=0.03)
    assert bool(torch.isnan(forecast.observation.positions[3]).all())
    torch.testing.assert_close(model.observe(frames, fitted=False).positions[:3], positions[:3])
    torch.testing.assert_close(model.train().observe(frames).positions[:3], positions[:3])
    with pytest.raises(InputError, match="consistency"):
        PredictiveAutoencoder(encoder, ENGINE, DECODER, photometric=settings)
