"""The reference of commands, from the parsers themselves: a hook of mkdocs.

The page reference/commands.md is filled with every command and every option, its default and its help. That part exists
only in the built documentation, so it cannot differ from what `physvision COMMAND --help` prints.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from mkdocs.structure.pages import Page

from physvision.cli import COMMANDS, build_parsers

PAGE = "reference/commands.md"
_MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill the page of commands.

    Args:
        markdown: Text of a page.
        page: Page, of whose files only that of commands is filled.
    """
    if page.file.src_uri != PAGE:
        return markdown
    assert _MARK in markdown
    return markdown.replace(_MARK, render_commands())


def render_commands() -> str:
    """Write a table of all commands, then a section for each of them."""
    rows = [f"| [`{name}`](#{name}) | {text} |" for name, (_, text) in COMMANDS.items()]
    parts = ["\n".join(["| command | what it does |", "|---|---|", *rows])]
    sections: dict[str, str] = {}  # options: name of the first command that has them
    for name, (_, text) in COMMANDS.items():
        parts.append(f"## {name}")
        parsers = build_parsers(name)
        if len(parsers) > 1:
            parts.append(f"{text[0].upper()}{text[1:]}. Its subcommands:")
        for parser in parsers:
            section = parser.prog.partition(" ")[2]
            parts += [f"### {section}"] if len(parsers) > 1 else []
            parts += [parser.description or "", f"    {_usage(parser)}"]
            options = "\n".join(_render_action(action, parser) for action in _actions(parser))
            first = sections.setdefault(options, section)
            parts.append(
                options if first == section else f"Its options are those of [{first}](#{first.replace(' ', '-')})."
            )
    return "\n\n".join(part for part in parts if part) + "\n"


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Options that a command line may hold; not help, nor a file of a whole section, which it refuses."""
    return [
        action
        for action in parser._actions
        if not any(name.endswith("help") for name in action.option_strings)
        and type(action).__name__ != "_ActionConfigLoad"
    ]


def _usage(parser: argparse.ArgumentParser) -> str:
    if parser.usage:
        return parser.usage % {"prog": parser.prog}
    actions = _actions(parser)
    places = [action for action in actions if not action.option_strings]
    words = [f"[{action.dest.upper()}]" if action.nargs == "?" else action.dest.upper() for action in places]
    return " ".join([parser.prog, *words, *["[OPTION ...]"][: len(actions) - len(places)]])


def _render_action(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """Write a list entry of an option: its names, its default and its help."""
    names = [name for name in action.option_strings if not name.endswith("+")] or [action.dest.upper()]
    metavar, default = str(action.metavar or ""), action.default
    if isinstance(default, bool) and len(names) == 1 and not parser.usage:  # training takes true and false as values
        names.append(f"--no-{names[0].removeprefix('--')}")
    remarks = []
    if metavar.startswith("{") and not isinstance(default, bool):
        remarks.append(f"one of {', '.join(f'`{choice}`' for choice in metavar[1:-1].split(','))}")
    elif metavar and metavar[0] not in "{[":
        names[0] += f" {metavar}"
    if action.required:
        remarks.append("required")
    elif default not in (None, argparse.SUPPRESS, []):
        remarks.append(f"default `{_plain(default)}`")
    remark = f" ({'; '.join(remarks)})" if remarks else ""
    text = " ".join((action.help or "").replace("%%", "%").split())
    return f"- {', '.join(f'`{name}`' for name in names)}{remark}: {text}"


def _plain(default: object) -> str:
    """Write a default as the command line takes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, os.PathLike):
        return os.fspath(default)
    if isinstance(default, tuple | list):
        return f"[{', '.join(map(_plain, default))}]"
    return f"{default:.6g}" if isinstance(default, float) else str(default)
