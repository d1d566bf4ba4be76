"""`python -m findings [EXPERIMENT …]`: measure one where it is named, then write the page and its pictures.

The other pages that quote run files are written by `python -m generate`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from clientlab.errors import LabError
from findings import atlas
from findings.page import run_file, write
from findings.storing import refuse_changed_code, store

MANY_TRIALS = 200
"""Runs with more trials are stored without the bulky parts of these."""


def measure(words: list[str]) -> None:
    """`clientlab run WORDS`; its file takes the place of the experiment's.

    Raises CalledProcessError if the run fails, and SystemExit if no commit holds the code.
    """
    refuse_changed_code()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "clientlab", "run", *words], cwd=folder, check=True)
        store(Path(folder), run_file(words[0]), most_trials=MANY_TRIALS)


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1:])
    try:
        write()
        atlas.write_pictures()
    except LabError as error:  # a run file, or a sentence that its run does not bear out
        sys.stderr.write(f"findings: {error}\n")
        raise SystemExit(2) from error
