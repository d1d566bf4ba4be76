"""Arms with equal concurrency, ranked by any figure of which less is better: the base of the atlas's sentences.

The ranking is that of a run's tables (`analysis.standings`): all ratios to the least arm have intervals that hold
together, whichever arm comes out as the least. The arms are chosen by what they are, before any figure is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.ratios import Ratio
from clientlab.analysis.standings import GroupKey, TrialCost, standings
from clientlab.reports.rows import Row
from clientlab.results.figures import cost_of
from clientlab.results.trial import Trial

_ONE_GROUP = GroupKey("", "", "")


@dataclass(frozen=True)
class Above:
    """An arm that surely has more of the figure than the least arm: how many times as much, with its interval."""

    row: Row
    ratio: Ratio


@dataclass(frozen=True)
class Contest:
    """The least arm, those that cannot be told from it, and those that surely have more, in the order of the figure.

    An arm with failed requests is not the least one while there is one without.
    """

    least: Row
    ties: tuple[Row, ...]
    more: tuple[Above, ...]


def contest(rows: Iterable[Row], figure: Callable[[Trial], float | None]) -> Contest | None:
    """Rank arms by a figure. Arms without the figure are left out; None if no arm is left."""
    by_name = {row.strategy: row for row in rows}
    costs = [
        TrialCost(row.strategy, _ONE_GROUP, trial.round, value, sum(trial.errors.values()))
        for row in by_name.values()
        for trial in row.trials
        if (value := figure(trial)) is not None and value > 0
    ]
    if not costs:
        return None
    (found,) = standings(costs).values()
    least = next(by_name[one.name] for one in found if one.fastest)
    more = {one.name: Above(by_name[one.name], one.ratio) for one in found if one.ratio and (one.ratio.low or 0) > 1}
    ties = [by_name[one.name] for one in found if not one.fastest and one.name not in more]
    return Contest(least, tuple(ties), tuple(more.values()))


def costs_of(row: Row) -> dict[int, float]:
    """Round → seconds per request, of an arm's trials without errors."""
    return {trial.round: cost_of(trial) for trial in row.trials if not trial.errors}


def named(rows: Sequence[Row]) -> str:
    """The strategies of arms, as code; an exclamation mark follows one whose trials a caution doubts."""
    return listed([f"`{row.strategy}`{' (!)' if row.doubtful or row.errors else ''}" for row in rows])


def times(above: Above) -> str:
    """How many times as much an arm has as the least one."""
    return f"{units.ratio_of(above.ratio)} times ({named([above.row])})"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
