"""The kernels' own sine and cosine, which turn every hinge."""

import numpy as np
import torch
import warp as wp

from physvision.kernels import precision

KERNELS = precision.load("physvision.physics.articulated.kernels", torch.float64)
spatial = KERNELS.spatial.rotations
sine_and_cosine, vec2 = spatial.sine_and_cosine, spatial.vec2


@wp.kernel(enable_backward=False, module="unique")
def both(angles: wp.array(dtype=wp.float64), found: wp.array(dtype=vec2)):
    k = wp.tid()
    found[k] = sine_and_cosine(angles[k])


def test_sine_and_cosine_of_small_and_of_many_turns():
    quarters = np.arange(-40, 41) * np.pi / 2
    near = [quarters + shift for shift in (0.0, 1e-12, -1e-9, 1e-3, np.pi / 4, np.pi / 4 - 1e-15)]
    spread = np.random.default_rng(0).uniform(-1, 1, 20_000)
    angles = np.concatenate([*near, 4 * spread, 1e3 * spread, 9.9e5 * spread, 1e9 * spread, [0.0, -0.0]])
    found = wp.empty(len(angles), dtype=vec2, device="cpu")
    wp.launch(both, len(angles), [wp.array(angles, dtype=wp.float64, device="cpu"), found], device="cpu")
    assert np.abs(found.numpy() - np.stack([np.sin(angles), np.cos(angles)], 1)).max() < 4e-16


def test_what_is_no_number_has_no_sine():
    angles = np.array([np.nan, np.inf, -np.inf])
    found = wp.empty(3, dtype=vec2, device="cpu")
    wp.launch(both, 3, [wp.array(angles, dtype=wp.float64, device="cpu"), found], device="cpu")
    assert np.isnan(found.numpy()).all()
