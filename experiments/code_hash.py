"""Hash of the code that a script imports, which tells whether a measured value is of today's code.

The files are the script and all of the repository that it imports, directly or not, with the kernels beside them, which
are loaded by name. Every statement at the top of a file counts by its syntax tree. Docstrings, comments, the order of
statements, their files and the names that the repository gives do not count: names are numbered within each statement.
So a renamed or moved function keeps the hash, and so does a call that goes to another function of the repository with
the same arguments. What a configuration file or a checkpoint says does not count either, nor how claims are written.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDERS = ("", "experiments", "benchmarks", "tests")  # where scripts find what they import
# Fields of the syntax tree that hold names.
NAMES = {"id", "attr", "arg", "name", "names", "asname", "rest", "kwd_attrs"}
RECORDING = {"claims", "code_hash"}  # modules that write what was measured
_Name = tuple[str, ...]  # a token that is a name, in contrast to a str


@dataclass(frozen=True)
class _File:
    """Imports and syntax of a file.

    Attributes:
        imports: Modules and names that are imported when the file is.
        lazy: Modules of names that are imported when they are first used, by name.
        names: Names that the file defines.
        statements: Tokens of every statement at its top; names are tuples of one.
    """

    imports: tuple[tuple[str, str], ...]
    lazy: dict[str, str]
    names: frozenset[str]
    statements: tuple[tuple[str | _Name, ...], ...]


def code_hash(root: Path, script: Path) -> str:
    """Hash of the code that a script imports; empty if there is no such script.

    Args:
        root: Folder of the repository.
        script: Path of the script.
    """
    files = imported_files(root, script)
    names = frozenset().union(*(_read(path, root).names for path in files)) - set(dir(builtins))
    statements = {_numbered(statement, names) for path in files for statement in _read(path, root).statements}
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()[:16] if files else ""


def imported_files(root: Path, script: Path) -> set[Path]:
    """Find the files of the repository that a script imports, with the script and kernels beside them.

    Args:
        root: Folder of the repository.
        script: Path of the script.
    """
    files: set[Path] = set()
    waiting = [script.resolve()] if script.is_file() else []
    while waiting:
        path = waiting.pop()
        if path in files:
            continue
        files.add(path)
        waiting += (path.parent / "kernels").glob("**/*.py")
        for module, name in _read(path, root).imports:
            waiting += _resolve(root, path.parent, module, name)
    return files


def _resolve(root: Path, beside: Path, module: str, name: str) -> list[Path]:
    """Files that an import of a name from a module, or of the module if the name is empty, runs."""
    if module in RECORDING:
        return []
    submodule = name and _find(root, beside, f"{module}.{name}")
    if submodule:
        return [submodule]
    path = _find(root, beside, module)
    if path is None:
        return []
    lazy = _read(path, root).lazy.get(name)
    return [path, *(_resolve(root, beside, lazy, name) if lazy else [])]


@cache
def _find(root: Path, beside: Path, module: str) -> Path | None:
    """File of a module, or None if it is not of the repository."""
    parts = module.split(".")
    for folder in (beside, *(root / folder for folder in FOLDERS)):
        for path in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py")):
            if path.is_file():
                return path.resolve()
    return None


@cache
def _read(path: Path, root: Path) -> _File:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = path.parent.relative_to(root.resolve()).parts
    eager, lazy = [], {}
    for node in ast.walk(tree):
        typed = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for child in ast.walk(node) if typed else ():
            lazy |= {name: module for module, name in _imports(child, package)}
            child.__dict__["_typed"] = True
        if "_typed" not in node.__dict__:
            eager += _imports(node, package)
    # Attributes of a package whose names are imported when they are first used.
    modules = [module for module, name in eager if not name and (root / module.split(".")[0]).is_dir()]
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} if modules else set()
    eager += [(module, name) for module in modules for name in sorted(attributes)]
    names = {name for node in ast.walk(tree) for name in _defined(node)}
    statements = [_statement(node) for node in tree.body]
    return _File(tuple(dict.fromkeys(eager)), lazy, frozenset(names), tuple(filter(None, statements)))


def _imports(node: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield modules and names of an import; the name is empty where a module itself is imported."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parents = package[: len(package) - node.level + 1] if node.level else ()
        module = ".".join((*parents, *filter(None, [node.module])))
        yield from ((module, alias.name) for alias in node.names)


def _defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node of a syntax tree defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _write_tokens(node: object, tokens: list[str | _Name]) -> None:
    """Append the tokens of a syntax tree without imports, docstrings and positions."""
    if isinstance(node, ast.AST):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
            return
        tokens.append(f"({type(node).__name__}")
        for field in node._fields:
            value = getattr(node, field, None)
            if field in NAMES and isinstance(value, str):
                tokens.append((value,))
            elif field in NAMES and isinstance(value, list):
                tokens += [(name,) for name in value if isinstance(name, str)]
            elif field not in ("ctx", "type_comment"):
                _write_tokens(value, tokens)
        tokens.append(")")
    elif isinstance(node, list):
        tokens.append("[")
        for child in node:
            _write_tokens(child, tokens)
        tokens.append("]")
    else:
        tokens.append(repr(node))


def _statement(node: ast.stmt) -> tuple[str | _Name, ...]:
    tokens: list[str | _Name] = []
    _write_tokens(node, tokens)
    return tuple(tokens)


def _numbered(tokens: tuple[str | _Name, ...], names: frozenset[str]) -> str:
    """Text of a statement in which own names are replaced by the order of their first use."""
    numbers: dict[str, int] = {}
    texts = []
    for token in tokens:
        if isinstance(token, str):
            texts.append(token)
        elif token[0] in names:
            texts.append(f"_{numbers.setdefault(token[0], len(numbers))}")
        else:
            texts.append(token[0])
    return " ".join(texts)
