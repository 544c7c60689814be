"""Check YAML files before they are used: binary, damaged and maliciously large files are rejected."""

from __future__ import annotations

from pathlib import Path

import yaml

from physvision.core.errors import FileError, InputError

# A configuration has some hundred values; aliases of aliases stand for billions in a kilobyte.
_MAX_BYTES = 2**20
_MAX_VALUES = 100_000


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
