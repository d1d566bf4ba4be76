"""Noise of a run: trials during which others took CPU time.

The thresholds come from 105 trials on a virtual machine of two cores, without and with other programs on it:
http.client and requests with one request in flight, aiohttp with 8, 0.3 to 2 s long. Wall time, over its median where
others took less than 0.2 cores (14 trials, themselves from 0.76 to 1.40):

    cores that others took      0.2 to 0.5      0.5 to 1      above 1
    trials                              11            12           68
    wall time (median)                1.03          1.20         1.68

Pressure does not separate them: it was 0.05 to 0.25 where others took less than 0.2 cores, because client and upstream
wait for each other's core, and 0.13 to 1 beside others. Steal was 0.03 cores at most.

What ran before the run is no caution, since it need not run any more: mostly it is the lab's own last run.
"""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.judging.cautions.trials import arms_of, finished, mostly, names_of
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

OTHERS = 0.2
"""Cores that other programs took on average, from which on a trial is noisy, if its processes had to wait as well."""

LEAST_SECONDS = 0.1
"""CPU time of others below which it says nothing: many kernels sample it, give or take 0.05 s for a trial of 1 s."""

WAITED = 0.05
"""Share of the time in which some process waited for a CPU, below which others took only what nobody wanted."""

STOLEN = 0.05
"""Cores that the hypervisor took on average, from which on a trial is noisy. Steal is counted only while one waits."""


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


def noisy_trials(run: Run) -> Iterator[Caution]:
    """The caution that names the arms most of whose trials were noisy."""
    done = finished(run)
    noisy = mostly(done, is_noisy)
    if noisy:
        most = max(cores_taken(trial) for trial in noisy)
        yield Caution(
            kind="noisy-trials",
            arms=arms_of(noisy),
            text=f"others took up to {most:.2f} of {run.surroundings.cpu_count} cores during {len(noisy)} of "
            f"{len(done)} trials, of {names_of(noisy)}",
            advice="programs beside the lab, or other guests of the host, disturbed them: measure on a quiet machine",
        )
