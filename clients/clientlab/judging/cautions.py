"""Cautions: reasons to doubt the numbers of a run, each with advice. Reports show them above the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from clientlab import strategies
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.errors import LabError
from clientlab.judging import bottleneck_cautions, request_cautions
from clientlab.judging.noise import noisy_trials, wide_spread
from clientlab.judging.outlying import outlying_caution
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

BUSY_LOAD = 0.5
"""Load average per usable core above which something else was running."""


def cautions_of(run: Run) -> list[Caution]:
    """All cautions of a run, the most serious first."""
    return [caution for rule in _RULES for caution in rule(run)]


def _failures(run: Run) -> Iterator[Caution]:
    failed = [trial for trial in run.trials if trial.status != "done"]
    if failed:
        yield Caution(
            kind="failed-trials",
            arms=_arms(failed),
            text=f"{len(failed)} of {len(run.trials)} trials failed: {_names(failed)}",
            advice=f"the first reason was: {failed[0].reason}",
        )


def _errors(run: Run) -> Iterator[Caution]:
    faulty = [trial for trial in _done(run) if trial.errors]
    if faulty:
        kinds = sorted({kind for trial in faulty for kind in trial.errors})
        yield Caution(
            kind="errors",
            arms=_arms(faulty),
            text=f"requests failed ({', '.join(kinds)}) in trials of {_names(faulty)}",
            advice="a strategy with errors did less work: look at its errors before its speed",
        )


def _not_warm(run: Run) -> Iterator[Caution]:
    opened = [trial for trial in _done(run) if trial.connections_opened and _should_be_warm(run, trial)]
    if opened:
        yield Caution(
            kind="not-warm",
            arms=_arms(opened),
            text=f"connections should have been warm, but {_names(opened)} opened up to "
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


def _resumed(run: Run) -> Iterator[Caution]:
    for one in run.resumed:
        if one.differences:
            yield Caution(
                kind="resumed",
                text=f"from trial {one.trials + 1} on, the surroundings were others: {'; '.join(one.differences)}",
                advice="rounds before and after may differ for that reason: measure anew before you quote it",
            )


def _shortened(run: Run) -> Iterator[Caution]:
    if run.experiment.shortened:
        yield Caution(
            kind="quick",
            text=f"the quick form was measured: {'; '.join(run.experiment.shortened)}",
            advice="run it without --quick before you quote it",
        )


def _changed(run: Run) -> Iterator[Caution]:
    if run.experiment.changed:
        yield Caution(
            kind="changed",
            text=f"changed on the command line: {'; '.join(run.experiment.changed)}",
            advice="the run differs from the experiment file: leave these options out before you quote it",
        )


def _workers(run: Run) -> Iterator[Caution]:
    """The local testbed starts each upstream with that number and names the upstream; containers run all the time."""
    workers = run.experiment.workers
    served = {arm.upstream for arm in run.experiment.arms} - run.surroundings.programs.keys()
    if others := sorted(served & workers.keys()):
        yield Caution(
            kind="workers",
            text=f"the experiment asks for {', '.join(f'{workers[name]} workers of {name}' for name in others)}, "
            "but the containers have a number of their own",
            advice="run it without --testbed compose, or set the number of workers in .env",
        )


def _time_budget(run: Run) -> Iterator[Caution]:
    if run.rounds_ended == "time-budget":
        yield Caution(
            kind="time-budget",
            text=f"the time budget ended the rounds before every interval was within {run.experiment.precision:.2%}",
            advice="raise --time-budget, or use a quieter machine",
        )


def _replaced(run: Run) -> Iterator[Caution]:
    for strategy, other in run.experiment.replaced.items():
        yield Caution(
            kind="replaced-strategy",
            arms=sorted(arm.name for arm in run.experiment.arms if arm.strategy == other),
            text=f"{strategy} is not installed: {other} replaced it",
            advice=f"its figures are not those of {strategy}: install {strategy} ('clientlab list' shows how)",
        )


def _left_out(run: Run) -> Iterator[Caution]:
    for strategy, reason in run.experiment.left_out.items():
        yield Caution(
            kind="left-out",
            text=f"{strategy} was not measured: {reason}",
            advice="fix it and run again: the ratios compare the other strategies only",
        )


def _rounds(run: Run) -> Iterator[Caution]:
    if run.experiment.rounds < FEWEST_ROUNDS:
        yield Caution(
            kind="few-rounds",
            text=f"{run.experiment.rounds} of at least {FEWEST_ROUNDS} rounds: no confidence interval is computed",
            advice=f"use --rounds {FEWEST_ROUNDS} or more before you believe a difference",
        )


def _short(run: Run) -> Iterator[Caution]:
    short = [t for t in _done(run) if t.wall_seconds is not None and t.wall_seconds < SHORT_SECONDS]
    if short:
        yield Caution(
            kind="short-trials",
            arms=_arms(short),
            text=f"trials of {_names(short)} took less than {SHORT_SECONDS:g} s",
            advice="one delay of the scheduler is a large part of such a trial: raise -n",
        )


def _concurrency(run: Run) -> Iterator[Caution]:
    starved = [trial for trial in _done(run) if trial.requests < trial.concurrency]
    if starved:
        yield Caution(
            kind="fewer-requests-than-concurrency",
            arms=_arms(starved),
            text=f"trials of {_names(starved)} had fewer requests than their concurrency",
            advice="the concurrency was never reached: raise -n or lower -c",
        )


def _load(run: Run) -> Iterator[Caution]:
    load, cores = run.surroundings.load_average, run.surroundings.cpu_usable
    if load > BUSY_LOAD * cores:
        yield Caution(
            kind="busy-machine",
            text=f"the machine's load average was {load:.1f} on {cores:g} cores before the run began",
            advice="something else ran in the minute before the run, perhaps a setup: run again when it has ended",
        )


def _memory(run: Run) -> Iterator[Caution]:
    unknown = [trial for trial in _done(run) if trial.peak_pss_bytes is None and trial.peak_rss_bytes is not None]
    if unknown:
        yield Caution(
            kind="memory-unknown",
            text=f"the memory of {_names(unknown)} is not known without the pages that processes share",
            advice="the column RSS counts a shared page once for each process; memory itself needs Linux, the "
            "permission to read /proc/PID/smaps_rollup, and processes that live until the last response",
        )


_RULES: tuple[Callable[[Run], Iterator[Caution]], ...] = (
    _left_out,
    _failures,
    _errors,
    request_cautions.percentiles_of_failures,
    request_cautions.unlike_concurrency,
    _replaced,
    bottleneck_cautions.server_bound,
    bottleneck_cautions.machine_bound,
    bottleneck_cautions.driver_bound,
    bottleneck_cautions.shared_cores,
    _not_warm,
    bottleneck_cautions.waits_for_connection,
    _resumed,
    _shortened,
    _changed,
    _workers,
    _time_budget,
    _rounds,
    _short,
    _concurrency,
    request_cautions.few_requests,
    outlying_caution,
    _load,
    noisy_trials,
    wide_spread,
    _memory,
)


def _done(run: Run) -> list[Trial]:
    return [trial for trial in run.trials if trial.status == "done"]


def _arms(trials: Iterable[Trial]) -> list[str]:
    return sorted({trial.arm for trial in trials})


def _names(trials: Iterable[Trial]) -> str:
    return ", ".join(_arms(trials))
