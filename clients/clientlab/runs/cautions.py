"""Reasons not to believe a run's numbers, as values with advice; shown above the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from clientlab import strategies
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.analysis.verdict import SATURATED, SHORT_SECONDS
from clientlab.errors import LabError
from clientlab.runs.document import Caution, Run, Trial

BUSY_LOAD = 0.5
"""Load average for each usable core, from which on something else is taken to be running."""


def cautions_of(run: Run) -> list[Caution]:
    """All cautions of a run, the gravest first."""
    return [caution for rule in _RULES for caution in rule(run)]


def _failures(run: Run) -> Iterator[Caution]:
    failed = [trial for trial in run.trials if trial.status == "failed"]
    if failed:
        yield Caution(
            kind="failed-trials",
            text=f"{len(failed)} of {len(run.trials)} trials failed: {_names(failed)}",
            advice=f"the first reason: {failed[0].reason}",
        )


def _errors(run: Run) -> Iterator[Caution]:
    faulty = [trial for trial in _done(run) if trial.errors]
    if faulty:
        kinds = sorted({kind for trial in faulty for kind in trial.errors})
        yield Caution(
            kind="errors",
            text=f"requests failed ({', '.join(kinds)}) in trials of {_names(faulty)}",
            advice="a strategy with errors did less work: read its errors before its speed",
        )


def _upstream_bound(run: Run) -> Iterator[Caution]:
    for bound, part in (("upstream-bound", "the upstream"), ("proxy-bound", "the proxy")):
        # A driver is there to measure the server, or the proxy.
        trials = [trial for trial in _done(run) if trial.verdict == bound and not _drives(run, trial)]
        if trials:
            yield Caution(
                kind=bound,
                text=f"{part} was the bottleneck for {_names(trials)}",
                advice="such trials measure the server and tell nothing of their clients; "
                "give it more workers or cores, or ask for a delay",
            )


def _not_warm(run: Run) -> Iterator[Caution]:
    opened = [trial for trial in _done(run) if trial.connections_opened and _was_to_be_warm(run, trial)]
    if opened:
        yield Caution(
            kind="not-warm",
            text=f"connections were to be warm, and {_names(opened)} opened up to "
            f"{max(trial.connections_opened or 0 for trial in opened)} inside the clock",
            advice="a part of their time is connecting: raise --warmup, or compare all with --connections cold",
        )


def _was_to_be_warm(run: Run, trial: Trial) -> bool:
    """Whether the trial's strategy keeps connections, and its workload has them opened before the clock."""
    if run.experiment.workloads[trial.workload].connections != "warm":
        return False
    try:
        return strategies.find(trial.strategy).policy != "per call"
    except LabError:  # a run from elsewhere, with a strategy that is not here: what it keeps is not known
        return False


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
            advice="this is not the experiment as its file has it: leave these options out before you quote it",
        )


def _workers(run: Run) -> Iterator[Caution]:
    """A home that starts its servers says how it does so, under the upstream's name; containers run all the time."""
    asked = run.experiment.workers
    served = {arm.upstream for arm in run.experiment.arms} - run.surroundings.programs.keys()
    if others := sorted(served & asked.keys()):
        yield Caution(
            kind="workers",
            text=f"the experiment asks for {', '.join(f'{asked[name]} workers of {name}' for name in others)}: "
            "the containers served with a number of their own",
            advice="run it without --home containers, or set their number where they are started (.env)",
        )


def _time_budget(run: Run) -> Iterator[Caution]:
    if run.rounds_ended == "time-budget":
        yield Caution(
            kind="time-budget",
            text=f"the time budget ended the rounds before every interval was within {run.experiment.precision:.2%}",
            advice="give it more with --time-budget, or a quieter machine",
        )


def _driver_bound(run: Run) -> Iterator[Caution]:
    trials = [trial for trial in _done(run) if trial.verdict == "client-bound" and _drives(run, trial)]
    if trials:
        where = ", ".join(sorted({trial.upstream for trial in trials}))
        yield Caution(
            kind="driver-bound",
            text=f"{_names(trials)} could not ask faster, of {where}",
            advice="its figure is the least that the server can do: it has one thread; give it a core of its own",
        )


def _shared_cores(run: Run) -> Iterator[Caution]:
    cores = run.surroundings.cpu_usable
    crowded = [trial for trial in _done(run) if _drives(run, trial) and _taken(trial) >= SATURATED * cores]
    served = sorted({trial.upstream for trial in crowded})
    if served:
        yield Caution(
            kind="shared-cores",
            text=f"{_names(crowded)} and the server took {max(map(_taken, crowded)):.1f} of {cores:g} cores together, "
            f"with {', '.join(served)}",
            advice="they took each other's time: what more workers do with cores of their own can't be seen here",
        )


def _taken(trial: Trial) -> float:
    """Cores that driver, proxy and upstream took on average; 0 where a trial is too short for the servers' clock."""
    if not trial.wall_seconds or trial.wall_seconds < SHORT_SECONDS:
        return 0.0
    servers = [use.cpu_seconds for use in (trial.upstream_use, trial.proxy_use) if use is not None]
    return (sum(servers) + (trial.cpu_seconds or 0.0)) / trial.wall_seconds


def _replaced(run: Run) -> Iterator[Caution]:
    for strategy, other in run.experiment.replaced.items():
        yield Caution(
            kind="replaced-strategy",
            text=f"{strategy} is not installed here: {other} asked in its place",
            advice=f"its figures are not those of {strategy}: install that ('clientlab list' says how)",
        )


def _left_out(run: Run) -> Iterator[Caution]:
    for strategy, reason in run.experiment.left_out.items():
        yield Caution(
            kind="left-out",
            text=f"{strategy} was asked for and not measured: {reason}",
            advice="mend it and run again; the ratios are among the others alone",
        )


def _drives(run: Run, trial: Trial) -> bool:
    """Whether the trial is there to measure a server: by a program, or by what takes its place."""
    return trial.driver is not None or trial.strategy in run.experiment.replaced.values()


def _rounds(run: Run) -> Iterator[Caution]:
    if run.experiment.rounds < FEWEST_ROUNDS:
        yield Caution(
            kind="few-rounds",
            text=f"{run.experiment.rounds} of at least {FEWEST_ROUNDS} rounds: ratios have no interval",
            advice=f"run it with --rounds {FEWEST_ROUNDS} or more before you believe a difference",
        )


def _short(run: Run) -> Iterator[Caution]:
    short = [t for t in _done(run) if t.wall_seconds is not None and t.wall_seconds < SHORT_SECONDS]
    if short:
        yield Caution(
            kind="short-trials",
            text=f"trials of {_names(short)} took less than {SHORT_SECONDS:g} s",
            advice="a scheduler's hiccup is a large part of that; raise -n",
        )


def _concurrency(run: Run) -> Iterator[Caution]:
    starved = [trial for trial in _done(run) if trial.requests < trial.concurrency]
    if starved:
        yield Caution(
            kind="fewer-requests-than-concurrency",
            text=f"fewer requests than may be in flight at once, for {_names(starved)}",
            advice="the concurrency asked for was never reached; raise -n or lower -c",
        )


def _load(run: Run) -> Iterator[Caution]:
    load, cores = run.surroundings.load_average, run.surroundings.cpu_usable
    if load > BUSY_LOAD * cores:
        yield Caution(
            kind="busy-machine",
            text=f"the machine's load average was {load:.1f} on {cores:g} cores before the run began",
            advice="something else ran in the minute before, a set-up perhaps; run again when it is over",
        )


_RULES: tuple[Callable[[Run], Iterator[Caution]], ...] = (
    _left_out,
    _failures,
    _errors,
    _replaced,
    _upstream_bound,
    _driver_bound,
    _shared_cores,
    _not_warm,
    _shortened,
    _changed,
    _workers,
    _time_budget,
    _rounds,
    _short,
    _concurrency,
    _load,
)


def _done(run: Run) -> list[Trial]:
    return [trial for trial in run.trials if trial.status == "done"]


def _names(trials: Iterable[Trial]) -> str:
    return ", ".join(sorted({trial.arm for trial in trials}))
