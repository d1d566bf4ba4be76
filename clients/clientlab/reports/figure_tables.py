"""The tables of figures, one for each group of arms, and lines about the shards behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from clientlab import units
from clientlab.analysis.decisions import EQUAL, EQUAL_SHARE
from clientlab.judging.cautions.trials import by_arm
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.rows import Group, Row, bottleneck_name, bottleneck_shares, further_figures
from clientlab.reports.sections import Details, Lines, Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES, HIGHEST_RATE
from clientlab.results.trial import Trial

FASTEST = (
    "x fastest is the typical ratio of time per request, paired by round and reconciled over all pairs of arms. All "
    "intervals of a table together hold the ratio to the truly fastest arm in 95 of 100 runs. An arm is slower if its "
    f"interval excludes 1, equal within {EQUAL_SHARE} if it lies within 1/{EQUAL} and {EQUAL}, and else undecided."
)
LEAST_P99 = (
    "x least p99 is the typical ratio of the 99th percentile of latency from the planned start, since the schedule of "
    "an open load decides how long its trials take. It is paired and reconciled as x fastest of a closed load is, and "
    "its intervals hold together as well."
)
_MEDIANS = (
    "Figures are medians of the rounds, errors are summed. A figure that has ratios is the median of the fastest arm; "
    "that of another arm follows from their ratio."
)
_HIGHEST_RATE = (
    "The highest rate is searched in each round. Its interval begins at the rates that held, and ends at those that "
    "did not. x fastest compares its inverse. Other figures are of a trial of each round that held the rate."
)
_TO_BASELINE = "The column behind it has the same ratio to the baseline."

_Column = tuple[str, str, list[str]]
"""Key, heading and cells."""
_RATIOS_AFTER = {False: "throughput", True: "p99"}
"""Open load or not → the figure behind which the ratios stand."""


def figures(report: Report) -> Section[Part]:
    """A table for each group: a row for each arm, the fastest first. Below them, shards."""
    run = report.run
    unequal = [] if run.claims or run.experiment.source else run.experiment.uncontrolled
    parts: list[Part] = [
        Tables([figure_table(group) for group in report.groups]),
        Lines(shard_lines(run)),
        Details("What is unequal, or left out", unequal),
    ]
    return Section("table", "Figures", parts, label="Table", notes=_notes(report.groups), brief=True)


def figure_table(group: Group) -> DataTable:
    """The table of a group: a column for each figure that it has. Of equal c, the title has it as well."""
    keys, heads, cells = zip(*_columns(group), strict=True)
    rows = [(row.marked, *line) for row, *line in zip(group.rows, *cells, strict=True)]
    best = [index for index, row in enumerate(group.rows) if row.first]
    title = group.title if group.mixed else f"{group.title} · c={group.rows[0].concurrency}"
    places = {key: place for place, key in enumerate(keys, start=1)}
    brief = [places[key] for key in _brief(group) if key in places][: _MOST_COLUMNS - 1]
    words = [places[key] for key in ("bottleneck", "shares") if key in places]
    return DataTable((_head_of(group.rows), *heads), rows, title, texts=words, best=best, brief=brief)


_MOST_COLUMNS = 8
"""Of the short form of a table."""


def _brief(group: Group) -> list[str]:
    """Keys of the columns of the short form, the most important first."""
    errors = ["errors"] if any(row.errors for row in group.rows) else []
    dropped = ["dropped"] if any(row.figures["dropped"] for row in group.rows) else []
    load = ["c"] if group.mixed else []
    decides = ["p99", "achieved_rate", *dropped] if group.open_load else ["throughput"]
    decides = [HIGHEST_RATE.key] if group.searched else decides
    return ["ratio", *decides, *load, "bottleneck", *errors, "p99", "baseline", "received", "cpu", "p50"]


def _notes(groups: Sequence[Group]) -> list[str]:
    """What the figures and ratios are, of groups that have a ratio."""
    if not groups:
        return []
    kinds = {group.open_load for group in groups if len(group.rows) > 1}
    ratios = [text for kind, text in ((False, FASTEST), (True, LEAST_P99)) if kind in kinds]
    ratios += [_HIGHEST_RATE] if any(group.searched for group in groups) else []
    baseline = [_TO_BASELINE] if any(group.baseline for group in groups) else []
    return [" ".join([_MEDIANS, *ratios, *baseline])]


def _columns(group: Group) -> Iterator[_Column]:
    """All columns except the arms' names."""
    rows, further = group.rows, further_figures(open_load=group.open_load)
    ranking = HIGHEST_RATE.key if group.searched else _RATIOS_AFTER[group.open_load]
    yield "c", "c", [str(row.concurrency) for row in rows]
    for figure in FIGURES:
        if figure.column is not None and group.shows(figure, figure.column.when):
            yield figure.key, figure.column.heading, [_cell(row, figure) for row in rows]
            if figure in further and len(rows) > 1:
                yield f"x {figure.key}", f"x {figure.column.heading} (95 %)", list(_further_ratios(group, figure))
        if figure.key == ranking:
            yield from _ratios(group)
    yield "bottleneck", "bottleneck", [bottleneck_name(row.verdict, row.shares) for row in rows]
    if any(row.shares for row in rows):
        yield "shares", "shares", [bottleneck_shares(row.verdict, row.shares) for row in rows]


def _cell(row: Row, figure: Figure) -> str:
    if figure.key == "errors" and row.errors:
        return ", ".join(f"{count:,} {kind}" for kind, count in row.errors.items())
    return row.text(figure)


def _ratios(group: Group) -> Iterator[_Column]:
    """What arms are ranked by, over that of the best one with equal concurrency and rate, and that of the baseline."""
    what = "x least p99" if group.open_load else "x fastest"
    yield "ratio", f"{what} of c (95 %)" if group.mixed else f"{what} (95 %)", [_ratio(row) for row in group.rows]
    base = next((row for row in group.rows if row.name == group.baseline), None)
    if base is not None:
        yield "baseline", f"x {group.name_of(base)}", [_to_baseline(group, row, base) for row in group.rows]


def _ratio(row: Row) -> str:
    if row.shortfall:
        return "not ranked"
    if row.fastest:
        return units.UNKNOWN if row.alone else "1"
    return units.ratio_of(row.ratio)


def _further_ratios(group: Group, figure: Figure) -> Iterator[str]:
    """A figure over that of the fastest arm."""
    return ("1" if row.first else units.ratio_of(row.ratios.get(figure.key)) for row in group.rows)


def _to_baseline(group: Group, row: Row, base: Row) -> str:
    """The ratio to the baseline, marked where the two differ in concurrency: then it is mostly the ratio of that."""
    if row is base:
        return "1"
    mark = "" if row.load == base.load else f" at {group.place_of(row)}"
    return f"{units.ratio_of(row.to_baseline)}{mark}"


def _head_of(rows: list[Row]) -> str:
    """Strategies, or arms if some arm has a name of its own."""
    return "strategy" if all(row.name == row.strategy for row in rows) else "arm"


def shard_lines(run: Run) -> list[str]:
    """A sentence for each arm whose trials were divided; empty for a run without shards."""
    return [_shard_line(arm, trials) for arm, trials in by_arm(run).items() if trials[0].by_shard]


def _shard_line(arm: str, trials: Sequence[Trial]) -> str:
    shards = trials[-1].by_shard
    rates = [shard.requests_per_second for trial in trials for shard in trial.by_shard]
    hosts = len({shard.host for shard in shards})
    where = "" if hosts == 1 else f" on {hosts} hosts"
    spread = units.time(median(max(shard.began_seconds for shard in trial.by_shard) for trial in trials))
    rate = f"{units.rate(min(rates))} to {units.rate(max(rates))} requests/s"
    return f"{arm}: {len(shards)} shards{where}, each with {rate}; the last began {spread} after the first (median)."
