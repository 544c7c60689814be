"""Make a release: date the changelog, set the version, build the wheel, list its packages, commit and tag.

python tools/release.py 0.2.0 [--date 2026-12-01]

The work tree has to be clean. Nothing is pushed or uploaded: the last lines printed are the commands for that.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

import bill_of_materials

ROOT = Path(__file__).parents[1]
_VERSION = re.compile(r'^version = "(?P<version>[^"]+)"$', re.MULTILINE)
_UNRELEASED = "## [Unreleased]"


class ReleaseError(Exception):
    """A release that cannot be made, with what has to be mended first."""


def set_version(pyproject: str, version: str) -> str:
    """Replace the version in the text of pyproject.toml; the new one has to be higher."""
    match = _VERSION.search(pyproject)
    if match is None:
        raise ReleaseError('pyproject.toml: expected a line version = "…"')
    if _numbers(version) <= _numbers(match["version"]):
        raise ReleaseError(f"expected a version above {match['version']}, got {version}")
    return _VERSION.sub(f'version = "{version}"', pyproject, count=1)


def date_changelog(changelog: str, version: str, date: str) -> str:
    """Put a dated heading above the unreleased entries of the changelog, and an empty section above that."""
    before, heading, after = changelog.partition(_UNRELEASED)
    if not heading:
        raise ReleaseError(f"CHANGELOG.md: expected a heading {_UNRELEASED!r}")
    if not after.split("\n## ")[0].strip():
        raise ReleaseError("CHANGELOG.md: there is nothing under the unreleased heading")
    return f"{before}{_UNRELEASED}\n\n## [{version}] - {date}{after}"


def _numbers(version: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"expected a version such as 0.2.0, got {version!r}")
    return tuple(map(int, version.split(".")))


def _run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Make the release that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument(
        "--date", default=datetime.date.today().isoformat(), help="day of the release; today by default"
    )
    options = parser.parse_args()
    try:
        if _run("git", "status", "--porcelain"):
            raise ReleaseError("the work tree has uncommitted changes: commit or remove them")
        files = {
            ROOT / "pyproject.toml": lambda text: set_version(text, options.version),
            ROOT / "CHANGELOG.md": lambda text: date_changelog(text, options.version, options.date),
        }
        texts = {path: edit(path.read_text(encoding="utf-8")) for path, edit in files.items()}
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    subprocess.run(["make", "wheel"], cwd=ROOT, check=True)
    written = bill_of_materials.write(ROOT / "dist", options.version, options.date)
    _run("git", "commit", "--all", "--message", f"Release {options.version}")
    _run("git", "tag", "--annotate", f"v{options.version}", "--message", f"physvision {options.version}")
    files = ", ".join(str(path.relative_to(ROOT)) for path in written)
    print(f"To publish: git push --follow-tags, and upload dist/physvision-{options.version}-py3-none-any.whl, {files}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
