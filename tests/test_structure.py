"""The structure of the package: no circle of imports at any depth, and files and functions of a readable size."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "physvision"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_ARGUMENTS = 10
FILES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({PACKAGE, *(file.parent for file in FILES)})


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(file): file for file in FILES}


def _imports(file: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, within functions and for types too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "physvision":
            for alias in node.names:
                child = f"{node.module}.{alias.name}"
                yield child if child in MODULES else node.module


IMPORTS = {name: sorted(set(_imports(file)) - {name}) for name, file in MODULES.items()}


def _siblings(folder: Path) -> dict[str, set[str]]:
    """Map every child of a folder to those of its siblings that it, or anything in it, imports."""
    package = _module(folder / "__init__.py")
    graph: dict[str, set[str]] = {}
    for name, imported in IMPORTS.items():
        if name.startswith(f"{package}."):
            child = name.removeprefix(f"{package}.").split(".")[0]
            others = (imported_name for imported_name in imported if imported_name.startswith(f"{package}."))
            graph.setdefault(child, set()).update(
                imported_name.removeprefix(f"{package}.").split(".")[0] for imported_name in others
            )
            graph[child].discard(child)
    return graph


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """Find a circle of the graph by depth-first search; empty if there is none."""
    finished: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return path[path.index(node) :]
        if node in finished:
            return []
        finished.add(node)
        return next((circle for after in sorted(graph.get(node, ())) if (circle := visit(after, [*path, node]))), [])

    return next((circle for node in sorted(graph) if (circle := visit(node, []))), [])


def test_the_search_finds_a_circle():
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert _circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: _module(folder / "__init__.py"))
def test_siblings_import_each_other_in_no_circle(folder):
    assert _circle(_siblings(folder)) == []


def _settings() -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the settings classes of the package, which hold its tuning numbers and options."""
    for name, file in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Settings"):
                yield f"{name}.{node.name}", node


def test_settings_are_frozen_and_each_is_documented():
    """A number that can be tuned says what it is, in its class's docstring."""
    undocumented = []
    for name, node in _settings():
        assert any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list), name
        docstring = ast.get_docstring(node) or ""
        fields = [ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)]
        undocumented += [f"{name}.{field}" for field in fields if not re.search(rf"^ +{field}: \S+ ", docstring, re.M)]
    assert undocumented == []
    assert len(dict(_settings())) > 20


def test_functions_have_at_most_ten_arguments():
    """More than ten are grouped in settings; kernels take what Warp cannot group."""
    longer = {}
    for name, file in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "kernels" not in name.split("."):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(argument.arg not in ("self", "cls") for argument in arguments)
                if count > MAX_ARGUMENTS:
                    longer[f"{name}.{node.name}"] = count
    assert longer == {}


def test_kernels_import_nothing_upward():
    """Modules of a package of kernels import neither the package itself nor the engines above it."""
    upward = [
        (name, imported_name)
        for name, imported in IMPORTS.items()
        for imported_name in imported
        if ".kernels." in f"{name}." and name != imported_name and f"{name}.".startswith(f"{imported_name}.")
    ]
    assert upward == []


def test_files_can_be_read_in_one_sitting():
    """Those of tests, experiments, benchmarks and tools too."""
    folders = ("physvision", "tests", "experiments", "benchmarks", "examples", "tools")
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert len(lengths) > len(FILES)
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


def _functions(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the length of every function, its docstring not counted."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno
            docstring = node.body[0] if ast.get_docstring(node) else None
            length = docstring.end_lineno - docstring.lineno + 1 if docstring and docstring.end_lineno else 0
            yield node.name, node.end_lineno - node.lineno + 1 - length


def test_functions_fit_a_screen():
    """All functions but kernels, which Warp wants whole."""
    files = {name: file for name, file in MODULES.items() if "kernels" not in name.split(".")}
    lengths = {f"{name}.{function}": length for name, file in files.items() for function, length in _functions(file)}
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}
