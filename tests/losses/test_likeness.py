"""PSNR and SSIM are those of torchmetrics, in whatever precision frames come."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch
from torchmetrics.functional.image import structural_similarity_index_measure

from physvision.losses import psnr, ssim, ssim_map


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_likeness_is_that_of_torchmetrics(dtype):
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 3, 2, 40, 33, generator=generator, dtype=dtype)
    b[1] = 0.9 * a[1] + 0.1 * b[1]
    true = structural_similarity_index_measure(a.double(), b.double(), data_range=1.0, reduction="none")
    # Its float32 sums cancel.
    torch.testing.assert_close(ssim(a, b), true.float(), rtol=0, atol=1e-4)
    expected = -10 * math.log10(float((a[0] - b[0]).square().mean()))
    assert float(psnr(a, b)[0]) == pytest.approx(expected, rel=1e-5)


def test_a_frame_is_like_itself():
    a = torch.rand(2, 1, 12, 20)
    assert psnr(a, a).tolist() == [100.0, 100.0]
    torch.testing.assert_close(ssim(a, a), torch.ones(2))


def test_the_map_of_likeness_is_local_and_its_mean_that_of_the_frame():
    generator = torch.Generator().manual_seed(1)
    a = torch.rand(2, 3, 40, 40, generator=generator)
    b = a.clone()
    b[:, :, 5:10, 5:10] = 0.5
    similar = ssim_map(b, a)
    torch.testing.assert_close(similar.mean((1, 2)), ssim(b, a))
    # The window reaches five pixels.
    assert float(similar[:, 20:, 20:].min()) > 0.999
    assert float(similar[:, 7, 7].max()) < 0.9
