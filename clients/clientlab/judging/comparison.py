"""Comparison of runs with a baseline: what changed in each arm, with its confidence interval.

Runs can be compared where their arms, workloads and concurrency are equal. Surroundings may differ; they are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from clientlab.analysis.ratios import FEWEST_ROUNDS, Estimate
from clientlab.analysis.unpaired import unpaired_difference, unpaired_ratio
from clientlab.errors import FieldError, LabError
from clientlab.judging.differences import Difference, differences
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import COMPARED
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial

Verdict = Literal["better", "worse", "within noise", "cannot say"]


@dataclass(frozen=True)
class Change:
    """One figure of one arm in two runs.

    `before`, `after`: the figure over the rounds; None without a trial that has the figure. `ratio`: after over
    before, from geometric means; None where one of them is 0. `difference`: after less before, from means, of figures
    that are shares; None for others. `rounds`: of both runs. `bounds`: whether `before` and `after` are only lower
    bounds, because requests failed. `bounded`: a round of either run has a lower bound, so there is no ratio.
    """

    figure: Figure
    before: float | None
    after: float | None
    ratio: Estimate | None
    difference: Estimate | None
    rounds: tuple[int, int]
    verdict: Verdict
    bounds: tuple[bool, bool] = (False, False)
    bounded: bool = False

    @property
    def word(self) -> str:
        """The verdict as the figure names it: faster, slower, less, more, fewer."""
        direction = self.figure.direction
        return {"better": direction.better, "worse": direction.worse}.get(self.verdict, self.verdict)


@dataclass(frozen=True)
class Compared:
    """A run beside the baseline. `changes`: arm → key of a figure → its change, of the arms that both runs have.

    `differences`: of the surroundings; `unlike`: sentences on arms and workloads that differ.
    """

    run: Run
    differences: list[Difference]
    unlike: list[str]
    changes: dict[str, dict[str, Change]]


@dataclass(frozen=True)
class Comparison:
    """The baseline, and the other runs against it. `figures`: those compared, in the order of reports."""

    base: Run
    others: list[Compared]
    figures: tuple[Figure, ...]

    def arms(self) -> list[str]:
        """The arms that were compared, in the baseline's order."""
        return [arm.name for arm in self.base.experiment.arms if any(arm.name in one.changes for one in self.others)]


def compare(base: Run, others: Sequence[Run], more: Iterable[Figure] = (), *, force: bool = False) -> Comparison:
    """Compare runs with a baseline. `more`: figures beside those that are always compared.

    Raises LabError where arms or workloads differ, unless `force` is set, and where two runs have no arm in common.
    """
    figures = tuple(dict.fromkeys((*COMPARED, *more)))
    return Comparison(base, [_against(base, other, figures, force=force) for other in others], figures)


def _against(base: Run, other: Run, figures: tuple[Figure, ...], *, force: bool) -> Compared:
    found = list(_unlike(base, other))
    if found and not force:
        rest = f", and {len(found) - 1} more" if len(found) > 1 else ""
        message = f"runs {base.run} and {other.run} are not alike: {found[0]}{rest}; `force` compares them nevertheless"
        raise FieldError([], message)
    there = {arm.name for arm in other.experiment.arms}
    arms = [arm.name for arm in base.experiment.arms if arm.name in there]
    if not arms:
        raise LabError(f"runs {base.run} and {other.run} have no arm in common; there is nothing to compare")
    before, after = _by_arm(base), _by_arm(other)
    changes = {
        arm: {
            figure.key: _change(
                figure, _comparable(figure, before.get(arm, [])), _comparable(figure, after.get(arm, []))
            )
            for figure in figures
        }
        for arm in arms
    }
    return Compared(other, differences(base, other), found, changes)


def _by_arm(run: Run) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in run.trials:
        found.setdefault(trial.arm, []).append(trial)
    return found


def _comparable(figure: Figure, trials: list[Trial]) -> list[Trial]:
    """The trials that did the same work: a failed request makes a total smaller."""
    return [trial for trial in trials if not trial.errors] if figure.total else trials


def _change(figure: Figure, trials_before: list[Trial], trials_after: list[Trial]) -> Change:
    before, after = figure.values(trials_before), figure.values(trials_after)
    ratio = difference = None
    if figure.unit == "share":
        difference = unpaired_difference(after, before)
    elif not any((*before, *after)):
        ratio = Estimate(1.0, *((1.0, 1.0) if _enough(before, after) else (None, None))) if before and after else None
    else:
        ratio = unpaired_ratio(after, before, figure.resolution)
    if figure.has_bounds([*trials_before, *trials_after]):
        return _of_bounds(figure, trials_before, trials_after, (len(before), len(after)), ratio)
    return Change(
        figure,
        figure.over_rounds(trials_before),
        figure.over_rounds(trials_after),
        ratio,
        difference,
        (len(before), len(after)),
        _verdict(figure, ratio, difference or _of_zero(ratio, before, after)),
    )


def _of_bounds(
    figure: Figure, before: list[Trial], after: list[Trial], rounds: tuple[int, int], least: Estimate | None
) -> Change:
    """A change of which some values are lower bounds. `least`: the ratio of the values as they are.

    With bounds in one run only, the true ratio lies beyond `least`, on the side of the bounds. So its verdict stands if
    it speaks against the run with the bounds. Otherwise nothing is known.
    """
    bounded = figure.has_bounds(before), figure.has_bounds(after)
    against: Verdict = "better" if bounded[0] else "worse"
    sure = not all(bounded) and _verdict(figure, least, None) == against
    return Change(
        figure,
        figure.over_rounds(before),
        figure.over_rounds(after),
        None,
        None,
        rounds,
        against if sure else "cannot say",
        (figure.is_bound(before), figure.is_bound(after)),
        bounded=True,
    )


def _enough(before: list[float], after: list[float]) -> bool:
    return min(len(before), len(after)) >= FEWEST_ROUNDS


def _of_zero(ratio: Estimate | None, before: list[float], after: list[float]) -> Estimate | None:
    """The difference, which decides whether there is a change where a value of 0 permits no ratio."""
    return unpaired_difference(after, before) if ratio is None else None


def _verdict(figure: Figure, ratio: Estimate | None, difference: Estimate | None) -> Verdict:
    estimate, neutral = (ratio, 1.0) if ratio is not None else (difference, 0.0)
    if estimate is None or estimate.low is None or estimate.high is None:
        return "cannot say"
    if estimate.low <= neutral <= estimate.high:
        return "within noise"
    return "better" if (estimate.high < neutral) == figure.less_is_better else "worse"


def _unlike(base: Run, other: Run) -> Iterator[str]:
    """Sentences on arms, workloads and concurrency that differ; none where the runs can be compared."""
    before, after = _arms(base), _arms(other)
    for run, names in ((base, before.keys() - after.keys()), (other, after.keys() - before.keys())):
        if names:
            yield f"only {run.run} has {_names(sorted(names))}"
    for name in before.keys() & after.keys():
        for part in ("strategy", "upstream", "route"):
            one, two = getattr(before[name], part), getattr(after[name], part)
            if one != two:
                yield f"arm {name!r} has {part} {one!r} and {two!r}"
    yield from _workloads(base, other, before, after)
    yield from _concurrency(base, other)


def _workloads(base: Run, other: Run, before: dict[str, Arm], after: dict[str, Arm]) -> Iterator[str]:
    seen = set()
    for name in (arm.name for arm in base.experiment.arms if arm.name in after):
        pair = (before[name].workload, after[name].workload)
        if pair in seen:
            continue
        seen.add(pair)
        one = asdict(base.experiment.workloads[pair[0]])
        two = asdict(other.experiment.workloads[pair[1]])
        for key in one:
            if one[key] != two[key]:
                yield f"workload {pair[0]!r} has {key} {one[key]!r} and {two[key]!r}"


def _concurrency(base: Run, other: Run) -> Iterator[str]:
    after = {trial.arm: trial.concurrency for trial in other.trials}
    for name, before in {trial.arm: trial.concurrency for trial in base.trials}.items():
        if name in after and after[name] != before:
            yield f"arm {name!r} has concurrency {before} and {after[name]}"


def _arms(run: Run) -> dict[str, Arm]:
    return {arm.name: arm for arm in run.experiment.arms}


def _names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"arm {shown}" if len(names) <= 3 else f"arm {shown} and {len(names) - 3} more"
