"""What stays of a trial's folder when the trial has ended: the output of its processes."""

from __future__ import annotations

import shutil
from pathlib import Path

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
        elif not path.match(OUTPUT_FILES) or not path.stat().st_size:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
