"""What stays of a trial's folder when the trial has ended: output of its processes, without secrets."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from clientlab.file_end import MOST_OUTPUT, last_lines
from clientlab.measuring.context import OUTPUT_FILES
from clientlab.samples.log import ERRORS_FILE
from clientlab.workload.withheld import text_filter
from clientlab.workload.workload import Workload


def redact_texts(folder: Path, workload: Workload) -> None:
    """Write the logs and the error texts in a trial's folder anew, their last 64 KiB. No process of the trial runs."""
    files = [file for name in (OUTPUT_FILES, ERRORS_FILE) for file in folder.rglob(name)]
    if not files:  # the filter may have to read a file of recorded requests
        return
    without_secrets = text_filter(workload)
    for file in files:
        beside = file.with_name(f"{file.name}.part")
        beside.write_text(without_secrets(last_lines(file)), encoding="utf-8")
        beside.replace(file)


def keep_output(folder: Path) -> None:
    """Remove a trial's folder, but for what its processes wrote. The sample log would fill the disk for later trials.

    Raises OSError.
    """
    if not folder.exists():
        return
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.match(OUTPUT_FILES) or not (size := path.stat().st_size):
            path.unlink()
        elif size > MOST_OUTPUT:
            _keep_end(path)
    if not any(folder.iterdir()):
        folder.rmdir()


def _keep_end(output: Path) -> None:
    with output.open("r+b") as file:
        file.seek(-MOST_OUTPUT, os.SEEK_END)
        end = file.read()
        file.seek(0)
        file.write(end)  # in place: a full disk has no room for a second file
        file.truncate()
