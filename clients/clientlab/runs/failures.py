"""Which trials of a run are missing: they failed, and nothing made them good."""

from __future__ import annotations

from clientlab.runs.document import Run, Trial


def failed_for_good(run: Run, arm: str | None = None) -> list[Trial]:
    """The failed trials, of all arms or of one; without those that were lost and then measured in the same round."""
    good = {(trial.arm, trial.round) for trial in run.trials if trial.status == "done"}
    return [
        trial
        for trial in run.trials
        if trial.status == "failed" and arm in (None, trial.arm) and (trial.arm, trial.round) not in good
    ]
