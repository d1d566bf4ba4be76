"""The trials and arms that a caution is about."""

from __future__ import annotations

from collections.abc import Iterable

from clientlab.results.document import Run
from clientlab.results.trial import Trial


def finished(run: Run) -> list[Trial]:
    """The trials that are done."""
    return [trial for trial in run.trials if trial.status == "done"]


def by_arm(run: Run) -> dict[str, list[Trial]]:
    """Arm → its trials that are done."""
    found: dict[str, list[Trial]] = {}
    for trial in finished(run):
        found.setdefault(trial.arm, []).append(trial)
    return found


def arms_of(trials: Iterable[Trial]) -> list[str]:
    """The names of the trials' arms, each once."""
    return sorted({trial.arm for trial in trials})


def names_of(trials: Iterable[Trial]) -> str:
    """The names of the trials' arms, for a sentence."""
    return ", ".join(arms_of(trials))
