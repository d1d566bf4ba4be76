"""The rate of a closed load while it was whole: until its deadline, or until the first shard had no more requests.

After that moment slots stay empty, and a single slow request keeps the trial waiting. The rate of the whole wall time
would then be that of the slowest request, and a client that was full would look idle.

Counting the responses until that moment would be wrong for long requests: with delays of 1 s and a duration of 5 s,
only four of five had ended. So the rate is by Little's law: requests in flight over the mean time of a request.
Requests that are in flight at that moment are censored there, and the mean is that below the survival curve of Kaplan
and Meier ("Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53, 1958).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clientlab.analysis.histogram import Floats
from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.results.server_counters import ServerCounters
from clientlab.results.surroundings import cpu_usable
from clientlab.running.request_figures import TrialRequests
from clientlab.samples.log_reader import Flags, Samples
from clientlab.workload.load import is_open
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class WholeLoad:
    """What a closed load did while it was whole."""

    seconds: float  # how long that was
    requests: float  # that end in this time at the rate of the load
    in_flight_seconds: float  # of requests, in this time


@dataclass(frozen=True)
class Divisors:
    """What the sums over all requests of a trial are divided by, in seconds: for a trial with -n, its wall time.

    `work`: the time that all its work would take at the rate of the whole load. So a share is the demand of a request
    times that rate, by the utilisation law (Denning and Buzen 1978).
    """

    work: float
    in_flight: float  # the same of time in flight, a large part of which a straggler may have spent after that
    load: float  # in which the load was whole, for what happens once in a trial

    @property
    def work_in_flight(self) -> float:
        """The factor by which time in flight becomes a part of `work`."""
        return self.work / self.in_flight

    def outcome(self, outcome: Outcome, servers: ServerCounters) -> Outcome:
        """Return the outcome as if all its work had been done at the rate of the whole load."""
        if self.work == outcome.wall_seconds:
            return outcome
        found = outcome.disturbance
        if found is not None and found.busy_share is not None:  # the work of others goes on for all of the time
            own = (outcome.cpu_seconds + sum(use.cpu_seconds for use in servers.known)) / cpu_usable()
            others = max(0.0, found.busy_share - own / found.seconds)
            found = replace(found, busy_share=min(1.0, others + own / self.work))
        startup = outcome.startup_seconds * self.work / self.load
        return replace(outcome, wall_seconds=self.work, startup_seconds=startup, disturbance=found)

    def held(self, servers: ServerCounters) -> ServerCounters:
        """Return the counters with what each worker of the upstream held as a part of `work`."""
        use = servers.upstream
        if use is None or use.worker_held_seconds is None:
            return servers
        held = [seconds * self.work_in_flight for seconds in use.worker_held_seconds]
        return servers.model_copy(update={"upstream": use.model_copy(update={"worker_held_seconds": held})})


def divisors_of(loaded: WholeLoad | None, outcome: Outcome, requests: TrialRequests) -> Divisors:
    """Return what the sums of a trial are divided by. `loaded`: None if its wall time counts."""
    if loaded is None:
        return Divisors(outcome.wall_seconds, outcome.wall_seconds, outcome.wall_seconds)
    work = loaded.seconds * requests.finished / loaded.requests
    return Divisors(work, loaded.seconds * requests.in_flight_seconds / loaded.in_flight_seconds, loaded.seconds)


def whole_load_of(measurement: Measurement, workload: Workload) -> WholeLoad | None:
    """Return what a trial did while its load was whole, or None if its wall time counts.

    The wall time counts for a number of requests that is not divided, for open loads and external tools, and for trials
    that went on beyond their duration because too few requests had begun.
    """
    outcome, parts = measurement.outcome, measurement.by_shard
    if measurement.tool is not None or is_open(workload) or outcome.extended:
        return None
    if workload.requests is None:
        slices = np.array(outcome.slices or [outcome.wall_seconds])
        begins = outcome.began + np.cumsum(slices) - slices
        return _whole_load(measurement.samples, begins, (workload.duration or 0.0) / len(slices))
    if not parts:
        return None
    first_end = min(one.began + one.wall_seconds for one in parts) - outcome.began
    return _whole_load(measurement.samples, np.array([outcome.began]), first_end)


def _whole_load(found: Samples, begins: Floats, seconds: float) -> WholeLoad | None:
    """Return what was done in the first `seconds` after each of `begins` (monotonic), or None if no request ended."""
    starts = found.records["start"]
    starts = starts - begins[np.searchsorted(begins, starts, side="right") - 1]
    there = starts < seconds
    starts, took = starts[there], found.records["seconds"][there]
    ended = starts + took <= seconds
    if seconds <= 0 or not ended.any():
        return None
    shown = np.minimum(took, seconds - starts)
    in_flight, mean = float(shown.sum()), censored_mean(shown, ended)
    return WholeLoad(seconds * len(begins), in_flight / mean, in_flight) if mean > 0 else None


def censored_mean(seconds: Floats, ended: Flags) -> float:
    """Return the mean time of requests, some of which had not `ended` after so many seconds.

    If the longest had not ended, the mean takes it to end then.
    """
    order = np.lexsort((~ended, seconds))  # of equal times, those that ended are first
    times, events = seconds[order], ended[order]
    left = len(times) - np.arange(len(times))
    surviving = np.cumprod(np.where(events, 1 - 1 / left, 1.0))
    return float(times[0] + (np.diff(times) * surviving[:-1]).sum())
