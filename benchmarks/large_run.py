"""A large run file: drawn samples, and from them every figure by the lab's own code, as a run would have written it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from clientlab.analysis.samples import RECORD, Samples
from clientlab.measuring.trial import Outcome
from clientlab.runs.document import Run, ServerUse, Trial
from clientlab.runs.experiment import Experiment, new_run
from clientlab.runs.figures import Spent, with_figures
from clientlab.runs.schedule import schedule
from clientlab.runs.surroundings import surroundings
from clientlab.workload import Workload

STRATEGIES = ("requests", "requests-session", "httpx-client", "urllib3", "aiohttp")
ROUNDS = 10
TRIALS, REQUESTS = 200, 5_000
DELAY = 0.005


def large_run(name: str, seed: int) -> Run:
    """200 trials of 5,000 requests: five strategies, two upstreams, two routes, ten rounds."""
    workload = Workload(requests=REQUESTS, delay="5ms")
    experiment = Experiment(
        name="large", question="Which is fastest?", strategies=list(STRATEGIES), upstreams=["flask", "aiohttp"],
        routes=["direct", "proxy"], rounds=ROUNDS, workloads={"workload": workload},
    )  # fmt: skip
    run = new_run(name, experiment, surroundings([], {}), "clientlab run large")
    draw = np.random.default_rng(seed)
    order = schedule(run.experiment.arms, ROUNDS, seed)
    trials = [
        _trial(
            draw,
            workload,
            Trial(
                arm=arm.name, strategy=arm.strategy, upstream=arm.upstream, route=arm.route, workload=arm.workload,
                round=number, order=index, status="failed", started=run.created, concurrency=1,
            ),
        )
        for index, (number, arm) in enumerate(order)
    ]  # fmt: skip
    return run.model_copy(update={"trials": trials, "status": "done"})


def _trial(draw: np.random.Generator, workload: Workload, planned: Trial) -> Trial:
    """A trial's figures from drawn samples: 5 ms of delay and a lognormal overhead, one request after the other."""
    pace = 0.001 * (1 + STRATEGIES.index(planned.strategy)) * draw.lognormal(0, 0.03)
    records = np.zeros(REQUESTS, RECORD)
    records["seconds"] = DELAY + draw.lognormal(np.log(pace), 0.5, REQUESTS)
    records["start"] = np.concatenate(([0.0], np.cumsum(records["seconds"])[:-1]))
    records["bytes"], records["status"], records["done"] = 150, 200, 1
    wall = float(records["seconds"].sum())
    servers = ServerUse(cpu_seconds=0.1 * wall, requests=REQUESTS, connections=1)
    spent = Spent(servers, servers if planned.route == "proxy" else None, 2)
    samples = Samples(records, np.arange(REQUESTS), {}, {}, {})
    marks = {"began": 0.0, "wall_seconds": wall, "cpu_seconds": 0.3 * wall, "peak_rss_bytes": 30 << 20}
    nothing: dict[str, Any] = dict.fromkeys((field.name for field in fields(Outcome)), 1)
    return with_figures(planned, workload, Outcome(**nothing | marks), samples, spent)
