"""Noise of a run: trials during which others took CPU time, and arms whose rounds differ widely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import log
from statistics import stdev

from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.judging.ranking import seconds_per_request
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

TAKEN = 0.1
"""Cores that others took on average, from which on a trial is noisy."""

WIDE = 0.1
"""Spread from which on the rounds of an arm differ widely."""


def cores_taken(trial: Trial) -> float | None:
    """Cores that other programs and the hypervisor took on average during a trial. None: unknown, or too short."""
    noise = trial.noise
    if noise is None or noise.seconds < SHORT_SECONDS:
        return None
    taken = [seconds for seconds in (noise.others_cpu_seconds, noise.steal_seconds) if seconds is not None]
    return sum(taken) / noise.seconds if taken else None


def is_noisy(trial: Trial) -> bool:
    """Whether others took so much CPU time that the trial's figures may be wrong."""
    taken = cores_taken(trial)
    return taken is not None and taken >= TAKEN


def spread_of(trials: Iterable[Trial]) -> float | None:
    """Standard deviation of the logarithms of an arm's time per request; 0.1 is 10 %. None with fewer than 3 rounds."""
    logarithms = [log(seconds_per_request(trial)) for trial in trials if trial.status == "done"]
    return stdev(logarithms) if len(logarithms) >= FEWEST_ROUNDS else None


def is_wide(trials: Iterable[Trial]) -> bool:
    """Whether an arm's rounds differ widely."""
    spread = spread_of(trials)
    return spread is not None and spread >= WIDE


def noisy_trials(run: Run) -> Iterator[Caution]:
    """The caution that names the arms of noisy trials."""
    done = [trial for trial in run.trials if trial.status == "done"]
    noisy = [trial for trial in done if is_noisy(trial)]
    if noisy:
        most = max(cores_taken(trial) or 0.0 for trial in noisy)
        arms = sorted({trial.arm for trial in noisy})
        yield Caution(
            kind="noisy-trials",
            arms=arms,
            text=f"others took up to {most:.2f} of {run.surroundings.cpu_count} cores during {len(noisy)} of "
            f"{len(done)} trials, of {', '.join(arms)}",
            advice="programs beside the lab, or other guests of the host, disturbed them: measure on a quiet machine",
        )


def wide_spread(run: Run) -> Iterator[Caution]:
    """The caution that names the arms whose rounds differ widely."""
    by_arm: dict[str, list[Trial]] = {}
    for trial in run.trials:
        by_arm.setdefault(trial.arm, []).append(trial)
    spreads = {arm: spread for arm, trials in sorted(by_arm.items()) if (spread := spread_of(trials)) is not None}
    wide = {arm: spread for arm, spread in spreads.items() if spread >= WIDE}
    if wide:
        yield Caution(
            kind="wide-spread",
            arms=list(wide),
            text="rounds differ widely in time per request (standard deviation): "
            f"{', '.join(f'{arm} ({spread:.0%})' for arm, spread in wide.items())}",
            advice="small differences of these arms are hidden: raise -n, so that a trial takes longer, or --rounds",
        )
