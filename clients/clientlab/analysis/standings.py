"""The standings of a run: for each way to an upstream, its strategies from the fastest to the slowest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import Ratio, paired_ratio


@dataclass(frozen=True)
class Figures:
    """One trial's figures as far as the standings need them. `seconds` is per successful request."""

    strategy: str
    group: tuple[str, str, str]  # workload, upstream, route
    round: int
    seconds: float
    errors: int


@dataclass(frozen=True)
class Standing:
    """A strategy in its group. `ratio` is to the group's fastest; None where it has none to pair with."""

    strategy: str
    rounds: int
    ratio: Ratio | None
    fastest: bool
    errors: int


def standings(trials: Iterable[Figures]) -> dict[tuple[str, str, str], list[Standing]]:
    """By group, in the order in which groups first appear; strategies by median seconds a request.

    The reference is the fastest strategy that made no error: one that fails fast is no standard.
    """
    groups: dict[tuple[str, str, str], dict[str, list[Figures]]] = {}
    for trial in trials:
        groups.setdefault(trial.group, {}).setdefault(trial.strategy, []).append(trial)
    return {group: _rank(by_strategy) for group, by_strategy in groups.items()}


def _rank(by_strategy: dict[str, list[Figures]]) -> list[Standing]:
    order = sorted(by_strategy, key=lambda name: median(t.seconds for t in by_strategy[name]))
    clean = [name for name in order if not _errors(by_strategy[name])]
    reference = (clean or order)[0]
    by_round = _by_round(by_strategy)
    return [
        Standing(
            name,
            len(by_strategy[name]),
            paired_ratio(by_round(name), by_round(reference)),
            name == reference,
            _errors(by_strategy[name]),
        )
        for name in order
    ]


def _by_round(by_strategy: dict[str, list[Figures]]) -> Callable[[str], dict[int, float]]:
    return lambda name: {trial.round: trial.seconds for trial in by_strategy[name]}


def _errors(trials: list[Figures]) -> int:
    return sum(trial.errors for trial in trials)
