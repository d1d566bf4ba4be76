"""The journal of a run that goes on: its finished trials, one line each, beside the run file.

The run file is one JSON document: to write it after each trial would take longer with each trial. A line that is
appended takes the same time for trial 500 as for trial 5.

A process that is killed while it appends leaves an incomplete last line, which readers skip: its trial had not been
reported as saved.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import ValidationError

from clientlab.errors import LabError
from clientlab.results.part import first_problem, is_printable
from clientlab.results.trial import Trial

JOURNAL_FILE = "trials.jsonl"


def append(path: Path, trial: Trial) -> None:
    """Append a trial, and return when the disk holds it. Raises OSError; the file is then as before."""
    left = memoryview(trial.model_dump_json().encode() + b"\n")
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


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
        return Trial.of_document(json.loads(line), walked=is_printable(line))
    except ValidationError as error:
        problem = first_problem(error)
    except (ValueError, RecursionError) as error:
        problem = f"Invalid JSON: {error}"
    raise LabError(f"{where}: {problem}; the file was changed or damaged")
