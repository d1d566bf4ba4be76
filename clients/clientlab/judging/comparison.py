"""Comparison of runs with a baseline: what changed in each arm, and around it.

Runs can be compared if their arms, workloads and concurrency are equal. Surroundings
may differ, because they may be what the comparison is about; reports list all
differences.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from clientlab.errors import FieldError, LabError
from clientlab.judging.ranking import shortfall
from clientlab.results.document import Run
from clientlab.results.figures import COMPARED, HIGHEST_RATE, Figure
from clientlab.results.store import Store
from clientlab.results.trial import Trial
from clientlab.statistics.decisions import EQUAL
from clientlab.statistics.ratios import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    Estimate,
    Ratio,
    divide_error,
    predicted_ratio,
    unpaired_difference,
    unpaired_ratio,
)
from clientlab.workload.values import Link, Written
from clientlab.workload.workload import NOT_MEASURED, flatten

FLOOR = 0.10
"""Share by which equal runs may differ as wholes, if too few earlier ones show it."""

FEWEST_EARLIER = 5
"""Earlier runs of the same plan on the same machine that show how much runs differ."""

_MATERIAL = 1.01
"""A change that is surely smaller is none, however well it is known."""

_EQUAL_SHARE = 0.01
"""The same for shares: one percentage point."""

ChangeVerdict = Literal["better", "worse", "equal", "undecided", "small"]
"""``small``: the interval excludes 1, but runs may differ by more."""

Trials = tuple[Sequence[Trial], Sequence[Trial]]
"""The trials of an arm that count for a figure, in the baseline and in another run."""


@dataclass(frozen=True)
class Change:
    """One figure of one arm in two runs."""

    figure: Figure

    before: float | None
    """The figure over the rounds of the baseline; None if no trial has it.

    With a ratio, this is the median of the rounds, and `after` follows from both.
    """

    after: float | None
    """The same in the other run."""

    rounds: tuple[int, int]
    """The number of rounds in both runs that have the figure."""

    ratio: Estimate | None
    """The typical ratio of after to before; None if a value is 0."""

    difference: Estimate | None
    """After minus before, from means, if the figure is a share."""

    verdict: ChangeVerdict
    """Judged by the interval of the ratio or the difference."""

    bounds: tuple[bool, bool]
    """Whether `before` and `after` are only lower bounds, because requests failed."""

    bounded: bool
    """A round of a run has a lower bound, so there is no ratio."""

    confidence: float
    """That of the interval."""

    floor: float
    """A change has to be larger than this share."""

    earlier: int
    """How many runs decide instead.

    Then `before` is their mean, and the ratio is that of `after` to it.
    """

    @property
    def word(self) -> str:
        """The verdict in the figure's own words.

        These are faster, slower, less, more, fewer, equal, undecided.
        """
        words = {
            "better": self.figure.direction.better,
            "worse": self.figure.direction.worse,
            "small": "less than runs may",
        }
        return words.get(self.verdict, self.verdict)


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
    """Return the change of a figure between two runs.

    `confidence`: of its interval. `earlier`: the figure in each run before, if these
    are enough to tell how much runs differ.
    """
    before, after = map(figure.values, trials)
    shown_before, shown_after = map(figure.over_rounds, trials)
    ratio: Estimate | None = None
    if figure.unit == "share":
        floor = 0.0
        earlier = ()
    elif earlier and shown_after:
        ratio = predicted_ratio(shown_after, earlier, confidence)
        floor = 0.0
        shown_before = shown_after / ratio.value
    else:
        ratio = _ratio_of_runs(figure, trials, confidence)
    difference = None
    if ratio is None:
        difference = unpaired_difference(after, before, confidence)
    verdict = _verdict(figure, ratio, difference, floor)
    has_bounds = [figure.has_bounds(of_run) for of_run in trials]
    bounded = any(has_bounds)
    if bounded:
        if ratio is None or verdict != _sure_verdict(figure, has_bounds):
            verdict = "undecided"
        ratio = None
    elif ratio is not None and shown_before is not None:
        shown_after = shown_before * ratio.value
    return Change(
        figure,
        shown_before,
        shown_after,
        (len(before), len(after)),
        ratio,
        difference if figure.unit == "share" and not bounded else None,
        verdict,
        (figure.is_bound(trials[0]), figure.is_bound(trials[1])),
        bounded,
        confidence,
        floor,
        len(earlier),
    )


def _ratio_of_runs(figure: Figure, trials: Trials, confidence: float) -> Ratio | None:
    before, after = map(figure.values, trials)
    if any(before) or any(after):
        return unpaired_ratio(after, before, figure.resolution, confidence)
    if not before or not after:
        return None
    end = 1.0 if has_interval(figure, trials) else None  # all values are 0
    return Ratio(1.0, end, end, min(len(before), len(after)))


def _sure_verdict(figure: Figure, has_bounds: Sequence[bool]) -> ChangeVerdict | None:
    """Return the verdict that lower bounds cannot change; None if they may change any.

    `has_bounds`: of both runs. A bound hides how bad its run really is. If only one run
    has bounds, a verdict against it stands, because the truth is worse still.
    """
    if all(has_bounds):
        return None
    return "better" if has_bounds[0] == figure.less_is_better else "worse"


def _verdict(
    figure: Figure,
    ratio: Estimate | None,
    difference: Estimate | None,
    floor: float,
) -> ChangeVerdict:
    """Return the verdict of an interval. A figure without any noise needs no floor."""
    estimate = ratio or difference
    if estimate is None or estimate.interval is None:
        return "undecided"
    low, high = estimate.interval
    neutral = 0.0
    lowest, highest = -_EQUAL_SHARE, _EQUAL_SHARE
    if ratio is not None:
        neutral = 1.0
        lowest, highest = 1 / EQUAL, EQUAL
    if low <= neutral <= high:
        return "equal" if lowest <= low and high <= highest else "undecided"
    if ratio is not None and low < high:
        if low >= 1 / _MATERIAL and high <= _MATERIAL:
            return "equal"
        if low <= 1 + floor and high >= 1 / (1 + floor):
            return "small"
    return "better" if (high < neutral) == figure.less_is_better else "worse"


@dataclass(frozen=True)
class Compared:
    """A run beside the baseline."""

    run: Run

    differences: list[Difference]
    """Those of the surroundings."""

    unlike: list[str]
    """Sentences about arms and workloads that differ."""

    changes: dict[str, dict[str, Change]]
    """By arm, and by the key of the figure."""


@dataclass(frozen=True)
class Comparison:
    """The baseline and the other runs against it."""

    base: Run
    others: list[Compared]

    figures: tuple[Figure, ...]
    """What is compared, in the order of reports."""

    confidence: float
    """That of each interval: all together hold the truth in 95 of 100 comparisons.

    Changes that thresholds judge are a separate family, so that showing more figures
    does not weaken a threshold.
    """

    def arms(self) -> list[str]:
        """Return the arms that the baseline shares with another run, in its order."""
        shared = set[str]().union(*(other.changes for other in self.others))
        return [arm.name for arm in self.base.experiment.arms if arm.name in shared]

    def compared_arms(self) -> list[str]:
        """Return the arms of `arms` that reached their concurrency in all runs."""
        runs = [self.base, *(other.run for other in self.others)]
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
    is_search = all(run.experiment.find_max is not None for run in (base, *others))
    more = list(more)
    usual = [HIGHEST_RATE] if is_search else COMPARED
    wanted = tuple(dict.fromkeys([*usual, *more]))
    pairs = [_pair_trials(base, other, wanted, force=force) for other in others]
    measured = set()
    # The intervals that thresholds judge hold together, and so do all others.
    intervals: Counter[bool] = Counter()
    for trials_of in pairs:
        for (arm, figure), trials in trials_of.items():
            if any(trials):
                measured.add(figure)
            if has_interval(figure, trials):
                intervals[_is_gated(gated, arm, figure)] += 1
    known = [figure for figure in wanted if figure in measured or figure in more]
    figures = tuple(known) or wanted
    levels = {gate: divide_error(CONFIDENCE, intervals[gate]) for gate in (False, True)}
    compared = []
    for other, trials_of in zip(others, pairs, strict=True):
        alike = find_alike(base, other, earlier)
        changes: dict[str, dict[str, Change]] = {}
        for (arm, figure), trials in trials_of.items():
            if figure in figures:
                level = levels[_is_gated(gated, arm, figure)]
                before = _figures_of(figure, alike, arm)
                change = change_of(figure, trials, level, floor, before)
                changes.setdefault(arm, {})[figure.key] = change
        differences = compare_surroundings(base, other)
        sentences = list(unlike(base, other))
        compared.append(Compared(other, differences, sentences, changes))
    return Comparison(base, compared, figures, levels[False])


def _is_gated(
    gated: Collection[tuple[str | None, str]], arm: str, figure: Figure
) -> bool:
    """Return whether a threshold judges the figure of the arm."""
    return (arm, figure.key) in gated or (None, figure.key) in gated


def read_earlier(
    store: Store,
    base: Run,
    others: Sequence[Run],
) -> list[Run]:
    """Return the baseline and all readable runs of a folder that are not compared.

    `find_alike` chooses from them.
    """
    compared = {run.run for run in (base, *others)}
    runs = [base]
    for name in store.names():
        if name not in compared:
            with contextlib.suppress(LabError):  # unreadable, or of another format
                runs.append(store.read(name))
    return runs


def find_alike(
    base: Run,
    other: Run,
    earlier: Sequence[Run],
) -> list[Run]:
    """Return the finished runs of the same plan before `other`, on its machine.

    Return none if the baseline is not one.
    """
    host = other.surroundings.host
    alike = [
        run
        for run in earlier
        if run.created < other.created
        and run.status == "done"
        and run.surroundings.host == host
        and not any(unlike(other, run))
    ]
    return alike if any(run.run == base.run for run in alike) else []


def _figures_of(
    figure: Figure,
    runs: Sequence[Run],
    arm: str,
) -> list[float]:
    """Return the figure of an arm in each run; empty if too few runs have it."""
    values = [figure.over_rounds(_comparable(figure, run, arm)) for run in runs]
    known = [value for value in values if value]
    return known if len(known) >= FEWEST_EARLIER else []


def _pair_trials(
    base: Run, other: Run, figures: Sequence[Figure], *, force: bool
) -> dict[tuple[str, Figure], Trials]:
    """Return the trials that count for each arm of both runs and each figure.

    Raise LabError.
    """
    reasons = list(unlike(base, other))
    if reasons and not force:
        rest = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        message = (
            f"runs {base.run} and {other.run} are not alike: {reasons[0]}{rest};"
            " `force` compares them nevertheless"
        )
        raise FieldError([], message)
    names = {arm.name for arm in other.experiment.arms}
    common = [arm.name for arm in base.experiment.arms if arm.name in names]
    if not common:
        raise LabError(
            f"runs {base.run} and {other.run} have no arm in common; there is nothing"
            " to compare"
        )
    pairs: dict[tuple[str, Figure], Trials] = {}
    for arm, figure in product(common, figures):
        before = _comparable(figure, base, arm)
        after = _comparable(figure, other, arm)
        pairs[arm, figure] = (before, after)
    return pairs


def _comparable(
    figure: Figure,
    run: Run,
    arm: str,
) -> list[Trial]:
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
        clean = [trial for trial in trials if not trial.has_spoiling_errors]
        trials = [
            trial
            for trial in clean
            if not workloads[trial.planned.workload].load.duration
        ]
    return trials


def unlike(base: Run, other: Run) -> Iterator[str]:
    """Yield sentences about arms, workloads and concurrency that differ.

    None of them if the runs can be compared.
    """
    before = {arm.name: arm for arm in base.experiment.arms}
    after = {arm.name: arm for arm in other.experiment.arms}
    yield from _describe_extra(base, before.keys() - after.keys())
    yield from _describe_extra(other, after.keys() - before.keys())
    common = [name for name in before if name in after]
    for name in common:
        for part in ("strategy", "upstream", "route", "link"):
            value = getattr(before[name], part)
            other_value = getattr(after[name], part)
            yield from _describe_change(f"arm {name!r} has {part}", value, other_value)
    searches = base.experiment.find_max, other.experiment.find_max
    yield from _describe_change("the runs have find_max", *searches)
    workloads = [(before[name].workload, after[name].workload) for name in common]
    for name, other_name in dict.fromkeys(workloads):
        fields = flatten(base.experiment.workloads[name])
        others = flatten(other.experiment.workloads[other_name])
        for field, value in fields.items():
            if field not in NOT_MEASURED:
                what = f"workload {name!r} has {field}"
                yield from _describe_change(what, value, others[field])
    # In a search the rates differ, and with them the concurrency of unbounded
    # strategies.
    if None in searches:
        in_flight = _concurrency_by_arm(other)
        for name, count in _concurrency_by_arm(base).items():
            what = f"arm {name!r} has concurrency"
            yield from _describe_change(what, count, in_flight.get(name, count))


def _concurrency_by_arm(run: Run) -> dict[str, int]:
    return {trial.planned.arm: trial.planned.concurrency for trial in run.trials}


def _describe_extra(run: Run, arms: Collection[str]) -> Iterator[str]:
    """Yield that only one run has these arms, if there are any."""
    if arms:
        names = ", ".join(map(repr, sorted(arms)[:3]))
        rest = f" and {len(arms) - 3} more" if len(arms) > 3 else ""
        yield f"only {run.run} has arm {names}{rest}"


def _describe_change(
    what: str,
    before: object,
    after: object,
) -> Iterator[str]:
    """Yield that a part differs, if it does."""
    if before != after:
        yield f"{what} {_quote(before)} and {_quote(after)}"


def _quote(value: object) -> str:
    """Return the value. Only plain texts are quoted, because they may be empty."""
    return str(value) if isinstance(value, Written | Link) else repr(value)


@dataclass(frozen=True)
class Difference:
    """A part of the surroundings that differs; None if a run does not have it."""

    part: str
    before: str | None
    after: str | None


def compare_surroundings(base: Run, other: Run) -> list[Difference]:
    """Return every part of the surroundings that differs."""
    before = _parts(base)
    after = _parts(other)
    memory = base.surroundings.memory_bytes
    # Machines of one kind differ by a few pages.
    if abs(memory - other.surroundings.memory_bytes) <= 0.01 * memory:
        before["memory bytes"] = after["memory bytes"]
    parts = [
        Difference(part, before.get(part), after.get(part)) for part in before | after
    ]
    return [part for part in parts if part.before != part.after]


def _parts(run: Run) -> dict[str, str]:
    surroundings = run.surroundings
    parts = {
        name.replace("_", " "): str(value)
        for name, value in surroundings
        if not (value is None or isinstance(value, dict) or name == "load_average")
    }
    parts["clientlab"] = run.clientlab
    for name, environment in (surroundings.environments or {}).items():
        parts[f"python in {name}"] = environment.python
        parts[f"python build in {name}"] = environment.python_build
        for package, version in environment.packages.items():
            parts[f"{package} in {name}"] = version
        for package, text in environment.compiled.items():
            parts[f"compiled into {package} in {name}"] = text
    parts |= surroundings.dependencies | surroundings.libraries
    for name, text in surroundings.compiled.items():
        parts[f"compiled into {name}"] = text
    return parts | surroundings.programs
