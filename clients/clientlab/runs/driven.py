"""Figures of a trial that a program drove: those that are the program's, and none that it can't tell."""

from __future__ import annotations

from dataclasses import replace

from clientlab import strategies
from clientlab.measuring.driving import Note
from clientlab.measuring.trial import Outcome
from clientlab.runs.document import Trial


def by_note(outcome: Outcome, note: Note | None) -> Outcome:
    """The outcome by the program's own clock and CPU time, without what it cost to start it and to read its figures."""
    if note is None:
        return outcome
    return replace(outcome, wall_seconds=note.wall_seconds, cpu_seconds=note.cpu_seconds)


def as_driven(trial: Trial, note: Note) -> Trial:
    """The trial without what is not known: when its requests began, and the program's memory."""
    return trial.model_copy(
        update={
            "driver": strategies.client_row(strategies.find(trial.strategy).client).program,
            "kept_alive": note.kept_alive,
            "over_time": [],
            "idle_rss_bytes": None,
            "peak_rss_bytes": None,
        }
    )
