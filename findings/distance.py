"""The experiment `distance`: which strategies make the most requests per second at each round trip and concurrency."""

from __future__ import annotations

from clientlab import units
from clientlab.analysis.decisions import Word
from clientlab.reports.markdown import table
from clientlab.reports.rows import Row, groups_of
from clientlab.results.document import Run
from clientlab.results.figures import cost_of
from clientlab.workload.link import Link
from findings.contest import Rival, contest

_WORDS: tuple[Word, ...] = ("equal", "undecided")
_HEADS = (
    "round trip",
    "in flight",
    "most requests per second",
    "equal within 5 %",
    "undecided",
    "slower: times as long",
)


def order_table(run: Run) -> str:
    """A line for each round trip and number of requests in flight: the fastest, those alike, and the slower ones."""
    return table(_HEADS, [_cells(*place, rows) for place, rows in sorted(_places(run).items())], left=len(_HEADS))


def _places(run: Run) -> dict[tuple[float, int], list[Row]]:
    """(Round trip in seconds, requests in flight) → the arms there."""
    links = {arm.name: arm.link for arm in run.experiment.arms}
    found: dict[tuple[float, int], list[Row]] = {}
    for row in (row for group in groups_of(run) for row in group.rows):
        link = links[row.trials[0].arm]
        if link is not None:
            found.setdefault((link.rtt, row.concurrency), []).append(row)
    return found


def _cells(rtt: float, concurrency: int, rows: list[Row]) -> list[str]:
    place = [str(Link(rtt)), str(concurrency)]
    found = contest(rows, cost_of)
    if found is None:
        return [*place, *[units.UNKNOWN] * (len(_HEADS) - len(place))]
    fastest = f"{found.least.strategy}, {units.rate(found.least.figures['throughput'])}"
    equal, undecided = (", ".join(one.row.strategy for one in found.of(word)) for word in _WORDS)
    slower = ", ".join(map(_times, found.of("slower")))
    return [*place, fastest, equal or units.UNKNOWN, undecided or units.UNKNOWN, slower or units.UNKNOWN]


def _times(one: Rival) -> str:
    return f"{one.row.strategy} {units.ratio(None if one.ratio is None else one.ratio.value)}"
