"""`python -m findings [EXPERIMENT …]`: measure one where it is named, then write the page and its pictures.

The other pages that quote run files are written by `python -m generate`.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from clientlab.errors import LabError
from clientlab.results.machine import changed_code
from findings import atlas
from findings.page import run_file, write

BULKY = ("histogram", "over_time")
"""Parts of a trial that runs of many trials leave out: those of the atlas would have 8 MB, and no page shows them."""
MANY_TRIALS = 200


def measure(words: list[str]) -> None:
    """`clientlab run WORDS`; its file takes the place of the experiment's. Raises CalledProcessError, and SystemExit.

    Nobody could measure again what no commit holds, so a clone whose code was changed measures nothing.
    """
    changed = changed_code()
    if changed is None or changed:
        differs = "no commit of a clone is known" if changed is None else f"code differs from the commit: {changed[0]}"
        sys.stderr.write(f"findings: {differs}; commit the code first, then measure\n")
        raise SystemExit(2)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "clientlab", "run", *words], cwd=folder, check=True)
        (found,) = Path(folder).glob("results/*/run.json")
        document = json.loads(found.read_text(encoding="utf-8"))
    if len(document["trials"]) > MANY_TRIALS:
        document["trials"] = [_without(trial, BULKY) for trial in document["trials"]]
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))  # a fifth smaller than indented
    run_file(words[0]).write_bytes(gzip.compress(f"{text}\n".encode(), mtime=0))  # the same bytes for the same run


def _without(fields: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1:])
    try:
        write()
        atlas.write_pictures()
    except LabError as error:  # a run file, or a sentence that its run does not bear out
        sys.stderr.write(f"findings: {error}\n")
        raise SystemExit(2) from error
