"""Frame losses of samples: values worked out by hand, balance of figure and ground, the way from coarse to fine."""

import pytest
import torch

from physvision.losses import foreground_weights, frame_losses, multi_scale


@pytest.mark.parametrize(("kind", "value"), [("l1", 0.2), ("l2", 0.04), ("huber", 0.15), ("ssim", None)])
def test_values_of_a_constant_error(kind, value):
    target = torch.rand(3, 2, 3, 16, 16)
    actual = frame_losses(kind, target + 0.2, target)
    assert actual.shape == (3,)
    if value is None:
        assert (actual > 0).all()
        assert float(frame_losses(kind, target, target).max()) == pytest.approx(0.0, abs=1e-6)
    else:
        torch.testing.assert_close(actual, torch.full((3,), value))


def test_multi_scale_of_samples_is_that_of_frames():
    target, predicted = torch.rand(2, 1, 3, 32, 32), torch.rand(2, 1, 3, 32, 32)
    actual = frame_losses("multi_scale", predicted, target)
    for row in range(2):
        torch.testing.assert_close(actual[row], multi_scale(predicted[row], target[row]))


def test_a_small_ball_weighs_as_much_as_the_rest():
    target = torch.zeros(1, 1, 3, 20, 20)
    target[..., 4:6, 4:6] = 1.0
    weights = foreground_weights(target, torch.zeros(1, 3, 20, 20))
    assert float(weights.mean()) == pytest.approx(1.0)
    assert float(weights[..., 4:6, 4:6].sum() / weights.sum()) == pytest.approx(0.5)
    # Nothing moves: all pixels alike.
    assert (foreground_weights(target, target[:, 0]) == 1).all()


def test_coarse_scales_attract_from_afar_and_fine_ones_do_not():
    def ball(x):
        columns, rows = torch.arange(64.0), torch.arange(64.0)[:, None]
        return torch.sigmoid(4 * (3 - ((columns - x).square() + (rows - 32).square() + 1e-6).sqrt()))[None, None, None]

    slopes = {}
    for finest in (0, 3):
        x = torch.tensor(20.0, requires_grad=True)
        frame_losses("multi_scale", ball(x), ball(torch.tensor(40.0)), finest=finest).sum().backward()
        slopes[finest] = float(x.grad)
    assert slopes[3] < 0
    x = torch.tensor(20.0, requires_grad=True)
    frame_losses("l2", ball(x), ball(torch.tensor(40.0))).sum().backward()
    assert abs(float(x.grad)) < 1e-3 * abs(slopes[3])
