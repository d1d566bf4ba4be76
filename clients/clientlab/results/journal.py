"""The journal of a run that goes on: its finished trials, one line each, beside the run file.

The run file is one JSON document: to write it after each trial would take longer with each trial. A line that is
appended takes the same time for trial 500 as for trial 5.

A process that is killed while it appends leaves an incomplete last line, which readers skip: its trial had not been
reported as saved.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from clientlab.errors import LabError
from clientlab.results.part import first_problem
from clientlab.results.trial import Trial

JOURNAL_FILE = "trials.jsonl"


def append(path: Path, trial: Trial) -> None:
    """Append a trial, and return when the disk holds it. Raises OSError; the line is then incomplete."""
    with path.open("ab") as file:
        file.write(trial.model_dump_json().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Trial]:
    """All trials of a journal; none where there is no journal. Raises LabError for a line that is no trial."""
    try:
        *lines, _incomplete = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    return [_trial(line, f"{path}: line {number}") for number, line in enumerate(lines, 1)]


def _trial(line: bytes, where: str) -> Trial:
    try:
        return Trial.model_validate_json(line)
    except ValidationError as error:
        raise LabError(f"{where}: {first_problem(error)}; the file was changed or damaged") from error
