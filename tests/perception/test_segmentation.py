import numpy as np
import pytest
import torch
from perception.table import RADIUS, SIZE, clip

from physvision.core import InputError
from physvision.perception.segmentation import ColorFilters, centroids, find_colors, track_masks

RED, GREEN, BLUE = (1.0, 0.1, 0.1), (0.1, 0.9, 0.2), (0.2, 0.3, 1.0)


def matched(result, centers):
    """Error of each found object against the true one that it is, the same at all times; pixels."""
    distances = np.linalg.norm(result.positions.numpy()[:, :, None] - centers[:, None], axis=-1)
    whose = distances[0].argmin(1)
    assert sorted(whose) == list(range(centers.shape[1]))
    return distances[:, np.arange(len(whose)), whose]


@pytest.mark.parametrize("background", [0.0, 0.5, 1.0])
def test_given_colors_are_found_where_they_are(background):
    frames, centers = clip([RED, GREEN, BLUE], background=background)
    filters = ColorFilters.from_colors([RED, GREEN, BLUE], (background,) * 3)
    masks = filters.masks(frames)
    # Away from the other balls a mask has the disc's area, less the faintest pixels, below the filters' contrast.
    alone = np.linalg.norm(centers[:, 0, None] - centers[:, 1:], axis=-1).min(1) > 2 * RADIUS + 2
    areas = masks[:, 0].sum((-1, -2)).numpy()[alone]
    np.testing.assert_allclose(areas, np.pi * RADIUS**2, rtol=0.02)
    assert np.linalg.norm(centroids(masks).numpy() - centers, axis=-1).max() < 0.1


def test_colors_are_found_from_the_frames():
    frames, centers = clip([RED, GREEN, BLUE], background=0.3, noise=0.01)
    filters = find_colors(frames, 3)
    assert filters.counts == (1, 1, 1)
    for color in (RED, GREEN, BLUE):
        assert (filters.colors - torch.tensor(color)).abs().amax(1).min() < 0.03
    result = track_masks(filters.masks(frames), filters.counts)
    assert matched(result, centers).max() < 0.15
    assert result.confidence.min() > 0.8


def test_one_frame_colors_do_not_depend_on_luck():
    frames, _ = clip([RED, GREEN, BLUE])
    first, again = find_colors(frames, 3), find_colors(frames, 3)
    assert torch.equal(first.colors, again.colors)


@pytest.mark.parametrize("seed", range(6))
def test_two_of_one_color_keep_their_names(seed):
    frames, centers = clip([RED, RED, BLUE], frames=200, seed=seed)
    filters = find_colors(frames, 3)
    assert sorted(filters.counts) == [1, 2]
    errors = matched(track_masks(filters.masks(frames), filters.counts), centers)
    assert np.quantile(errors, 0.95) < 0.2
    assert errors.max() < 1.5


def test_a_hidden_ball_has_no_confidence_and_a_predicted_place():
    frames, centers = clip([RED, BLUE], seed=1, frames=40)
    gone = slice(20, 24)
    filters = ColorFilters.from_colors([RED, BLUE])
    masks = filters.masks(frames)
    masks[gone, 0] = 0
    result = track_masks(masks)
    assert (result.confidence[gone, 0] == 0).all()
    assert (result.confidence[:, 1] > 0.9).all()
    assert (result.masks[gone, 0] == 0).all()
    predicted = 2 * result.positions[19, 0] - result.positions[18, 0]
    torch.testing.assert_close(result.positions[20, 0], predicted)
    assert np.linalg.norm(result.positions[24:, 0].numpy() - centers[24:, 0], axis=-1).max() < 0.1


def test_nothing_to_see_is_a_defined_result():
    filters = ColorFilters.from_colors([RED, BLUE])
    result = track_masks(filters.masks(torch.zeros(5, 3, SIZE, SIZE)))
    assert (result.confidence == 0).all()
    assert result.positions.isfinite().all()
    with pytest.raises(InputError, match="nothing moves"):
        find_colors(torch.full((5, 3, SIZE, SIZE), 0.4), 2)


def test_a_ball_that_leaves_loses_confidence():
    frames, _ = clip([RED], seed=3, frames=10)
    shifted = torch.zeros(10, 3, SIZE, SIZE)
    for time in range(10):
        across = 8 * time
        if across < SIZE:
            shifted[time, :, :, across:] = frames[0, :, :, : SIZE - across]
    result = track_masks(ColorFilters.from_colors([RED]).masks(shifted))
    assert result.confidence[0, 0] > 0.9
    assert result.confidence[-1, 0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ColorFilters.from_colors([(0.0, 0.0, 0.02)]), "too close to the background"),
        (lambda: ColorFilters.from_colors([RED], counts=(1, 2)), "a count for each"),
        (lambda: ColorFilters.from_colors([RED], counts=(0,)), "counts"),
        (lambda: track_masks(torch.zeros(2, 3, 8, 8), (1, 1)), "3 colors"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()
