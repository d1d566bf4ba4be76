"""Cautions about the length of trials: far longer than the duration, extended, or with a long tail."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import strategies, units
from clientlab.errors import LabError
from clientlab.judging.cautions.trials import by_arm
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

_TIMES, _SECONDS = 2.0, 1.0
"""A trial is overlong from so many times its duration on, if it also took so many seconds more than that."""

_CROWDED = 100
"""With fewer requests in flight, a look at all connections of a pool is a small part of a request's CPU time."""

_CPU = BY_KEY["cpu"]

_WHY: dict[Bound | None, str] = {
    "client-connections": "requests waited in the client's own pool for a free connection",
    "client-streams": "requests waited in the client for a free stream of its HTTP/2 connections",
    "client-lock": "requests waited for a lock in the client",
    "start-up": "the processes of the pool were still starting",
    "upstream-bound": "requests waited for the upstream, whose CPU time was full",
    "upstream-threads": "requests waited for a thread of the upstream",
    "proxy-bound": "requests waited for the proxy, whose CPU time was full",
    "link-bound": "requests waited for the process of the link",
    "bandwidth-bound": "requests waited for the link's bandwidth",
    "machine": "all cores were full",
}
"""Bottleneck → why a trial took longer than its duration."""


def overlong(run: Run) -> Iterator[Caution]:
    """Trials that took far longer than their duration, with the reason; no other caution states their tails."""
    found: dict[str, list[str]] = {}
    arms: list[str] = []
    for arm, trials in by_arm(run).items():
        late = [trial for trial in trials if _is_overlong(run, trial)]
        if late:
            worst = max(late, key=_taken)
            asked = f"{_duration(run, worst):g} s"
            found.setdefault(_why(worst), []).append(f"{arm} {units.time(_taken(worst))} instead of {asked}")
            arms.append(arm)
    if found:
        reasons = "; ".join(f"{', '.join(late)}, because {why}" for why, late in found.items())
        yield Caution(
            kind="overlong",
            arms=sorted(arms),
            text=f"trials took much longer than their duration: {reasons}",
            advice="a service with as many requests in flight is late too: lower -c, or change the part that is named; "
            "where single requests take that long, raise -d",
        )


def _is_overlong(run: Run, trial: Trial) -> bool:
    """Whether a trial of a closed load took far longer than its duration. An open load falls behind its schedule.

    Where a few slow requests alone prolonged it, it has a long tail.
    """
    asked = _duration(run, trial)
    late = bool(asked) and trial.open_load is None and _taken(trial) >= max(_TIMES * asked, asked + _SECONDS)
    return late and not _is_prolonged_by_few(trial)


def _is_prolonged_by_few(trial: Trial) -> bool:
    """Whether 99 of 100 requests took less than half of the tail."""
    return trial.latency_seconds is not None and trial.latency_seconds.p99 < (trial.tail_seconds or 0.0) / 2


def _duration(run: Run, trial: Trial) -> float:
    """Seconds; 0 for a number of requests."""
    return run.experiment.workloads[trial.workload].duration or 0.0


def _taken(trial: Trial) -> float:
    return trial.wall_seconds or 0.0


def _why(trial: Trial) -> str:
    """Why a trial took long, as far as its figures show it."""
    if expired := trial.errors.get("timeout", 0):
        return f"{expired:,} of {trial.requests:,} requests ended at their time limit"
    if trial.verdict == "client-bound":
        pool = _searched_pool(trial) if trial.concurrency >= _CROWDED else None
        cause = f"{pool}'s pool looks at all its connections whenever a request comes or goes" if pool else ""
        each = f"{_CPU.text(_CPU.of(trial))} of CPU time for each request"
        return f"{cause or 'the CPU time of the client was full'} ({each})"
    if trial.waits_for_connection and trial.verdict != "client-streams":
        return _WHY["client-connections"]
    if trial.verdict == "latency-bound" and trial.latency_seconds is not None:
        return f"a request took {units.time(trial.latency_seconds.p50)} (median), most of it the server's delay"
    longest = None if trial.latency_seconds is None else trial.latency_seconds.max
    slowest = "" if longest is None else f"; the slowest request took {units.time(longest)}"
    return _WHY.get(trial.verdict) or f"the last requests ended late{slowest}"


def _searched_pool(trial: Trial) -> str | None:
    """The library, if its pool looks at all its connections for each request."""
    try:
        spec = strategies.client_spec(strategies.find(trial.strategy).client)
    except LabError:  # the strategy is not installed here: unknown
        return None
    return spec.distribution if spec.quirks.searches_pool else None
