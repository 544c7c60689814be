"""The checker of names, docstrings and commit subjects: every rule finds its fault, and only that."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("language", ROOT / "tools" / "language.py")
assert _SPEC
assert _SPEC.loader
language = importlib.util.module_from_spec(_SPEC)
sys.modules["language"] = language
_SPEC.loader.exec_module(language)

LEXICON = [
    language.Word("found", "*", "name", "a noun"),
    language.Word("first", "learning", "variable", "obs"),
    language.Word("Game", "envs", "class", "Environment"),
    language.Word("overlap", "*", "token", "penetration"),
    language.Word("parts", "*", "module", "what the file holds"),
    language.Word("is no number", "*", "phrase", "NaN"),
]


def _rules(source: str, path: str = "physvision/learning/run.py") -> list[tuple[str, int]]:
    return [(finding.rule, finding.line) for finding in language.check_code(source, path, LEXICON)]


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def found(): pass",
        "def run(found): pass",
        "for found in (): pass",
        "with open('') as found: pass",
        "import os as found",
        "x = [0 for found in ()]",
        "class A:\n    found: int",
        "overlap_depth = 1",
        "_overlap = 1",
        "first = 1",
    ],
)
def test_banned_identifiers_are_found_where_they_are_defined(source):
    assert [rule for rule, _ in _rules(source)] == ["identifier"]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("first = 1", "physvision/camera/rays.py"),  # another room
        ("def first(): pass", "physvision/learning/run.py"),  # another kind
        ("class Game: pass", "physvision/learning/run.py"),
        ("print(found)", "physvision/learning/run.py"),  # a use, not a definition
        ("founder = overlapped = 1", "physvision/learning/run.py"),  # other words
        ("def test_overlap(): pass", "tests/test_run.py"),  # a sentence
    ],
)
def test_ordinary_words_are_banned_only_where_a_row_means_them(source, path):
    assert _rules(source, path) == []


def test_modules_have_names_too():
    assert _rules("", "physvision/models/parts.py") == [("identifier", 1)]


@pytest.mark.parametrize("word", ["What", "How", "Whether", "Where", "Of", "The same", "As", "Also"])
def test_docstrings_do_not_begin_with_a_fragment(word):
    assert _rules(f'def f():\n    """{word} is in the buffer now."""') == [("first word", 2)]


def test_a_word_that_only_begins_like_a_fragment_is_allowed():
    assert _rules('"""Offsets of all the rows."""') == []


def test_summaries_have_four_words():
    assert _rules('def f():\n    """Sample a batch."""') == [("short summary", 2)]
    assert _rules('def f():\n    """Sample a\n    random batch.\n\n    More.\n    """') == []


DOCSTRING = '''
def f(flag: bool, size: int):
    """Sample a batch of transitions.

    Args:
        flag: {flag}
        size: {size}

    Returns:
        of: no entry.
    """
'''


def test_entries_are_noun_phrases_and_booleans_begin_if_true():
    assert _rules(DOCSTRING.format(flag="If true, shuffle.", size="Batch size, in rows.")) == []
    assert _rules(DOCSTRING.format(flag="Shuffles.", size="of the batch")) == [("boolean", 6), ("entry", 7)]
    assert _rules(DOCSTRING.format(flag="whether to shuffle", size="How many.")) == [("entry", 6), ("entry", 7)]


def test_fields_of_a_class_are_checked_too():
    source = '"""Settings of a learner here."""\nclass A:\n    """Settings of one learner.\n\n    Attributes:\n'
    assert _rules(source + '        flag: Shuffles.\n    """\n    flag: bool = True\n') == [("boolean", 6)]


@pytest.mark.parametrize("name", ["_LEAST", "MOST_ROUNDS", "FEWEST", "PAIRS_MOST"])
def test_constants_name_their_quantity(name):
    assert _rules(f"{name} = 3") == [("constant", 1)]


def test_constants_with_a_quantity_pass():
    assert _rules("MIN_TRACK_SAMPLES = ALMOST = 3") == []


def test_spelling_and_phrases():
    page = "The neighbours' centre\nhas a normalised color.\nThe loss is no number."
    rules = [(finding.rule, finding.line) for finding in language.check_prose(page, "docs/a.md", LEXICON)]
    assert rules == [("spelling", 1), ("spelling", 1), ("spelling", 2), ("phrase", 3)]


def test_tests_need_no_docstrings_of_that_kind():
    assert _rules('def f():\n    """What is."""', "tests/test_a.py") == []


def test_subjects():
    subjects = {"a": "learning: rename Outcome to StepResult", "b": "Tell of worlds", "c": "x" * 73}
    assert [finding.text.split()[0].rstrip(":") for finding in language.check_subjects(subjects)] == ["b", "c"]


def test_the_lexicon_is_a_table_without_repetition():
    rows = language.read_lexicon()
    assert len({(row.word, row.room, row.kind) for row in rows}) == len(rows)
    kinds = {"class", "function", "argument", "variable", "attribute", "module", "name", "token", "phrase"}
    assert {row.kind for row in rows} <= kinds
    assert all(row.word and row.room and row.instead for row in rows)
