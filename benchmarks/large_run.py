"""A large run file: drawn samples, and from them every figure by the lab's own code, as a run would have written it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.measuring.outcome import Measurement, Outcome
from clientlab.results.document import Run
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.surroundings import surroundings
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.due import schedule
from clientlab.running.execute import new_run
from clientlab.running.trial_result import Begun, finished_trial
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload

STRATEGIES = ("requests", "requests-session", "httpx-client", "urllib3", "aiohttp")
ROUNDS = 10
TRIALS, REQUESTS = 200, 5_000
DELAY = 0.005
STARTED = "2024-05-06T07:08:09+00:00"


def large_run(name: str, seed: int) -> Run:
    """200 trials of 5,000 requests: five strategies, two upstreams, two routes, ten rounds."""
    workload = Workload(requests=REQUESTS, delay=Delay.parse("5ms"))
    experiment = Experiment(
        name="large", question="Which is fastest?", strategies=list(STRATEGIES), upstreams=["flask", "aiohttp"],
        routes=["direct", "proxy"], rounds=ROUNDS, workloads={"workload": WorkloadTable(first=workload)},
    )  # fmt: skip
    run = new_run(name, make_plan(experiment), Target(testbed="local"), surroundings([], {}))
    draw = np.random.default_rng(seed)
    arms = {arm.name: arm for arm in run.experiment.arms}
    order = schedule(list(arms), ROUNDS, seed)
    planned = [
        PlannedTrial(
            arm=arm.name, strategy=arm.strategy, upstream=arm.upstream, route=arm.route, workload=arm.workload,
            round=number, order=index, concurrency=1,
        )
        for index, (number, name) in enumerate(order) for arm in (arms[name],)
    ]  # fmt: skip
    return run.model_copy(update={"trials": [_trial(draw, workload, one) for one in planned], "status": "done"})


def _trial(draw: np.random.Generator, workload: Workload, planned: PlannedTrial) -> Trial:
    """A trial's figures from drawn samples: 5 ms of delay and a lognormal overhead, one request after the other."""
    pace = 0.001 * (1 + STRATEGIES.index(planned.strategy)) * draw.lognormal(0, 0.03)
    records = np.zeros(REQUESTS, RECORD)
    records["seconds"] = DELAY + draw.lognormal(np.log(pace), 0.5, REQUESTS)
    records["start"] = np.concatenate(([0.0], np.cumsum(records["seconds"])[:-1]))
    records["bytes"], records["status"], records["done"] = 150, 200, 1
    wall = float(records["seconds"].sum())
    servers = ServerUse(cpu_seconds=0.1 * wall, requests=REQUESTS, connections=1, processes=2)
    spent = ServerCounters(upstream=servers, proxy=servers if planned.route == "proxy" else None)
    samples = Samples(records, np.arange(REQUESTS), {}, {}, {})
    marks: dict[str, Any] = {"began": 0.0, "wall_seconds": wall, "cpu_seconds": 0.3 * wall, "peak_rss_bytes": 30 << 20}
    marks |= {"peak_pss_bytes": 30 << 20, "disturbance": None, "extended": None}
    nothing: dict[str, Any] = dict.fromkeys((field.name for field in fields(Outcome)), 1)
    return finished_trial(Begun(planned, workload, STARTED), Measurement(Outcome(**nothing | marks), samples), spent)
