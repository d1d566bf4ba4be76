"""The rate of a closed load while it was whole: until its deadline, or until the first shard had no more requests.

After that moment slots stay empty, and a single slow request keeps the trial waiting. The rate of the whole wall time
would then be that of the slowest request, and a client that was full would look idle.

Counting the responses until that moment would be wrong for long requests: with delays of 1 s and a duration of 5 s,
only four of five had ended. So the rate is by Little's law: requests in flight over the mean time of a request.
Requests that are in flight at that moment are censored there, and the mean is that below the survival curve of Kaplan
and Meier ("Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53, 1958).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.measuring.noise import Disturbance
from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.results.server_counters import ServerCounters
from clientlab.results.shard import RequestCounts, WholeLoad
from clientlab.results.surroundings import cpu_usable
from clientlab.running.busy_shares import LinkWaits
from clientlab.samples.log_reader import Flags, Samples
from clientlab.workload.load import is_open
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class Divisors:
    """What the sums over all requests of a trial are divided by, in seconds: all are the wall time of a trial with -n.

    `work`: the time that all its work would take at the rate of the whole load. So a share is the demand of a request
    times that rate, by the utilisation law (Denning and Buzen 1978). `in_flight`: the same of the time that requests
    were in flight, of which a straggler alone may have spent a large part after the load was whole. `load`: the time in
    which the load was whole, for what happens once in a trial.
    """

    work: float
    in_flight: float
    load: float

    def delays(self, seconds: float | None) -> float | None:
        """Delays of all requests as a part of `work`: they are time in flight."""
        return None if seconds is None else seconds * self.work / self.in_flight

    def waits(self, found: LinkWaits | None) -> LinkWaits | None:
        """Round trips of all requests as a part of `in_flight`: their number follows the work."""
        return None if found is None else replace(found, seconds=found.seconds * self.in_flight / self.work)

    def outcome(self, outcome: Outcome, servers: ServerCounters) -> Outcome:
        """The outcome as if all its work had been done at the rate of the whole load."""
        if self.work == outcome.wall_seconds:
            return outcome
        uses = (servers.upstream, servers.proxy, servers.link)
        own = outcome.cpu_seconds + sum(use.cpu_seconds for use in uses if use is not None)
        return replace(
            outcome,
            wall_seconds=self.work,
            startup_seconds=outcome.startup_seconds * self.work / self.load,
            disturbance=self._busy(outcome.disturbance, own),
        )

    def held(self, servers: ServerCounters) -> ServerCounters:
        """What each worker of the upstream held, as a part of `work`: it is time in flight."""
        use = servers.upstream
        if use is None or use.worker_held_seconds is None:
            return servers
        held = [self.delays(seconds) for seconds in use.worker_held_seconds]
        return servers.model_copy(update={"upstream": use.model_copy(update={"worker_held_seconds": held})})

    def _busy(self, found: Disturbance | None, own: float) -> Disturbance | None:
        """The busy share of the machine: the trial's own work is done in `work` seconds, that of others goes on."""
        if found is None or found.busy_share is None:
            return found
        cores = cpu_usable()
        others = max(0.0, found.busy_share - own / cores / found.seconds)
        return replace(found, busy_share=min(1.0, others + own / cores / self.work))


def divisors_of(loaded: WholeLoad | None, outcome: Outcome, counts: RequestCounts) -> Divisors:
    """What the sums of a trial are divided by. `loaded`: None where its wall time counts."""
    if loaded is None:
        return Divisors(outcome.wall_seconds, outcome.wall_seconds, outcome.wall_seconds)
    work = loaded.seconds * counts.finished / loaded.requests
    return Divisors(work, loaded.seconds * counts.in_flight_seconds / loaded.in_flight_seconds, loaded.seconds)


def whole_load_of(measurement: Measurement, workload: Workload) -> WholeLoad | None:
    """What a measured trial did while its load was whole; None where its wall time counts.

    That is the rule for a number of requests that is not divided, for open loads and for external tools, and for trials
    that went on beyond their duration because too few requests had begun.
    """
    outcome, parts = measurement.outcome, measurement.by_shard
    if measurement.tool is not None or is_open(workload) or outcome.extended:
        return None
    if workload.requests is None:
        slices = np.array(outcome.slices or [outcome.wall_seconds])
        begins = outcome.began + np.cumsum(slices) - slices
        return whole_load(measurement.samples, begins, (workload.duration or 0.0) / len(slices))
    if not parts:
        return None
    return whole_load(measurement.samples, np.array([outcome.began]), first_end(parts))


def first_end(parts: Sequence[Outcome]) -> float:
    """Seconds from the start of the first shard to the end of the shard that ended first."""
    return min(one.began + one.wall_seconds for one in parts) - min(one.began for one in parts)


def whole_load(found: Samples, begins: Floats, seconds: float) -> WholeLoad | None:
    """What was done in the first `seconds` after each of `begins` (monotonic seconds, the first one before all starts).

    None where no request ended in them.
    """
    starts = found.records["start"]
    starts = starts - begins[np.searchsorted(begins, starts, side="right") - 1]
    there = starts < seconds
    starts, took = starts[there], found.records["seconds"][there]
    ended = starts + took <= seconds
    if seconds <= 0 or not ended.any():
        return None
    shown = np.minimum(took, seconds - starts)
    in_flight, mean = float(shown.sum()), censored_mean(shown, ended)
    if mean <= 0:
        return None
    return WholeLoad(seconds=seconds * len(begins), requests=in_flight / mean, in_flight_seconds=in_flight)


def censored_mean(seconds: Floats, ended: Flags) -> float:
    """The mean time of requests, some of which had not ended after so many seconds. Shapes: (n,).

    Where the longest of them had not ended, the mean takes it to end then.
    """
    order = np.lexsort((~ended, seconds))  # of equal times, those that ended are first
    times, events = seconds[order], ended[order]
    left = len(times) - np.arange(len(times))
    surviving = np.cumprod(np.where(events, 1 - 1 / left, 1.0))
    return float(times[0] + (np.diff(times) * surviving[:-1]).sum())


def progress_of(starts: Floats, ends: Floats, moments: Sequence[float]) -> Floats:
    """Requests that were done at each moment; one in flight counts by the part of its time that has passed.

    Shapes: (n,), (n,) and (m,), seconds. Returns shape (m,).
    """
    lengths = np.maximum(ends - starts, 1e-12)
    return np.array([float(np.clip((moment - starts) / lengths, 0.0, 1.0).sum()) for moment in moments])
