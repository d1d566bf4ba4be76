"""Folders of runs that were killed before their run file was first written: no report can read them."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from pathlib import Path

from clientlab.errors import LabError
from clientlab.results.store import HOLD_FILE, RUN_FILE, Store, is_held

_NAME = re.compile(r"\d{8}-\d{9}-[a-z0-9.-]+-[0-9a-f]{4}")
"""The whole name that the lab gives to a run."""

_LOGS = "logs"
_OWN_FILES = {HOLD_FILE, _LOGS, "run.part", "served"}
_LOG_SECONDS = 24 * 3600.0
"""The log of a server that did not start is kept so long: an error message named it."""

_YOUNG_SECONDS = 60.0
"""A folder that is younger and that no process holds may be of a run that begins just now."""


def is_leftover(place: Path) -> bool:
    """Whether a folder was made for a run, has no run file, and is of no process that lives."""
    if place.is_symlink() or not place.is_dir() or not _NAME.fullmatch(place.name):
        return False
    names = {path.name for path in place.iterdir()}
    age = time.time() - place.stat().st_mtime
    logs = list((place / _LOGS).iterdir()) if _LOGS in names else []
    if not names <= _OWN_FILES or any(log.suffix != ".log" or not log.is_file() for log in logs):
        return False
    if logs and age < _LOG_SECONDS:
        return False
    return age > _YOUNG_SECONDS if HOLD_FILE not in names else not is_held(place)


def sweep(store: Store) -> None:
    """Remove them all from a results folder."""
    for place in store.folder.glob("*/"):
        with contextlib.suppress(OSError, LabError):  # another start removes it just now, or it is another user's
            if is_leftover(place):
                remove(store, place.name)


def remove(store: Store, name: str) -> None:
    """Remove the folder of that name. Raises OSError, and LabError where a process has it now."""
    with store.hold(name):
        if not (store.folder / name / RUN_FILE).exists():
            shutil.rmtree(store.folder / name)
