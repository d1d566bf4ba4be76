"""The results folder: a folder for each run, with its run file and, while the run goes on, its journal.

The run file is written when a run begins and when it ends, whole: beside the old file, which it then replaces. In
between, each finished trial is appended to the journal. Whatever ends the process, both can be read, and together they
hold every trial that was saved.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.results import journal
from clientlab.results.document import FORMAT, Run, list_of
from clientlab.results.journal import JOURNAL_FILE
from clientlab.results.part import first_problem, shortened
from clientlab.results.trial import Trial

RUN_FILE = "run.json"
HOLD_FILE = ".held"
LAST = re.compile(r"last(?:~(\d{1,9}))?", re.ASCII)
"""``last``, or ``last~2``: the run that began two runs before it."""
_CHOSEN_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_CREATED = re.compile(r'"created": "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?)')
_HEAD = 1000
"""Characters of a run file that hold when its run began."""
OWN_NAME = re.compile(r"\d{8}-\d{6}")
_GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file (RFC 1952). No JSON text begins so."""


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, name: str) -> Path:
        """Make the folder of a run, unless a run that did not begin has left it. Raises LabError."""
        run_folder = self.folder / name
        try:
            run_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FieldError([], f"results folder {run_folder}: {error.strerror}; name another with `out`") from error
        return run_folder

    def new_name(self, name: str) -> str:
        """The name that a user chose for a new run. Raises FieldError for one that is taken, or that cannot be one."""
        if not _CHOSEN_NAME.fullmatch(name) or LAST.fullmatch(name) or OWN_NAME.match(name):
            message = (
                "write up to 64 letters, digits, '_', '.' and '-'; neither last nor a date, by which runs are sorted"
            )
            raise FieldError(["name"], message, value=repr(name))
        if (self.folder / name / RUN_FILE).exists():
            raise FieldError(["name"], f"{self.folder} has a run of this name; choose another", value=name)
        return name

    def save(self, run: Run) -> None:
        """Write the run file, with all trials of the run, and remove the journal, which then holds nothing else.

        Raises IncompleteRun: run file and journal are then as before.
        """
        folder = self.folder / run.run
        path = folder / RUN_FILE
        try:
            _write(path, run)
            path = folder / JOURNAL_FILE
            path.unlink(missing_ok=True)
        except OSError as error:
            raise IncompleteRun(
                f"{path}: {error.strerror}; {folder} holds the trials that were saved; make room and run again"
            ) from error

    def append(self, name: str, trial: Trial) -> None:
        """Save one more trial of the run of that name. Raises IncompleteRun."""
        path = self.folder / name / JOURNAL_FILE
        try:
            journal.append(path, trial)
        except OSError as error:
            raise IncompleteRun(
                f"{path}: {error.strerror}; it holds all but the last trial; make room and run again"
            ) from error

    def version(self, name: str) -> tuple[int, int, bool]:
        """A value that changes whenever the run is saved, and when its process begins or ends.

        Raises FileNotFoundError for a run that is not there.
        """
        folder = self.folder / name
        changed = (folder / RUN_FILE).stat().st_mtime_ns
        try:
            return changed, (folder / JOURNAL_FILE).stat().st_size, is_held(folder)
        except FileNotFoundError:
            return changed, 0, is_held(folder)

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Let no other process measure the run of that name. Raises LabError while one does."""
        file = os.open(self.folder / name / HOLD_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _locked(file):
                raise LabError(f"run {name} is being measured by another process; wait for its end")
            yield
        finally:
            os.close(file)

    def find(self, name: str) -> Path:
        """The run file of a path, a run's name, the beginning of one, ``last`` or ``last~1``. Raises LabError."""
        given = Path(name)
        if given.is_file():
            return given
        if (given / RUN_FILE).is_file():
            return given / RUN_FILE
        runs = self.names()
        before = LAST.fullmatch(name)
        fitting = [self._last(runs, name, int(before[1] or 0))] if before and runs else []
        fitting = fitting or [run for run in runs if run.startswith(name)]
        if len(fitting) == 1 or name in fitting:
            return self.folder / (name if name in fitting else fitting[0]) / RUN_FILE
        if fitting:
            raise LabError(f"run {name!r} fits {', '.join(fitting)}; write more of its name")
        known = f"; there are {', '.join(runs[-3:])}" if runs else "; there is none yet"
        raise LabError(f"run {name!r} is not in {self.folder}{known}")

    def _last(self, runs: Sequence[str], name: str, before: int) -> str:
        if before >= len(runs):
            oldest = "last" if len(runs) == 1 else f"last~{len(runs) - 1}"
            raise LabError(f"run {name!r}: {self.folder} holds {len(runs)}; the oldest is {oldest}")
        return runs[-1 - before]

    def names(self) -> list[str]:
        """The names of all runs, the oldest first."""
        names = (file.parent.name for file in self.folder.glob(f"*/{RUN_FILE}"))
        return sorted(names, key=lambda name: (self._begun(name), name))

    def _begun(self, name: str) -> str:
        """When a run began, as the names of the lab's own runs say it; of another name, as the head of its file says.

        Without that, when the file was written: a run that goes on is written anew, and so is a copy.
        """
        if OWN_NAME.match(name):
            return name
        path = self.folder / name / RUN_FILE
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                created = _CREATED.search(file.read(_HEAD))
            written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except FileNotFoundError:  # removed meanwhile
            return name
        return re.sub(r"[-:.]", "", created[1]).replace("T", "-", 1) if created else f"{written:%Y%m%d-%H%M%S}"

    def inside(self, name: str) -> str:
        """The whole name of a run in this folder. Raises LabError for a run in another one."""
        run_folder = self.find(name).parent
        if run_folder.resolve().parent != self.folder.resolve():
            raise FieldError([], f"{name!r}: {run_folder} is not a run of {self.folder}; name its folder with `out`")
        return run_folder.resolve().name

    def remove(self, name: str) -> None:
        """Remove a run of that whole name with all that is kept of it. Raises LabError, also while it is measured."""
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
        """The run of that name or path. Raises LabError."""
        return read_run(self.find(name))


def is_held(folder: Path) -> bool:
    """Whether a process measures the run of that folder now."""
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
    """Read a run file, and the journal beside it. Raises LabError for a file that holds no run of a known format."""
    # The journal first: when a run ends, its file takes over the trials before the journal goes.
    saved = journal.read(path.with_name(JOURNAL_FILE)) if path.name == RUN_FILE else []
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError, zlib.error) as error:  # gzip's own error is an OSError without strerror
        raise LabError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    run = run_of(content, str(path))
    known = {trial.order for trial in run.every_trial}
    more = [trial for trial in saved if trial.order not in known]
    if not more:
        return run
    lists = {name: [trial for trial in more if list_of(trial) == name] for name in ("probes", "trials")}
    whole = {name: [*getattr(run, name), *added] for name, added in lists.items()}
    return run.model_copy(update=whole)


def run_of(content: bytes, path: str) -> Run:
    """The run that a file holds; `path` is named where it holds none. Raises LabError."""
    try:
        document = from_json(content)
    except ValueError as error:
        raise LabError(f"{path}: not a whole JSON document ({error}); it was cut short or is no run file") from error
    found = document.get("format") if isinstance(document, dict) else None
    if type(found) is not int or found != FORMAT:
        problem = shortened(f"format {found!r}, and this clientlab reads format {FORMAT}")
        raise LabError(f"{path}: {problem}; read it with the version that wrote it")
    try:
        return Run.model_validate(document)
    except ValidationError as error:
        raise LabError(f"{path}: {first_problem(error)}; the file was changed or damaged") from error


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
