"""Arms with equal concurrency, ranked by any figure of which less is better: the base of the atlas's sentences.

The ranking is that of a run's tables (`analysis.standings`): all ratios to the least arm have intervals that hold
together, whichever arm comes out as the least. The arms are chosen by what they are, before any figure is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.decisions import Word, decision_of
from clientlab.analysis.ratios import Ratio
from clientlab.analysis.standings import GroupKey, TrialCost, standings
from clientlab.reports.rows import Row
from clientlab.results.figures import cost_of
from clientlab.results.trial import Trial

_ONE_GROUP = GroupKey("", "", "")

WIDEST = 1.3
"""From end to end, of an interval that is quoted: a wider one tells little but its lower end."""


@dataclass(frozen=True)
class Rival:
    """An arm beside the least one: the ratio of both figures, None where it is not known, and what that says."""

    row: Row
    ratio: Ratio | None
    word: Word

    @property
    def quoted(self) -> str:
        """How many times as much: with the interval, or at least how many where that is wide."""
        if self.ratio is None or self.ratio.interval is None:
            return units.UNKNOWN
        low, high = self.ratio.interval
        if high / low <= WIDEST:
            return units.ratio_of(self.ratio)
        if self.word != "slower":
            return units.UNKNOWN
        enough = (units.digits(low, count) for count in range(3, 9))  # until it is seen to be above 1
        return f"at least {next((text for text in enough if float(text.replace(',', '')) > 1), units.digits(low, 9))}"


@dataclass(frozen=True)
class Contest:
    """The least arm, and all others in the order of the figure.

    An arm with failed requests is not the least one while there is one without.
    """

    least: Row
    others: tuple[Rival, ...]

    def of(self, word: Word) -> list[Rival]:
        """The others of which the ratio says that."""
        return [one for one in self.others if one.word == word]


def contest(rows: Iterable[Row], figure: Callable[[Trial], float | None]) -> Contest | None:
    """Rank arms by a figure. Arms without the figure are left out; None if no arm is left."""
    by_name = {row.strategy: row for row in rows if not row.shortfall}
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
    others = [Rival(by_name[one.name], one.ratio, decision_of(one.ratio).word) for one in found if not one.fastest]
    return Contest(least, tuple(others))


def costs_of(row: Row) -> dict[int, float]:
    """Round → seconds per request, of an arm's trials without errors."""
    return {trial.round: cost_of(trial) for trial in row.trials if not trial.errors}


def as_shown(ratio: Ratio | None, row: Row, other: Row) -> Ratio | None:
    """The ratio of two arms' times at the rates that stand beside it; as it is where an arm had errors."""
    if ratio is None or row.errors or other.errors:
        return ratio
    return ratio.with_value(row.level / other.level)


def named(rows: Sequence[Row]) -> str:
    """The strategies of arms, as code; an exclamation mark follows one whose trials a caution doubts."""
    return listed([f"`{row.strategy}`{' (!)' if row.doubtful or row.errors else ''}" for row in rows])


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
