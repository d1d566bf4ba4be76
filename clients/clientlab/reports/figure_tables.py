"""The tables of a report: figures of each group of arms, web frameworks by server, failed requests and trials."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from statistics import median

from clientlab import units
from clientlab.analysis.decisions import EQUAL, EQUAL_SHARE
from clientlab.errors import LabError
from clientlab.judging.cautions import by_arm
from clientlab.reports.data_table import DataTable
from clientlab.reports.rows import Group, bottleneck_shares, further_figures
from clientlab.reports.sections import Lines, Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, FIGURES, HIGHEST_RATE
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial
from clientlab.upstreams import Upstream, find

FASTEST = (
    "x fastest is the typical ratio of time per request, paired by round. All intervals of a table together hold the "
    "ratio to the truly fastest arm in 95 of 100 runs. An arm is slower if its interval excludes 1, equal within "
    f"{EQUAL_SHARE} if it lies within 1/{EQUAL} and {EQUAL}, and else undecided."
)
LEAST_P99 = (
    "x least p99 is the same of p99 from the planned start: the schedule of an open load decides how long it takes."
)
_MEDIANS = (
    "Figures are medians of the rounds, errors are sums. A figure with ratios is the fastest arm's times the ratio."
)
_HIGHEST_RATE = (
    "The highest rate is searched in each round; x fastest compares its inverse. Other figures are at that rate."
)
_MOST_COLUMNS = 8
"""Of the short form of a table."""

_ERROR_HEADS = ("arm", "kind", "errors", "share of requests", "example")
_TRIAL_HEADS = ("arm", "round", "finished", "errors", "why it ended")

_Column = tuple[str, str, list[str]]
"""Key, heading and cells."""


def figures(report: Report) -> Section:
    """Return a table for each group, with a row for each arm, the fastest first."""
    run, groups = report.run, report.groups
    unequal = [] if run.claims or run.experiment.source else run.experiment.uncontrolled
    notes = [_MEDIANS] if groups else []
    for kind, note in ((False, FASTEST), (True, LEAST_P99)):
        notes += [note] if any(group.open_load is kind and len(group.rows) > 1 for group in groups) else []
    notes += [_HIGHEST_RATE] if any(group.searched for group in groups) else []
    parts: list[Part] = [
        Tables([figure_table(group) for group in groups]),
        Lines(list(_shard_lines(run))),
        Lines([f"Unequal, or left out: {one}" for one in unequal], brief=False),
    ]
    return Section("table", "Figures", parts, label="Table", notes=[" ".join(notes)] if notes else [], brief=True)


def figure_table(group: Group) -> DataTable:
    """Return the table of a group, with a column for each figure that it has."""
    rows = group.rows
    keys, heads, cells = zip(*_columns(group), strict=True)
    places = {key: place for place, key in enumerate(keys, start=1)}
    return DataTable(
        ("strategy" if all(row.name == row.strategy for row in rows) else "arm", *heads),
        [(f"{row.name} !" if row.doubtful else row.name, *line) for row, *line in zip(rows, *cells, strict=True)],
        group.title if group.mixed else f"{group.title} · c={rows[0].concurrency}",
        texts=[places[key] for key in ("bottleneck", "shares") if key in places],
        best=[index for index, row in enumerate(rows) if row.first],
        brief=[places[key] for key in _short_form(group) if key in places][: _MOST_COLUMNS - 1],
    )


def _short_form(group: Group) -> list[str]:
    """Return keys of the columns of the short form, the most important first."""
    errors = ["errors"] if any(row.errors for row in group.rows) else []
    dropped = ["dropped"] if any(row.figures["dropped"] for row in group.rows) else []
    decides = ["p99", "achieved_rate", *dropped] if group.open_load else ["throughput"]
    decides = [HIGHEST_RATE.key] if group.searched else decides
    load = ["c"] if group.mixed else []
    p99 = [] if "p99" in decides else ["p99"]
    return ["ratio", *decides, *load, "bottleneck", *errors, *p99, "baseline", "received", "cpu", "p50"]


def _columns(group: Group) -> Iterator[_Column]:
    """Yield all columns except the arms' names."""
    rows, further = group.rows, further_figures(open_load=group.open_load)
    ranking = HIGHEST_RATE.key if group.searched else "p99" if group.open_load else "throughput"
    yield "c", "c", [str(row.concurrency) for row in rows]
    for figure in FIGURES:
        if figure.column is not None and group.shows(figure, figure.column.when):
            yield figure.key, figure.column.heading, [row.text(figure) for row in rows]
            if figure in further and len(rows) > 1:
                ratios = ["1" if row.first else units.ratio_of(row.ratios.get(figure.key)) for row in rows]
                yield f"x {figure.key}", f"x {figure.column.heading} (95 %)", ratios
        if figure.key == ranking:
            yield from _ratios(group)
    yield "bottleneck", "bottleneck", [row.bottleneck for row in rows]
    if any(row.shares for row in rows):
        yield "shares", "shares", [bottleneck_shares(row.verdict, row.shares) for row in rows]


def _ratios(group: Group) -> Iterator[_Column]:
    """Yield the ratios to the best arm with equal load, and to the baseline, marked if their loads differ."""
    what = "x least p99" if group.open_load else "x fastest"
    best = {row.name: units.UNKNOWN if row.alone else "1" for row in group.rows if row.fastest}
    cells = ["not ranked" if row.shortfall else best.get(row.name, units.ratio_of(row.ratio)) for row in group.rows]
    yield "ratio", f"{what} of c (95 %)" if group.mixed else f"{what} (95 %)", cells
    for base in (row for row in group.rows if row.name == group.baseline):
        marks = ["" if row.load == base.load else f" at {group.place_of(row)}" for row in group.rows]
        cells = [f"{units.ratio_of(row.to_baseline)}{mark}" for row, mark in zip(group.rows, marks, strict=True)]
        cells[group.rows.index(base)] = "1"
        yield "baseline", f"x {group.name_of(base)}", cells


def _shard_lines(run: Run) -> Iterator[str]:
    """Yield a sentence for each arm whose trials were divided."""
    for arm, trials in by_arm(run).items():
        if shards := trials[-1].by_shard:
            rates = [shard.requests_per_second for trial in trials for shard in trial.by_shard]
            spread = median(max(shard.began_seconds for shard in trial.by_shard) for trial in trials)
            yield (
                f"{arm}: {len(shards)} shards, hosts: {len({shard.host for shard in shards})}, each with "
                f"{units.rate(min(rates))} to {units.rate(max(rates))} requests/s; the last began {units.time(spread)} "
                "after the first (median)."
            )


def servers(report: Report) -> Section:
    """Return a table of the arms that differ in their servers only, for runs that compare web frameworks."""
    run, title = report.run, "Web frameworks, by server"
    found: list[tuple[Arm, Upstream]] = []
    for arm in run.experiment.arms:
        with contextlib.suppress(LabError):  # an upstream that the lab does not know
            found.append((arm, find(arm.upstream)))
    special = [(arm, upstream) for arm, upstream in found if upstream.special]
    frameworks = {upstream.framework for _, upstream in special}
    comparable = len(frameworks) > 1 and len({(arm.workload, arm.route) for arm, _ in special}) == 1
    figures = {"req/s": BY_KEY["throughput"], "connections": BY_KEY["connections"], "req/connection": BY_KEY["reuse"]}
    rows = []
    for arm, upstream in special if comparable else []:
        workers = "" if upstream.workers is None else f", workers: {upstream.workers}"
        server = "development server" if upstream.development else f"gunicorn{workers}"
        cells = (figure.text(figure.over_rounds(run.trials_of(arm.name))) for figure in figures.values())
        rows.append((server, arm.name, *cells))
    table = DataTable(("server", "arm", *figures), sorted(rows), title, keys=2)
    return Section("servers", title, [Tables([table] if rows else [])], label="Servers", brief=True)


def failures(report: Report) -> Section:
    """Return errors by kind, and the failed trials with their reasons.

    A trial that ended early is partial: the requests that had finished are shown, and count nowhere else.
    """
    run = report.run
    trials = [_failed_trial(run, trial) for trial in sorted(run.trials, key=arm_of) if trial.status != "done"]
    tables = [
        DataTable(_ERROR_HEADS, _errors(run), "Errors by kind", keys=2, texts=(4,), brief=(2, 3, 4)),
        DataTable(_TRIAL_HEADS, trials, "Failed trials", keys=2, texts=(3, 4)),
    ]
    shown = Tables([table for table in tables if table.rows])
    return Section("errors", "Errors and failed trials", [shown], label="Errors", brief=True)


def _errors(run: Run) -> list[tuple[str, ...]]:
    """Return rows of errors by arm and kind, with the first example."""
    counts, requests = Counter[tuple[str, str]](), Counter[str]()
    examples: dict[tuple[str, str], str] = {}
    for trial in sorted((trial for trial in run.trials if not trial.partial), key=arm_of):
        name = arm_of(trial)
        requests[name] += trial.requests
        for kind, count in trial.errors.items():
            counts[name, kind] += count
            examples.setdefault((name, kind), trial.error_examples.get(kind, ""))
    return [
        (name, kind, f"{count:,}", units.share(count / max(1, requests[name])), examples[name, kind])
        for (name, kind), count in counts.items()
    ]


def _failed_trial(run: Run, trial: Trial) -> tuple[str, ...]:
    """Return a row with what had finished when the trial ended, and why it ended."""
    planned = run.experiment.workloads[trial.workload].requests
    finished = f"{trial.requests:,}{'' if planned is None else f' of {planned:,}'}"
    errors = ", ".join(f"{count:,} {kind}" for kind, count in trial.errors.items()) or "0"
    return arm_of(trial), str(trial.round), finished, errors, f"{trial.status}: {reason_of(trial)}"


def arm_of(trial: Trial) -> str:
    """Return the arm's name. An arm named like its strategy gets its workload, upstream, route and link as well."""
    parts = [part for part in (trial.workload, *trial.way) if part not in trial.arm]
    return f"{trial.arm} ({', '.join(parts)})" if parts and trial.arm == trial.strategy else trial.arm


def reason_of(trial: Trial) -> str:
    """Return why a trial is not done, in a line."""
    kept = f"; partial: {trial.requests:,} requests had finished" if trial.partial else ""
    return f"{trial.reason or 'unknown'}{kept}"
