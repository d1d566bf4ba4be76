"""Two runs, closed loads and a search for capacities, that between them have a value in every field of a run document.

`test_any_document` changes each of these values.
"""

from __future__ import annotations

from pathlib import Path

from clientlab.results.bottleneck import InFlight
from clientlab.results.cancel_counts import Cancelled, Probe
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import Caution, Ceiling, Environment, Placement, Resumption, Run, SystemLimits
from clientlab.results.fault_counts import FaultCounts, MetFault
from clientlab.results.phases import ArmPhases, PhaseTimes
from clientlab.results.plan import Arm, Claim, EnvironmentSpec
from clientlab.results.profile import Allocated, AllocatingFunction, FlameNode, Memory, Profile, ProfiledFunction
from clientlab.results.soak import Growth, Reading, Soak
from clientlab.results.streams import Streams
from clientlab.results.target import Target
from clientlab.results.trial import ClockOffset, LoadSlice, Noise, OfSearch, OpenLoad, ServerUse, Shard, Slice, Trial
from clientlab.workload.arrivals import Stages
from clientlab.workload.cancels import Cancels
from clientlab.workload.delays import Delay
from clientlab.workload.faults import Faults
from clientlab.workload.link import Link
from clientlab.workload.streams import StreamLimits
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, an_open_trial, quantiles
from clients.report_runs import PLACES, a_measured_trial, sweep_arms, with_claims

_USE = ServerUse(
    cpu_seconds=0.5, requests=400, connections=3, held_seconds=1.0, processes=2, slots=8, cores=2.0,
    machine="m", worker_cpu_seconds=[0.2, 0.3], worker_held_seconds=[0.5, 0.5], up_bytes=5120, down_bytes=10_240,
    up_byte_seconds=0.5, down_byte_seconds=1.5, up_dropped=1, down_dropped=2, faults={"reset": 4},
    in_flight=1,
    repeats=5, duplicates=2, limited=1,
)  # fmt: skip
_NOISE = Noise(
    seconds=1.0, others_cpu_seconds=0.1, steal_seconds=0.0, cpu_pressure_seconds=0.1, group_pressure_seconds=0.1,
    run_delay_seconds=0.2, involuntary_switches=7, frequency_before_hz=2e9, frequency_after_hz=2.1e9,
)  # fmt: skip
_SPECS = {"base": EnvironmentSpec(python="3.12", requirements=["httpx"]), "mine": EnvironmentSpec(folder="/venv")}
_LINK = Link(0.035, 2e7, 64_000, Faults.parse("refuse:1%"))
_CLOCK = ClockOffset(seconds=0.01, error_seconds=1e-3)
_SHARDS = [
    Shard(
        host=f"node-{place}", clock=_CLOCK, began_seconds=0.01 * place, wall_seconds=1.0, concurrency=2, requests=200,
        errors={"reset": 1}, requests_per_second=199.0, latency_seconds=quantiles(at_least=["max"]),
        connections_opened=1, cpu_seconds=0.2, peak_pss_bytes=1 << 24,
    )
    for place in (0, 1)
]  # fmt: skip
_STREAMS = Streams(
    ranked_by="cpu", events=40_000, head_seconds=quantiles(0.01), first_seconds=quantiles(0.05), kept=390, most_open=4,
    gap_seconds=quantiles(0.005), lag_seconds=quantiles(2e-4), late_seconds=quantiles(1e-4), together=0.1,
)  # fmt: skip
_GROWTH = Growth(per_hour=4e6, low=3e6, high=5e6, level=3e7, grows=True)
_SOAK = Soak(
    memory=_GROWTH, open_files=_GROWTH, latency=_GROWTH,
    readings=[Reading(at=1.0, memory_bytes=1 << 24, open_files=12)],
)  # fmt: skip
_MORE = {
    "upstream_use": _USE, "proxy_use": _USE, "link_use": _USE, "noise": _NOISE, "clock": _CLOCK, "concurrency": 4,
    "busy": {"client": 0.9, "upstream": 0.3}, "in_flight": InFlight(client=3.0, proxy=2.0, upstream=1.0, link=0.1),
    "idle_rss_bytes": 20 << 20, "idle_pss_bytes": 15 << 20, "kept_alive": 390, "driver": "ab",
    "gil": True, "gil_switched_by": "_c",
    "elapsed_seconds_sum": 1.5, "waits_for_connection": True, "duration_extended": False, "deadline_seconds": 60.0,
    "cancelled": Cancelled(
        asked=40, by_timeout=15, by_task=16, ended={"none": 9}, seconds=0.5, held_before=1, held_after=2,
        before=Probe(at_once=4, answered=4, seconds=0.01, sockets=4, threads=1, tasks=0),
        after=Probe(at_once=3, answered=4, seconds=0.26, gave_up_seconds=0.5, sockets=5, threads=2, tasks=1),
    ),
    "tail_seconds": 0.05, "load_after_outage": 1.5, "connections_reopened": 2, "slices": 4, "soak": _SOAK,
    "faults": FaultCounts(
        by_fault={"reset": MetFault(asked=4, met={"reset": 3, "none": 1}, failed_seconds=0.1)}, beside={"protocol": 1}
    ),
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
    streams = _STREAMS.model_copy(update={"gap_histogram": trials[0].histogram, "lag_histogram": trials[0].histogram})
    trials = [
        trial.model_copy(update={"streams": streams}) if trial.arm == "pycurl (direct)" else trial for trial in trials
    ]
    broken = {"errors": {"reset": 3}, "error_examples": {"reset": "by peer"}, "failed_histogram": trials[0].histogram}
    trials[-1] = trials[-1].model_copy(update=broken)
    partial = a_measured_trial("requests", status="failed", partial=True, hangs=True, reason="stopped", arm="requests")
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
    more = {
        "load_over_time": slices,
        "workload": "open",
        "environment": "base",
        "link": _LINK,
    }
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
        group="open", environment="base", link=_LINK, sweep="open", axes={"rate": 50.0, "x": "y"},
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
        faults=Faults.parse("reset:1%"), cancel=Cancels.parse("10%"), request_limit=60.0, memory_limit=1 << 30,
        replay_sha256="0" * 64, replay="requests.har",
    )  # fmt: skip
    staged = Workload(
        stages=Stages.parse("0s:100/s,3s:200/s"), duration=5.0, arrivals="poisson", max_late=1.0, seed=7, body="{}"
    )
    swept = {f"w{place}": Workload(requests=400, concurrency=place, upload_size=9) for place in PLACES[:3]}
    opened = Workload(rate=200.0, requests=1000, arrivals="poisson", upload_size=10, upload="stream")
    streamed = Workload(
        stream="sse", first=Delay.parse("50ms"), every=Delay.parse("5ms"), events=100, stop_after=50, requests=400,
        goodput=StreamLimits.parse("first<300ms"),
    )  # fmt: skip
    return {"workload": closed, "staged": staged, "open": opened, "streamed": streamed, **swept}


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
    around = {"surroundings": surroundings, "ceilings": [ceiling], "resumed": [resumed], "phases": phases()}
    around["profiles"] = [*profiles(), *memory_profiles()]
    return {**around, "rounds_ended": "precision"}


def phases() -> list[ArmPhases]:
    """The phases of an arm with a value in each field, and an arm without any."""
    pool = PhaseTimes(count=40, mean=0.002, least=0.001, p50=0.0015, p99=0.009)
    known = ArmPhases(
        arm="urllib3 (direct)",
        requests=40,
        requests_per_second=900.0,
        latency_mean_seconds=0.004,
        phases={"pool": pool},
    )
    return [known, ArmPhases(arm="other", reason="its library reports no phase that the lab can read")]


def profiles() -> list[Profile]:
    """A profile with a value in each field, one of the same workload, and an arm without one."""
    functions = [
        ProfiledFunction(name="main", package="clientlab", own=0.1, total=1.0),
        ProfiledFunction(name="urlopen", package="urllib3", own=0.6, total=0.9),
        ProfiledFunction(name="send", package="kernel", own=0.3, total=0.3),
    ]
    nodes = [(-1, 0, 1.0), (0, 1, 0.9), (1, 2, 0.3)]
    first = Profile(
        arm="urllib3 (direct)", profiler="py-spy 0.4.3", views=["timer", "native", "gil", "waiting"],
        trials=2, samples_per_second=250, samples=1000, requests_per_second=900.0, native_requests_per_second=500.0,
        attributed=0.99, packages={"urllib3": 0.6, "kernel": 0.3, "clientlab": 0.1}, functions=functions,
        flame=[FlameNode(parent=parent, function=function, share=share) for parent, function, share in nodes],
        kernel_share=0.3, gil_held=0.7, gil_waiting=1.5, notes=["libcurl has no symbols"],
    )  # fmt: skip
    changed = {"urllib3": 0.5, "kernel": 0.4, "clientlab": 0.1}
    second = first.model_copy(update={"arm": "pycurl (direct)", "packages": changed})
    return [first, second, Profile(arm="requests", profiler="py-spy 0.4.3", reason="its trial failed: stopped")]


def memory_profiles() -> list[Profile]:
    """A memory profile with a value in each field, one of the same workload, and an arm without one."""
    functions = [
        ProfiledFunction(name="main", package="clientlab", own=0.1, total=1.0),
        ProfiledFunction(name="urlopen", package="urllib3", own=0.6, total=0.9),
        ProfiledFunction(name="begin", package="http", own=0.3, total=0.3),
    ]
    found = Memory(
        requests=400,
        processes=1,
        peak_bytes=3 << 20,
        allocated=Allocated(bytes=400 << 10, allocations=80_000),
        packages={
            "urllib3": Allocated(bytes=300 << 10, allocations=20_000),
            "http": Allocated(bytes=100 << 10, allocations=60_000),
        },
        functions=[AllocatingFunction(name="urlopen", package="urllib3", bytes=300 << 10, allocations=20_000)],
    )
    nodes = [(-1, 0, 1.0), (0, 1, 0.9), (1, 2, 0.3)]
    first = Profile(
        arm="urllib3 (direct)", kind="memory", profiler="memray 1.20.0", requests_per_second=250.0, attributed=1.0,
        packages={"urllib3": 0.6, "http": 0.3, "clientlab": 0.1}, functions=functions, memory=found,
        flame=[FlameNode(parent=parent, function=function, share=share) for parent, function, share in nodes],
        notes=["its trial had 2,000 of 20,000 requests: each allocation is recorded"],
    )  # fmt: skip
    smaller = found.model_copy(update={"peak_bytes": 2 << 20})
    second = first.model_copy(update={"arm": "pycurl (direct)", "memory": smaller})
    lacking = Profile(arm="requests", kind="memory", reason="its trial failed: stopped")
    return [first, second, lacking]
