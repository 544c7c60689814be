"""Gradients: against finite differences of frames of 256 rays a pixel, by gradcheck, and in special cases."""

import pytest
import scenes
import torch

PIXELS = 64
# Metres and radians that move what is in the middle of a scene by a pixel.
METRE = 6.0 / (1.6 * PIXELS)
RADIAN = METRE / 0.9


def weights(seed: int) -> torch.Tensor:
    """White noise, blurred by a Gaussian of 2 pixels."""
    noise = torch.randn(3, 1, PIXELS, PIXELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    kernel = torch.exp(-(torch.arange(-8, 9, dtype=torch.float64) ** 2) / 8)
    kernel = kernel / kernel.sum()
    blur = torch.nn.functional.conv2d
    return blur(blur(noise, kernel.view(1, 1, 1, -1), padding=(0, 8)), kernel.view(1, 1, -1, 1), padding=(8, 0))[:, 0]


def relative_errors(seed: int, step: float = 0.25) -> tuple[float, float]:
    """Errors of the gradient of Σ w·I to all poses, in pixels, beside central differences of ± `step` pixels.

    A difference is the mean of the derivative over its step, and differs from the derivative at the middle: Σ w·I has a
    kink wherever a side of a box passes from one row of pixels to the next. So there are two errors: that of the
    gradient at the middle, and that of the mean of the gradient over four places of the step.
    """
    scene, w = scenes.pinhole_scene(seed, (PIXELS, PIXELS), apart=True), weights(seed)
    scale = torch.tensor([METRE] * 3 + [RADIAN] * 3, dtype=torch.float64)
    count = 6 * len(scene.shapes)

    def moved(amounts: torch.Tensor) -> torch.Tensor:
        return scenes.twist(scene.poses, scale * amounts.view(1, -1, 6))

    def gradient(at: torch.Tensor) -> torch.Tensor:
        at = at.clone().requires_grad_()
        (w * scene.render(moved(at))).sum().backward()
        assert at.grad is not None
        return at.grad

    unit = torch.eye(count, dtype=torch.float64)
    means = torch.stack(
        [sum(gradient(s * step * e)[i] for s in (-0.75, -0.25, 0.25, 0.75)) / 4 for i, e in enumerate(unit)]
    )
    with torch.no_grad():
        frames = [[scene.render(moved(s * step * e), "hard", 16) for s in (1, -1)] for e in unit]
    differences = torch.stack([(w * (ahead - behind)).sum() / (2 * step) for ahead, behind in frames])
    size = differences.norm()
    here = gradient(torch.zeros(count, dtype=torch.float64))
    return float((here - differences).norm() / size), float((means - differences).norm() / size)


@pytest.mark.parametrize("seed", [1, 13])
def test_gradients_are_differences_of_frames_of_256_rays_a_pixel(seed):
    at_the_middle, mean = relative_errors(seed)
    assert mean < 0.03
    assert at_the_middle < 0.05


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_gradients_of_200_scenes():
    errors = torch.tensor([relative_errors(seed) for seed in range(200)])
    for name, column in zip(("at the middle of the step", "mean over the step"), errors.T, strict=True):
        quantiles = [round(float(column.quantile(q)), 4) for q in (0.5, 0.9, 0.95, 1.0)]
        print(f"gradient {name}: median, 90 %, 95 %, largest error {quantiles}; {int((column < 0.03).sum())} below 3 %")
    assert (errors[:, 1] < 0.03).float().mean() > 0.9
