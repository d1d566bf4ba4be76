"""Runs of one experiment in the order of time, in lines: the runs of a line were measured in like surroundings.

A line goes on where the machine, the system, the Pythons, the servers, the work and the load are the same. Versions of
packages may differ: which of them made a figure worse is what a history is for. The host's name and the lab's commit do
not count, as in the hash of surroundings, and neither do limits of the system, which few runs reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from clientlab.judging.comparison import Difference, comparable, differences, packages_of, unlike_work
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import CAPACITY, COMPARED, FIGURES
from clientlab.results.trial import Trial

_NOT_COUNTED = {"host", "lab commit", "ephemeral ports", "time wait reuse", "listen backlog"}
_SAME_AS_THROUGHPUT = {"wall", "received"}
"""Figures that change with the throughput: beside it, they would only be further series to raise false alarms."""

_ALWAYS = {CAPACITY, *(figure for figure in COMPARED if figure.key not in _SAME_AS_THROUGHPUT)}

_DONE = ("done", "incomplete")


@dataclass(frozen=True)
class PastRun:
    """A run as its history needs it: without its trials, but one of each arm.

    `values`: (arm, key of a figure) → the figure in each round. Without figures of which a round has only a lower
    bound, because requests failed.
    """

    run: Run
    values: dict[tuple[str, str], tuple[float, ...]]

    @classmethod
    def of(cls, run: Run, figures: Iterable[Figure]) -> Self:
        """The run, reduced. Of a search for capacities, the capacity alone: it measured at rates of its own."""
        figures = figures if run.experiment.find_max is None else (CAPACITY,)
        values, kept = {}, []
        for arm in run.experiment.arms:
            trials = run.trials_of(arm.name)
            kept += trials[:1]
            for figure in figures:
                counted = comparable(figure, run, trials)
                if (found := figure.values(counted)) and not figure.has_bounds(counted):
                    values[arm.name, figure.key] = tuple(found)
        return cls(_with_trials(run, kept), values)

    @property
    def arms(self) -> list[str]:
        """The arms with a figure, in the experiment's order."""
        known = {arm for arm, _ in self.values}
        return [arm.name for arm in self.run.experiment.arms if arm.name in known]


def _with_trials(run: Run, trials: Sequence[Trial]) -> Run:
    return run.model_copy(update={"trials": list(trials), "probes": [], "overloads": []})


@dataclass(frozen=True)
class HistoryLine:
    """Runs in like surroundings, the oldest first. `reasons`: why the first of them began a line; none for the first.

    `before`: the run before it, in another line.
    """

    runs: list[PastRun]
    reasons: list[str] = field(default_factory=list)
    before: str | None = None

    @property
    def arms(self) -> list[str]:
        """All arms of the line, those of the newest run first."""
        return list(dict.fromkeys(arm for past in reversed(self.runs) for arm in past.arms))

    def upgrades(self, at: int) -> list[Difference]:
        """Versions of packages, and the lab's own, that came with a run of the line."""
        if not at:
            return []
        before, run = self.runs[at - 1].run, self.runs[at].run
        return [one for one in differences(before, run) if one.part in _packages(before, run) or _is_lab(one)]


def figures_with(more: Iterable[Figure]) -> tuple[Figure, ...]:
    """The figures that a history always follows, and more of them, in the order of tables."""
    wanted = {*_ALWAYS, *more}
    return tuple(figure for figure in FIGURES if figure in wanted)


def is_over(run: Run) -> bool:
    """Whether the run has ended: no trial will come."""
    return run.status in _DONE


def lines_of(runs: Iterable[PastRun]) -> list[HistoryLine]:
    """The lines, by their first runs. A run goes on with the newest line that it fits, also after runs of others."""
    found: list[HistoryLine] = []
    before: PastRun | None = None
    for past in sorted(runs, key=lambda one: (one.run.created, one.run.run)):
        line = next((one for one in reversed(found) if not _reasons(one.runs[-1], past)), None)
        if line is not None:
            found[found.index(line)] = replace(line, runs=[*line.runs, past])
        elif before is None:
            found.append(HistoryLine([past]))
        else:
            found.append(HistoryLine([past], _reasons(before, past), before.run.run))
        before = past
    return found


def _reasons(before: PastRun, past: PastRun) -> list[str]:
    """Why a run can't go on with the line of another: a sentence each. None: it can."""
    base, run = before.run, past.run
    if not set(before.arms) & set(past.arms):
        return ["the runs have no arm in common"]
    targets = [
        f"{one.target.testbed} {one.target.url or ''}".strip() if one.target else "unknown" for one in (base, run)
    ]
    found = [f"target: {targets[0]} -> {targets[1]}"] if base.target != run.target else []
    found += unlike_work(base, run)
    passed = _NOT_COUNTED | _packages(base, run)
    return found + [
        f"{one.part}: {one.before or 'none'} -> {one.after or 'none'}"
        for one in differences(base, run)
        if one.part not in passed and {one.before, one.after} != {"unknown", "known"}
    ]


def _packages(base: Run, run: Run) -> set[str]:
    return packages_of(base) | packages_of(run)


def _is_lab(one: Difference) -> bool:
    return one.part == "lab commit"
