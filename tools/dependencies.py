"""Print constraints that pin every runtime dependency to the oldest or to the newest admitted release.

python tools/dependencies.py oldest|newest

`oldest` pins each lower bound of pyproject.toml; `newest` leaves pip its choice, which is the newest release in range.
"""

import re
import sys
import tomllib
from pathlib import Path

_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=(?P<version>[0-9.]+)")


def lower_bounds(pyproject: str) -> dict[str, str]:
    """Map each runtime dependency to the lower bound of its range; a dependency without one is an error."""
    bounds = {}
    for requirement in tomllib.loads(pyproject)["project"]["dependencies"]:
        match = _REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"expected a lower bound, as in 'numpy>=1.26', got {requirement!r}")
        bounds[match["name"]] = match["version"]
    return bounds


def main() -> int:
    """Print one constraint a line, in the syntax of pip."""
    if len(sys.argv) != 2 or sys.argv[1] not in ("oldest", "newest"):
        print("usage: python tools/dependencies.py oldest|newest", file=sys.stderr)
        return 2
    if sys.argv[1] == "oldest":
        pyproject = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
        # A bound such as 1.26 admits its patch releases.
        print("\n".join(f"{name}=={version}.*" for name, version in lower_bounds(pyproject).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
