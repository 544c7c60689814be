"""The tutorials run from top to bottom, are small, and are easy to read; so is the README."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))
MAX_BYTES = 300_000
MIN_FLESCH, MAX_SENTENCE_WORDS = 50, 20


def cells(path, kind):
    notebook = json.loads(path.read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def prose(text):
    """Text of a page without code, tables, pictures, links' targets and headings; a sentence ends each paragraph."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r"(\||#|!|<|    )", line)]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines)).replace("**", "")
    text = re.sub(r"`[^`]*`", "code", text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n- ", text)]
    return "\n".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in paragraphs if part)


def test_there_are_five():
    assert len(TUTORIALS) == 5


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_outputs_are_stored_and_small(path):
    assert path.stat().st_size < MAX_BYTES
    notebook = json.loads(path.read_text())
    outputs = [output for cell in notebook["cells"] if cell["cell_type"] == "code" for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert [output for output in outputs if "image/png" in output.get("data", {})]
    assert f"tutorials/{path.stem}.md" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize("path", [ROOT / "README.md", *TUTORIALS], ids=lambda path: path.stem)
def test_texts_are_easy_to_read(path):
    pyphen = pytest.importorskip("pyphen", reason="pip install 'physvision[test]' brings pyphen")
    text = prose(path.read_text() if path.suffix == ".md" else "\n\n".join(cells(path, "markdown")))
    words, sentences = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text), re.findall(r"[^.!?]*\w[.!?]+(?=\s|$)", text)
    assert len(words) > 100
    sentence_words = len(words) / len(sentences)
    assert sentence_words <= MAX_SENTENCE_WORDS
    # As textstat has it, whose package cannot be installed beside tests of one's own.
    syllables = sum(len(pyphen.Pyphen(lang="en_US").positions(word)) + 1 for word in words)
    assert 206.835 - 1.015 * sentence_words - 84.6 * syllables / len(words) >= MIN_FLESCH


@pytest.mark.extended
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run(path, tmp_path):
    nbclient, nbformat = (pytest.importorskip(name) for name in ("nbclient", "nbformat"))
    notebook = nbformat.read(path, 4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=800, kernel_name="python3", resources=resources).execute()


def test_the_page_of_a_notebook_has_its_outputs():
    pytest.importorskip("mkdocs", reason="pip install 'physvision[docs]' builds the pages")
    code = "import sys, json; sys.path.insert(0, 'tools'); from notebook_pages import render_notebook; "
    code += "print(render_notebook(json.load(open(sys.argv[1])), 'x.ipynb'))"
    command = [sys.executable, "-c", code, str(TUTORIALS[0])]
    page = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert page.startswith("# ")
    assert "(x.ipynb)" in page
    assert "data:image/png;base64," in page
    assert "```python" in page
