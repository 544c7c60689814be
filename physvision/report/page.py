"""A page that holds everything itself and opens from the disk: a head, then sections of charts, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from physvision.core import FileError
from physvision.report.markup import Markup, shown
from physvision.report.output import partial


class Page:
    """A report that grows section by section.

    Plain text is escaped; charts, tables and pictures come as `Markup` from their functions.
    """

    def __init__(self, title: str, introduction: str = "", notes: Sequence[str] = ()) -> None:
        """Begin the page.

        Args:
            title: its headline.
            introduction: one or two sentences below it.
            notes: what a person should know before reading on.
        """
        self.title = title
        self._parts = [f"<h1>{escape(title[:1].upper() + title[1:])}</h1><p>{shown(introduction)}</p>"]
        self._parts += [f'<div class="note">{escape(note)}</div>' for note in notes]

    def add(self, *parts: Markup) -> None:
        """Add charts, tables or pictures."""
        self._parts += map(shown, parts)

    def section(self, heading: str, *parts: Markup, text: str = "") -> None:
        """Add a section; one without parts is left out."""
        if parts:
            self._parts.append(f"<h2>{escape(heading)}</h2>" + (f"<p>{shown(text)}</p>" if text else ""))
            self.add(*parts)

    @property
    def text(self) -> str:
        """The whole page as HTML."""
        template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
        return template.substitute(title=escape(self.title), body="\n".join(self._parts))

    def write(self, path: Path) -> Path:
        """Write the page to `path`, whole or not at all.

        Raises:
            FileError: there is no room, or no permission.
        """
        hidden = partial(path)
        try:
            hidden.write_text(self.text, encoding="utf-8")
            hidden.replace(path)
        except OSError as error:
            hidden.unlink(missing_ok=True)
            raise FileError(f"{path}: cannot be written ({error.strerror}); make room and run again") from error
        return path
