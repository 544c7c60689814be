"""Record which packages a release was tested with: constraints for pip, and a bill of materials in CycloneDX.

python tools/bill_of_materials.py dist

The packages are those of the environment that runs this, as far as physvision needs them to run. `constraints.txt` pins
them for `pip install -c`; `physvision-VERSION.cdx.json` lists them with versions, licenses and what needs what.
"""

import datetime
import json
import re
import sys
import uuid
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT_PACKAGE = "physvision"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")


def normalized(name: str) -> str:
    """Name of a package as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(package: Distribution) -> list[str]:
    """Names of the installed packages that a package needs to run, extras apart."""
    names = []
    for requirement in package.requires or ():
        match = _NAME.match(requirement)
        if match is None or "extra ==" in requirement.replace("'", '"'):
            continue
        try:
            distribution(match[0])
        except PackageNotFoundError:
            continue  # of another system or Python, by its marker
        names.append(normalized(match[0]))
    return sorted(set(names))


def closure(root: str) -> dict[str, Distribution]:
    """Installed packages that a package needs, directly or not, and the package itself, by name."""
    packages: dict[str, Distribution] = {}
    waiting = [normalized(root)]
    while waiting:
        name = waiting.pop()
        if name not in packages:
            packages[name] = distribution(name)
            waiting += needed(packages[name])
    return dict(sorted(packages.items()))


def constraints(packages: dict[str, Distribution]) -> str:
    """Constraints in the syntax of pip, one package a line, without physvision itself."""
    return "".join(f"{name}=={package.version}\n" for name, package in packages.items() if name != ROOT_PACKAGE)


def bill_of_materials(packages: dict[str, Distribution], version: str, date: str) -> dict:
    """Bill of materials in CycloneDX 1.5."""
    references = {name: _reference(name, package.version) for name, package in packages.items()}
    references[ROOT_PACKAGE] = _reference(ROOT_PACKAGE, version)
    root = {"type": "library", "bom-ref": references[ROOT_PACKAGE], "name": ROOT_PACKAGE, "version": version}
    others = {name: package for name, package in packages.items() if name != ROOT_PACKAGE}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, _reference(ROOT_PACKAGE, version))}",
        "version": 1,
        "metadata": {"timestamp": f"{date}T00:00:00Z", "component": {**root, "purl": references[ROOT_PACKAGE]}},
        "components": [_component(name, package, references[name]) for name, package in others.items()],
        "dependencies": [
            {"ref": references[name], "dependsOn": [references[inner] for inner in needed(package)]}
            for name, package in packages.items()
        ],
    }


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version.replace('+', '%2B')}"


def _component(name: str, package: Distribution, reference: str) -> dict:
    component = {"type": "library", "bom-ref": reference, "name": name, "version": package.version, "purl": reference}
    return component | _licenses(package)


def _licenses(package: Distribution) -> dict:
    """License of a package, by its expression, its short field, or its classifiers."""
    for expression in package.metadata.get_all("License-Expression") or ():
        return {"licenses": [{"expression": expression}]}
    classifiers: Iterable[str] = package.metadata.get_all("Classifier") or ()
    names = [entry.split(" :: ")[-1] for entry in classifiers if entry.startswith("License :: ")]
    texts = package.metadata.get_all("License") or []
    names = names or [text for text in texts if text and "\n" not in text]
    return {"licenses": [{"license": {"name": name}} for name in names]} if names else {}


def write(folder: Path, version: str, date: str) -> list[Path]:
    """Write both files beside a wheel, and return their paths."""
    packages = closure(ROOT_PACKAGE)
    bill = folder / f"{ROOT_PACKAGE}-{version}.cdx.json"
    bill.write_text(json.dumps(bill_of_materials(packages, version, date), indent=1) + "\n", encoding="utf-8")
    pins = folder / "constraints.txt"
    pins.write_text(constraints(packages), encoding="utf-8")
    return [bill, pins]


def main() -> int:
    """Write both files to the folder that the command line names."""
    if len(sys.argv) != 2:
        print("usage: python tools/bill_of_materials.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in write(folder, distribution(ROOT_PACKAGE).version, datetime.date.today().isoformat()):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
