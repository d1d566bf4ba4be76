"""Two runs, closed loads and a search for capacities, that between them have a value in every field of a run document.

`test_any_document` changes each of these values.
"""

from __future__ import annotations

from pathlib import Path

from clientlab.results.bottleneck import InFlight
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import Caution, Ceiling, Environment, Placement, Resumption, Run, SystemLimits
from clientlab.results.plan import Arm, Claim, EnvironmentSpec
from clientlab.results.target import Target
from clientlab.results.trial import ClockOffset, LoadSlice, Noise, OfSearch, OpenLoad, ServerUse, Shard, Slice, Trial
from clientlab.workload.arrivals import Stages
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, an_open_trial, quantiles
from clients.report_runs import PLACES, a_measured_trial, sweep_arms, with_claims

_USE = ServerUse(
    cpu_seconds=0.5, requests=400, connections=3, held_seconds=1.0, processes=2, slots=8, cores=2.0,
    worker_cpu_seconds=[0.2, 0.3], worker_held_seconds=[0.5, 0.5], up_bytes=5120, down_bytes=10_240,
    up_byte_seconds=0.5, down_byte_seconds=1.5, up_dropped=1, down_dropped=2,
)  # fmt: skip
_NOISE = Noise(
    seconds=1.0, others_cpu_seconds=0.1, steal_seconds=0.0, cpu_pressure_seconds=0.1, group_pressure_seconds=0.1,
    run_delay_seconds=0.2, involuntary_switches=7, frequency_before_hz=2e9, frequency_after_hz=2.1e9,
)  # fmt: skip
_SPECS = {"base": EnvironmentSpec(python="3.12", requirements=["httpx"]), "mine": EnvironmentSpec(folder="/venv")}
_CLOCK = ClockOffset(seconds=0.01, error_seconds=1e-3)
_SHARDS = [
    Shard(
        host=f"node-{place}", clock=_CLOCK, began_seconds=0.01 * place, wall_seconds=1.0, concurrency=2, requests=200,
        errors={"reset": 1}, requests_per_second=199.0, latency_seconds=quantiles(at_least=["max"]),
        connections_opened=1, cpu_seconds=0.2, peak_pss_bytes=1 << 24,
    )
    for place in (0, 1)
]  # fmt: skip
_MORE = {
    "upstream_use": _USE, "proxy_use": _USE, "link_use": _USE, "noise": _NOISE, "clock": _CLOCK, "concurrency": 4,
    "busy": {"client": 0.9, "upstream": 0.3}, "in_flight": InFlight(client=3.0, proxy=2.0, upstream=1.0, link=0.1),
    "idle_rss_bytes": 20 << 20, "idle_pss_bytes": 15 << 20, "kept_alive": 390, "driver": "ab", "gil": True,
    "elapsed_seconds_sum": 1.5, "waits_for_connection": True, "duration_extended": False, "deadline_seconds": 60.0,
    "tail_seconds": 0.05, "connections_reopened": 2, "slices": 4,
}  # fmt: skip


def whole_run() -> Run:
    """A run with claims of each kind, a sweep, an open load, a link, an environment, shards, errors and failures."""
    trials = [
        a_measured_trial(name, number, wall + number / 10, route=route, arm=f"{name} ({route})", **_MORE)
        for name, wall in (("urllib3", 1.0), ("pycurl", 2.0))
        for number in (1, 2, 3)
        for route in ("direct", "proxy")
    ]
    trials[0] = trials[0].model_copy(update={"by_shard": _SHARDS})
    broken = {"errors": {"reset": 3}, "error_examples": {"reset": "by peer"}, "failed_histogram": trials[0].histogram}
    trials[-1] = trials[-1].model_copy(update=broken)
    partial = a_measured_trial("requests", status="failed", partial=True, reason="stopped", arm="requests")
    run = _planned([*map(_shorter, [*trials, *_swept(), partial]), a_failed_trial("httpx", "it broke")])
    return run.model_copy(update={"target": Target.external("https://127.0.0.1/?page=2", Path("ca.pem"))})


def searched_run() -> Run:
    """A search for capacities: probes, a comparison and an overload of two arms."""
    search = CapacitySearch(conditions="p99<250ms,errors<0.1%", start=50.0, overload=(1.5,))
    lists = [
        _of_search(name, phase, rate, order)
        for order, (name, phase, rate) in enumerate(
            (name, phase, rate)
            for name in ("urllib3", "pycurl")
            for phase, rate in (("probe", 100.0), ("probe", 200.0), ("comparison", 50.0), ("overload", 150.0))
        )
    ]
    workload = Workload(rate=50.0, duration=5.0, connections="cold")
    return a_run(
        *lists,
        name="20240506-070809-search-abcd",
        workloads={"workload": workload},
        find_max=search,
        slices=4,
        budget=60.0,
    )


def _of_search(strategy: str, phase: str, rate: float, order: int) -> Trial:
    place = OfSearch(rate=rate, phase=phase, capacity_per_second=None if phase == "probe" else 100.0)
    slices = [LoadSlice(at=at, planned=100, sent=99, dropped=1, backlog=2, delayed=1) for at in (0.0, 2.5)]
    return an_open_trial(strategy, order=order, search=place, load_over_time=slices, requests=int(rate * 5))


def _opened() -> list[Trial]:
    """An open load behind a link, in an environment."""
    slices = [LoadSlice(at=at, planned=500, sent=500, dropped=0, backlog=1, delayed=1) for at in (0.0, 2.5)]
    more = {"load_over_time": slices, "workload": "open", "environment": "base", "link": Link(0.035, 2e7, 64_000)}
    trials = [an_open_trial("aiohttp", number, arm="open", order=900 + number, **more) for number in (1, 2, 3)]
    return [one.model_copy(update={"open_load": _counted(one.open_load)}) for one in trials]


def _counted(load: OpenLoad) -> OpenLoad:
    return load.model_copy(update={"in_flight_at_end": 1})


def _swept() -> list[Trial]:
    return [
        a_measured_trial("aiohttp@semaphore", number, 8 / place + place / 8, workload=f"w{place}", arm=f"sem{place}")
        for place in PLACES[:3]
        for number in (1, 2)
    ]


def _shorter(trial: Trial) -> Trial:
    """The trial with two slices of its course: sixty in each trial would be nine tenths of the document."""
    return trial.model_copy(update={"over_time": [Slice(**dict(one)) for one in trial.over_time[:2]]})


def _planned(trials: list[Trial]) -> Run:
    """The run of these trials, with a plan and surroundings in which every field has a value."""
    run = a_run(*(trial.model_copy(update={"order": place}) for place, trial in enumerate(trials)))
    sweep = {arm.name: arm for arm in sweep_arms()[:3]}
    arms = [sweep.get(arm.name, arm) for arm in run.experiment.arms]
    opened = Arm(
        name="open", label="aiohttp in base", strategy="aiohttp", upstream="aiohttp", route="direct", workload="open",
        group="open", environment="base", link=Link(0.035, 2e7, 64_000), sweep="open", axes={"rate": 50.0, "x": "y"},
    )  # fmt: skip
    plan = run.experiment.model_copy(
        update={
            "arms": [*arms, opened], "claims": _claims(list(sweep)), "baseline": "urllib3 (direct)", "precision": 0.03,
            "time_budget": 600.0, "environments": _SPECS,
            "uncontrolled": ["pools"], "workers": {"flask": 4}, "shortened": ["requests: 9 → 4"], "ceilings": True,
            "changed": ["seed"], "replaced": {"httpx2": "httpx"}, "left_out": {"ab": "no ab"},
            "workloads": run.experiment.workloads | _workloads(),
        }
    )  # fmt: skip
    whole = run.model_copy(update={"experiment": plan, "trials": [*run.trials, *_opened()], **_around(run)})
    first, *others = with_claims(whole).claims
    knee = {"band": (0.8, 1.25), "best": 2, "knee": 1, "knee_between": (1, 2), "cautions": ["few-rounds"]}
    doubt = Caution(kind="busy", text="others ran", advice="end them", arms=["open"], figures=["wall"])
    return with_claims(whole).model_copy(
        update={"claims": [first.model_copy(update=knee), *others], "cautions": [doubt]}
    )


def _workloads() -> dict[str, Workload]:
    closed = Workload(
        path="/a/{k}", method="POST", headers={"X-A": "b"}, payload_size=100, encode="each",
        delay=Delay.parse("normal:5ms,1ms"), requests=400, concurrency=4, timeout=30.0, deadline=90.0,
        request_limit=60.0, memory_limit=1 << 30, replay_sha256="0" * 64, replay="requests.har",
    )  # fmt: skip
    staged = Workload(
        stages=Stages.parse("0s:100/s,3s:200/s"), duration=5.0, arrivals="poisson", max_late=1.0, seed=7, body="{}"
    )
    swept = {f"w{place}": Workload(requests=400, concurrency=place, upload_size=9) for place in PLACES[:3]}
    opened = Workload(rate=200.0, requests=1000, arrivals="poisson", upload_size=10, upload="stream")
    return {"workload": closed, "staged": staged, "open": opened, **swept}


def _claims(sweep: list[str]) -> list[Claim]:
    two = {"a": "urllib3 (direct)", "b": "pycurl (direct)"}
    return [
        Claim(name="one", text="urllib3 is faster", kind="less", **two),
        Claim(name="two", text="requests is faster", kind="ratio", band=(0.8, 1.25), published="2 s", **two),
        Claim(name="three", text="steady", kind="spread", control=True, **two),
        Claim(name="four", text="narrower", kind="narrower", c="pycurl (proxy)", d="urllib3 (proxy)", **two),
        Claim(name="five", text="optimum", kind="optimum", arms=sweep),
    ]


def _around(run: Run) -> dict[str, object]:
    """Surroundings, ceilings and a resumption with a value in each field."""
    of = Environment(
        folder="/venv", python="3.12.1", python_build="GIL", openssl="3", packages={"httpx": "1"}, compiled={"x": "1"}
    )
    surroundings = run.surroundings.model_copy(
        update={
            "memory_limit_bytes": 1 << 29, "libraries": {"httpx": "1"}, "programs": {"caddy": "2"}, "openssl": "3",
            "dependencies": {"h11": "1"}, "compiled": {"libcurl": "8"}, "python_build": "GIL", "smt": True,
            "cpu_governor": "performance", "virtualization": "kvm", "lab_commit": "abc",
            "lab_tree": "def", "environments": {"base": of},
            "placement": Placement(client=[1], upstream=[0], proxy=[0]),
            "limits": SystemLimits(
                open_files=1024, ephemeral_ports=28_000, time_wait_reuse=2, listen_backlog=128,
                free_memory_bytes=1 << 30,
            ),
        }
    )  # fmt: skip
    ceiling = Ceiling(
        upstream="aiohttp", route="direct", arms=["urllib3 (direct)"], http="1.1", generator="wrk", version="4",
        connections=8, without_delay=True, seconds=2.0, requests=9000, failed=1, requests_per_second=4500.0,
        generator_cpu_seconds=0.5, upstream_use=_USE, proxy_use=_USE, verdict="client-bound", reason="none",
    )  # fmt: skip
    resumed = Resumption(at="2024-05-06T08:08:09+00:00", trials=3, differences=["load"])
    return {"surroundings": surroundings, "ceilings": [ceiling], "resumed": [resumed], "rounds_ended": "precision"}
