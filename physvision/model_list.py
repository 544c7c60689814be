"""`physvision models`: the pretrained models with their size, task and accuracy, as their cards say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent, wrap

from physvision.core.errors import InputError
from physvision.core.resources import folder

_WIDTH = 96  # of the lines of a list
_ACCURACY = "**Accuracy**:"
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class ModelCard:
    """Card of a pretrained model.

    Attributes:
        name: Name by which the model is loaded.
        size: Size of its file, bytes.
        task: First paragraph of the card.
        accuracy: Figures that the card puts first.
        text: Whole card.
    """

    name: str
    size: int
    task: str
    accuracy: str
    text: str


def model_cards() -> list[ModelCard]:
    """Read the cards of all pretrained models."""
    return [_read_card(path) for path in sorted(folder("models").glob("*.safetensors"))]


def list_models(name: str | None = None) -> None:
    """List the pretrained models with their size, task and accuracy, or print the card of one.

    Args:
        name: Name of a model, whose card is printed; all are listed by default.
    """
    cards = {card.name: card for card in model_cards()}
    if name is None:
        print("\n\n".join(_entry(card) for card in cards.values()))
    elif name in cards:
        print(cards[name].text)
    else:
        raise InputError(f"expected one of {', '.join(cards)}, got {name!r}")


def _read_card(path: Path) -> ModelCard:
    text = path.with_suffix(".md").read_text(encoding="utf-8").strip()
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    accuracy = next(part for part in paragraphs if part.startswith(_ACCURACY))
    task = _LINK.sub(r"\1", paragraphs[1])
    return ModelCard(path.stem, path.stat().st_size, task, accuracy.removeprefix(_ACCURACY).strip(), text)


def _entry(card: ModelCard) -> str:
    lines = [line for text in (card.task, card.accuracy) for line in wrap(text, _WIDTH)]
    return f"{card.name}, {card.size / 1e6:.1f} MB\n" + indent("\n".join(lines), "    ")
