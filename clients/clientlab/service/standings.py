"""The standings of the run in progress, or of the last one: who is ahead, how surely, and after how many rounds."""

from __future__ import annotations

from clientlab import units
from clientlab.reports.charts.palette import HUES, colour_of
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.reports.speed import speed_of
from clientlab.results.document import Run
from clientlab.service.schemas import Standings, StandingsGroup, StandingsRow

_REACH = 1.5  # how far beyond the longest bar an interval is drawn


def standings_of(run: Run | None) -> Standings:
    """The finished trials of a run as standings; without a run, empty ones."""
    if run is None:
        return Standings(run=None, ended=0, rounds_planned=None, groups=[])
    plan = run.experiment
    return Standings(
        run=run.run,
        ended=len(run.trials),
        rounds_planned=plan.rounds if plan.precision is None else None,
        groups=[_group(group) for group in groups_of(run)],
    )


def _group(group: Group) -> StandingsGroup:
    rows = [_row(row) for row in group.rows]
    speeds = [row.requests_per_second for row in rows if row.requests_per_second is not None]
    if not speeds:
        return StandingsGroup(title=group.title, scale=None, rows=rows)
    ends = [row.interval[1] for row in rows if row.interval is not None]
    return StandingsGroup(title=group.title, scale=min(max([*speeds, *ends]), max(speeds) * _REACH), rows=rows)


def _row(row: Row) -> StandingsRow:
    speed = speed_of(row.trials)
    return StandingsRow(
        name=row.name,
        strategy=row.strategy,
        colour=HUES[colour_of(row.strategy)].either,
        concurrency=row.concurrency,
        rounds=len(row.trials),
        requests_per_second=None if speed is None else speed.value,
        interval=None if speed is None else speed.interval,
        errors=sum(row.errors.values()),
    )


def interval_text(row: StandingsRow) -> str:
    """The ends of a row's interval, as the page shows them."""
    return units.UNKNOWN if row.interval is None else " to ".join(map(units.digits, row.interval))
