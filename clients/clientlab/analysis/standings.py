"""The standings of a run: the arms of each workload, upstream and route, from the fastest to the slowest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio

GroupKey = tuple[str, str, str]
"""Name of the workload in the experiment (a sweep makes several of one), upstream, route."""


@dataclass(frozen=True)
class TrialCost:
    """The figures of a trial that the standings need: arm and group, seconds per successful request, concurrency."""

    name: str
    group: GroupKey
    round: int
    seconds: float
    errors: int
    concurrency: int = 1


@dataclass(frozen=True)
class Standing:
    """An arm in its group. `ratio`: to the fastest of its class, the arms of the group that have its concurrency.

    `to_baseline`: to the experiment's baseline.

    A ratio is None if no round has both arms, or if the group has no baseline.
    """

    name: str
    rounds: int
    ratio: Ratio | None
    to_baseline: Ratio | None
    fastest: bool
    errors: int


def standings(
    trials: Iterable[TrialCost], confidence: float = CONFIDENCE, baseline: tuple[GroupKey, str] | None = None
) -> dict[GroupKey, list[Standing]]:
    """The arms of each group by median seconds per request; groups in the order of their first trial.

    Arms of unlike concurrency are ranked apart, the class with the fastest arm first: where arms wait for the server,
    one with 32 requests in flight is up to 32 times as fast as one with a single request, whatever their clients do.
    In each class, the reference is the fastest arm without errors, because an arm that fails fast is no standard.
    `baseline`: group and name of an arm.
    """
    groups: dict[GroupKey, dict[str, list[TrialCost]]] = {}
    for trial in trials:
        groups.setdefault(trial.group, {}).setdefault(trial.name, []).append(trial)
    within, name = baseline or (None, None)
    return {
        group: [
            standing
            for equals in _classes(by_name)
            for standing in _rank(equals, confidence, by_name.get(name or "") if group == within else None)
        ]
        for group, by_name in groups.items()
    }


def _classes(by_name: dict[str, list[TrialCost]]) -> list[dict[str, list[TrialCost]]]:
    """The arms of each concurrency, the class with the fastest arm first."""
    found: dict[int, dict[str, list[TrialCost]]] = {}
    for name, trials in by_name.items():
        found.setdefault(trials[0].concurrency, {})[name] = trials
    return sorted(found.values(), key=lambda arms: min(map(_seconds, arms.values())))


def _seconds(trials: list[TrialCost]) -> float:
    return median(trial.seconds for trial in trials)


def _rank(by_name: dict[str, list[TrialCost]], confidence: float, baseline: list[TrialCost] | None) -> list[Standing]:
    order = sorted(by_name, key=lambda name: _seconds(by_name[name]))
    clean = [name for name in order if not _errors(by_name[name])]
    reference = (clean or order)[0]
    return [
        Standing(
            name,
            len(by_name[name]),
            paired_ratio(_by_round(by_name[name]), _by_round(by_name[reference]), confidence),
            paired_ratio(_by_round(by_name[name]), _by_round(baseline), confidence) if baseline else None,
            name == reference,
            _errors(by_name[name]),
        )
        for name in order
    ]


def _by_round(trials: list[TrialCost]) -> dict[int, float]:
    return {trial.round: trial.seconds for trial in trials}


def _errors(trials: list[TrialCost]) -> int:
    return sum(trial.errors for trial in trials)
