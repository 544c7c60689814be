"""Read configurations in YAML: binary, damaged and maliciously large files are rejected, and nothing is imported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from physvision.core.errors import FileError, InputError

# A configuration has some hundred values; aliases of aliases stand for billions in a kilobyte.
_MAX_BYTES = 2**20
_MAX_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """Loader of plain values, for which 1e-3 is a number as it is in JSON and in YAML 1.2."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a configuration, a mapping of plain values.

    Raises:
        FileError: The file cannot be read.
        InputError: The file is not a valid configuration.
    """
    check_yaml(path)
    values = _load(Path(path).read_text(encoding="utf-8"), str(path))
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected options and their values, got {type(values).__name__}")
    return values


def parse_value(text: str) -> Any:
    """Parse a value of the command line: plain YAML, or else the text itself."""
    try:
        return _load(text, "value")
    except InputError:
        return text


def _load(text: str, name: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{name}: not YAML of plain values ({' '.join(str(error).split())})") from error


def check_yaml(path: str | Path) -> None:
    """Raise an error unless the YAML file at `path` is readable and of a reasonable size, aliases expanded.

    Raises:
        FileError: The file cannot be read.
        InputError: The file is not a valid configuration.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > _MAX_BYTES:
        raise InputError(f"{path}: expected a configuration of at most {_MAX_BYTES} bytes, got {len(content)}")
    try:
        root = yaml.compose(content.decode("utf-8"), yaml.SafeLoader)
        values = 0 if root is None else _values(root, {})
    except UnicodeDecodeError as error:
        at = error.start
        raise InputError(f"{path}: expected text in UTF-8, got the byte {content[at]} at {at}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    except RecursionError as error:
        raise InputError(f"{path}: lists or mappings are nested too deeply") from error
    if values > _MAX_VALUES:
        raise InputError(f"{path}: its aliases expand to {values:.3g} values, expected at most {_MAX_VALUES}")


def _values(node: yaml.Node, counts: dict[int, int]) -> int:
    """Count the values of a node with its aliases expanded; 10³⁰ for a node that contains itself."""
    if id(node) not in counts:
        counts[id(node)] = 10**30
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        elif isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        counts[id(node)] = 1 + sum(_values(child, counts) for child in children)
    return counts[id(node)]
