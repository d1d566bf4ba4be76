"""Cautions about bottlenecks: trials that measured a server, the machine, or a wait for a connection."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.judging.cautions.percentiles import OF_LATENCY
from clientlab.judging.cautions.trials import arms_of, finished, limited_by, names_of
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial


def server_bound(run: Run) -> Iterator[Caution]:
    """Trials that the upstream, the proxy or the link's process limited."""
    bounds: tuple[tuple[Bound, str, str], ...] = (
        ("upstream-bound", "the upstream was", "give it more workers or cores, or set a delay"),
        ("proxy-bound", "the proxy was", "give it more workers or cores, or set a delay"),
        ("link-bound", "the process of the link was", "send fewer requests at once, or smaller bodies"),
        ("upstream-threads", "the upstream's threads were", "give it more threads or workers"),
    )
    for bound, part, advice in bounds:
        # ApacheBench and the like are meant to measure the server or the proxy.
        trials = [trial for trial in limited_by(run, bound) if not _drives(run, trial)]
        if trials:
            yield Caution(
                kind=bound,
                arms=arms_of(trials),
                text=f"{part} the bottleneck for {names_of(trials)}",
                advice=f"these trials measured the server and not the client: {advice}",
            )


def machine_bound(run: Run) -> Iterator[Caution]:
    """Trials on a machine whose cores were all busy."""
    trials = limited_by(run, "machine")
    if trials:
        own = sum(map(_taken, trials)) / len(trials)
        yield Caution(
            kind="machine",
            arms=arms_of(trials),
            text=f"all cores were full, and no part alone, in trials of {names_of(trials)}; "
            f"the lab's parts took {own:.1f} of {run.surroundings.cpu_usable:g} cores",
            advice="the parts, or other programs, competed for the cores: "
            "stop what else runs, use fewer workers, or set a delay",
        )


def unaccounted(run: Run) -> Iterator[Caution]:
    """Trials whose requests waited for something that the lab does not know."""
    trials = limited_by(run, "unaccounted")
    if trials:
        known = [trial.busy["unaccounted"] for trial in trials if "unaccounted" in trial.busy]
        share = f": up to {100 * max(known):.0f} % of the requests' time is in no part" if known else ""
        yield Caution(
            kind="unaccounted",
            arms=arms_of(trials),
            text=f"nothing that the lab measures explains the latency of {names_of(trials)}{share}",
            advice="look for what the client waits for: a sleep, DNS, Nagle's algorithm, a lock; "
            "`py-spy dump` or `strace -f` of the trial's process shows it",
        )


def start_up(run: Run) -> Iterator[Caution]:
    """Trials that took most of their time to start the processes of a pool."""
    trials = limited_by(run, "start-up")
    if trials:
        yield Caution(
            kind="start-up",
            arms=arms_of(trials),
            text=f"most of the time of {names_of(trials)} passed until the last process of the pool had begun",
            advice="these trials measured the start of the pool: raise -n or -d, or use --connections warm",
        )


def waits_for_connection(run: Run) -> Iterator[Caution]:
    """Trials whose latencies hold the wait for a connection."""
    trials = [trial for trial in finished(run) if trial.waits_for_connection]
    if trials:
        yield Caution(
            kind="waits-for-connection",
            arms=arms_of(trials),
            figures=[key for key in OF_LATENCY if not BY_KEY[key].before_send],
            text=f"latencies of {names_of(trials)} hold the wait for a free connection or HTTP/2 stream "
            "(marked *), since all clocks start at once or the pool is small",
            advice=f"they have no overhead: compare {_instead(trials)} with executors "
            "that wait before the clock starts (semaphore, workers, threads)",
        )


def _instead(trials: list[Trial]) -> str:
    """The figures of these trials that can be compared nevertheless."""
    open_load = any(trial.open_load is not None for trial in trials)
    return "latencies from the planned start" if open_load else "their wall time, or their latency"


def _taken(trial: Trial) -> float:
    """Cores that tool and servers used on average. 0 for a trial too short for the clock of the servers."""
    if not trial.wall_seconds or trial.wall_seconds < SHORT_SECONDS:
        return 0.0
    servers = [use.cpu_seconds for use in (trial.link_use, trial.upstream_use, trial.proxy_use) if use is not None]
    return (sum(servers) + (trial.cpu_seconds or 0.0)) / trial.wall_seconds


def _drives(run: Run, trial: Trial) -> bool:
    """Whether an external tool, or its replacement, measures the server in this trial."""
    return trial.driver is not None or trial.strategy in run.experiment.replaced.values()
