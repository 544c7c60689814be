"""The blocks of code of README.md and docs/: Python between fences, and command lines that are indented.

A comment `<!-- not run: REASON -->` before a block, which no reader of the page sees, leaves it out.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/reference").glob("*.md"))]
PROGRAMS = ("physvision", "python", "torchrun", "pip", "make", "bash")
_INLINE = re.compile(r"`(physvision [a-z][^`\n]*)`")
_REASON = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        name: Page and number of the block among those of its kind on the page.
        kind: "python", "shell", or "text" of anything else.
        line: Line of the page at which it starts.
        text: Its code.
        reason: Reason why it is not run; empty if it is.
    """

    name: str
    kind: str
    line: int
    text: str
    reason: str

    def commands(self) -> list[list[str]]:
        """Split the command lines of the block into words, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        words = [word for line in lines for word in [*shlex.split(line, comments=True), "&&"]]
        commands: list[list[str]] = [[]]
        for word in words:
            commands += [[]] if word == "&&" else []
            commands[-1] += [] if word == "&&" else [word]
        return [command for command in commands if command]


def read_blocks(*kinds: str) -> list[Block]:
    """Read all blocks of some kinds, page by page."""
    return [block for page in PAGES for block in _blocks_of(page) if block.kind in kinds]


def read_commands() -> list[tuple[str, list[str]]]:
    """Read every command of physvision, in blocks and within lines of text: the name of its page, and its words."""
    blocks = read_blocks("shell")
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        blocks += [Block(page.name, "shell", 0, command, "") for command in _INLINE.findall(text)]
    return [(block.name, words) for block in blocks for words in block.commands() if words[0] == "physvision"]


def _blocks_of(page: Path) -> Iterator[Block]:
    name = page.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")
    counts: dict[str, int] = {}
    for line, kind, text, reason in _raw_blocks(page.read_text(encoding="utf-8").splitlines()):
        counts[kind] = counts.get(kind, 0) + 1
        yield Block(f"{name}-{counts[kind]}", kind, line, text, reason)


def _raw_blocks(lines: list[str]) -> Iterator[tuple[int, str, str, str]]:
    start, reason = 0, ""
    while start < len(lines):
        end = start + 1
        if lines[start].startswith("```"):
            while lines[end] != "```":
                end += 1
            yield start + 1, lines[start][3:], "\n".join(lines[start + 1 : end]), reason
            end, reason = end + 1, ""
        elif lines[start].startswith("    ") and (start == 0 or not lines[start - 1]):
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            text = "\n".join(line[4:] for line in lines[start:end])
            yield start + 1, "shell" if text.split()[0] in PROGRAMS else "text", text, reason
            reason = ""
        elif lines[start]:
            match = _REASON.fullmatch(lines[start])
            reason = match[1] if match else ""
        start = end
