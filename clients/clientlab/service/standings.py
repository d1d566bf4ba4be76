"""The standings of the run in progress, or of the last one: who is ahead, how surely, and after how many rounds."""

from __future__ import annotations

from statistics import median
from typing import Literal

from clientlab import units
from clientlab.analysis.decisions import decision_of
from clientlab.analysis.ratios import Estimate, typical_estimate
from clientlab.reports.charts.chart_data import HUES, colour_of
from clientlab.reports.rows import Group, Row, groups_of, speed_of
from clientlab.results.document import Run
from clientlab.results.figures import ranked_by
from clientlab.service.schemas import Standings, StandingsGroup, StandingsRow

Word = Literal["fastest", "slower", "equal", "undecided", "not ranked"]

_P99 = ranked_by(open_load=True)
_REACH = 1.5  # how far beyond the longest bar an interval is drawn


def standings_of(run: Run | None) -> Standings:
    """The finished trials of a run as standings; without a run, empty ones."""
    if run is None:
        return Standings(run=None, ended=0, rounds_planned=None, groups=[])
    plan = run.experiment
    return Standings(
        run=run.run,
        ended=len(run.trials),
        rounds_planned=plan.rounds if plan.precision is None and plan.budget is None else None,
        groups=[_group(group) for group in groups_of(run)],
    )


def _group(group: Group) -> StandingsGroup:
    rows = [_row(row, open_load=group.open_load) for row in group.rows]
    values = [row.value for row in rows if row.value is not None]
    ends = [row.interval[1] for row in rows if row.interval is not None]
    scale = min(max([*values, *ends]), max(values) * _REACH) if values else None
    return StandingsGroup(title=group.title, figure="p99" if group.open_load else "req/s", scale=scale, rows=rows)


def _row(row: Row, *, open_load: bool) -> StandingsRow:
    speed = _as_shown(speed_of(row.trials), row.figures["throughput"])
    found = _as_shown(_p99_of(row), row.figures[_P99.key]) if open_load else speed
    interval = None if found is None else found.interval
    shown = units.time if open_load else units.digits
    return StandingsRow(
        name=row.name,
        strategy=row.strategy,
        colour=HUES[colour_of(row.strategy)].either,
        concurrency=row.concurrency,
        rounds=len(row.trials),
        requests_per_second=None if speed is None else speed.value,
        value=None if found is None else found.value,
        text=row.text(_P99) if open_load else units.rate(None if found is None else found.value),
        interval=interval,
        interval_text=units.UNKNOWN if interval is None else " to ".join(map(shown, interval)),
        word=_word_of(row),
        errors=sum(row.errors.values()),
    )


def _word_of(row: Row) -> Word:
    if row.shortfall:
        return "not ranked"
    if row.fastest:
        return "fastest"
    word = decision_of(row.ratio).word
    return "undecided" if word == "faster" else word


def _as_shown(found: Estimate | None, value: float | None) -> Estimate | None:
    """The estimate at the figure of the run's table."""
    return found if found is None or value is None else found.with_value(value)


def _p99_of(row: Row) -> Estimate | None:
    """The p99 of an arm over its rounds. No interval where failed requests make it a lower bound."""
    values = _P99.values(row.trials)
    if not values:
        return None
    if _P99.has_bounds(row.trials):
        return Estimate(float(median(values)), None, None)
    return typical_estimate(values)
