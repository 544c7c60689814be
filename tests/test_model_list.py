"""`physvision models` lists all pretrained models, with figures that stand in their cards."""

import re

import pytest

from physvision import cli
from physvision.core.resources import folder
from physvision.model_list import model_cards

CARDS = {card.name: card for card in model_cards()}


def test_all_are_listed_with_their_sizes(capsys):
    assert cli.main(["models"]) == 0
    heads = re.findall(r"^(\S+), (\S+) MB$", capsys.readouterr().out, re.MULTILINE)
    sizes = {path.stem: f"{path.stat().st_size / 1e6:.1f}" for path in folder("models").glob("*.safetensors")}
    assert dict(heads) == sizes
    assert len(sizes) > 8


@pytest.mark.parametrize("name", CARDS)
def test_the_figures_of_a_card_are_those_of_its_measurements(name):
    card = CARDS[name]
    measurements = card.text.replace(f"**Accuracy**: {card.accuracy}", "")
    assert len(measurements) < len(card.text)
    numbers = re.findall(r"\d+\.\d+", card.accuracy)
    assert numbers
    assert [number for number in numbers if number not in measurements] == []


def test_a_card_is_printed_by_its_name(capsys):
    assert cli.main(["models", "--name", "billiards-3"]) == 0
    assert capsys.readouterr().out.startswith("# billiards-3\n")
    assert cli.main(["models", "--name", "discs"]) == 1
    assert "expected one of billiards-1, " in capsys.readouterr().err
