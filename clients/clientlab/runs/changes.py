"""Runs beside each other: what has changed against the first, arm by arm, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.analysis.unpaired import Estimate, unpaired_difference, unpaired_ratio
from clientlab.errors import LabError
from clientlab.runs.document import Run, Trial
from clientlab.runs.likeness import Difference, differences, unlike
from clientlab.runs.quantities import COMPARED, QUANTITIES, Quantity, figures_of

Verdict = Literal["better", "worse", "within noise", "cannot say"]


@dataclass(frozen=True)
class Change:
    """One quantity of one arm in two runs.

    `before`, `after`: medians over the rounds; None without a trial that has it. `ratio`: after
    over before, from geometric means; None where one of them is 0. `difference`: of errors, as shares of all
    requests, from means; None for all else. `rounds`: of both.
    """

    quantity: Quantity
    before: float | None
    after: float | None
    ratio: Estimate | None
    difference: Estimate | None
    rounds: tuple[int, int]
    verdict: Verdict

    @property
    def word(self) -> str:
        """The verdict as it is said of this quantity: faster, slower, less, more, fewer."""
        return {"better": self.quantity.better, "worse": self.quantity.worse}.get(self.verdict, self.verdict)


@dataclass(frozen=True)
class Compared:
    """A run beside the baseline. `changes`: arm → quantity → its change, of the arms that both have."""

    run: Run
    differences: list[Difference]
    unlike: list[str]
    changes: dict[str, dict[str, Change]]


@dataclass(frozen=True)
class Comparison:
    """The baseline, and all others against it. `quantities`: names, in the order shown."""

    base: Run
    others: list[Compared]
    quantities: tuple[str, ...]

    def arms(self) -> list[str]:
        """The arms that have been compared, in the baseline's order."""
        return [arm.name for arm in self.base.experiment.arms if any(arm.name in one.changes for one in self.others)]


def compare(base: Run, others: Sequence[Run], more: Iterable[str] = (), *, force: bool = False) -> Comparison:
    """Compare runs with the first. `more`: quantities beside those always shown.

    Raises LabError for runs of unlike workloads or arms unless it is `force`d, and where no arm is in both.
    """
    names = tuple(dict.fromkeys((*COMPARED, *more)))
    return Comparison(base, [_against(base, other, names, force=force) for other in others], names)


def _against(base: Run, other: Run, names: tuple[str, ...], *, force: bool) -> Compared:
    found = unlike(base, other)
    if found and not force:
        rest = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise LabError(
            f"runs {base.run} and {other.run} are not alike: {found[0]}{rest}; compare them nevertheless with --force"
        )
    there = {arm.name for arm in other.experiment.arms}
    arms = [arm.name for arm in base.experiment.arms if arm.name in there]
    if not arms:
        raise LabError(f"runs {base.run} and {other.run} have no arm in common; there is nothing to compare")
    before, after = _by_arm(base), _by_arm(other)
    changes = {
        arm: {
            name: _change(QUANTITIES[name], *(_figures(name, trials.get(arm, [])) for trials in (before, after)))
            for name in names
        }
        for arm in arms
    }
    return Compared(other, differences(base, other), found, changes)


def _by_arm(run: Run) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in run.trials:
        found.setdefault(trial.arm, []).append(trial)
    return found


def _figures(name: str, trials: list[Trial]) -> list[float]:
    """What is compared of an arm. Errors shorten a wall time: that of a trial with any is of less work: left out."""
    same_work = [trial for trial in trials if not trial.errors] if name == "wall" else trials
    return figures_of(QUANTITIES[name], same_work)


def _change(quantity: Quantity, before: list[float], after: list[float]) -> Change:
    ratio = difference = None
    if quantity.unit == "share":
        difference = unpaired_difference(after, before)
    elif not any((*before, *after)):
        ratio = Estimate(1.0, *((1.0, 1.0) if _enough(before, after) else (None, None))) if before and after else None
    else:
        ratio = unpaired_ratio(after, before, quantity.step)
    return Change(
        quantity,
        median(before) if before else None,
        median(after) if after else None,
        ratio,
        difference,
        (len(before), len(after)),
        _verdict(quantity, ratio, difference or _of_zero(ratio, before, after)),
    )


def _enough(before: list[float], after: list[float]) -> bool:
    return min(len(before), len(after)) >= FEWEST_ROUNDS


def _of_zero(ratio: Estimate | None, before: list[float], after: list[float]) -> Estimate | None:
    """Where there is no ratio, because something is 0, the difference says whether there is a change."""
    return unpaired_difference(after, before) if ratio is None else None


def _verdict(quantity: Quantity, ratio: Estimate | None, difference: Estimate | None) -> Verdict:
    estimate, neutral = (ratio, 1.0) if ratio is not None else (difference, 0.0)
    if estimate is None or estimate.low is None or estimate.high is None:
        return "cannot say"
    if estimate.low <= neutral <= estimate.high:
        return "within noise"
    return "better" if (estimate.high < neutral) == quantity.less_is_better else "worse"
