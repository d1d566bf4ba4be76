"""A comparison as JSON: every figure in seconds, bytes, counts and shares, with its estimate and verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from clientlab.runs.changes import Change, Comparison
from clientlab.runs.thresholds import Judged


def render(comparison: Comparison, judged: Sequence[Judged]) -> str:
    """One object: `baseline`, `runs` with surroundings that differ and changes by arm and figure, `thresholds`."""
    document = {
        "baseline": comparison.base.run,
        "runs": [
            {
                "run": one.run.run,
                "surroundings": [asdict(difference) for difference in one.differences],
                "unlike": one.unlike,
                "arms": {
                    arm: {name: _change(change) for name, change in changes.items()}
                    for arm, changes in one.changes.items()
                },
            }
            for one in comparison.others
        ],
        "thresholds": [
            {"threshold": one.threshold.text, "run": one.run, "arm": one.arm, "outcome": one.outcome}
            for one in judged
        ],
    }  # fmt: skip
    return json.dumps(document, indent=1, allow_nan=False)


def _change(change: Change) -> dict[str, Any]:
    found = change.ratio or change.difference
    interval = None if found is None or found.low is None else [found.low, found.high]
    return {
        "unit": change.quantity.unit,
        "before": change.before,
        "after": change.after,
        "ratio": None if change.ratio is None else change.ratio.value,
        "difference": None if change.difference is None else change.difference.value,
        "interval": interval,
        "rounds": list(change.rounds),
        "verdict": change.word,
    }
