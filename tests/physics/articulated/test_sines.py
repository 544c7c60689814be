"""The kernels' own sine and cosine, which turn every hinge."""

# pyright: reportInvalidTypeForm=false

import numpy as np
import torch
import warp as wp

from physvision.kernels import precision

KERNELS = precision.load("physvision.physics.articulated.kernels", torch.float64)
spatial = KERNELS.spatial.rotations
sine_and_cosine, vec2 = spatial.sine_and_cosine, spatial.vec2


@wp.kernel(enable_backward=False, module="unique")
def pair(angles: wp.array(dtype=wp.float64), result: wp.array(dtype=vec2)):
    k = wp.tid()
    result[k] = sine_and_cosine(angles[k])


def test_sine_and_cosine_of_small_and_of_many_turns():
    quarters = np.arange(-40, 41) * np.pi / 2
    near = [quarters + shift for shift in (0.0, 1e-12, -1e-9, 1e-3, np.pi / 4, np.pi / 4 - 1e-15)]
    spread = np.random.default_rng(0).uniform(-1, 1, 20_000)
    angles = np.concatenate([*near, 4 * spread, 1e3 * spread, 9.9e5 * spread, 1e9 * spread, [0.0, -0.0]])
    result = wp.empty(len(angles), dtype=vec2, device="cpu")
    wp.launch(pair, len(angles), [wp.array(angles, dtype=wp.float64, device="cpu"), result], device="cpu")
    assert np.abs(result.numpy() - np.stack([np.sin(angles), np.cos(angles)], 1)).max() < 4e-16


def test_what_is_no_number_has_no_sine():
    angles = np.array([np.nan, np.inf, -np.inf])
    result = wp.empty(3, dtype=vec2, device="cpu")
    wp.launch(pair, 3, [wp.array(angles, dtype=wp.float64, device="cpu"), result], device="cpu")
    assert np.isnan(result.numpy()).all()
