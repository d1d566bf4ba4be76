"""What stays of a trial's folder when the trial has ended: the output of its processes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from clientlab.file_end import MOST_OUTPUT
from clientlab.measuring.context import OUTPUT_FILES


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
