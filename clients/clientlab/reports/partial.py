"""Trials that were ended early: killed, stalled, or at their deadline. The requests that had finished are shown.

Their figures are partial. They stand in a table of their own, and count in no ranking, claim or median.
"""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

TITLE = "Partial: trials that were ended early, with the requests that had finished. They count in no figure above."
HEADS = ("arm", "round", "finished", "in", "req/s", "p50", "p99", "errors", "why it was ended")


def rows(run: Run) -> list[tuple[str, ...]]:
    """The table's cells under `HEADS`; empty where no trial is partial."""
    return [
        (arm_of(trial), str(trial.round), *cells(run, trial), f"{trial.status}: {trial.reason or 'unknown'}")
        for trial in sorted(run.trials, key=arm_of)
        if trial.partial
    ]


def cells(run: Run, trial: Trial) -> tuple[str, ...]:
    """Finished requests, their time, requests per second, p50, p99 and errors."""
    planned = run.experiment.workloads[trial.workload].requests
    finished = f"{trial.requests:,}" if planned is None else f"{trial.requests:,} of {planned:,}"
    errors = ", ".join(f"{count:,} {kind}" for kind, count in trial.errors.items())
    return (
        finished,
        units.time(trial.wall_seconds),
        units.rate(trial.requests_per_second),
        *_latencies(trial),
        errors or "0",
    )


def arm_of(trial: Trial) -> str:
    """The arm's name. An arm named like its strategy gets its workload, upstream, route and link as well."""
    parts = [part for part in (trial.workload, *trial.way) if part not in trial.arm]
    return f"{trial.arm} ({', '.join(parts)})" if parts and trial.arm == trial.strategy else trial.arm


def reason_of(trial: Trial) -> str:
    """Why a trial is not done, in a line."""
    kept = f"; partial: {trial.requests:,} requests had finished" if trial.partial else ""
    return f"{trial.reason or 'unknown'}{kept}"


def _latencies(trial: Trial) -> Iterator[str]:
    for key in ("p50", "p99"):
        figure = BY_KEY[key]
        yield figure.text(figure.of(trial), at_least=key in trial.bounds(trial.latency_seconds))
