"""The results folder: a folder a run, in it `run.json`, written anew after every trial.

A file is written beside the old one and takes its place whole: whatever happens, one of both is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from clientlab.errors import IncompleteRun, LabError
from clientlab.runs.claims import judged
from clientlab.runs.document import FORMAT, Run

RUN_FILE = "run.json"
_LOCK_FILE = ".measuring"


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, name: str) -> Path:
        """Make the folder of a run. Raises LabError where that is not possible."""
        place = self.folder / name
        try:
            place.mkdir(parents=True)
        except OSError as error:
            raise LabError(f"results folder {place}: {error.strerror}; name another with --out") from error
        return place

    def save(self, run: Run) -> None:
        """Save what is done so far. Raises IncompleteRun: the file then holds the last save."""
        place = self.folder / run.run / RUN_FILE
        try:
            _write(place, run)
        except OSError as error:
            raise IncompleteRun(
                f"{place}: {error.strerror}; it holds all but the last trial; make room and run again"
            ) from error

    @contextlib.contextmanager
    def alone(self, wait: Callable[[], None]) -> Iterator[None]:
        """Measure alone: while another process does so with this folder, `wait` is called again and again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self.folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            while not _locked(file):
                wait()
            yield
        finally:
            os.close(file)

    def find(self, name: str) -> Path:
        """The run file of a path, a run's name, the beginning of one, or ``last``. Raises LabError."""
        given = Path(name)
        if given.is_file():
            return given
        if (given / RUN_FILE).is_file():
            return given / RUN_FILE
        runs = self.names()
        fitting = runs[-1:] if name == "last" else [run for run in runs if run.startswith(name)]
        if len(fitting) == 1 or name in fitting:
            return self.folder / (name if name in fitting else fitting[0]) / RUN_FILE
        if fitting:
            raise LabError(f"run {name!r} fits {', '.join(fitting)}; write more of its name")
        known = f"; there are {', '.join(runs[-3:])}" if runs else "; there is none yet"
        raise LabError(f"run {name!r} is not in {self.folder}{known}")

    def names(self) -> list[str]:
        """The names of all runs, the oldest first."""
        return sorted(file.parent.name for file in self.folder.glob(f"*/{RUN_FILE}"))

    def inside(self, name: str) -> str:
        """The whole name of a run that lies in this folder. Raises LabError for one elsewhere."""
        place = self.find(name).parent
        if place.is_symlink() or place.resolve().parent != self.folder.resolve():
            raise LabError(f"{name!r}: {place} is not a run of {self.folder}; name its folder with --out")
        return place.resolve().name

    def remove(self, name: str) -> None:
        """Remove a run of that whole name with all that is kept of it. Raises LabError."""
        place = self.folder / self.inside(name)
        try:
            shutil.rmtree(place)
        except OSError as error:
            raise LabError(f"{error.filename}: {error.strerror}; run {place.name} is not wholly removed") from error

    def read(self, name: str) -> Run:
        """The run of that name or path. Raises LabError."""
        return read_run(self.find(name))


def read_run(path: Path) -> Run:
    """Read a run file. Raises LabError for one of another version, cut short, or not a run at all."""
    try:
        return run_of(path.read_bytes(), str(path))
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error


def run_of(content: bytes, path: str) -> Run:
    """The run that a file holds; `path` is named where it holds none. Raises LabError."""
    try:
        document: Any = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise LabError(f"{path}: not a whole JSON document ({error}); it was cut short or is no run file") from error
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT:
        raise LabError(
            f"{path}: format {version!r}, and this clientlab reads format {FORMAT}; "
            "read it with the version that wrote it"
        )
    try:
        return _with_verdicts(Run.model_validate(document))
    except ValidationError as error:
        first = error.errors()[0]
        where = [".".join(map(str, first["loc"]))] if first["loc"] else []
        says = ": ".join([path, *where, first["msg"].removeprefix("Value error, ")])
        raise LabError(f"{says}; the file was changed or damaged") from error


def _with_verdicts(run: Run) -> Run:
    """The run with the verdicts on its claims, which are written at its end: one that was killed never came there."""
    if run.experiment.claims and (run.status == "running" or not run.claims):
        return run.model_copy(update={"claims": judged(run)})
    return run


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(path: Path, run: Run) -> None:
    beside = path.with_suffix(".part")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(run.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
