"""Noise of a run: trials during which others took CPU time, and arms whose rounds differ widely.

The thresholds come from 105 trials on a virtual machine of two cores, without and with other programs on it:
http.client and requests with one request in flight, aiohttp with 8, 0.3 to 2 s long. Wall time, over its median where
others took less than 0.2 cores (14 trials, themselves from 0.76 to 1.40):

    cores that others took      0.2 to 0.5      0.5 to 1      above 1
    trials                              11            12           68
    wall time (median)                1.03          1.20         1.68

Pressure does not separate them: it was 0.05 to 0.25 where others took less than 0.2 cores, because client and upstream
wait for each other's core, and 0.13 to 1 beside others. Steal was 0.03 cores at most. Of 79 arms of five published
articles, 62 have a spread below 0.1, and half of all one below 0.031; other programs ran beside two trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import log
from statistics import stdev

from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.judging.cautions.trials import arms_of, by_arm, finished, names_of
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.document import Caution, Run
from clientlab.results.figures import cost_of, ranked_by, ranking_of
from clientlab.results.trial import Trial

OTHERS = 0.2
"""Cores that other programs took on average, from which on a trial is noisy, if its processes had to wait as well."""

LEAST_SECONDS = 0.1
"""CPU time of others below which it says nothing: many kernels sample it, give or take 0.05 s for a trial of 1 s."""

WAITED = 0.05
"""Share of the time in which some process waited for a CPU, below which others took only what nobody wanted."""

STOLEN = 0.05
"""Cores that the hypervisor took on average, from which on a trial is noisy. Steal is counted only while one waits."""

BUSY_LOAD = 0.5
"""Load average per usable core above which something else was running before."""

WIDE = 0.1
"""Spread from which on the rounds of an arm differ widely."""


def cores_taken(trial: Trial) -> float:
    """Cores that other programs and the hypervisor took on average during a trial, as far as both are known."""
    noise = trial.noise
    if noise is None:
        return 0.0
    return ((noise.others_cpu_seconds or 0.0) + (noise.steal_seconds or 0.0)) / noise.seconds


def is_noisy(trial: Trial) -> bool:
    """Whether others took so much CPU time that the trial's figures may be wrong. Short trials have another caution."""
    noise = trial.noise
    if noise is None or noise.seconds < SHORT_SECONDS:
        return False
    if (noise.steal_seconds or 0.0) >= STOLEN * noise.seconds:
        return True
    others, waited = noise.others_cpu_seconds or 0.0, noise.cpu_pressure_seconds
    contended = waited is None or waited >= WAITED * noise.seconds
    return contended and others >= max(LEAST_SECONDS, OTHERS * noise.seconds)


def spread_of(trials: Iterable[Trial]) -> float | None:
    """Standard deviation of the logarithms of what the arm is ranked by; 0.1 is 10 %. None with fewer than 3 rounds."""
    logarithms = [log(cost_of(trial)) for trial in trials if trial.status == "done"]
    return stdev(logarithms) if len(logarithms) >= FEWEST_ROUNDS else None


def is_wide(trials: Iterable[Trial]) -> bool:
    """Whether an arm's rounds differ widely."""
    spread = spread_of(trials)
    return spread is not None and spread >= WIDE


def noisy_trials(run: Run) -> Iterator[Caution]:
    """The caution that names the arms of noisy trials."""
    done = finished(run)
    noisy = [trial for trial in done if is_noisy(trial)]
    if noisy:
        most = max(cores_taken(trial) for trial in noisy)
        yield Caution(
            kind="noisy-trials",
            arms=arms_of(noisy),
            text=f"others took up to {most:.2f} of {run.surroundings.cpu_count} cores during {len(noisy)} of "
            f"{len(done)} trials, of {names_of(noisy)}",
            advice="programs beside the lab, or other guests of the host, disturbed them: measure on a quiet machine",
        )


def wide_spread(run: Run) -> Iterator[Caution]:
    """The caution that names the arms whose rounds differ widely."""
    spreads = {arm: spread for arm, trials in sorted(by_arm(run).items()) if (spread := spread_of(trials)) is not None}
    wide = {arm: spread for arm, spread in spreads.items() if spread >= WIDE}
    if wide:
        yield Caution(
            kind="wide-spread",
            arms=list(wide),
            text=f"rounds differ widely in {_ranked_by(run, wide)} (standard deviation): "
            f"{', '.join(f'{arm} ({spread:.0%})' for arm, spread in wide.items())}",
            advice="small differences of these arms are hidden: raise -n, so that a trial takes longer, or --rounds",
        )


def _ranked_by(run: Run, arms: Iterable[str]) -> str:
    """What those arms are ranked by."""
    kinds = {ranking_of([trial]) for trial in finished(run) if trial.arm in arms}
    return " or ".join(ranked_by(kind).label for kind in sorted(kinds))


def busy_machine(run: Run) -> Iterator[Caution]:
    """The caution about what ran in the minute before the run."""
    load, cores = run.surroundings.load_average, run.surroundings.cpu_usable
    if load > BUSY_LOAD * cores:
        yield Caution(
            kind="busy-machine",
            text=f"the machine's load average was {load:.1f} on {cores:g} cores before the run began",
            advice="something else ran in the minute before the run, perhaps a setup: run again when it has ended",
        )
