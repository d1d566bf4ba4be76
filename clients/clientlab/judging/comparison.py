"""Comparison of runs with a baseline: what changed in each arm, and how their
surroundings differ.

Runs can be compared if their arms, workloads and concurrency are equal. Surroundings
may differ, because they may be what the comparison is about; reports list all
differences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from clientlab.errors import FieldError, LabError
from clientlab.judging.ranking import shortfall
from clientlab.results.document import Run
from clientlab.results.figures import COMPARED, HIGHEST_RATE, Figure
from clientlab.results.store import Store
from clientlab.statistics.decisions import EQUAL
from clientlab.statistics.ratios import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    Estimate,
    predicted_ratio,
    unpaired_difference,
    unpaired_ratio,
)
from clientlab.trial.result import Trial
from clientlab.workload.values import Link, Written
from clientlab.workload.workload import NOT_MEASURED, Workload

FLOOR = 0.10
"""Share by which equal runs may differ as wholes, if too few earlier ones show it."""

FEWEST_EARLIER = 5
"""Earlier runs of the same plan on the same machine that show how much runs differ."""

_MATERIAL = 1.01  # a change that is surely smaller is none, however well it is known

ChangeVerdict = Literal["better", "worse", "equal", "undecided", "small"]
"""``small``: the interval excludes 1, but the change is less than runs may
differ by.
"""

Trials = tuple[Sequence[Trial], Sequence[Trial]]
"""The trials of one arm that count for one figure, in the baseline and in the other
run.
"""


@dataclass(frozen=True)
class Change:
    """One figure of one arm in two runs.

    `before`, `after`: the figure over the rounds; None if no trial has it. `values`:
    the figures of all trials in both runs. `ratio`: the typical ratio of after to
    before; None if a value is 0. With a ratio, `before` is the median of the rounds,
    and `after` follows from both. `difference`: after minus before, from means, if the
    figure is a share. `verdict`: judged by the interval of either, which has this
    `confidence`. `bounds`: whether `before` and `after` are only lower bounds, because
    requests failed. `bounded`: a round of a run has a lower bound, so there is no
    ratio. `floor`: a change has to be larger than this share. `earlier`: how many runs
    decide instead, in which case `before` is their mean, and the ratio is that of
    `after` to it.
    """

    figure: Figure
    before: float | None
    after: float | None
    values: tuple[list[float], list[float]]
    ratio: Estimate | None
    difference: Estimate | None
    verdict: ChangeVerdict
    bounds: tuple[bool, bool] = (False, False)
    bounded: bool = False
    confidence: float = CONFIDENCE
    floor: float = 0.0
    earlier: int = 0

    @property
    def rounds(self) -> tuple[int, int]:
        """The number of rounds in both runs that have the figure."""
        return len(self.values[0]), len(self.values[1])

    @property
    def word(self) -> str:
        """The verdict in the figure's own words: faster, slower, less, more, fewer,
        equal, undecided.
        """
        direction = self.figure.direction
        words = {
            "better": direction.better,
            "worse": direction.worse,
            "small": "less than runs may",
        }
        return words.get(self.verdict, self.verdict)


def simultaneous(count: int) -> float:
    """Return the confidence that each of `count` intervals needs so that all hold in 95
    of 100 cases (Bonferroni).
    """
    return 1 - (1 - CONFIDENCE) / max(1, count)


def has_interval(figure: Figure, trials: Trials) -> bool:
    """Return whether both runs have enough rounds with the figure."""
    return all(len(figure.values(of_run)) >= FEWEST_ROUNDS for of_run in trials)


def change_of(
    figure: Figure,
    trials: Trials,
    confidence: float,
    floor: float = 0.0,
    earlier: Sequence[float] = (),
) -> Change:
    """Return the change of a figure between two runs, with an interval of that
    confidence.

    `earlier`: the figure in each run before, if these are enough to tell how much runs
    differ.
    """
    before, after = figure.values(trials[0]), figure.values(trials[1])
    shown_before, shown_after = (figure.over_rounds(of_run) for of_run in trials)
    ratio = difference = None
    if figure.unit == "share":
        difference, floor, earlier = (
            unpaired_difference(after, before, confidence),
            0.0,
            (),
        )
    elif earlier and shown_after:
        ratio, floor = predicted_ratio(shown_after, earlier, confidence), 0.0
        shown_before = shown_after / ratio.value
    elif any((*before, *after)):
        ratio = unpaired_ratio(after, before, figure.resolution, confidence)
    elif before and after:  # all values are 0
        ratio = Estimate(
            1.0, *((1.0, 1.0) if has_interval(figure, trials) else (None, None))
        )
    bounded = figure.has_bounds(trials[0]), figure.has_bounds(trials[1])
    if any(bounded):
        # With bounds in one run only, the true ratio lies beyond the ratio of the
        # bounds, on their side. So the verdict stands if it speaks against the run with
        # the bounds. Otherwise nothing is known.
        against: ChangeVerdict = (
            "better" if bounded[0] == figure.less_is_better else "worse"
        )
        is_sure = not all(bounded) and _verdict(figure, ratio, None, floor) == against
        verdict, ratio, difference = against if is_sure else "undecided", None, None
    else:
        # If a value of 0 permits no ratio, the difference decides whether there is a
        # change.
        judged = difference or (
            unpaired_difference(after, before, confidence) if ratio is None else None
        )
        verdict = _verdict(figure, ratio, judged, floor)
    if ratio is not None and shown_before is not None:
        shown_after = shown_before * ratio.value
    return Change(
        figure,
        shown_before,
        shown_after,
        (before, after),
        ratio,
        difference,
        verdict,
        bounds=(figure.is_bound(trials[0]), figure.is_bound(trials[1])),
        bounded=any(bounded),
        confidence=confidence,
        floor=floor,
        earlier=len(earlier),
    )


def _verdict(
    figure: Figure, ratio: Estimate | None, difference: Estimate | None, floor: float
) -> ChangeVerdict:
    """Return the verdict of an interval. A figure without any noise needs no floor."""
    estimate, neutral = (ratio, 1.0) if ratio is not None else (difference, 0.0)
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if estimate.low <= neutral <= estimate.high:
        low, high = (
            (1 / EQUAL, EQUAL) if ratio is not None else (-0.01, 0.01)
        )  # one percentage point
        return "equal" if low <= estimate.low and estimate.high <= high else "undecided"
    has_noise = ratio is not None and estimate.low < estimate.high
    if has_noise and estimate.low >= 1 / _MATERIAL and estimate.high <= _MATERIAL:
        return "equal"
    if has_noise and estimate.low <= 1 + floor and estimate.high >= 1 / (1 + floor):
        return "small"
    return "better" if (estimate.high < neutral) == figure.less_is_better else "worse"


@dataclass(frozen=True)
class Compared:
    """A run beside the baseline."""

    run: Run
    differences: list[Difference]  # of the surroundings
    unlike: list[str]  # sentences about arms and workloads that differ
    changes: dict[str, dict[str, Change]]  # by arm, and by the key of the figure


@dataclass(frozen=True)
class Comparison:
    """The baseline and the other runs against it.

    `figures`: what is compared, in the order of reports.

    `confidence`: of each interval, so that all of them together hold the truth in 95 of
    100 comparisons. Changes that thresholds judge are a separate family, so that
    showing more figures does not weaken a threshold.
    """

    base: Run
    others: list[Compared]
    figures: tuple[Figure, ...]
    confidence: float

    def arms(self) -> list[str]:
        """Return the arms that the baseline shares with another run, in the baseline's
        order.
        """
        return [
            arm.name
            for arm in self.base.experiment.arms
            if any(arm.name in one.changes for one in self.others)
        ]

    def compared_arms(self) -> list[str]:
        """Return the arms of `arms` that reached their concurrency in all runs."""
        runs = [self.base, *(one.run for one in self.others)]
        return [
            name
            for name in self.arms()
            if not any(shortfall(run.trials_of(name)) for run in runs)
        ]


def compare(  # noqa: PLR0913 - what is compared, and what changes have to exceed
    base: Run,
    others: Sequence[Run],
    more: Iterable[Figure] = (),
    *,
    gated: Collection[tuple[str | None, str]] = (),
    force: bool = False,
    floor: float = FLOOR,
    earlier: Sequence[Run] = (),
) -> Comparison:
    """Compare runs with a baseline.

    `more`: figures to compare beside the usual ones, even if no trial has them.

    `gated`: arm and figure's key of each change that a threshold judges; the arm None
    stands for all arms. `floor`: share by which equal runs may differ. `earlier`: runs
    that show it instead, if they are enough (`find_alike`). Raise LabError if arms or
    workloads differ, unless `force` is set, or if two runs have no arm in common.
    """
    searched = all(run.experiment.find_max is not None for run in (base, *others))
    more = tuple(more)
    wanted = tuple(dict.fromkeys((*((HIGHEST_RATE,) if searched else COMPARED), *more)))
    pairs = [_pair_trials(base, other, wanted, force=force) for other in others]
    known = {
        key
        for of_run in pairs
        for of_arm in of_run.values()
        for key, trials in of_arm.items()
        if any(trials)
    }
    figures = (
        tuple(figure for figure in wanted if figure.key in known or figure in more)
        or wanted
    )

    def is_gated(arm: str, figure: Figure) -> bool:
        return (arm, figure.key) in gated or (None, figure.key) in gated

    gates = [
        is_gated(arm, figure)
        for of_run in pairs
        for arm, of_arm in of_run.items()
        for figure in figures
        if has_interval(figure, of_arm[figure.key])
    ]
    levels = {gate: simultaneous(gates.count(gate)) for gate in (False, True)}
    compared = []
    for other, of_run in zip(others, pairs, strict=True):
        alike = find_alike(base, other, earlier)
        changes = {
            arm: {
                one.key: change_of(
                    one,
                    trials[one.key],
                    levels[is_gated(arm, one)],
                    floor,
                    _figures_of(one, alike, arm),
                )
                for one in figures
            }
            for arm, trials in of_run.items()
        }
        compared.append(
            Compared(
                other,
                compare_surroundings(base, other),
                list(unlike(base, other)),
                changes,
            )
        )
    return Comparison(base, compared, figures, levels[False])


def read_earlier(store: Store, base: Run, others: Sequence[Run]) -> list[Run]:
    """Return the baseline and all readable runs of a folder that are not compared:
    `find_alike` chooses from them.
    """
    named = {run.run for run in (base, *others)}
    runs = [base]
    for name in store.names():
        if name not in named:
            with contextlib.suppress(LabError):  # unreadable, or of another format
                runs.append(store.read(name))
    return runs


def find_alike(base: Run, other: Run, earlier: Sequence[Run]) -> list[Run]:
    """Return the finished runs of the same plan before `other`, on its machine; none if
    the baseline is not one.
    """
    found = [
        run
        for run in earlier
        if run.created < other.created
        and run.status == "done"
        and run.surroundings.host == base.surroundings.host == other.surroundings.host
        and not any(unlike(other, run))
    ]
    return found if any(run.run == base.run for run in found) else []


def _figures_of(figure: Figure, runs: Sequence[Run], arm: str) -> list[float]:
    """Return the figure of an arm in each run; empty if too few runs have it."""
    every = (figure.over_rounds(_comparable(figure, run, arm)) for run in runs)
    known = [value for value in every if value]
    return known if len(known) >= FEWEST_EARLIER else []


def _pair_trials(
    base: Run, other: Run, figures: Sequence[Figure], *, force: bool
) -> dict[str, dict[str, Trials]]:
    """Return the trials that count for each arm of both runs and for each figure's key.

    Raise LabError.
    """
    found = list(unlike(base, other))
    if found and not force:
        rest = f", and {len(found) - 1} more" if len(found) > 1 else ""
        message = (
            f"runs {base.run} and {other.run} are not alike: {found[0]}{rest}; `force`"
            " compares them nevertheless"
        )
        raise FieldError([], message)
    there = {arm.name for arm in other.experiment.arms}
    arms = [arm.name for arm in base.experiment.arms if arm.name in there]
    if not arms:
        raise LabError(
            f"runs {base.run} and {other.run} have no arm in common; there is nothing"
            " to compare"
        )
    return {
        arm: {
            one.key: (_comparable(one, base, arm), _comparable(one, other, arm))
            for one in figures
        }
        for arm in arms
    }


def _comparable(figure: Figure, run: Run, arm: str) -> list[Trial]:
    """Return the trials of an arm whose figure can be compared.

    An arm that fell short of its concurrency has only its errors. What a schedule
    decides says nothing. Totals need trials that did the same work: a fixed number of
    requests, none of which failed.
    """
    trials = list(run.trials_of(arm))
    if not figure.of_failed and shortfall(trials):
        return []
    if figure.scheduled:
        trials = [trial for trial in trials if trial.figures.open_load is None]
    if figure.total:
        workloads = run.experiment.workloads
        trials = [
            one
            for one in trials
            if not (workloads[one.planned.workload].duration or one.figures.errors)
        ]
    return trials


def unlike(base: Run, other: Run) -> Iterator[str]:
    """Yield sentences about arms, workloads and concurrency that differ.

    None of them if the runs can be compared.
    """
    before, after = (
        {arm.name: arm for arm in run.experiment.arms} for run in (base, other)
    )
    for run, names in (
        (base, before.keys() - after.keys()),
        (other, after.keys() - before.keys()),
    ):
        if names:
            rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield (
                f"only {run.run} has arm"
                f" {', '.join(map(repr, sorted(names)[:3]))}{rest}"
            )
    common = [arm.name for arm in base.experiment.arms if arm.name in after]
    compared: list[tuple[str, Any, Any]] = [
        (
            f"arm {name!r} has {part}",
            getattr(before[name], part),
            getattr(after[name], part),
        )
        for name in common
        for part in ("strategy", "upstream", "route", "link")
    ]
    searches = base.experiment.find_max, other.experiment.find_max
    compared.append(("the runs have find_max", *searches))
    for own, its in dict.fromkeys(
        (before[name].workload, after[name].workload) for name in common
    ):
        one, two = base.experiment.workloads[own], other.experiment.workloads[its]
        parts = [
            field.name for field in fields(Workload) if field.name not in NOT_MEASURED
        ]
        compared += [
            (f"workload {own!r} has {part}", getattr(one, part), getattr(two, part))
            for part in parts
        ]
    # In a search the rates differ, and with them the concurrency of unbounded
    # strategies.
    if None in searches:
        flights = [
            {trial.planned.arm: trial.planned.concurrency for trial in run.trials}
            for run in (base, other)
        ]
        compared += [
            (f"arm {name!r} has concurrency", count, flights[1].get(name, count))
            for name, count in flights[0].items()
        ]
    for what, one, two in compared:
        if one != two:
            # Only plain texts are quoted, because they may be empty.
            shown = [
                str(value) if isinstance(value, Written | Link) else repr(value)
                for value in (one, two)
            ]
            yield f"{what} {shown[0]} and {shown[1]}"


@dataclass(frozen=True)
class Difference:
    """A part of the surroundings that differs; None if a run does not have it."""

    part: str
    before: str | None
    after: str | None


def compare_surroundings(base: Run, other: Run) -> list[Difference]:
    """Return every part of the surroundings that differs."""
    before, after = _parts(base), _parts(other)
    one, two = base.surroundings.memory_bytes, other.surroundings.memory_bytes
    if abs(one - two) <= 0.01 * one:  # machines of one kind differ by a few pages
        before["memory bytes"] = after["memory bytes"]
    parts = [
        (part, before.get(part), after.get(part))
        for part in dict.fromkeys((*before, *after))
    ]
    return [Difference(*part) for part in parts if part[1] != part[2]]


def _parts(run: Run) -> dict[str, str]:
    where = run.surroundings
    known = {
        name: value
        for name, value in where
        if value is not None and name != "load_average"
    }
    parts = {
        name.replace("_", " "): str(value)
        for name, value in known.items()
        if not isinstance(value, dict)
    }
    parts["clientlab"] = run.clientlab
    for name, environment in (where.environments or {}).items():
        parts |= {
            f"python in {name}": environment.python,
            f"python build in {name}": environment.python_build,
        }
        parts |= {
            f"{package} in {name}": version
            for package, version in environment.packages.items()
        }
        parts |= {
            f"compiled into {package} in {name}": text
            for package, text in environment.compiled.items()
        }
    compiled = {f"compiled into {name}": text for name, text in where.compiled.items()}
    return parts | where.dependencies | where.libraries | compiled | where.programs
