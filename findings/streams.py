"""The page on streams: tables of the experiments `streams`, `llm-sdks` and `buffers`, and the answers in sentences."""

from __future__ import annotations

from collections.abc import Iterable

from clientlab import units
from clientlab.reports.markdown import table
from clientlab.reports.rows import Row, groups_of
from clientlab.results.document import Run

STREAMS = ("streams", "llm-sdks", "buffers")
"""The experiments of the page. Their sources are issues of clients and servers that stream."""

_HEADS = ("arm", "CPU time of an event", "lag p50", "lag p99", "together", "streams per connection")


def rows_of(run: Run, workloads: Iterable[str]) -> list[Row]:
    """The arms of these workloads, with the least CPU time of an event first."""
    wanted = set(workloads)
    arms = {arm.name for arm in run.experiment.arms if arm.workload in wanted}
    rows = [row for group in groups_of(run) for row in group.rows if row.trials[0].arm in arms]
    return sorted(rows, key=lambda row: _figure(row, "cpu_per_event") or float("inf"))


def events_table(run: Run, *workloads: str) -> str:
    """What an event costs each arm of these workloads, how late it comes, and the streams of a connection."""
    return table(_HEADS, [_cells(row) for row in rows_of(run, workloads)], left=1)


def least(run: Run, workload: str) -> str:
    """The arm with the least CPU time of an event in this workload, and the time, for a sentence."""
    row = rows_of(run, [workload])[0]
    return f"{row.trials[0].arm} ({units.time(_figure(row, 'cpu_per_event'))})"


def _figure(row: Row, key: str) -> float | None:
    return row.figures[key]


def _cells(row: Row) -> list[str]:
    return [
        row.trials[0].arm,
        *(units.time(_figure(row, key)) for key in ("cpu_per_event", "lag_p50", "lag_p99")),
        units.share(_figure(row, "together")),
        units.count(_figure(row, "per_connection")),
    ]
