"""`python -m findings [EXPERIMENT …]`: measure one where it is named, then write the page and its pictures."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from findings.page import RUNS, write


def measure(words: list[str]) -> None:
    """`clientlab run WORDS`; its file takes the place of the experiment's. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "clientlab", "run", *words], cwd=folder, check=True)
        (found,) = Path(folder).glob("results/*/run.json")
        document = json.loads(found.read_text(encoding="utf-8"))
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))  # a fifth smaller than indented
    (RUNS / f"{words[0]}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1:])
    write()
