"""Storing a measured run where pages quote it: packed, and only if a commit holds the code that measured it."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from clientlab.results.machine import changed_code

BULKY = ("histogram", "over_time")
"""Parts of a trial that no page shows. Those of the atlas would have 8 MB."""


def refuse_changed_code() -> None:
    """Raise SystemExit if no commit holds the code that would measure: nobody could measure that again."""
    changed = changed_code()
    if changed is None or changed:
        differs = "no commit of a clone is known" if changed is None else f"code differs from the commit: {changed[0]}"
        sys.stderr.write(f"findings: {differs}; commit the code first, then measure\n")
        raise SystemExit(2)


def store(folder: Path, target: Path, *, most_trials: int) -> None:
    """Pack the one run of a results folder into `target`. With more trials than that, it loses their bulky parts."""
    (found,) = folder.glob("results/*/run.json")
    document = json.loads(found.read_text(encoding="utf-8"))
    if len(document["trials"]) > most_trials:
        document["trials"] = [_without(trial, BULKY) for trial in document["trials"]]
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))  # a fifth smaller than indented
    target.write_bytes(gzip.compress(f"{text}\n".encode(), mtime=0))  # the same bytes for the same run


def _without(fields: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}
