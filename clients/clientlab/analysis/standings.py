"""The standings of a run: for each way to an upstream, its arms from the fastest to the slowest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio


@dataclass(frozen=True)
class Figures:
    """One trial's figures as far as the standings need them. `seconds` is per successful request."""

    name: str  # of its arm, within the group
    group: tuple[str, str, str]  # workload, upstream, route
    round: int
    seconds: float
    errors: int


@dataclass(frozen=True)
class Standing:
    """An arm in its group. `ratio` is to the group's fastest; None where it has none to pair with."""

    name: str
    rounds: int
    ratio: Ratio | None
    fastest: bool
    errors: int


def standings(trials: Iterable[Figures], confidence: float = CONFIDENCE) -> dict[tuple[str, str, str], list[Standing]]:
    """By group, in the order in which groups first appear; arms by median seconds a request.

    The reference is the fastest arm that made no error: one that fails fast is no standard.
    """
    groups: dict[tuple[str, str, str], dict[str, list[Figures]]] = {}
    for trial in trials:
        groups.setdefault(trial.group, {}).setdefault(trial.name, []).append(trial)
    return {group: _rank(by_name, confidence) for group, by_name in groups.items()}


def _rank(by_name: dict[str, list[Figures]], confidence: float) -> list[Standing]:
    order = sorted(by_name, key=lambda name: median(t.seconds for t in by_name[name]))
    clean = [name for name in order if not _errors(by_name[name])]
    reference = (clean or order)[0]
    by_round = _by_round(by_name)
    return [
        Standing(
            name,
            len(by_name[name]),
            paired_ratio(by_round(name), by_round(reference), confidence),
            name == reference,
            _errors(by_name[name]),
        )
        for name in order
    ]


def _by_round(by_name: dict[str, list[Figures]]) -> Callable[[str], dict[int, float]]:
    return lambda name: {trial.round: trial.seconds for trial in by_name[name]}


def _errors(trials: list[Figures]) -> int:
    return sum(trial.errors for trial in trials)
