"""The standings of a run: the arms of each workload, upstream and route, from the fastest to the slowest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import CONFIDENCE, Ratio, paired_ratio

GroupKey = tuple[str, str, str]
"""Name of the workload in the experiment (a sweep makes several of one), upstream, route."""


@dataclass(frozen=True)
class TrialCost:
    """The figures of a trial that the standings need: arm and group, and seconds per successful request."""

    name: str
    group: GroupKey
    round: int
    seconds: float
    errors: int


@dataclass(frozen=True)
class Standing:
    """An arm in its group. `ratio`: to the fastest of the group. `to_baseline`: to the experiment's baseline.

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

    The reference is the fastest arm without errors, because an arm that fails fast is no standard. `baseline`: group
    and name of an arm.
    """
    groups: dict[GroupKey, dict[str, list[TrialCost]]] = {}
    for trial in trials:
        groups.setdefault(trial.group, {}).setdefault(trial.name, []).append(trial)
    within, name = baseline or (None, None)
    return {
        group: _rank(by_name, confidence, name if group == within and name in by_name else None)
        for group, by_name in groups.items()
    }


def _rank(by_name: dict[str, list[TrialCost]], confidence: float, baseline: str | None) -> list[Standing]:
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


def _by_round(by_name: dict[str, list[TrialCost]]) -> Callable[[str], dict[int, float]]:
    return lambda name: {trial.round: trial.seconds for trial in by_name[name]}


def _errors(trials: list[TrialCost]) -> int:
    return sum(trial.errors for trial in trials)
