"""The results folder: a folder per run, with its run file and perhaps its journal.

The run file is written when a run begins and when it ends, each time as a new file that
replaces the old one. In between, each finished trial is appended to the journal as one
line, because writing the whole file would take longer with each trial. However the
process ends, both files can be read, and together they hold every trial that was saved.
A process that is killed while it appends leaves an incomplete last line. Readers skip
it: its trial was not saved.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

from pydantic import ValidationError
from pydantic_core import from_json

from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.results.document import FORMAT, Run
from clientlab.results.trial import Trial
from clientlab.validation import first_problem, shorten

RUN_FILE = "run.json"
JOURNAL_FILE = "trials.jsonl"
HOLD_FILE = ".held"

# last, or last~2: the run that began two runs before the last one.
LAST = re.compile(r"last(?:~(\d{1,9}))?", re.ASCII)
OWN_NAME = re.compile(r"\d{8}-\d{6}")
_CHOSEN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_CREATED = re.compile(r'"created": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?)')
_LOOK_SECONDS = 0.2  # `is_held` holds the lock for a moment
# The first bytes of a gzip file (RFC 1952), with which no JSON text begins.
_GZIP = b"\x1f\x8b"
_DAMAGED = "the file was changed or damaged"


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, name: str) -> Path:
        """Return the folder of a new run, and create it if needed. Raise LabError."""
        folder = self.folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FieldError(
                [],
                f"results folder {folder}: {error.strerror}; name another with `out`",
            ) from error
        return folder

    def new_name(self, name: str) -> str:
        """Return the name that a user chose for a new run.

        Raise FieldError if it is invalid or taken.
        """
        free = not LAST.fullmatch(name) and not OWN_NAME.match(name)
        if not free or not _CHOSEN_NAME.fullmatch(name):
            message = (
                "write up to 64 letters, digits, '_', '.' and '-'; neither last nor a"
                " date"
            )
            raise FieldError(["name"], message, value=repr(name))
        if (self.folder / name / RUN_FILE).exists():
            message = f"{self.folder} has a run of this name; choose another"
            raise FieldError(["name"], message, value=name)
        return name

    def save(self, run: Run) -> None:
        """Write the run file with all trials of the run, and remove the journal.

        Raise IncompleteRun if that fails. Run file and journal are then as before.
        """
        folder = self.folder / run.run
        path = folder / RUN_FILE
        part = folder / "run.part"
        try:
            _write(part, "wb", run.model_dump_json(indent=1).encode())
            part.replace(path)
            path = folder / JOURNAL_FILE
            path.unlink(missing_ok=True)
        except OSError as error:
            part.unlink(missing_ok=True)
            saved = f"{folder} holds the trials that were saved"
            raise _not_saved(path, error, saved) from error

    def append(self, name: str, trial: Trial) -> None:
        """Append a trial to the journal of the run of that name.

        Raise IncompleteRun.
        """
        path = self.folder / name / JOURNAL_FILE
        try:
            _write(path, "ab", trial.model_dump_json().encode() + b"\n")
        except OSError as error:
            raise _not_saved(path, error, "it holds all but the last trial") from error

    def version(self, name: str) -> tuple[int, int, bool]:
        """Return a value that changes when the run is saved, begins or ends.

        Raise FileNotFoundError for an unknown run.
        """
        folder = self.folder / name
        changed = (folder / RUN_FILE).stat().st_mtime_ns
        journal = sum(path.stat().st_size for path in folder.glob(JOURNAL_FILE))
        return changed, journal, is_held(folder)

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Keep other processes from measuring the run of that name.

        Raise LabError if one does.
        """
        until = time.monotonic() + _LOOK_SECONDS
        with (self.folder / name / HOLD_FILE).open("a") as file:
            while not _lock(file, fcntl.LOCK_EX):
                if time.monotonic() > until:
                    raise LabError(
                        f"run {name} is being measured by another process; wait for its"
                        " end"
                    )
                time.sleep(_LOOK_SECONDS / 20)
            yield

    def find(self, name: str) -> Path:
        """Return the run file of a path, a name or its beginning, or ``last~1``.

        Raise LabError.
        """
        for given in (Path(name), Path(name) / RUN_FILE):
            if given.is_file():
                return given
        runs = self.names()
        last = LAST.fullmatch(name)
        if last:
            before = int(last[1] or 0)
            fitting = runs[::-1][before : before + 1]
        elif name in runs:
            fitting = [name]
        else:
            fitting = [run for run in runs if run.startswith(name)]
        if len(fitting) == 1:
            return self.folder / fitting[0] / RUN_FILE
        if fitting:
            raise LabError(
                f"run {name!r} fits {', '.join(fitting)}; write more of its name"
            )
        known = f"there are {', '.join(runs[-3:])}" if runs else "there is none yet"
        raise LabError(f"run {name!r} is not in {self.folder}; {known}")

    def names(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        names = (file.parent.name for file in self.folder.glob(f"*/{RUN_FILE}"))
        return sorted(names, key=lambda name: (self._begun(name), name))

    def _begun(self, name: str) -> str:
        """Return when a run began, as in the names that the lab gives.

        Runs with other names say it at the beginning of their files.
        """
        if OWN_NAME.match(name):
            return name
        created = None
        with (
            contextlib.suppress(FileNotFoundError),
            (self.folder / name / RUN_FILE).open(errors="replace") as file,
        ):
            created = _CREATED.search(file.read(1000))
        if created is None:
            return name
        return re.sub(r"[-:.]", "", created[1]).replace("T", "-", 1)

    def inside(self, name: str) -> str:
        """Return the full name of a run in this folder.

        Raise LabError for a run in another folder.
        """
        run_folder = self.find(name).parent
        if run_folder.resolve().parent != self.folder.resolve():
            raise FieldError(
                [],
                f"{name!r}: {run_folder} is not a run of {self.folder}; name its folder"
                " with `out`",
            )
        return run_folder.resolve().name

    def remove(self, name: str) -> None:
        """Remove the folder of a run.

        Raise LabError, for example while the run is being measured.
        """
        run_folder = self.folder / self.inside(name)
        if is_held(run_folder):
            raise LabError(
                f"run {run_folder.name} is being measured; stop it, or wait for its end"
            )
        try:
            shutil.rmtree(run_folder)
        except OSError as error:
            left = f"run {run_folder.name} is not completely removed"
            raise LabError(f"{error.filename}: {error.strerror}; {left}") from error

    def read(self, name: str) -> Run:
        """Return the run of that name or path. Raise LabError."""
        return read_run(self.find(name))


def _write(path: Path, mode: Literal["wb", "ab"], content: bytes) -> None:
    """Write to a file, and wait until the disk has it."""
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _not_saved(path: Path, error: OSError, saved: str) -> IncompleteRun:
    return IncompleteRun(f"{path}: {error.strerror}; {saved}; make room and run again")


def _lock(file: IO[str], kind: int) -> bool:
    """Lock a file, and return whether no other process had locked it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(folder: Path) -> bool:
    """Return whether a process is measuring the run of that folder."""
    try:
        with (folder / HOLD_FILE).open() as file:
            return not _lock(file, fcntl.LOCK_SH)
    except (FileNotFoundError, PermissionError):  # no process on this machine ever did
        return False


def read_run(path: Path) -> Run:
    """Read a run file and the journal beside it.

    Raise LabError if they do not hold a run of the present format.
    """
    journal_path = path.with_name(JOURNAL_FILE)
    journal = b""
    try:
        # The journal comes first: at the end of a run, its trials are in the run file
        # before the journal is removed.
        if path.name == RUN_FILE and journal_path.exists():
            journal = journal_path.read_bytes()
        content = path.read_bytes()
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        # gzip raises an OSError without strerror.
        reason = getattr(error, "strerror", None) or error
        raise LabError(f"{path}: {reason}") from error
    return _add_journal(_parse_run(path, content), journal_path, journal)


def _parse_run(path: Path, content: bytes) -> Run:
    try:
        document = from_json(content)
    except ValueError as error:
        raise LabError(
            f"{path}: not a whole JSON document ({error}); it was cut short or is no"
            " run file"
        ) from error
    found = document.get("format") if isinstance(document, dict) else None
    if found is None:
        raise LabError(f"{path}: no run file: it has no key `format`")
    if type(found) is not int or found != FORMAT:
        raise LabError(
            f"{path}: format {shorten(repr(found))}, and this clientlab reads format"
            f" {FORMAT}; read it with the version that wrote it"
        )
    try:
        return Run.model_validate(document)
    except ValidationError as error:
        raise LabError(f"{path}: {first_problem(error)}; {_DAMAGED}") from error


def _add_journal(run: Run, path: Path, journal: bytes) -> Run:
    """Return the run with the trials of its journal that it does not have yet."""
    known = {trial.planned.order for trial in run.every_trial}
    arms = {(arm.name, arm.workload) for arm in run.experiment.arms}
    *lines, _incomplete = journal.split(b"\n")
    for number, line in enumerate(lines, 1):
        place = f"{path}: line {number}"
        try:
            trial = Trial.model_validate_json(line)
        except ValidationError as error:
            raise LabError(f"{place}: {first_problem(error)}; {_DAMAGED}") from error
        planned = trial.planned
        if (planned.arm, planned.workload) not in arms:
            raise LabError(
                f"{place}: names arm {shorten(repr(planned.arm))}, which the experiment"
                f" does not have; {_DAMAGED}"
            )
        if planned.order not in known:
            run = run.with_trial(trial)
    return run
