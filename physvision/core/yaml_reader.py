"""Look at a YAML file before it is used: what is no text, damaged, or far larger than it looks is refused."""

from __future__ import annotations

from pathlib import Path

import yaml

from physvision.core.errors import FileError, InputError

# A configuration has some hundred values; aliases of aliases stand for billions in a kilobyte.
_MOST_BYTES = 2**20
_MOST_VALUES = 100_000


def check_yaml(path: str | Path) -> None:
    """Refuse the YAML file at `path` unless it can be read and is of a size to be worked with.

    Raises:
        FileError: it cannot be read.
        InputError: it is not a configuration, with the reason.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: expected a configuration of at most {_MOST_BYTES} bytes, got {len(content)}")
    try:
        root = yaml.compose(content.decode("utf-8"), yaml.SafeLoader)
        values = 0 if root is None else _values(root, {})
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: expected text in UTF-8, got the byte {content[error.start]} at {error.start}"
        ) from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    except RecursionError as error:
        raise InputError(f"{path}: lists or mappings are nested too deeply") from error
    if values > _MOST_VALUES:
        raise InputError(f"{path}: its aliases stand for {values:.3g} values, expected at most {_MOST_VALUES}")


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for, its aliases written out; infinite where one contains itself."""
    if id(node) not in known:
        known[id(node)] = 10**30
        inside: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            inside = node.value
        elif isinstance(node, yaml.MappingNode):
            inside = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_values(part, known) for part in inside)
    return known[id(node)]
