"""What killed processes left in a results folder: runs without a run file, and the files of trials."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from clientlab.errors import LabError
from clientlab.measuring.context import OUTPUT_FILES
from clientlab.results.store import HOLD_FILE, RUN_FILE, Store, is_held

_NAME = re.compile(r"\d{8}-\d{9}-[a-z0-9.-]+-[0-9a-f]{4}")
"""The whole name that the lab gives to a run."""

_TRIAL = re.compile(r"trial-\d{4,9}(-shard-\d{1,4})?")
"""The name of a trial's folder. While the trial is measured, its sample log is in there."""

_LOGS = "logs"
_OWN_FILES = {HOLD_FILE, _LOGS, "run.part", "served"}
_LOG_SECONDS = 24 * 3600.0
"""The log of a server that did not start is kept so long: an error message named it. A killed run printed none."""

_YOUNG_SECONDS = 60.0
"""A folder that is younger and that no process holds may be of a run that begins just now."""


@contextlib.contextmanager
def begun(store: Store, name: str) -> Iterator[None]:
    """Make the folder of a new run, and hold it. Raises LabError.

    A LabError before the run file is written takes the mark away by which a killed run is recognised.
    """
    run_folder = store.claim(name)
    with store.hold(name):
        try:
            yield
        except LabError:
            if not (run_folder / RUN_FILE).exists():
                (run_folder / HOLD_FILE).unlink(missing_ok=True)
            raise


def is_leftover(run_folder: Path) -> bool:
    """Whether a folder was made for a run, has no run file, and is of no process that lives."""
    if run_folder.is_symlink() or not run_folder.is_dir() or not _NAME.fullmatch(run_folder.name):
        return False
    names = {path.name for path in run_folder.iterdir()}
    age = time.time() - run_folder.stat().st_mtime
    logs = list((run_folder / _LOGS).iterdir()) if _LOGS in names else []
    if not names <= _OWN_FILES or any(log.suffix != ".log" or not log.is_file() for log in logs):
        return False
    if HOLD_FILE in names:
        return not is_held(run_folder)
    return age > (_LOG_SECONDS if logs else _YOUNG_SECONDS)


def sweep(store: Store) -> None:
    """Remove them all from a results folder."""
    for run_folder in store.folder.glob("*/"):
        with contextlib.suppress(OSError, LabError):  # another start removes it just now, or it is another user's
            if is_leftover(run_folder):
                remove(store, run_folder.name)
            elif _trials_of(run_folder) and not is_held(run_folder):
                with store.hold(run_folder.name):
                    for trial in _trials_of(run_folder):
                        shutil.rmtree(trial)


def _trials_of(run_folder: Path) -> list[Path]:
    """The folders of trials that are measured now, or were when their lab was killed; of a run of this lab's only."""
    if run_folder.is_symlink() or not (run_folder / HOLD_FILE).is_file():
        return []
    found = [path for path in run_folder.iterdir() if _TRIAL.fullmatch(path.name) and not path.is_symlink()]
    return [path for path in found if any(not file.match(OUTPUT_FILES) for file in path.iterdir())]


def remove(store: Store, name: str) -> None:
    """Remove the folder of that name. Raises OSError, and LabError where a process has it now."""
    with store.hold(name):
        if not (store.folder / name / RUN_FILE).exists():
            shutil.rmtree(store.folder / name)
