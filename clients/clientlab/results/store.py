"""The results folder: a folder for each run, with its run file and, while the run goes on, its journal.

The run file is written when a run begins and when it ends, whole: beside the old file, which it then replaces. In
between, each finished trial is appended to the journal, a line each: to write the whole file would take longer with
each trial. Whatever ends the process, both can be read, and together they hold every trial that was saved. A process
that is killed while it appends leaves an incomplete last line, which readers skip: its trial was not reported as saved.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.results.document import FORMAT, Run, list_of
from clientlab.results.trial import Trial
from clientlab.validation import first_problem, shortened

RUN_FILE, JOURNAL_FILE, HOLD_FILE = "run.json", "trials.jsonl", ".held"

LAST = re.compile(r"last(?:~(\d{1,9}))?", re.ASCII)
"""``last``, or ``last~2``: the run that began two runs before it."""

OWN_NAME = re.compile(r"\d{8}-\d{6}")
_CHOSEN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_CREATED = re.compile(r'"created": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?)')
_HEAD = 1000
"""Characters of a run file that hold when its run began."""

_GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file (RFC 1952). No JSON text begins so."""


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, name: str) -> Path:
        """Make the folder of a run, unless a run that did not begin has left it. Raise LabError."""
        folder = self.folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FieldError([], f"results folder {folder}: {error.strerror}; name another with `out`") from error
        return folder

    def new_name(self, name: str) -> str:
        """Return the name that a user chose for a new run. Raise FieldError if it is taken, or cannot be one."""
        if not _CHOSEN_NAME.fullmatch(name) or LAST.fullmatch(name) or OWN_NAME.match(name):
            message = "write up to 64 letters, digits, '_', '.' and '-'; neither last nor a date"
            raise FieldError(["name"], message, value=repr(name))
        if (self.folder / name / RUN_FILE).exists():
            raise FieldError(["name"], f"{self.folder} has a run of this name; choose another", value=name)
        return name

    def save(self, run: Run) -> None:
        """Write the run file, with all trials of the run, and remove the journal, which then holds nothing else.

        Raise IncompleteRun: run file and journal are then as before.
        """
        folder = self.folder / run.run
        path, beside = folder / RUN_FILE, folder / "run.part"
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(run.model_dump_json(indent=1))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            path = folder / JOURNAL_FILE
            path.unlink(missing_ok=True)
        except OSError as error:
            beside.unlink(missing_ok=True)
            saved = f"{folder} holds the trials that were saved"
            raise IncompleteRun(f"{path}: {error.strerror}; {saved}; make room and run again") from error

    def append(self, name: str, trial: Trial) -> None:
        """Add one more trial of the run of that name to its journal, on the disk. Raise IncompleteRun."""
        path = self.folder / name / JOURNAL_FILE
        try:
            with path.open("ab") as file:
                file.write(trial.model_dump_json().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            saved = "it holds all but the last trial"
            raise IncompleteRun(f"{path}: {error.strerror}; {saved}; make room and run again") from error

    def version(self, name: str) -> tuple[int, int, bool]:
        """Return a value that changes whenever the run is saved, and when its process begins or ends.

        Raise FileNotFoundError for a run that is not there.
        """
        folder = self.folder / name
        changed = (folder / RUN_FILE).stat().st_mtime_ns
        journal = sum(path.stat().st_size for path in folder.glob(JOURNAL_FILE))
        return changed, journal, is_held(folder)

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Let no other process measure the run of that name. Raise LabError while one does."""
        file = os.open(self.folder / name / HOLD_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LabError(f"run {name} is being measured by another process; wait for its end") from error
            yield
        finally:
            os.close(file)

    def find(self, name: str) -> Path:
        """Return the run file of a path, a run's name, the beginning of one, ``last`` or ``last~1``. Raise LabError."""
        given = Path(name)
        if given.is_file():
            return given
        if (given / RUN_FILE).is_file():
            return given / RUN_FILE
        runs, before = self.names(), LAST.fullmatch(name)
        if name in runs:
            return self.folder / name / RUN_FILE
        fitting = [run for run in runs if run.startswith(name)]
        if before and runs:
            place = int(before[1] or 0)
            if place >= len(runs):
                oldest = "last" if len(runs) == 1 else f"last~{len(runs) - 1}"
                raise LabError(f"run {name!r}: {self.folder} holds {len(runs)}; the oldest is {oldest}")
            fitting = [runs[-1 - place]]
        if len(fitting) == 1:
            return self.folder / fitting[0] / RUN_FILE
        if fitting:
            raise LabError(f"run {name!r} fits {', '.join(fitting)}; write more of its name")
        known = f"; there are {', '.join(runs[-3:])}" if runs else "; there is none yet"
        raise LabError(f"run {name!r} is not in {self.folder}{known}")

    def names(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        names = (file.parent.name for file in self.folder.glob(f"*/{RUN_FILE}"))
        return sorted(names, key=lambda name: (self._begun(name), name))

    def _begun(self, name: str) -> str:
        """Return when a run began, as the names of the lab's own runs say it, or as the head of its file does."""
        if OWN_NAME.match(name):
            return name
        with contextlib.suppress(FileNotFoundError), (self.folder / name / RUN_FILE).open(errors="replace") as file:
            if created := _CREATED.search(file.read(_HEAD)):
                return re.sub(r"[-:.]", "", created[1]).replace("T", "-", 1)
        return name

    def inside(self, name: str) -> str:
        """Return the whole name of a run in this folder. Raise LabError for a run in another one."""
        run_folder = self.find(name).parent
        if run_folder.resolve().parent != self.folder.resolve():
            raise FieldError([], f"{name!r}: {run_folder} is not a run of {self.folder}; name its folder with `out`")
        return run_folder.resolve().name

    def remove(self, name: str) -> None:
        """Remove a run of that whole name with all that is kept of it. Raise LabError, also while it is measured."""
        run_folder = self.folder / self.inside(name)
        if is_held(run_folder):
            raise LabError(f"run {run_folder.name} is being measured; stop it, or wait for its end")
        try:
            shutil.rmtree(run_folder)
        except OSError as error:
            raise LabError(
                f"{error.filename}: {error.strerror}; run {run_folder.name} is not wholly removed"
            ) from error

    def read(self, name: str) -> Run:
        """Return the run of that name or path. Raise LabError."""
        return read_run(self.find(name))


def is_held(folder: Path) -> bool:
    """Tell whether a process measures the run of that folder now."""
    try:
        file = os.open(folder / HOLD_FILE, os.O_RDONLY)
    except OSError:  # nobody on this machine ever did
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def read_run(path: Path) -> Run:
    """Read a run file, and the journal beside it. Raise LabError for a file that holds no run of a known format."""
    try:
        # The journal first: when a run ends, its file takes over the trials before the journal goes.
        journal = path.with_name(JOURNAL_FILE)
        saved = journal.read_bytes() if path.name == RUN_FILE and journal.exists() else b""
        content = path.read_bytes()
        content = gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError, zlib.error) as error:  # gzip's own error is an OSError without strerror
        raise LabError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    run = _run_in(content, path)
    known = {trial.order for trial in run.every_trial}
    *lines, _incomplete = saved.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            trial = Trial.model_validate_json(line)
        except ValidationError as error:
            where = f"{journal}: line {number}"
            raise LabError(f"{where}: {first_problem(error)}; the file was changed or damaged") from error
        if trial.order not in known:
            getattr(run, list_of(trial)).append(trial)
    return run


def _run_in(content: bytes, path: Path) -> Run:
    """Return the run that a file holds. Raise LabError."""
    try:
        document = from_json(content)
    except ValueError as error:
        raise LabError(f"{path}: not a whole JSON document ({error}); it was cut short or is no run file") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found is None:
        raise LabError(f"{path}: no run file: it has no key `format`")
    if type(found) is not int or found != FORMAT:
        problem = f"format {shortened(repr(found))}, and this clientlab reads format {FORMAT}"
        raise LabError(f"{path}: {problem}; read it with the version that wrote it")
    try:
        return Run.model_validate(document)
    except ValidationError as error:
        raise LabError(f"{path}: {first_problem(error)}; the file was changed or damaged") from error
