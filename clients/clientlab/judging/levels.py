"""How far runs of the same surroundings differ as a whole, and what a gate finds with that and its rounds.

The rounds of two runs do not show what differs from run to run: another day, another neighbour, another layout of
memory. Older runs of the same plan and the same surroundings do, each with one level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clientlab import units
from clientlab.analysis.ratios import Estimate, detectable_ratio, typical_figure
from clientlab.analysis.typical import t_quantile
from clientlab.analysis.unpaired import POWER
from clientlab.judging.changes import Change, simultaneous, with_ratio
from clientlab.judging.comparison import Comparison, differences, unlike
from clientlab.judging.contrasts import by_round, environment_pairs, pair_ratio
from clientlab.judging.thresholds import Threshold
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure

FEWEST_RUNS = 3
"""With fewer runs, the spread of their levels is not estimated."""

_NOT_THEIR_OWN = {"lab commit"}
"""A difference that leaves surroundings the same: the lab's code is known by its version, too."""

_MEDIAN = math.pi / 2
"""Variance of a median of normal values over that of their mean."""


@dataclass(frozen=True)
class LevelSpread:
    """How a figure of an arm differs between `runs` runs as a whole. `spread`: standard deviation of logarithms."""

    runs: int
    spread: float

    def reach(self, confidence: float) -> float:
        """Half the width of the interval that two levels alone give to the logarithm of their ratio."""
        return float(t_quantile(self.runs - 1, (1 + confidence) / 2)) * math.sqrt(2) * self.spread

    def widened(self, ratio: Estimate, confidence: float) -> Estimate:
        """The ratio with an interval that counts both rounds and levels."""
        if ratio.low is None or ratio.high is None or ratio.low <= 0 or not math.isfinite(ratio.high):
            return ratio
        reach = self.reach(confidence)
        down, up = (math.hypot(math.log(ratio.value / end), reach) for end in (ratio.low, ratio.high))
        return Estimate(ratio.value, ratio.value * math.exp(-down), ratio.value * math.exp(up))


Levels = Mapping[tuple[str, str], LevelSpread]
"""(Arm, key of a figure) → how its runs differ as a whole."""


def same_surroundings(base: Run, stored: Iterable[Run], but: Iterable[str]) -> list[Run]:
    """The finished runs with the plan and the surroundings of `base`, itself included, without those named `but`."""
    left_out = {base.run, *but}
    others = (run for run in stored if run.run not in left_out and run.status == "done")
    return [base, *(run for run in others if _is_alike(base, run))]


def _is_alike(base: Run, run: Run) -> bool:
    if run.target != base.target or any(unlike(base, run)):
        return False
    return all(one.part in _NOT_THEIR_OWN for one in differences(base, run))


def levels_of(runs: Sequence[Run], figures: Iterable[Figure]) -> Levels:
    """How the figures of each arm differ between the runs. Without those of fewer than three runs."""
    found = {}
    for figure in dict.fromkeys(figures):
        for arm in (arm.name for arm in runs[0].experiment.arms):
            by_run = [values for run in runs if (values := figure.values(run.trials_of(arm)))]
            logs = [np.log(values) for values in by_run if min(values) > 0]
            if len(logs) >= FEWEST_RUNS:
                found[arm, figure.key] = LevelSpread(len(logs), _between(logs))
    return found


def _between(logs: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> float:
    """Standard deviation of the runs' levels, without what their rounds explain."""
    levels = float(np.var([np.median(one) for one in logs], ddof=1))
    rounds = [_MEDIAN * float(np.var(one, ddof=1)) / len(one) for one in logs if len(one) > 1]
    return math.sqrt(max(0.0, levels - (float(np.mean(rounds)) if rounds else 0.0)))


def widened(comparison: Comparison, levels: Levels) -> Comparison:
    """Return the comparison with intervals that count how far runs differ as a whole, where stored runs show it."""
    return replace(
        comparison,
        others=[
            replace(other, changes={arm: _widened(arm, found, levels) for arm, found in other.changes.items()})
            for other in comparison.others
        ],
    )


def _widened(arm: str, changes: dict[str, Change], levels: Levels) -> dict[str, Change]:
    return {
        key: change
        if change.ratio is None or (spread := levels.get((arm, key))) is None
        else with_ratio(change, spread.widened(change.ratio, change.confidence), spread.reach(change.confidence))
        for key, change in changes.items()
    }


def gate_of_comparison(comparison: Comparison, thresholds: Sequence[Threshold], levels: Levels) -> list[str]:
    """What the thresholds of a comparison find, and what is known of the levels: a sentence each."""
    found = []
    for one in thresholds:
        for other in comparison.others:
            for arm, changes in other.changes.items():
                change = changes[one.figure.key]
                if not one.applies_to(arm) or change.ratio is None:
                    continue
                ratio, spread = change.detectable, levels.get((arm, one.figure.key))
                if ratio is not None and spread is not None:
                    ratio = math.exp(math.hypot(math.log(ratio), spread.reach(change.confidence)))
                found.append((one, arm, ratio))
    return [*_power(found), *_levels(levels, thresholds)] if found else []


def gate_of_run(run: Run, thresholds: Sequence[Threshold]) -> list[str]:
    """What the thresholds of one run find: a sentence each."""
    known = [one for one in thresholds if not one.figure.of_failed]
    limits = [(one, arm.name) for one in known if not one.change for arm in run.experiment.arms
              if one.applies_to(arm.name)]  # fmt: skip
    confidence = simultaneous(len(limits))
    found = []
    for one, arm in limits:
        these = by_round(run, arm, one.figure)
        ratio = typical_figure(these, confidence)
        found.append(
            (one, arm, detectable_ratio(these, dict.fromkeys(these, 1.0), None if ratio is None else ratio.interval))
        )
    for one in (one for one in known if one.change):
        for pair in environment_pairs(run.experiment.arms):
            if one.applies_to(pair[0].name):
                these, those = (by_round(run, arm.name, one.figure) for arm in pair)
                ratio = pair_ratio(run, one.figure, pair)
                found.append(
                    (one, pair[0].name, detectable_ratio(these, those, None if ratio is None else ratio.interval))
                )
    return list(_power(found))


def _power(found: Sequence[tuple[Threshold, str, float | None]]) -> Iterator[str]:
    """For each threshold, the smallest change that it finds in 80 of 100 builds, for the arm that varies most."""
    for text in dict.fromkeys(one.text for one, _, _ in found):
        known = [(ratio, arm, one) for one, arm, ratio in found if one.text == text and ratio is not None]
        if not known:
            continue
        ratio, arm, one = max(known, key=lambda each: each[0])
        among = f" (of {len(known)} arms, {arm} varies most)" if len(known) > 1 else ""
        beyond = f"{units.share(ratio - 1)} beyond it"
        if one.change:
            edge = (1 + one.value) * ratio - 1 if one.figure.less_is_better else 1 - (1 - one.value) / ratio
            beyond = f"a change of {units.share(edge)}"
        cases = f"{POWER * 100:.0f} of 100 builds"
        yield f"gate {text}: at this noise and with these rounds it finds {beyond} in {cases}{among}."


def _levels(levels: Levels, thresholds: Sequence[Threshold]) -> Iterator[str]:
    """How far runs differ as a whole, by figure: the largest of the arms; or that nobody knows it."""
    for key in dict.fromkeys(one.figure.key for one in thresholds if not one.figure.of_failed):
        spreads = [spread for (_, name), spread in levels.items() if name == key]
        if spreads:
            most = max(spreads, key=lambda one: one.spread)
            yield (
                f"gate {key}: {most.runs} stored runs of these surroundings differ by up to {units.share(most.spread)} "
                "as a whole (standard deviation); the thresholds count it."
            )
        else:
            yield (
                f"gate {key}: how far two runs differ as a whole is unknown, so more than one build in 40 may fail; "
                f"{FEWEST_RUNS} stored runs of these surroundings would show it, and --env measures both sides in one "
                "run, which does not have it."
            )
