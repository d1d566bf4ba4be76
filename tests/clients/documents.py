"""Canned run documents for all tests: valid trials and runs, from a single trial to a
run with everything in it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from clientlab.analysis.bottleneck import judge_schedule
from clientlab.analysis.request_figures import compute_quantiles
from clientlab.experiments.file import bundled, read_plan
from clientlab.judging.judgement import with_judgement
from clientlab.results.document import Caution, ClaimResult, Run, Surroundings
from clientlab.results.plan import Arm, EnvironmentSpec, Plan, Source, Target
from clientlab.results.trial import (
    Histogram,
    InFlight,
    LoadSlice,
    OpenLoad,
    Outcome,
    PlannedTrial,
    Quantiles,
    RequestFigures,
    Shares,
    Slice,
    Trial,
    Verdict,
)
from clientlab.statistics.histogram import make_histogram
from clientlab.workload.values import Delay
from clientlab.workload.workload import make_workload

PLACES = (1, 2, 4, 8, 16)
"""Concurrencies of the sweep in `a_whole_run`."""

SURROUNDINGS = Surroundings(
    host="here",
    system="Linux",
    kernel="6",
    architecture="x86_64",
    cpu_model="A CPU",
    cpu_count=4,
    cpu_usable=4.0,
    memory_bytes=1 << 30,
    memory_limit_bytes=None,
    open_files_limit=1024,
    load_average=0.1,
    python="CPython 3.11.7",
    libraries={},
    dependencies={},
    compiled={},
    programs={},
    clock="monotonic, 1e-09 s",
)


RESET = {
    "errors": {"reset": 3},
    "error_examples": {"reset": "Connection reset by peer"},
}


def quantiles(
    p50: float = 0.002, p99: float = 0.009, at_least: Sequence[str] = ()
) -> Quantiles:
    """Quantiles of which a test cares for two at most.

    `at_least`: those that are lower bounds.
    """
    return Quantiles(
        mean=p50,
        p50=p50,
        p90=p50,
        p95=p99,
        p99=p99,
        p999=p99,
        max=p99,
        at_least=list(at_least),
    )


def a_planned_trial(
    strategy: str = "urllib3", number: int = 1, order: int = 0
) -> PlannedTrial:
    """A trial that nobody has measured."""
    return PlannedTrial(
        arm=strategy,
        strategy=strategy,
        upstream="aiohttp",
        route="direct",
        workload="workload",
        round=number,
        order=order,
        concurrency=1,
    )


_PART_OF = dict.fromkeys(Outcome.model_fields, "measured")
_PART_OF |= dict.fromkeys(PlannedTrial.model_fields, "planned")
_PART_OF |= dict.fromkeys(RequestFigures.model_fields, "figures")
"""Of each field of a part: the part."""


def with_changes(trial: Trial, **changes) -> Trial:
    """The trial with other values of its fields, or of fields of its parts and its
    verdict.
    """
    own = {}
    of_parts: dict[str, dict[str, object]] = {}
    if changes.keys() & {"bound", "busy", "in_flight"}:
        own["verdict"] = _verdict(trial.verdict, changes)
    for name, value in changes.items():
        if name in _PART_OF:
            of_parts.setdefault(_PART_OF[name], {})[name] = value
        else:
            assert name in Trial.model_fields
            own[name] = value
    for part, of_part in of_parts.items():
        own[part] = getattr(trial, part).updated(**of_part)
    return trial.updated(**own)


def _verdict(verdict: Verdict | None, changes: dict[str, object]) -> Verdict | None:
    """Return the verdict with these changes, which it removes. No bound: None."""
    if verdict is None:
        shares = Shares(client=0.5)
        in_flight = InFlight(client=1.0)
        verdict = Verdict(bound="mixed", shares=shares, in_flight=in_flight)
    if "in_flight" in changes:
        verdict = verdict.updated(in_flight=changes.pop("in_flight"))
    busy = changes.pop("busy", None)
    if busy is not None:
        verdict = verdict.updated(shares=Shares(**{"client": 0.0} | busy))
    bound = changes.pop("bound", verdict.bound)
    return None if bound is None else verdict.updated(bound=bound)


def a_trial(
    strategy: str = "urllib3", number: int = 1, wall: float = 1.0, **changes
) -> Trial:
    """A trial of 1,000 requests that all succeeded."""
    trial = Trial(
        planned=a_planned_trial(strategy, number),
        status="done",
        started="2024-05-06T07:08:09+00:00",
        figures=RequestFigures(
            requests=1000,
            requests_per_second=1000 / wall,
            latency_seconds=quantiles(),
            bytes_received=21 * changes.get("requests", 1000),
        ),
        measured=Outcome(
            began=0.0,
            wall_seconds=wall,
            cpu_seconds=0.5,
            peak_rss_bytes=40 << 20,
            peak_pss_bytes=32 << 20,
            connections_begun=1,
            connections_opened=1,
            connections_in_all=1,
            processes=1,
        ),
        verdict=Verdict(
            bound="client-bound",
            shares=Shares(client=0.9),
            in_flight=InFlight(client=1.0),
        ),
    )
    return with_changes(trial, **changes)


def rounds(strategy: str = "urllib3", *walls: float, **changes) -> list[Trial]:
    """The trials of an arm: a round for each wall time, or three of 1 s."""
    return [
        a_trial(strategy, number, wall, **changes)
        for number, wall in enumerate(walls or (1.0, 1.0, 1.0), start=1)
    ]


def an_open_trial(
    strategy: str = "urllib3",
    number: int = 1,
    p99: float = 0.009,
    sent: float = 0.004,
    **changes,
) -> Trial:
    """A trial of 1,000 requests at a steady 200/s.

    `changes`: of the trial, or of its open load.
    """
    load_slices, slices = slices_of([1000 * part // 60 for part in range(1, 61)], 5.0)
    of_load = {
        "planned_per_second": 200.0,
        "achieved_per_second": 200.0,
        "dropped": 0,
        "most_backlog": 3,
        "most_in_flight": 1,
    }
    for name in of_load.keys() & changes.keys():
        of_load[name] = changes.pop(name)
    load = OpenLoad(
        lateness_seconds=quantiles(1e-4, 2e-4),
        sent_seconds=quantiles(0.002, sent),
        over_time=changes.pop("load_over_time", load_slices),
        **of_load,
    )
    usual = {
        "wall": 5.0,
        "latency_seconds": quantiles(0.002, p99, changes.pop("at_least", ())),
        "open_load": load,
        "over_time": slices,
    }
    trial = a_trial(strategy, number, **usual | changes)
    bound = changes.get("bound", judge_schedule(trial.figures, trial.wall_seconds, 1))
    return with_changes(trial, bound=bound)


def slices_of(
    planned: list[int], seconds: float, ended: list[int] | None = None
) -> tuple[list[LoadSlice], list[Slice]]:
    """The slices of an open load, from the requests that were planned and had ended by
    the end of each.
    """
    load = []
    slices = []
    sent = np.diff(planned, prepend=0).tolist()
    requests = np.diff(ended or planned, prepend=0).tolist()
    for part in range(len(planned)):
        at = seconds * part / len(planned)
        load.append(LoadSlice(at=at, planned=sent[part]))
        slices.append(Slice(at=at, requests=requests[part], errors=0))
    return load, slices


def a_failed_trial(
    strategy: str, reason: str = "it broke", number: int = 1, **changes
) -> Trial:
    """A trial in which no request finished."""
    trial = a_trial(strategy, number).updated(
        status="failed",
        reason=reason,
        figures=RequestFigures(),
        measured=None,
        verdict=None,
    )
    return with_changes(trial, **changes)


def an_arm(strategy: str = "urllib3", **changes) -> Arm:
    """The arm of `a_trial`. In an environment, its name and label tell which."""
    usual = {
        "name": strategy,
        "upstream": "aiohttp",
        "route": "direct",
        "workload": "workload",
    }
    if environment := changes.get("environment"):
        usual["name"] = usual["label"] = f"{strategy} in {environment}"
    return Arm(strategy=strategy, **usual | changes)


def environments(*names: str) -> dict[str, EnvironmentSpec]:
    """Environments in folders of these names."""
    return {name: EnvironmentSpec(folder=f"/{name}") for name in names}


def a_run(*trials: Trial, name: str = "20240506-070809-run-abcd", **changes) -> Run:
    """A finished run of these trials; `changes` are of its experiment's settings."""
    if len({trial.planned.order for trial in trials}) < len(trials):
        # No test cares about their places.
        trials = tuple(
            with_changes(trial, order=place) for place, trial in enumerate(trials)
        )
    planned = [trial.planned for trial in trials]
    arms = {
        trial.arm: an_arm(
            trial.strategy,
            name=trial.arm,
            upstream=trial.upstream,
            route=trial.route,
            workload=trial.workload,
            link=trial.link,
            environment=trial.environment,
        )
        for trial in planned
    }
    workloads = {trial.workload: make_workload(requests=1000) for trial in planned}
    used = {trial.environment for trial in planned} - {None}
    settings = {
        "name": "run",
        "question": "Which is fastest?",
        "seed": 1,
        "command": "clientlab run",
        "rounds": max((trial.round for trial in planned), default=1),
        "arms": list(arms.values()),
        "workloads": workloads or {"workload": make_workload()},
        "environments": environments(*used),
    }
    return Run(
        run=name,
        clientlab="0.1.0",
        created="2024-05-06T07:08:09+00:00",
        status="done",
        experiment=Plan(**settings | changes),
        target=Target(testbed="local"),
        surroundings=SURROUNDINGS,
        trials=[trial for trial in trials if trial.planned.search_rate is None],
        probes=[trial for trial in trials if trial.planned.search_rate is not None],
    )


def a_searched_trial(
    strategy: str, number: int, rate: float, *, served: float = 1e9, **changes
) -> Trial:
    """A trial of 5 s at that rate, of a search for the highest rate.

    `served`: the most requests a second.
    """
    ends = [5 * (part + 1) / 60 for part in range(60)]
    planned = [round(rate * end) for end in ends]
    ended = [round(min(served, rate) * end) for end in ends]
    ended[-1] = planned[-1]
    load, slices = slices_of(planned, 5.0, ended)
    usual = {
        "planned_per_second": rate,
        "achieved_per_second": rate,
        "load_over_time": load,
        "over_time": slices,
        "search_rate": rate,
        "requests": planned[-1],
    }
    return an_open_trial(strategy, number, **usual | changes)


def a_measured_trial(
    strategy: str = "urllib3",
    number: int = 1,
    wall: float = 1.0,
    requests: int = 400,
    **changes,
):
    """A trial with histogram, overhead and course, of latencies around 5 ms."""
    figures = _figures(number, wall, requests)
    return a_trial(strategy, number, wall, **figures | changes)


@functools.cache
def _figures(number: int, wall: float, requests: int) -> dict[str, object]:
    seconds = np.random.default_rng(number).lognormal(-5.3 + wall / 10, 0.4, requests)
    histogram = make_histogram(seconds)
    slices = []
    for place, part in enumerate(np.array_split(seconds, 60)):
        at = place * wall / 60
        slowest = float(max(part))
        slices.append(Slice(at=at, requests=len(part), errors=0, p99=slowest))
    return {
        "requests": requests,
        "requests_per_second": requests / wall,
        "over_time": slices,
        "histogram": Histogram(encoded=histogram.encode().decode()),
        "latency_seconds": compute_quantiles(seconds),
        "overhead_seconds": compute_quantiles(seconds / 10),
    }


@functools.cache
def a_whole_run() -> Run:
    """Three strategies in three rounds on two routes, errors, a failed trial, a sweep,
    claims, cautions.
    """
    trials = []
    for name, wall in (("urllib3", 1.0), ("pycurl", 2.0), ("requests", 4.0)):
        for number, route in itertools.product((1, 2, 3), ("direct", "proxy")):
            seconds = wall + number / 10
            trials.append(a_measured_trial(name, number, seconds, route=route))
    trials[-1] = with_changes(trials[-1], **RESET)
    plain_arms = a_run(*trials).experiment.arms
    arms = []
    workloads = {
        "workload": make_workload(
            requests=400, delay=Delay.parse("5ms"), headers={"X-A": "b"}
        )
    }
    for place in PLACES:
        name = f"sem{place}"
        workload = f"w{place}"
        workloads[workload] = make_workload(requests=400, concurrency=place)
        arms.append(
            an_arm(
                "aiohttp@semaphore",
                name=name,
                workload=workload,
                axes={"concurrency": place},
            )
        )
        wall = 8 / place + place / 8
        trials += [
            a_measured_trial(
                "aiohttp@semaphore", number, wall, workload=workload, arm=name
            )
            for number in (1, 2, 3)
        ]
    run = a_run(*trials, a_failed_trial("httpx", "it could not be started"))
    claim = ClaimResult(
        name="one",
        text="urllib3 is faster",
        source="An article",
        kind="less",
        figure="wall_seconds",
        rounds=3,
        control=False,
        published="2 s against 4 s",
        verdict="supported",
        ratio=2.0,
        interval=(1.8, 2.2),
        measured="1.2 s against 2.2 s",
    )
    claims = [
        claim,
        claim.updated(
            name="two",
            text="requests is faster",
            published=None,
            verdict="contradicted",
            ratio=0.5,
            interval=(0.4, 0.6),
            measured="4.2 s against 2.2 s",
        ),
        claim.updated(
            name="three",
            text="they are alike",
            control=True,
            published=None,
            verdict="inconclusive",
            ratio=None,
            interval=None,
            measured="nothing yet",
            settles="12 rounds",
        ),
    ]
    settings = {
        "arms": plain_arms + arms,
        "workloads": workloads,
        "shortened": ["requests: 4,000 became 400"],
        "uncontrolled": ["connections of each process"],
        "source": Source(
            title="Fast requests",
            authors="A. Uthor",
            date="2021",
            url="https://example.org/fast",
        ),
    }
    cautions = [
        Caution(kind="busy", text="something else was running", advice="end it")
    ]
    return _copy(run, settings, claims=claims, cautions=cautions)


def _copy(whole: Run, settings: dict[str, object], **changes) -> Run:
    """A copy of the run with other settings of its experiment, and other fields."""
    experiment = whole.experiment.updated(**settings)
    return whole.updated(experiment=experiment, **changes)


def a_hostile_run(words: str) -> Run:
    """A run with these words wherever a user, a server or a library can put some."""
    run = a_whole_run()
    trial = a_measured_trial(
        words,
        workload=words,
        upstream=words,
        errors={words: 1},
        error_examples={words: words},
    )
    plain = an_arm(words, upstream=words, workload=words)
    arms = []
    swept = []
    for place in PLACES:
        name = f"{words}{place}"
        arms.append(plain.updated(name=name, axes={words: place, "n": words}))
        swept.append(a_measured_trial(words, workload=words, upstream=words, arm=name))
    arms.append(plain)
    settings = {
        **dict.fromkeys(("question", "command", "name"), words),
        "arms": arms,
        "workloads": {
            words: make_workload(path=words, headers={words: words}, body=words),
            **run.experiment.workloads,
        },
        "shortened": [words],
        "uncontrolled": [words],
        "source": Source(title=words, authors=words, date=words, url=words),
    }
    on_machine = {
        "host": words,
        "cpu_model": words,
        "libraries": {words: words},
        "programs": {words: words},
    }
    of_claims = dict.fromkeys(
        ("name", "text", "source", "published", "measured", "settles"), words
    )
    return _copy(
        run,
        settings,
        run=words,
        trials=[trial, a_failed_trial("b", words), *swept],
        surroundings=run.surroundings.updated(**on_machine),
        claims=[claim.updated(**of_claims) for claim in run.claims],
        cautions=[Caution(kind=words, text=words, advice=words)],
    )


@functools.cache
def a_bundled_run(name: str, rounds: int = 1) -> Run:
    """A judged run of a bundled experiment.

    An arm has a trial in each round; every seventh one has failed requests.

    The last arm has a second trial in its last round, which was killed.
    """
    plan = read_plan(bundled()[name]).updated(rounds=rounds)
    trials = []
    for number in range(1, rounds + 1):
        trials += [_a_trial_of(plan, place, number) for place in range(len(plan.arms))]
    killed = trials[-1].updated(
        status="failed",
        reason="its process was ended by SIGKILL",
        partial=True,
        verdict=None,
    )
    ordered = [
        with_changes(trial, order=order)
        for order, trial in enumerate((*trials, killed))
    ]
    return with_judgement(a_run().updated(experiment=plan, trials=ordered))


def _a_trial_of(plan: Plan, place: int, number: int) -> Trial:
    arm = plan.arms[place]
    known = {
        "arm": arm.name,
        "upstream": arm.upstream,
        "route": arm.route,
        "workload": arm.workload,
        "link": arm.link,
        "environment": arm.environment,
        "concurrency": 1 + place % 8,
        "busy": {"client": 0.9, "upstream": 0.2},
        "kept_alive": 400 if "aiohttp" in arm.upstream else 0,
    }
    if place % 7 == 6:
        known |= RESET
    return a_measured_trial(arm.strategy, number, 1.0 + place / 10, **known)
