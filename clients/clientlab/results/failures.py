"""The trials that a run lacks: they failed or were lost, and no other trial replaced them."""

from __future__ import annotations

from clientlab.results.document import Run
from clientlab.results.trial import Trial


def failed_for_good(run: Run, arm: str | None = None) -> list[Trial]:
    """The failed and lost trials, of all arms or of one.

    A trial whose arm was measured again in the same round, with success, is not among them.
    """
    good = {(trial.arm, trial.round) for trial in run.trials if trial.status == "done"}
    return [
        trial
        for trial in run.trials
        if trial.status != "done" and arm in (None, trial.arm) and (trial.arm, trial.round) not in good
    ]
