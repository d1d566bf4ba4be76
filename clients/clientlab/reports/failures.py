"""Failed requests by arm and kind, and failed trials.

A trial that was ended early, because it was killed, stalled or at its deadline, is partial: its requests that had
finished are shown, and count in no ranking, claim or median.
"""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.sections import Lines, Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

_ERROR_HEADS = ("arm", "kind", "errors", "share of requests", "example")
_TRIAL_HEADS = ("arm", "round", "finished", "in", "req/s", "p50", "p99", "errors", "why it was ended")


def failures(report: Report) -> Section[Part]:
    """Errors by kind, and the failed trials with their reasons. Without any, a line for each that there were none."""
    run = report.run
    errors, trials = list(_errors(run)), list(_failed_trials(run))
    partial = sum(bool(trial.partial) for trial in run.trials)
    tables = [
        DataTable(_ERROR_HEADS, errors, "Errors by kind", keys=2, texts=(4,), brief=(2, 3, 4)),
        DataTable(_TRIAL_HEADS, trials, "Failed trials", keys=2, texts=(7, 8), brief=(8, 2, 7, 4)),
    ]
    none = [*([] if errors else ["No request failed."]), *([] if trials else ["No trial failed."])]
    parts: list[Part] = [
        Tables([table for table in tables if table.rows]),
        Lines([_partial_note(partial)] if partial else []),
        Lines([" ".join(none)] if none else [], brief=False),
    ]
    return Section("errors", "Errors and failed trials", parts, label="Errors", brief=True)


def _errors(run: Run) -> Iterator[tuple[str, ...]]:
    """Errors by arm and kind, their share of the arm's requests, and the first example.

    Those of trials that were ended early stand beside the reason of their end.
    """
    counts: dict[tuple[str, str], int] = {}
    requests: dict[str, int] = {}
    examples: dict[tuple[str, str], str] = {}
    for trial in sorted((trial for trial in run.trials if not trial.partial), key=arm_of):
        name = arm_of(trial)
        requests[name] = requests.get(name, 0) + trial.requests
        for kind, count in trial.errors.items():
            counts[name, kind] = counts.get((name, kind), 0) + count
            examples.setdefault((name, kind), trial.error_examples.get(kind, ""))
    for (name, kind), count in counts.items():
        share = f"{units.digits(100 * count / max(1, requests[name]))} %"
        yield name, kind, f"{count:,}", share, examples[name, kind]


def _failed_trials(run: Run) -> Iterator[tuple[str, ...]]:
    """Arm, round, what was finished before the end, and the reason."""
    unknown = (units.UNKNOWN,) * (len(_TRIAL_HEADS) - 4)
    for trial in sorted(run.trials, key=arm_of):
        if trial.status != "done":
            finished = _cells(run, trial) if trial.requests else ("0", *unknown)
            how = "hangs" if trial.hangs else trial.status
            yield arm_of(trial), str(trial.round), *finished, f"{how}: {trial.reason or 'unknown'}"


def _partial_note(count: int) -> str:
    trials, them = ("trial", "it") if count == 1 else ("trials", "them")
    return (
        f"Figures of {count} {trials} are partial: the lab ended {them}, or something else did, and these requests had "
        "finished. They count in no ranking, claim or median."
    )


def _cells(run: Run, trial: Trial) -> tuple[str, ...]:
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
