"""Analyses that the server holds: a folder each, the files in it by name, and a state that the page follows."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import unicodedata
from collections import OrderedDict
from pathlib import Path
from typing import Any

from physvision.app.settings import DEFAULT_SETTINGS, AppSettings

MAX_NAME_LENGTH = 120
# Files that an analysis may serve, with their media types; a request names one of these or nothing.
FILES = {
    "parameters.json": "application/json",
    "parameters.csv": "text/csv; charset=utf-8",
    "parameters.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parameters.tex": "text/plain; charset=utf-8",
    "states.csv": "text/csv; charset=utf-8",
    "motion.csv": "text/csv; charset=utf-8",
    "motion.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "report.html": "text/html; charset=utf-8",
    "prediction.mp4": "video/mp4",
    "analysis.json": "application/json",
    "predicted_report.html": "text/html; charset=utf-8",
    "predicted_film.mp4": "video/mp4",
    "predicted_states.csv": "text/csv; charset=utf-8",
    "predicted_states.npz": "application/octet-stream",
}


def clean_name(name: str) -> str:
    """Return a name that is fit to be shown: the last part of a path, printable, of bounded length."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    printable = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in last)
    return " ".join(printable.split())[:MAX_NAME_LENGTH] or "clip"


class Analysis:
    """One clip with what is known of it, as keys of a state with version numbers.

    Attributes:
        id: Unguessable name of the analysis in addresses.
        folder: Folder of its files.
        clip: Path of its clip; None for a saved analysis that was opened without one.
        state: Values that the page shows, by key.
    """

    def __init__(self, parent: Path, name: str, clip: Path | None = None) -> None:
        self.id = secrets.token_urlsafe(12)
        self.folder = parent / self.id
        self.folder.mkdir(mode=0o700)
        self.clip = clip
        self.state: dict[str, Any] = {"name": clean_name(name)}
        self._versions = {"name": 1}
        self._version = 1
        self._changed = asyncio.Event()

    def update(self, **values: Any) -> None:
        """Set keys of the state, and wake whoever follows it."""
        self._version += 1
        for key, value in values.items():
            self.state[key] = value
            self._versions[key] = self._version
        self._changed.set()
        self._changed = asyncio.Event()

    async def changes(self, version: int, timeout: float) -> tuple[int, dict[str, Any]]:
        """Return the keys that are newer than a version, as soon as there are some, and the version now."""
        if self._version <= version:
            try:
                await asyncio.wait_for(self._changed.wait(), timeout)
            except TimeoutError:
                return version, {}
        return self._version, {key: self.state[key] for key, number in self._versions.items() if number > version}

    def frame(self, number: int) -> Path:
        """Return the path of the picture of a frame."""
        return self.folder / "frames" / f"{number:06d}.jpg"


class Store:
    """Analyses of a server, in a folder that it removes at the end."""

    def __init__(self, folder: Path, settings: AppSettings = DEFAULT_SETTINGS) -> None:
        self.folder, self._settings = folder, settings
        self._analyses: OrderedDict[str, Analysis] = OrderedDict()

    def add(self, name: str, clip: Path | None = None) -> Analysis:
        """Begin an analysis; the oldest one is removed where there are too many."""
        while len(self._analyses) >= self._settings.max_analyses:
            _, oldest = self._analyses.popitem(last=False)
            oldest.update(removed=True)
            shutil.rmtree(oldest.folder, ignore_errors=True)
        analysis = Analysis(self.folder, name, clip)
        self._analyses[analysis.id] = analysis
        return analysis

    def get(self, name: str) -> Analysis | None:
        """Return the analysis of this id; None if there is none."""
        return self._analyses.get(name)

    def remove(self, analysis: Analysis) -> None:
        """Forget an analysis and delete its files."""
        self._analyses.pop(analysis.id, None)
        shutil.rmtree(analysis.folder, ignore_errors=True)

    def __iter__(self):
        return iter(list(self._analyses.values()))
