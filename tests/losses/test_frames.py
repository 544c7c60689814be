"""Losses of frames: what they are, and that a pose is found from pixels with them."""

import math

import pytest
import torch

from physvision.camera import Camera, RayCaster
from physvision.core import Circle
from physvision.core.errors import DtypeError, InputError, ShapeError
from physvision.losses import mean_square, multi_scale


def share_found(radius: float, loss, count: int, steps: int) -> float:
    """The part of random starts, up to 15 pixels away, from which a flat ball is found within 0.1 pixels."""
    generator = torch.Generator().manual_seed(7)
    caster = RayCaster(Camera.table(64, 64, y_down=True), [Circle(radius)], background=(0.1, 0.2, 0.3))
    colors = [torch.tensor([0.9, 0.5, 0.1])]
    target = 24 + 16 * torch.rand(count, 2, generator=generator)
    angle, distance = 2 * math.pi * torch.rand(count, generator=generator), 15 * torch.rand(count, generator=generator)
    start = target + distance[:, None] * torch.stack([angle.cos(), angle.sin()], 1)

    def frames(places: torch.Tensor) -> torch.Tensor:
        moves = torch.nn.functional.pad(places[:, None, :, None], (3, 0, 0, 2))
        return caster(torch.eye(4) + moves, colors)

    goal = frames(target)
    places = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([places], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, 1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(frames(places), goal).backward()
        optimizer.step()
        schedule.step()
    return float(((places.detach() - target).norm(dim=1) < 0.1).float().mean())


BALLS = pytest.mark.parametrize(("radius", "loss"), [(8.0, mean_square), (8.0, multi_scale), (3.0, multi_scale)])


@pytest.fixture(autouse=True)
def _one_thread():
    """So many small operations only wait for each other on two."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(("radius", "loss"), [(8.0, mean_square), (3.0, multi_scale)])
def test_a_flat_ball_is_found(radius, loss):
    assert share_found(radius, loss, 24, 80) >= 0.95


@BALLS
@pytest.mark.slow
def test_a_flat_ball_is_found_from_200_starts(radius, loss):
    fraction = share_found(radius, loss, 200, 150)
    print(f"radius {radius:g}, {loss.__name__}: {100 * fraction:.1f} % of 200 within 0.1 pixels")
    assert fraction >= 0.95


def test_the_mean_square_is_blind_where_balls_do_not_intersect():
    assert share_found(3.0, mean_square, 32, 80) < 0.8


def test_one_scale_is_the_mean_square():
    a, b = torch.rand(2, 5, 3, 20, 30, dtype=torch.float64)
    torch.testing.assert_close(multi_scale(a, b, 1), mean_square(a, b))
    torch.testing.assert_close(mean_square(a, b), (a - b).square().mean())


def test_a_constant_difference_counts_fully_at_every_scale_but_for_the_border():
    a = torch.zeros(1, 1, 64, 64)
    # Zero beyond the border: only the inside of each scale has the whole difference.
    assert multi_scale(a + 1, a, 2) > 0.5 * (1 + 4 * (28 / 32) ** 2)
    assert multi_scale(a + 1, a, 2) < 0.5 * (1 + 4)


def test_far_objects_attract_each_other():
    for distance in (4, 10, 20):
        target = torch.zeros(1, 1, 64, 64)
        target[..., 30:33, 8:11] = 1
        value = []
        for step in (-1, 0, 1):
            frame = torch.zeros(1, 1, 64, 64)
            frame[..., 30:33, 8 + distance + step : 11 + distance + step] = 1
            value.append(float(multi_scale(frame, target)))
        assert value[0] < value[1] < value[2]


def test_small_images_have_one_scale():
    a, b = torch.rand(2, 1, 3, 5, 7)
    torch.testing.assert_close(multi_scale(a, b), mean_square(a, b))


def test_gradcheck():
    a, b = torch.rand(2, 1, 2, 9, 16, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: multi_scale(x, b), a.requires_grad_())


def test_frames_that_do_not_match():
    with pytest.raises(ShapeError, match="same shape"):
        multi_scale(torch.rand(1, 3, 8, 8), torch.rand(1, 8, 8))
    with pytest.raises(DtypeError, match="target"):
        mean_square(torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8).double())
    with pytest.raises(InputError, match="scales"):
        multi_scale(torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8), 0)
