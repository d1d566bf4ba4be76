"""Comparison of runs with a baseline: what changed in each arm, and how their surroundings differ.

Runs can be compared if their arms, workloads and concurrency are equal. Surroundings may differ, because they may be
the very question; reports list all differences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from clientlab.errors import FieldError, LabError
from clientlab.judging.changes import Change, Trials, change_of, has_interval, simultaneous
from clientlab.judging.ranking import fell_short, shortfall
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import COMPARED, HIGHEST_RATE
from clientlab.results.trial import Trial
from clientlab.workload.workload import NOT_MEASURED, Workload
from clientlab.workload.written import Written

_FIELDS = (
    "host", "system", "kernel", "architecture", "cpu_model", "cpu_count", "cpu_usable", "cpu_governor", "smt",
    "virtualization", "memory_bytes", "memory_limit_bytes", "open_files_limit", "clock", "python", "python_build",
    "openssl", "lab_commit", "placement",
)  # fmt: skip
_SAME_MEMORY = 0.01
"""Machines of one kind differ by some pages."""


@dataclass(frozen=True)
class Difference:
    """A part of the surroundings that differs; None where one run has no such part."""

    part: str
    before: str | None
    after: str | None


def differences(base: Run, other: Run) -> list[Difference]:
    """Return every part of the surroundings that differs."""
    before, after = _parts(base), _parts(other)
    one, two = base.surroundings.memory_bytes, other.surroundings.memory_bytes
    if abs(one - two) <= _SAME_MEMORY * one:
        before["memory bytes"] = after["memory bytes"]
    parts = [(part, before.get(part), after.get(part)) for part in dict.fromkeys((*before, *after))]
    return [Difference(*part) for part in parts if part[1] != part[2]]


def _parts(run: Run) -> dict[str, str]:
    """Return name → value of everything that the run knows about its surroundings."""
    where = run.surroundings
    known = {field: value for field in _FIELDS if (value := getattr(where, field)) is not None}
    parts = {field.replace("_", " "): str(value) for field, value in known.items()} | {"clientlab": run.clientlab}
    for name, environment in (where.environments or {}).items():
        parts |= {f"python in {name}": environment.python, f"python build in {name}": environment.python_build}
        parts |= {f"{package} in {name}": version for package, version in environment.packages.items()}
        parts |= {f"compiled into {package} in {name}": text for package, text in environment.compiled.items()}
    compiled = {f"compiled into {name}": text for name, text in where.compiled.items()}
    return parts | where.dependencies | where.libraries | compiled | where.programs


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
    """The baseline, and the other runs against it. `figures`: those compared, in the order of reports.

    `confidence`: of each interval, such that all of them together hold the truth in 95 of 100 comparisons. Changes that
    a threshold judges are a family of their own, so that what else is shown does not make a gate weaker.
    """

    base: Run
    others: list[Compared]
    figures: tuple[Figure, ...]
    confidence: float

    def arms(self) -> list[str]:
        """Return the arms that the baseline and another run have, in the baseline's order."""
        return [arm.name for arm in self.base.experiment.arms if any(arm.name in one.changes for one in self.others)]

    def compared_arms(self) -> list[str]:
        """Return those that reached their concurrency in all runs."""
        runs = [self.base, *(one.run for one in self.others)]
        return [name for name in self.arms() if not any(shortfall(run.trials_of(name)) for run in runs)]


def compare(
    base: Run,
    others: Sequence[Run],
    more: Iterable[Figure] = (),
    *,
    gated: Collection[tuple[str | None, str]] = (),
    force: bool = False,
) -> Comparison:
    """Compare runs with a baseline. `more`: figures beside those that are always compared.

    `gated`: (arm, key of a figure) of the changes that thresholds judge; None: of all arms.
    Raise LabError if arms or workloads differ, unless `force` is set, and if two runs have no arm in common.
    """
    searched = all(run.experiment.find_max is not None for run in (base, *others))  # else, trials had unlike rates
    wanted = tuple(dict.fromkeys((*((HIGHEST_RATE,) if searched else COMPARED), *more)))
    pairs = [_pair_trials(base, other, wanted, force=force) for other in others]
    known = {key for of_run in pairs for of_arm in of_run.values() for key, trials in of_arm.items() if any(trials)}
    figures = tuple(figure for figure in wanted if figure.key in known) or wanted

    def is_gated(arm: str, figure: Figure) -> bool:
        return (arm, figure.key) in gated or (None, figure.key) in gated

    families = [
        is_gated(arm, figure)
        for of_run in pairs
        for arm, of_arm in of_run.items()
        for figure in figures
        if has_interval(figure, of_arm[figure.key])
    ]
    levels = {family: simultaneous(families.count(family)) for family in (False, True)}

    def changes_of(arm: str, trials: Mapping[str, Trials]) -> dict[str, Change]:
        return {one.key: change_of(one, trials[one.key], levels[is_gated(arm, one)]) for one in figures}

    compared = [
        Compared(
            other,
            differences(base, other),
            list(unlike(base, other)),
            {arm: changes_of(arm, trials) for arm, trials in of_run.items()},
        )
        for other, of_run in zip(others, pairs, strict=True)
    ]
    return Comparison(base, compared, figures, levels[False])


def _pair_trials(base: Run, other: Run, figures: Sequence[Figure], *, force: bool) -> dict[str, dict[str, Trials]]:
    """Return arm → key of a figure → the trials that count, of the arms that both runs have. Raise LabError."""
    found = list(unlike(base, other))
    if found and not force:
        rest = f", and {len(found) - 1} more" if len(found) > 1 else ""
        message = f"runs {base.run} and {other.run} are not alike: {found[0]}{rest}; `force` compares them nevertheless"
        raise FieldError([], message)
    there = {arm.name for arm in other.experiment.arms}
    arms = [arm.name for arm in base.experiment.arms if arm.name in there]
    if not arms:
        raise LabError(f"runs {base.run} and {other.run} have no arm in common; there is nothing to compare")
    return {
        arm: {one.key: (_comparable(one, base, arm), _comparable(one, other, arm)) for one in figures} for arm in arms
    }


def _comparable(figure: Figure, run: Run, arm: str) -> list[Trial]:
    """Return the trials of an arm that did the same work: a failed request makes a total smaller.

    A schedule decides its own time, and a duration decides how much was done in all. An arm that fell short of its
    concurrency has its errors only.
    """
    trials = list(run.trials_of(arm))
    if not figure.of_failed and any(map(fell_short, trials)):
        return []
    if figure.scheduled:
        trials = [trial for trial in trials if trial.open_load is None]
    if figure.total:
        workloads = run.experiment.workloads
        trials = [trial for trial in trials if workloads[trial.workload].duration is None and not trial.errors]
    return trials


def unlike(base: Run, other: Run) -> Iterator[str]:
    """Yield sentences on arms, workloads and concurrency that differ; none if the runs can be compared."""
    before, after = ({arm.name: arm for arm in run.experiment.arms} for run in (base, other))
    for run, names in ((base, before.keys() - after.keys()), (other, after.keys() - before.keys())):
        if names:
            rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield f"only {run.run} has arm {', '.join(map(repr, sorted(names)[:3]))}{rest}"
    common = [arm.name for arm in base.experiment.arms if arm.name in after]
    for name in common:
        for part in ("strategy", "upstream", "route", "link"):
            one, two = getattr(before[name], part), getattr(after[name], part)
            if one != two:
                shown = [str(value) if part == "link" else repr(value) for value in (one, two)]
                yield f"arm {name!r} has {part} {shown[0]} and {shown[1]}"
    searches = [run.experiment.find_max for run in (base, other)]
    if searches[0] != searches[1]:
        yield f"the runs have find_max {searches[0]} and {searches[1]}"
    yield from _unlike_workloads(base, other, [(before[name].workload, after[name].workload) for name in common])
    if None in searches:  # else the rates differ, and with them the requests that unbounded strategies have in flight
        flights = [{trial.arm: trial.concurrency for trial in run.trials} for run in (base, other)]
        for name, concurrency in flights[0].items():
            if flights[1].get(name, concurrency) != concurrency:
                yield f"arm {name!r} has concurrency {concurrency} and {flights[1][name]}"


def _unlike_workloads(base: Run, other: Run, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for own, its in dict.fromkeys(pairs):
        workloads = base.experiment.workloads[own], other.experiment.workloads[its]
        for key in (field.name for field in fields(Workload)):
            values = [getattr(workload, key) for workload in workloads]
            if key not in NOT_MEASURED and values[0] != values[1]:
                # Only texts are quoted, since they may be empty.
                shown = [str(value) if isinstance(value, Written) else repr(value) for value in values]
                yield f"workload {own!r} has {key} {shown[0]} and {shown[1]}"
