"""Cautions about trials: failed, with errors, not warm, too short, without a known memory."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import strategies
from clientlab.errors import LabError
from clientlab.judging.cautions.doubted import arms_of, finished, names_of
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.document import Caution, Run
from clientlab.results.failures import failed_for_good
from clientlab.results.machine import is_free_threaded
from clientlab.results.trial import Trial


def failures(run: Run) -> Iterator[Caution]:
    """Trials without figures: those that the run lacks, and those that it measured once more."""
    failed = failed_for_good(run)
    if failed:
        yield Caution(
            kind="failed-trials",
            arms=arms_of(failed),
            text=f"{len(failed)} of {len(run.trials)} trials failed: {names_of(failed)}",
            advice=f"the first reason was: {failed[0].reason}",
        )
    again = [trial for trial in run.trials if trial.status != "done" and trial not in failed]
    if again:
        yield Caution(
            kind="measured-again",
            arms=arms_of(again),
            text=f"{len(again)} of {len(run.trials)} trials were lost and measured once more: {names_of(again)}",
            advice=f"the first reason was: {again[0].reason}",
        )


def errors(run: Run) -> Iterator[Caution]:
    """Trials with failed requests."""
    faulty = [trial for trial in finished(run) if trial.errors]
    if faulty:
        kinds = sorted({kind for trial in faulty for kind in trial.errors})
        yield Caution(
            kind="errors",
            arms=arms_of(faulty),
            text=f"requests failed ({', '.join(kinds)}) in trials of {names_of(faulty)}",
            advice="a strategy with errors did less work: look at its errors before its speed",
        )


def not_warm(run: Run) -> Iterator[Caution]:
    """Connections that were opened inside the clock, although they should have been warm."""
    opened = [trial for trial in finished(run) if trial.connections_opened and _should_be_warm(run, trial)]
    if opened:
        yield Caution(
            kind="not-warm",
            arms=arms_of(opened),
            text=f"connections should have been warm, but {names_of(opened)} opened up to "
            f"{max(trial.connections_opened or 0 for trial in opened)} of them in the measured time",
            advice="their time includes connecting: raise --warmup, or compare all strategies with --connections cold",
        )


def _should_be_warm(run: Run, trial: Trial) -> bool:
    """Whether the strategy keeps connections and the workload asks to open them before the measured time."""
    if run.experiment.workloads[trial.workload].connections != "warm":
        return False
    try:
        return strategies.find(trial.strategy).policy != "per call"
    except LabError:  # an imported run with a strategy that is not installed: unknown
        return False


def gil_on(run: Run) -> Iterator[Caution]:
    """Trials with a GIL in a Python that was built for free threading."""
    builds: dict[str | None, str | None] = {None: run.surroundings.python_build}
    builds |= {name: one.python_build for name, one in (run.surroundings.environments or {}).items()}
    locked = [trial for trial in finished(run) if trial.gil and is_free_threaded(builds.get(trial.environment))]
    if locked:
        yield Caution(
            kind="gil-on",
            arms=arms_of(locked),
            text=f"the Python is built for free threading, but the GIL was on in trials of {names_of(locked)}",
            advice="a library without support for free threading switched it on: look for a release of it that has it",
        )


def short_trials(run: Run) -> Iterator[Caution]:
    """Trials too short for the scheduler."""
    short = [t for t in finished(run) if t.wall_seconds is not None and t.wall_seconds < SHORT_SECONDS]
    if short:
        yield Caution(
            kind="short-trials",
            arms=arms_of(short),
            text=f"trials of {names_of(short)} took less than {SHORT_SECONDS:g} s",
            advice="one delay of the scheduler is a large part of such a trial: raise -n",
        )


def extended(run: Run) -> Iterator[Caution]:
    """Trials that went on beyond their duration."""
    late = [trial for trial in finished(run) if trial.duration_extended]
    if late:
        yield Caution(
            kind="extended-durations",
            arms=arms_of(late),
            text=f"trials of {names_of(late)} went on beyond their duration, until as many requests had begun as may "
            "be in flight",
            advice="pools and connections took the time, so these trials hold few requests: raise -d",
        )


def memory_unknown(run: Run) -> Iterator[Caution]:
    """Trials whose resident memory is known, and not how much of it their processes share."""
    unknown = [trial for trial in finished(run) if trial.peak_pss_bytes is None and trial.peak_rss_bytes is not None]
    if unknown:
        yield Caution(
            kind="memory-unknown",
            arms=arms_of(unknown),
            figures=["memory", "above_idle"],
            text=f"the memory of {names_of(unknown)} is not known without the pages that processes share",
            advice="the CSV has the peak RSS, in which a shared page counts in each process; memory needs Linux, the "
            "permission to read /proc/PID/smaps_rollup, and processes that live until the last response",
        )
