"""The standings of a run: for each way to an upstream, its arms from the fastest to the slowest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio

Group = tuple[str, str, str]
"""Workload (as the experiment names it: of a sweep there are several), upstream, route."""


@dataclass(frozen=True)
class Figures:
    """One trial's figures as far as the standings need them. `seconds` is per successful request."""

    name: str  # of its arm, within the group
    group: Group
    round: int
    seconds: float
    errors: int


@dataclass(frozen=True)
class Standing:
    """An arm in its group. `ratio` is to the group's fastest, `to_baseline` to the arm that the experiment measures by.

    None where there is none to pair with, or no baseline in the group.
    """

    name: str
    rounds: int
    ratio: Ratio | None
    to_baseline: Ratio | None
    fastest: bool
    errors: int


def standings(
    trials: Iterable[Figures], confidence: float = CONFIDENCE, baseline: tuple[Group, str] | None = None
) -> dict[Group, list[Standing]]:
    """By group, in the order in which groups first appear; arms by median seconds a request.

    The reference is the fastest arm that made no error: one that fails fast is no standard. `baseline`: an arm by
    its group and its name there.
    """
    groups: dict[Group, dict[str, list[Figures]]] = {}
    for trial in trials:
        groups.setdefault(trial.group, {}).setdefault(trial.name, []).append(trial)
    within, name = baseline or (None, None)
    return {
        group: _rank(by_name, confidence, name if group == within and name in by_name else None)
        for group, by_name in groups.items()
    }


def _rank(by_name: dict[str, list[Figures]], confidence: float, baseline: str | None) -> list[Standing]:
    order = sorted(by_name, key=lambda name: median(t.seconds for t in by_name[name]))
    clean = [name for name in order if not _errors(by_name[name])]
    reference = (clean or order)[0]
    by_round = _by_round(by_name)
    return [
        Standing(
            name,
            len(by_name[name]),
            paired_ratio(by_round(name), by_round(reference), confidence),
            paired_ratio(by_round(name), by_round(baseline), confidence) if baseline else None,
            name == reference,
            _errors(by_name[name]),
        )
        for name in order
    ]


def _by_round(by_name: dict[str, list[Figures]]) -> Callable[[str], dict[int, float]]:
    return lambda name: {trial.round: trial.seconds for trial in by_name[name]}


def _errors(trials: list[Figures]) -> int:
    return sum(trial.errors for trial in trials)
