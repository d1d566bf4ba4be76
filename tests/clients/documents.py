"""Run documents for tests: whole and valid, with what a test cares about named by it."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.judging.verdict import of_schedule
from clientlab.results.document import Run, Surroundings, list_of
from clientlab.results.plan import Arm, Plan
from clientlab.results.target import Target
from clientlab.results.trial import LoadSlice, OpenLoad, PlannedTrial, Quantiles, Slice, Trial
from clientlab.workload.workload import Workload

SURROUNDINGS = Surroundings(
    host="here", system="Linux", kernel="6", architecture="x86_64", cpu_model="A CPU", cpu_count=4, cpu_usable=4.0,
    memory_bytes=1 << 30, memory_limit_bytes=None, open_files_limit=1024, load_average=0.1, python="CPython 3.11.7",
    libraries={}, dependencies={}, compiled={}, programs={}, clock="monotonic, 1e-09 s",
)  # fmt: skip


def quantiles(p50: float = 0.002, p99: float = 0.009, at_least: Sequence[str] = ()) -> Quantiles:
    """Quantiles of which a test cares for two at most. `at_least`: those that are lower bounds."""
    return Quantiles(mean=p50, p50=p50, p90=p50, p95=p99, p99=p99, p999=p99, max=p99, at_least=list(at_least))


def a_planned_trial(strategy: str = "urllib3", number: int = 1, order: int = 0) -> PlannedTrial:
    """A trial that nobody has measured."""
    return PlannedTrial(
        arm=strategy, strategy=strategy, upstream="aiohttp", route="direct", workload="workload",
        round=number, order=order, concurrency=1,
    )  # fmt: skip


def a_trial(strategy: str = "urllib3", number: int = 1, wall: float = 1.0, **changes) -> Trial:
    """A trial of 1,000 requests that all succeeded."""
    whole = {
        **a_planned_trial(strategy, number).model_dump(), "status": "done", "started": "2024-05-06T07:08:09+00:00",
        "wall_seconds": wall, "requests": 1000, "requests_per_second": 1000 / wall, "connections_opened": 1,
        "cpu_seconds": 0.5, "peak_rss_bytes": 40 << 20, "peak_pss_bytes": 32 << 20, "latency_seconds": quantiles(),
        "bytes_received": 21_000, "verdict": "client-bound",
    }  # fmt: skip
    return Trial(**(whole | changes))


def an_open_trial(
    strategy: str = "urllib3", number: int = 1, p99: float = 0.009, sent: float = 0.004, **changes
) -> Trial:
    """A trial of 1,000 requests at 200/s. `changes`: of the trial, or of its open load."""
    of = {
        "planned_per_second": 200.0,
        "achieved_per_second": 200.0,
        "dropped": 0,
        "most_backlog": 3,
        "most_in_flight": 1,
    }
    load_over_time = changes.pop("load_over_time", [])
    of |= {key: changes.pop(key) for key in list(changes) if key in of}
    latencies = quantiles(0.002, p99, changes.pop("at_least", ()))
    load = OpenLoad(
        lateness_seconds=quantiles(1e-4, 2e-4), sent_seconds=quantiles(0.002, sent), over_time=load_over_time, **of
    )
    shown = {"wall": 5.0, "verdict": of_schedule(**dict(load)), "latency_seconds": latencies, "open_load": load}
    return a_trial(strategy, number, **(shown | changes))


def a_failed_trial(strategy: str, reason: str = "it broke", **changes) -> Trial:
    """A trial that has no figures."""
    none = dict.fromkeys(("wall_seconds", "requests_per_second", "latency_seconds", "verdict"))
    return a_trial(strategy, **(none | {"requests": 0, "status": "failed", "reason": reason} | changes))


def a_run(*trials: Trial, name: str = "20240506-070809-run-abcd", **changes) -> Run:
    """A finished run of these trials; `changes` are of its experiment's settings."""
    if len({trial.order for trial in trials}) < len(trials):  # no test cares about their places
        trials = tuple(trial.model_copy(update={"order": place}) for place, trial in enumerate(trials))
    arms = dict.fromkeys((t.arm, t.strategy, t.upstream, t.route, t.workload, t.link) for t in trials)
    settings = {
        "name": "run",
        "question": "Which is fastest?",
        "rounds": max((trial.round for trial in trials), default=1),
        "seed": 1,
        "arms": [Arm(name=a, strategy=s, upstream=u, route=r, workload=w, link=k) for a, s, u, r, w, k in arms],
        "workloads": {trial.workload: Workload(requests=1000) for trial in trials} or {"workload": Workload()},
        "command": "clientlab run",
    }
    lists: dict[str, list[Trial]] = {"trials": []}
    for trial in trials:
        lists.setdefault(list_of(trial), []).append(trial)
    return Run(
        run=name, clientlab="0.1.0", created="2024-05-06T07:08:09+00:00", status="done",
        experiment=Plan(**(settings | changes)), target=Target(testbed="local"), surroundings=SURROUNDINGS, **lists,
    )  # fmt: skip


def a_searched_trial(
    strategy: str, number: int, rate: float, *, served: float = 1e9, **changes
) -> Trial:  # fmt: skip
    """A trial of 5 s at that rate, of a search for the highest rate. `served`: the most requests a second."""
    ends = [5 * (part + 1) / 60 for part in range(60)]
    planned = [round(rate * end) for end in ends]
    ended = [round(min(served, rate) * end) for end in ends[:-1]] + planned[-1:]
    load = [
        LoadSlice(at=end - 5 / 60, planned=count, sent=count, dropped=0, backlog=0)
        for end, count in zip(ends, _grown(planned), strict=True)
    ]
    slices = [Slice(at=end - 5 / 60, requests=count, errors=0) for end, count in zip(ends, _grown(ended), strict=True)]
    shown = {"planned_per_second": rate, "achieved_per_second": rate, "load_over_time": load, "over_time": slices}
    shown |= {"search_rate": rate, "requests": planned[-1]}
    return an_open_trial(strategy, number, **(shown | changes))


def _grown(counts: list[int]) -> list[int]:
    """The growth of a counter."""
    return [after - before for before, after in zip([0, *counts], counts, strict=False)]
