"""Check that names, docstrings and commit subjects speak the language of the field.

python tools/language.py [PATH ...] [--count]

Without a path, the whole repository is checked, commit subjects included. `tools/lexicon.csv` holds the words that are
not used, with the room and the kind of identifier that they are banned for and the word to use instead. Every finding
is printed with its file and line; `--count` prints only the number of findings of each rule and room.
"""

from __future__ import annotations

import argparse
import ast
import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = ("physvision", "experiments", "benchmarks", "datasets", "examples", "tools", "tests")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "models", "trainers", "datasets")
# Tests are named by what they show, so that their docstrings are optional and free.
WITHOUT_DOCSTRINGS = ("tests",)
# Files that quote the words they ban.
QUOTING = ("tools/language.py", "tests/test_language.py")
# The first commit whose subject was not yet checked.
FIRST_COMMIT = "c54efea"
MAX_SUBJECT_LENGTH = 72
MIN_SUMMARY_WORDS = 4

_FIRST_WORDS = re.compile(r"(What|How|Whether|Where|Of|The same|As|Also)\b")
_ENTRY_WORDS = re.compile(r"(of|whether|by|how|what)\b", re.IGNORECASE)
_SUBJECT_WORDS = re.compile(r"(Tell|Say|Let|Print)\b")
_CONSTANT = re.compile(r"(?:^|_)(LEAST|MOST|FEWEST|FEW|MANY|ENOUGH|FARTHEST|NEAREST)(?:_|$)")
_SECTION = re.compile(r"^(Args|Arguments|Attributes|Parameters):$")
_BRITISH = re.compile(
    r"\b(?:\w*(?:colour|neighbour|behaviour|favour|labelled|labelling|modelled|modelling|travell)\w*|grey(?!hound)\w*"
    r"|(?:en|un)?centre[ds]?|metres?|litres?|catalogue\w*|(?:normal|linear|optim|initial|regular|organ|recogn|summar"
    r"|discret|parametr|visual|general|minim|maxim|factor|vector|serial|random|penal|symmetr|stabil|util|local"
    r"|polar|quant|token|real|special|standard|synchron)is(?:e[ds]?|ing|ations?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Word:
    """One row of the lexicon: a word that is banned in a room for a kind of identifier.

    Attributes:
        word: Banned name, a part of one (kind `token`) or a phrase of prose (kind `phrase`).
        room: Folder of the package in which the row holds; `*` for everywhere.
        kind: class, function, argument, variable, attribute, module, name (any of these), token or phrase.
        instead: Words to use in its place.
    """

    word: str
    room: str
    kind: str
    instead: str

    def applies_to(self, path: str, kind: str) -> bool:
        """Return True if the row holds for an identifier of this kind in the file at `path`."""
        room = self.room == "*" or f"/{self.room}/" in f"/{path}/" or f"/{self.room}.py/" in f"/{path}/"
        return room and self.kind in ("name", "token", kind)


class Finding(NamedTuple):
    """One place that breaks a rule.

    Attributes:
        path: File, relative to the repository; empty for a commit.
        line: Line number, from 1; 0 where there is none.
        rule: Name of the broken rule.
        text: Explanation, with the word to use instead where the lexicon has one.
    """

    path: str
    line: int
    rule: str
    text: str


class Identifier(NamedTuple):
    """A name where it is defined, with its kind and line."""

    name: str
    kind: str
    line: int


def read_lexicon(path: Path = ROOT / "tools" / "lexicon.csv") -> list[Word]:
    """Read the table of banned words."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Word(**row) for row in csv.DictReader(file)]


def check_code(source: str, path: str, lexicon: list[Word]) -> Iterator[Finding]:
    """Check the identifiers and docstrings of one Python file.

    Args:
        source: Text of the file.
        path: Path of the file, relative to the repository.
        lexicon: Rows of the table of banned words.
    """
    tree = ast.parse(source)
    yield from _check_identifiers(tree, path, lexicon)
    if not path.startswith(WITHOUT_DOCSTRINGS):
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _check_docstring(node, path)
    yield from check_prose(source, path, lexicon)


def check_prose(text: str, path: str, lexicon: list[Word]) -> Iterator[Finding]:
    """Check spelling and phrases in the text of a page or a Python file."""
    if path in QUOTING:
        return
    phrases = [word for word in lexicon if word.kind == "phrase" and word.applies_to(path, "phrase")]
    for number, line in enumerate(text.splitlines(), 1):
        for match in _BRITISH.finditer(line):
            yield Finding(path, number, "spelling", f"{match[0]!r} is British spelling")
        for phrase in phrases:
            if phrase.word.lower() in line.lower():
                yield Finding(path, number, "phrase", f"{phrase.word!r}; use {phrase.instead}")


def check_subjects(subjects: dict[str, str]) -> Iterator[Finding]:
    """Check commit subjects, given by their hashes: length and first word."""
    for commit, subject in subjects.items():
        if len(subject) > MAX_SUBJECT_LENGTH:
            yield Finding("", 0, "subject", f"{commit}: {len(subject)} characters: {subject!r}")
        if _SUBJECT_WORDS.match(subject):
            yield Finding("", 0, "subject", f"{commit} begins with {subject.split()[0]!r}: {subject!r}")


def _check_identifiers(tree: ast.Module, path: str, lexicon: list[Word]) -> Iterator[Finding]:
    rows = [word for word in lexicon if word.kind != "phrase"]
    exact: dict[str, list[Word]] = {}
    tokens: dict[str, list[Word]] = {}
    for word in rows:
        (tokens if word.kind == "token" else exact).setdefault(word.word, []).append(word)
    module = Path(path).stem
    for identifier in [Identifier(module, "module", 1), *_identifiers(tree)]:
        name = identifier.name.strip("_")
        candidates = exact.get(name, []) + [row for token in set(name.split("_")) for row in tokens.get(token, [])]
        if identifier.name.startswith("test_"):  # a sentence, not a term
            candidates = []
        for row in candidates:
            if row.applies_to(path, identifier.kind):
                text = f"{identifier.kind} {identifier.name!r}; use {row.instead}"
                yield Finding(path, identifier.line, "identifier", text)
                break
        if name.isupper() and _CONSTANT.search(name):
            text = f"{name!r} does not say its quantity; use MIN_… or MAX_… with the unit"
            yield Finding(path, identifier.line, "constant", text)


def _identifiers(tree: ast.AST) -> Iterator[Identifier]:
    """Yield every name that the tree defines, once in each scope."""
    for node in ast.iter_child_nodes(tree):
        yield from _scope(node, set())


def _scope(node: ast.AST, defined: set[tuple[str, str]]) -> Iterator[Identifier]:
    def once(name: str, kind: str, line: int) -> Iterator[Identifier]:
        if (name, kind) not in defined:
            defined.add((name, kind))
            yield Identifier(name, kind, line)

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield Identifier(node.name, "class" if isinstance(node, ast.ClassDef) else "function", node.lineno)
        defined = set()
    elif isinstance(node, ast.arg):
        yield from once(node.arg, "argument", node.lineno)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield from once(node.id, "variable", node.lineno)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield from once(node.attr, "attribute", node.lineno)
    elif isinstance(node, ast.alias) and node.asname:
        yield from once(node.asname, "variable", node.lineno)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield from once(node.name, "variable", node.lineno)
    for child in ast.iter_child_nodes(node):
        yield from _scope(child, defined)


def _check_docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, path: str
) -> Iterator[Finding]:
    docstring = ast.get_docstring(node)
    if not docstring:
        return
    line = node.body[0].lineno
    name = getattr(node, "name", Path(path).stem)
    summary = " ".join(docstring.split("\n\n")[0].split())
    if match := _FIRST_WORDS.match(summary):
        yield Finding(path, line, "first word", f"docstring of {name} begins with {match[0]!r}: {summary!r}")
    if len(summary.split()) < MIN_SUMMARY_WORDS:
        yield Finding(path, line, "short summary", f"docstring of {name} has under four words: {summary!r}")
    booleans = _booleans(node)
    for offset, entry, text in _entries(docstring):
        if match := _ENTRY_WORDS.match(text):
            yield Finding(path, line + offset, "entry", f"{name}, {entry}: begins with {match[0]!r}: {text!r}")
        elif entry in booleans and not text.startswith("If true,"):
            yield Finding(path, line + offset, "boolean", f"{name}, {entry}: begin with 'If true,': {text!r}")


def _entries(docstring: str) -> Iterator[tuple[int, str, str]]:
    """Yield line offset, name and text of every entry of the sections `Args:` and `Attributes:`."""
    within = False
    for offset, line in enumerate(docstring.splitlines()):
        if _SECTION.match(line):
            within = True
        elif line and not line.startswith(" "):
            within = False
        elif within and (match := re.match(r" {4}\*{0,2}(\w+)(?: \([^)]*\))?: (.*)", line)):
            yield offset, match[1], match[2]


def _booleans(node: ast.AST) -> set[str]:
    """Collect the names of boolean arguments of a function, or of boolean fields of a class."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return {argument.arg for argument in arguments if _is_bool(argument.annotation)}
    if isinstance(node, ast.ClassDef):
        fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
        names = {
            field.target.id for field in fields if isinstance(field.target, ast.Name) and _is_bool(field.annotation)
        }
        constructors = [child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == "__init__"]
        return names.union(*map(_booleans, constructors))
    return set()


def _is_bool(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) == "bool"


def _subjects() -> dict[str, str]:
    """Read the subjects of all commits since the first that is checked; none where that commit is absent."""
    command = ["git", "log", "--no-merges", "--format=%h %s", f"{FIRST_COMMIT}..HEAD"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return dict(line.split(" ", 1) for line in result.stdout.splitlines()) if result.returncode == 0 else {}


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.suffix in (".py", ".md"))
        elif path.exists():
            yield path


def check(paths: list[Path], lexicon: list[Word]) -> Iterator[Finding]:
    """Check all Python files and pages among `paths` and below them."""
    for file in dict.fromkeys(_files(paths)):
        path = file.resolve().relative_to(ROOT).as_posix()
        text = file.read_text(encoding="utf-8")
        yield from check_code(text, path, lexicon) if file.suffix == ".py" else check_prose(text, path, lexicon)


def main() -> int:
    """Print the findings; the exit status is 1 where there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; the whole repository by default")
    parser.add_argument("--count", action="store_true", help="print the number of findings a rule and room")
    options = parser.parse_args()
    paths = options.paths or [ROOT / name for name in (*CODE, *PAGES)]
    findings = list(check(paths, read_lexicon()))
    if not options.paths:
        findings += check_subjects(_subjects())
    if options.count:
        rooms = Counter((finding.rule, "/".join(finding.path.split("/")[:2])) for finding in findings)
        for (rule, room), count in sorted(rooms.items()):
            print(f"{count:6d}  {rule:14s} {room}")
    else:
        for finding in findings:
            print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.text}")
    print(f"{len(findings)} findings")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
