"""Comparison of runs with a baseline: what changed in each arm, and how their surroundings differ.

No difference forbids a comparison: a comparison of two surroundings may be the very question. Reports list them all,
`clientlab_run_info` has a hash that is equal where all are but `load_average`, `host` and `lab_commit`.

Runs can be compared where their arms, workloads and concurrency are equal. Surroundings may differ; they are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from clientlab.errors import FieldError, LabError
from clientlab.judging.changes import Change, Trials, change_of, has_interval, simultaneous
from clientlab.judging.ranking import fell_short, shortfall
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import COMPARED, HIGHEST_RATE
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial
from clientlab.workload.workload import NOT_MEASURED, Workload
from clientlab.workload.written import Written

_MACHINE = (
    "host", "system", "kernel", "architecture", "cpu_model", "cpu_count", "cpu_usable", "memory_bytes",
    "memory_limit_bytes", "open_files_limit", "clock", "python",
)  # fmt: skip
_MAY_BE_UNKNOWN = ("python_build", "openssl", "cpu_governor", "smt", "virtualization", "lab_commit")
"""Fields that not every system shows: there they are None."""
_SAME_MEMORY = 0.01
"""Machines of one kind differ by some pages."""


@dataclass(frozen=True)
class Difference:
    """A part of the surroundings that differs; None where one run has no such part."""

    part: str
    before: str | None
    after: str | None


def differences(base: Run, other: Run) -> list[Difference]:
    """Every part that differs. What only one of the runs knows is listed by name, because it may or may not differ."""
    before, after = _parts(base), _parts(other)
    here, there = list(_unknown(base, other)), list(_unknown(other, base))
    unlisted = {*here, *there}
    found = [
        Difference(part, before.get(part), after.get(part))
        for part in dict.fromkeys((*before, *after))
        if before.get(part) != after.get(part) and part not in unlisted and not _as_much_memory(part, base, other)
    ]
    found += [Difference(", ".join(here), "unknown", "known")] if here else []
    return [*found, Difference(", ".join(there), "known", "unknown")] if there else found


def _parts(run: Run) -> dict[str, str]:
    """Name → value of all that the run knows."""
    where = run.surroundings
    parts = {_name(field): str(getattr(where, field)) for field in _MACHINE}
    parts |= {_name(field): str(value) for field in _MAY_BE_UNKNOWN if (value := getattr(where, field)) is not None}
    compiled = {f"compiled into {name}": text for name, text in where.compiled.items()}
    parts |= {"clientlab": run.clientlab, "placement": str(where.placement or "not pinned")}
    for name, environment in (where.environments or {}).items():
        parts |= {f"python in {name}": environment.python, f"python build in {name}": environment.python_build}
        parts |= {f"{package} in {name}": version for package, version in environment.packages.items()}
        parts |= {f"compiled into {package} in {name}": text for package, text in environment.compiled.items()}
    return parts | where.dependencies | where.libraries | compiled | where.programs


def _unknown(this: Run, other: Run) -> Iterator[str]:
    """The parts that this run does not know, and the other does."""
    for field in _MAY_BE_UNKNOWN:
        if getattr(this.surroundings, field) is None and getattr(other.surroundings, field) is not None:
            yield _name(field)


def _name(field: str) -> str:
    return field.replace("_", " ")


def _as_much_memory(part: str, base: Run, other: Run) -> bool:
    one, two = base.surroundings.memory_bytes, other.surroundings.memory_bytes
    return part == "memory bytes" and abs(one - two) <= _SAME_MEMORY * one


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
    Raises LabError where arms or workloads differ, unless `force` is set, and where two runs have no arm in common.
    """
    wanted = _figures(base, others, more)
    pairs = [_pairs(base, other, wanted, force=force) for other in others]
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
    compared = [
        Compared(
            other,
            differences(base, other),
            list(unlike(base, other)),
            {
                arm: {
                    figure.key: change_of(figure, of_arm[figure.key], levels[is_gated(arm, figure)])
                    for figure in figures
                }
                for arm, of_arm in of_run.items()
            },
        )
        for other, of_run in zip(others, pairs, strict=True)
    ]
    return Comparison(base, compared, figures, levels[False])


def _figures(base: Run, others: Sequence[Run], more: Iterable[Figure]) -> tuple[Figure, ...]:
    """Those that are always compared, and `more`. Of searches, that is the highest rate: trials had unlike rates."""
    searched = all(run.experiment.find_max is not None for run in (base, *others))
    return tuple(dict.fromkeys((*((HIGHEST_RATE,) if searched else COMPARED), *more)))


def _pairs(base: Run, other: Run, figures: tuple[Figure, ...], *, force: bool) -> dict[str, dict[str, Trials]]:
    """Arm → key of a figure → the trials that count, of the arms that both runs have. Raises LabError."""
    found = list(unlike(base, other))
    if found and not force:
        rest = f", and {len(found) - 1} more" if len(found) > 1 else ""
        message = f"runs {base.run} and {other.run} are not alike: {found[0]}{rest}; `force` compares them nevertheless"
        raise FieldError([], message)
    there = {arm.name for arm in other.experiment.arms}
    arms = [arm.name for arm in base.experiment.arms if arm.name in there]
    if not arms:
        raise LabError(f"runs {base.run} and {other.run} have no arm in common; there is nothing to compare")
    before, after = _by_arm(base), _by_arm(other)
    return {
        arm: {
            figure.key: (_comparable(figure, base, before.get(arm, [])), _comparable(figure, other, after.get(arm, [])))
            for figure in figures
        }
        for arm in arms
    }


def _by_arm(run: Run) -> dict[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in run.trials:
        found.setdefault(trial.arm, []).append(trial)
    return found


def _comparable(figure: Figure, run: Run, trials: list[Trial]) -> list[Trial]:
    """The trials that did the same work: a failed request makes a total smaller.

    A schedule decides its own time, and a duration decides how much was done in all. An arm that fell short of its
    concurrency has its errors only.
    """
    if not figure.of_failed and any(map(fell_short, trials)):
        return []
    if figure.scheduled:
        trials = [trial for trial in trials if trial.open_load is None]
    if figure.total:
        timed = {name for name, workload in run.experiment.workloads.items() if workload.duration is not None}
        trials = [trial for trial in trials if trial.workload not in timed]
    return [trial for trial in trials if not trial.errors] if figure.total else trials


def unlike(base: Run, other: Run) -> Iterator[str]:
    """Sentences on arms, workloads and concurrency that differ; none where the runs can be compared."""
    before, after = _arms(base), _arms(other)
    for run, names in ((base, before.keys() - after.keys()), (other, after.keys() - before.keys())):
        if names:
            yield f"only {run.run} has {_names(sorted(names))}"
    for name in before.keys() & after.keys():
        for part in ("strategy", "upstream", "route", "link"):
            one, two = getattr(before[name], part), getattr(after[name], part)
            if one != two:
                shown = [str(value) if part == "link" else repr(value) for value in (one, two)]
                yield f"arm {name!r} has {part} {shown[0]} and {shown[1]}"
    searches = [run.experiment.find_max for run in (base, other)]
    if searches[0] != searches[1]:
        yield f"the runs have find_max {searches[0]} and {searches[1]}"
    yield from _workloads(base, other, before, after)
    if None in searches:  # else the rates differ, and with them the requests that unbounded strategies have in flight
        yield from _concurrency(base, other)


def _workloads(base: Run, other: Run, before: dict[str, Arm], after: dict[str, Arm]) -> Iterator[str]:
    seen = set()
    for name in (arm.name for arm in base.experiment.arms if arm.name in after):
        pair = (before[name].workload, after[name].workload)
        if pair in seen:
            continue
        seen.add(pair)
        one, two = base.experiment.workloads[pair[0]], other.experiment.workloads[pair[1]]
        for key in (field.name for field in fields(Workload)):
            values = getattr(one, key), getattr(two, key)
            if key not in NOT_MEASURED and values[0] != values[1]:
                yield f"workload {pair[0]!r} has {key} {_shown(values[0])} and {_shown(values[1])}"


def _shown(value: object) -> str:
    """A value of a workload: a text that users wrote in quotes, since it may be empty."""
    return str(value) if isinstance(value, Written) else repr(value)


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
