"""Cancelled requests: how many were given up, and what they left of each arm's client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller

from clientlab import units
from clientlab.reports.charts.shapes import DataTable, Tone
from clientlab.reports.failures import arm_of
from clientlab.reports.fault_section import HANGS
from clientlab.reports.sections import Part, Report, Section, Tables
from clientlab.results.cancel_counts import Cancelled
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

AXIS = "cancel"
_LOSSES: dict[str, Callable[[Cancelled], int | None]] = {
    "pool slots lost": lambda one: one.slots_lost,
    **{f"{what} left": methodcaller("left", what) for what in ("sockets", "tasks", "threads")},
    "requests held by the upstream": lambda one: one.held,
}
_HEADS = (
    "arm", "cancelled", "answered before", "failed", "slots before", "slots lost", "sockets left", "tasks left",
    "threads left", "held by the upstream", "time to recover",
)  # fmt: skip
_NOTES = (
    "cancelled: by their caller. answered before: the answer came first. failed: with an error of the client.",
    "slots before: requests that had a slot at once, in a probe before the measured part.",
    "What follows is the worst of the rounds: how much less, or more, a probe behind the measured part found.",
    "held by the upstream: requests that it still answers although nobody waits for them.",
)


def cancelled(report: Report) -> Section[Part]:
    """What each arm's client has lost. Without cancelled requests, nothing."""
    rows = list(_rows(report.run))
    table = DataTable(_HEADS, rows, "Cancelled requests by arm", brief=(5, 6, 7, 1, 10), tone_of=tone_of)
    return Section(
        "cancelled", "Cancelled requests", [Tables([table] if rows else [])], label="Cancelled", brief=True,
        notes=_NOTES if rows else (),
    )  # fmt: skip


def answers_of_axis(run: Run) -> list[str] | None:
    """What the cancelled requests left of the clients, in place of who is the fastest: with them, none is as quick.

    None without an axis of cancelled requests.
    """
    names = {arm.name: arm.sweep or arm.strategy for arm in run.experiment.arms if AXIS in arm.axes}
    trials = [trial for trial in run.trials if trial.cancelled is not None and trial.arm in names]
    if not trials or len(names) < len(run.experiment.arms):
        return None
    clients: dict[str, list[Trial]] = {}
    for trial in trials:
        clients.setdefault(names[trial.arm], []).append(trial)
    worst = {what: {name: _most(own, of) for name, own in clients.items()} for what, of in _LOSSES.items()}
    hung = [name for name, own in clients.items() if any(trial.hangs for trial in own)]
    clean = [what for what, lost in worst.items() if 0 in lost.values() and not any(lost.values())]
    given_up = sum(trial.cancelled.count for trial in trials if trial.cancelled is not None)
    return [
        f"{len(clients)} clients gave up {given_up:,} requests{'' if hung else ', and none hung'}.",
        *([f"Hung: {', '.join(hung)}."] if hung else []),
        *(
            f"{what.capitalize()}, in the worst round: {_counts(lost)}."
            for what, lost in worst.items()
            if any(lost.values())
        ),
        *([f"In no round: {', '.join(clean)}."] if clean else []),
    ]


def _counts(lost: dict[str, int | None]) -> str:
    return ", ".join(f"{name} ({many:,})" for name, many in lost.items() if many)


def _most(trials: Sequence[Trial], of: Callable[[Cancelled], int | None]) -> int | None:
    """The worst of the trials. None: unknown in each, as in one that hung and has no second probe."""
    found = [of(trial.cancelled) for trial in trials if trial.cancelled is not None]
    return max((value for value in found if value is not None), default=None)


def tone_of(cell: str) -> Tone:
    """Bad: a trial, or a probe, has not ended in time."""
    return "bad" if cell.startswith(("≥", HANGS)) else ""


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    trials: dict[str, list[Trial]] = {arm.name: [] for arm in run.experiment.arms}
    for trial in run.trials:
        if trial.cancelled is not None and (trial.status == "done" or trial.hangs):
            trials.setdefault(trial.arm, []).append(trial)
    for own in filter(None, trials.values()):
        yield _row(arm_of(own[0]), own)


def _row(arm: str, trials: Sequence[Trial]) -> tuple[str, ...]:
    parts = [trial.cancelled for trial in trials if trial.cancelled is not None]
    failed = sum(sum(one.ended.values()) - one.answered for one in parts)
    before = [one.before.at_once for one in parts if one.before is not None]
    recovery = BY_KEY["recovery"]
    slowest = max(trials, key=lambda trial: recovery.of(trial) or 0.0)
    at_least = recovery.bounded is not None and recovery.bounded(slowest)
    return (
        arm,
        f"{sum(one.count for one in parts):,}",
        f"{sum(one.answered for one in parts):,}",
        f"{failed:,}",
        f"{min(before):,}" if before else units.UNKNOWN,
        *(_worst(parts, of) for of in _LOSSES.values()),
        HANGS if any(trial.hangs for trial in trials) else recovery.text(recovery.of(slowest), at_least=at_least),
    )


def _worst(parts: Sequence[Cancelled], of: Callable[[Cancelled], int | None]) -> str:
    known = [value for one in parts if (value := of(one)) is not None]
    return f"{max(known):,}" if known else units.UNKNOWN
