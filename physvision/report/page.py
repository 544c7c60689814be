"""Self-contained HTML page of charts, tables and images."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from physvision.core import FileError
from physvision.core.files import atomic_path
from physvision.report.markup import Markup, to_html


class Page:
    """Report that grows section by section.

    Plain text is escaped; charts, tables and images are `Markup` of their functions.
    """

    def __init__(self, title: str, introduction: str = "", notes: Sequence[str] = ()) -> None:
        """Start a page with its headline.

        Args:
            title: Headline of the page.
            introduction: One or two sentences below the headline.
            notes: Warnings at the top of the page.
        """
        self.title = title
        self._parts = [f"<h1>{escape(title[:1].upper() + title[1:])}</h1><p>{to_html(introduction)}</p>"]
        self._parts += [f'<div class="note">{escape(note)}</div>' for note in notes]

    def add(self, *parts: Markup) -> None:
        """Add charts, tables or images."""
        self._parts += map(to_html, parts)

    def section(self, heading: str, *parts: Markup, text: str = "") -> None:
        """Add a section; one without parts is left out."""
        if parts:
            self._parts.append(f"<h2>{escape(heading)}</h2>" + (f"<p>{to_html(text)}</p>" if text else ""))
            self.add(*parts)

    @property
    def text(self) -> str:
        """Complete text of the page as HTML."""
        template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
        return template.substitute(title=escape(self.title), body="\n".join(self._parts))

    def write(self, path: Path) -> Path:
        """Write the page to a file, completely or not at all.

        Raises:
            FileError: The file cannot be written.
        """
        try:
            with atomic_path(path) as hidden:
                hidden.write_text(self.text, encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path}: cannot be written ({error.strerror}); make room and run again") from error
        return path
