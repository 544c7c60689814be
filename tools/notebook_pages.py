"""Pages of the documentation from notebooks with their stored outputs: a hook of mkdocs.

Every notebook of docs/tutorials becomes a page of the same name, whose links mkdocs checks as those of other pages, and
to which links of other pages lead. The notebook itself is copied beside it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every notebook.

    Args:
        files: Files of the documentation.
        config: Configuration of mkdocs.
    """
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        assert file.abs_src_path is not None
        notebook = json.loads(Path(file.abs_src_path).read_text(encoding="utf-8"))
        name = Path(file.src_uri).name
        uri = file.src_uri.removesuffix(".ipynb") + ".md"
        files.append(File.generated(config, uri, content=render_notebook(notebook, name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links of other pages to notebooks into links to their pages.

    Args:
        markdown: Text of a page.
    """
    return re.sub(r"(\]\([\w./]*tutorials/\w+)\.ipynb\)", r"\1.md)", markdown)


def render_notebook(notebook: dict[str, Any], name: str) -> str:
    """Write a notebook as a page of Markdown, pictures included.

    Args:
        notebook: Content of the notebook's file.
        name: File name of the notebook, to which the page links.
    """
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts += [f"```python\n{text}\n```", *map(_output, cell["outputs"])]
    title, rest = parts[0].split("\n", 1)
    download = f"[This page as a notebook]({name})"
    return "\n\n".join([title, download, rest.strip(), *parts[1:]]) + "\n"


def _output(output: dict[str, Any]) -> str:
    """Markdown of one output of a cell: text, or a picture."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        return f"![figure](data:image/png;base64,{''.join(data['image/png']).strip()})"
    return "```text\n" + "".join(data["text/plain"]).rstrip() + "\n```"
