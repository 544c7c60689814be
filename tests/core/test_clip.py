import pytest
import torch

from physvision.core import Clip, InputError, ShapeError


def ramp(times=4, channels=3):
    return torch.arange(times * 2 * 5 * channels, dtype=torch.uint8).reshape(times, 2, 5, channels)


def test_windows_keep_the_times_of_the_whole_clip():
    clip = Clip(ramp(), torch.tensor([0.0, 0.1, 0.2, 0.4], dtype=torch.float64), "a.mp4")
    part = clip.window(1, 3)
    assert len(part) == 2
    assert (part.height, part.width, part.source) == (2, 5, "a.mp4")
    assert torch.equal(part.frames, ramp()[1:3])
    assert part.times.tolist() == [0.1, 0.2]
    assert clip.fps == pytest.approx(10.0)


def test_images_are_channels_first_and_between_zero_and_one():
    clip = Clip(ramp(), torch.arange(4).double())
    images = clip.images()
    assert images.shape == (4, 3, 2, 5)
    assert images[2, 1, 0, 3].item() == pytest.approx(ramp()[2, 0, 3, 1].item() / 255)


def test_gray_weighs_the_colors_by_their_luma():
    frames = torch.tensor([[[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]]], dtype=torch.uint8)
    gray = Clip(frames, torch.zeros(1)).gray()
    assert gray.frames.flatten().tolist() == [76, 150, 29, 255]
    assert gray.gray() is gray


@pytest.mark.parametrize(
    ("frames", "times", "error", "match"),
    [
        (ramp().float(), torch.arange(4.0), ShapeError, "expected uint8"),
        (ramp(channels=2), torch.arange(4.0), ShapeError, "1 or 3"),
        (ramp(), torch.arange(3.0), ShapeError, "one for each of 4 frames"),
        (ramp(), torch.tensor([0.0, 1.0, 1.0, 2.0]), InputError, "later than the one before"),
        (ramp(), torch.tensor([0.0, 1.0, float("nan"), 2.0]), InputError, "finite"),
    ],
)
def test_frames_and_times_that_do_not_belong_together_raise(frames, times, error, match):
    # Shape annotations would raise first while the tests run; the boundary has to hold without them.
    clip = object.__new__(Clip)
    for name, value in {"frames": frames, "times": times, "source": ""}.items():
        object.__setattr__(clip, name, value)
    with pytest.raises(error, match=match):
        clip.__post_init__()
