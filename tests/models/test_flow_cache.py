"""The flow of a pair is computed once, and is that of the flow inside."""

import torch

from physvision.models import BallCamera, BallCropSettings, CachedFlow, TableEncoder, VggEncoder


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pairs = 0

    def forward(self, first, second):
        self.pairs += len(first)
        return (second - first)[:, :2]


def test_known_pairs_are_not_computed_again():
    inner = Counting()
    flow = CachedFlow(inner, max_pairs=4)
    first, second = (torch.randint(0, 256, (3, 3, 8, 8)) / 255.0 for _ in range(2))
    expected = (second - first)[:, :2]
    for _ in range(2):
        torch.testing.assert_close(flow(first, second), expected, atol=1e-3, rtol=0)
    assert inner.pairs == 3
    rows = [2, 0]
    torch.testing.assert_close(flow(first[rows], second[rows]), expected[rows], atol=1e-3, rtol=0)
    assert inner.pairs == 3
    # The oldest pairs make room for new ones.
    flow(*(torch.randint(0, 256, (3, 3, 8, 8)) / 255.0 for _ in range(2)))
    flow(first[:1], second[:1])
    assert inner.pairs == 7


def test_the_encoder_reads_flow_as_four_more_channels():
    inner = Counting()
    network = VggEncoder(16, 8, width=0.05, pool=1, dropout=0.0)
    encoder = TableEncoder(
        2, (64, 64), 1 / 30, network, BallCamera(2), crops=BallCropSettings(codes=0), flow=CachedFlow(inner)
    )
    frames = torch.randint(0, 256, (2, 5, 3, 64, 64), dtype=torch.uint8)
    states = [encoder.eval().observe(frames).state.q for _ in range(2)]
    assert torch.equal(*states)
    assert inner.pairs == 4


def test_training_finds_the_flows_again_though_it_changes_colors():
    inner = Counting()
    network = VggEncoder(16, 8, width=0.05, pool=1, dropout=0.0)
    encoder = TableEncoder(
        2, (64, 64), 1 / 30, network, BallCamera(2), crops=BallCropSettings(codes=0), flow=CachedFlow(inner)
    ).train()
    frames = torch.randint(0, 256, (2, 5, 3, 64, 64), dtype=torch.uint8)
    for _ in range(3):
        encoder.observe(frames)
    assert inner.pairs == 4
