"""Runs as metrics, as Prometheus reads them off the service."""

from __future__ import annotations

import math

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from clientlab.results.document import ClaimResult
from clientlab.results.fault_counts import FaultCounts, MetFault
from clientlab.results.figures import EXPORTED
from clientlab.results.plan import Arm
from clientlab.results.stream_figures import STREAM_FIGURES
from clientlab.results.streams import Streams
from clientlab.running.quantiles import histogram_part
from clientlab.service.run_index import RunIndex, _without_curves
from clientlab.workload.streams import StreamLimits
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial, an_open_trial, quantiles
from clients.service.requests_to_lab import asked, keep


def test_finished_runs_are_metrics(store):
    """The figures of the run file: medians over rounds, an interval from three on, errors in all."""
    walls = (1.0, 2.0, 4.0)
    trials = [a_trial("urllib3", number, wall, errors={"reset": 1}) for number, wall in enumerate(walls, 1)]
    keep(store, a_run(*trials, a_failed_trial("pycurl")))
    keep(store, a_run(a_trial(), name="20240507-070809-run-abcd").model_copy(update={"status": "running"}))
    found = {}
    for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1]):
        for sample in family.samples:
            if "run" in sample.labels:
                assert sample.labels["run"] == "20240506-070809-run-abcd"
                key = (
                    sample.name.removeprefix("clientlab_run_"),
                    sample.labels.get("quantile", sample.labels.get("verdict")),
                )
                found[key] = sample.value
    assert found["wall_seconds", None] == 2.0
    assert found["wall_seconds_low", None] < 2.0 < found["wall_seconds_high", None]
    assert found["requests_per_second", None] == 500
    assert found["requests_per_second_low", None] < 500 < found["requests_per_second_high", None]
    assert (found["rounds", None], found["concurrency", None]) == (3, 1)
    assert (found["latency_seconds", "0.5"], found["latency_seconds", "0.99"]) == (0.002, 0.009)
    assert found["cpu_seconds_per_request", None] == 0.5 / 999
    assert found["peak_memory_bytes", None] == 32 << 20
    assert found["peak_rss_bytes", None] == 40 << 20
    assert found["connections_opened", None] == 1
    assert found["errors", None] == 3
    assert found["verdict", "client-bound"] == 1
    assert found["created_timestamp_seconds", None] == 1714979289
    assert found["info", None] == 1
    assert ("overhead_seconds", None) not in found


def margins(store, walls, name: str) -> dict[str, float]:
    """Figure → margin of the arm urllib3 in a run with those wall times."""
    keep(store, a_run(*(a_trial("urllib3", number, wall) for number, wall in enumerate(walls, 1)), name=name))
    return {
        sample.labels["figure"]: sample.value
        for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1])
        for sample in family.samples
        if sample.name == "clientlab_run_margin" and sample.labels["run"] == name
    }


def test_a_figure_has_a_margin_from_three_rounds_on(store):
    """It grows with the spread; a figure that never varies has that of its resolution, an unknown one has none."""
    steady, restless, few = (
        margins(store, walls, f"2024050{day}-070809-run-abcd")
        for day, walls in enumerate([(1.0, 1.01, 0.99), (1.0, 1.1, 0.9), (1.0, 1.1)], start=1)
    )
    assert 0 < steady["wall"] < restless["wall"]
    assert (steady["connections"], steady["p99"]) == (0.0, 1e-3)
    assert "errors" not in steady
    assert few == {}


def test_the_row_of_a_run_that_goes_on_counts_each_trial_that_is_saved(store):
    """It is read anew only when a trial was saved."""
    name = "20240507-070809-run-abcd"
    begun = a_run(a_trial(), name=name, rounds=3).model_copy(update={"status": "running", "trials": []})
    keep(store, begun)
    index = RunIndex(store, print)
    with store.hold(name):
        for order in range(3):
            assert [(row.status, row.trials) for row in index.rows()] == [("running", order)]
            store.append(name, a_trial(number=order + 1, order=order))
    assert [(row.status, row.trials) for row in index.rows()] == [("interrupted", 3)]
    store.save(store.read(name).model_copy(update={"status": "done"}))
    assert [(row.status, row.trials) for row in index.rows()] == [("done", 3)]


def test_arms_are_ranked_by_the_runs_own_figure(store):
    """In an open load by p99 from the planned start, whatever the requests per second."""
    trials = [an_open_trial(name, number, p99, requests_per_second=rate) for number in (1, 2, 3)
              for name, p99, rate in (("pycurl", 0.02, 200.0), ("urllib3", 0.01, 190.0))]  # fmt: skip
    keep(store, a_run(*trials, workloads={"workload": Workload(rate=200.0, duration=5.0)}))
    ranks = {
        sample.labels["arm"]: sample.value
        for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1])
        for sample in family.samples
        if sample.name == "clientlab_run_rank"
    }
    assert ranks == {"urllib3": 1, "pycurl": 2}


def test_claims_are_metrics_with_their_sentences(store):
    """A ratio, the ends of its interval, and the sentence as a label of one series per claim; a long one is cut."""
    shared = {"source": None, "kind": "less", "figure": "wall_seconds", "published": None, "measured": "so"}
    known = {"ratio": 1.5, "interval": (1.2, 1.8), "verdict": "supported", "rounds": 3}
    claims = [
        ClaimResult(name="one", text="One is faster", control=False, **shared, **known),
        ClaimResult(name="two", text="x" * 999, control=True, **shared, verdict="inconclusive", rounds=0),
    ]
    keep(store, a_run(a_trial()).model_copy(update={"claims": claims}))
    found = {}
    for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1]):
        for sample in family.samples:
            if "claim" in sample.labels:
                found[sample.name.removeprefix("clientlab_run_"), sample.labels["claim"]] = sample
    assert found["claim_info", "one"].labels["sentence"] == "One is faster"
    assert found["claim", "one"].labels["verdict"] == "supported"
    assert [found[name, "one"].value for name in ("claim", "claim_low", "claim_high", "claim_info")] == [
        1.5,
        1.2,
        1.8,
        1,
    ]
    assert found["claim_info", "two"].labels["sentence"] == f"(control) {'x' * 290}"
    assert math.isnan(found["claim", "two"].value)
    assert ("claim_low", "two") not in found


def test_what_a_caller_meets_is_a_label_of_each_client_and_fault(store):
    """As in the report's matrix: the word, how many failed, and what was lost beside."""

    def trial(fault: str, met: dict[str, int], lost: int):
        counts = FaultCounts(
            by_fault={fault: MetFault(asked=7, met=met, failed_seconds=0.01)}, beside={"reset": lost} if lost else {}
        )
        return a_trial("urllib3", arm=f"urllib3[faults={fault}]", faults=counts)

    trials = [trial("reset", {"reset": 7}, 0), trial("idle-close", {"none": 5, "reset": 2}, 3)]
    arms = [
        Arm(name=one.arm, strategy="urllib3", upstream="aiohttp", route="direct", workload="workload",
            axes={"faults": fault}, sweep="urllib3") for one, fault in zip(trials, ("reset", "idle-close"), strict=True)
    ]  # fmt: skip
    keep(store, a_run(*trials, arms=arms))
    found = [
        sample.labels
        for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1])
        for sample in family.samples
        if sample.name == "clientlab_run_fault"
    ]
    assert [(one["client"], one["fault"], one["met"]) for one in found] == [
        ("urllib3", "reset", "reset"),
        ("urllib3", "idle-close", "2 of 7 failed · 3 lost beside"),
    ]


def test_a_figure_that_is_not_known_has_no_sample(store):
    """A 0 would look measured; where some of the rounds know it, theirs is the median."""
    unknown = {
        "connections_opened": None,
        "cpu_seconds": None,
        "peak_rss_bytes": None,
        "peak_pss_bytes": None,
        "verdict": None,
    }
    trials = [a_trial(**unknown), a_trial(round=2, order=1, **unknown | {"connections_opened": 5})]
    keep(store, a_run(*trials))
    text = asked(store, "GET", "/metrics")[1]
    samples = [line for line in text.splitlines() if line.startswith("clientlab_run_")]
    assert [line.split()[-1] for line in samples if "connections_opened{" in line] == ["5.0"]
    assert not [line for line in samples if "cpu_seconds" in line or "peak_" in line or "verdict{" in line]


def test_a_lower_bound_has_a_metric_of_its_own(store):
    """A p99 that falls on failed requests must not look like a value; the median is one."""
    failing = {"errors": {"timeout": 30}, "latency_seconds": quantiles(0.005, 0.3, at_least=["p99", "max"])}
    keep(store, a_run(a_trial(**failing, overhead_seconds=quantiles(0.001, at_least=["p50"]))))
    found = {
        (sample.name.removeprefix("clientlab_run_"), sample.labels.get("quantile")): sample.value
        for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1])
        for sample in family.samples
    }
    assert found["latency_seconds", "0.5"] == 0.005
    assert ("latency_seconds", "0.99") not in found
    assert found["latency_at_least_seconds", "0.99"] == 0.3
    assert ("latency_at_least_seconds", "0.5") not in found
    assert ("overhead_seconds", None) not in found
    assert found["overhead_at_least_seconds", None] == 0.001


def test_every_figure_with_a_metric_is_exported(store):
    """Its value is that of the run's table."""
    trial = a_trial(wall=2.0, overhead_seconds=quantiles(0.001), idle_pss_bytes=1 << 20, bytes_received=1 << 20)
    keep(store, a_run(trial))
    found = {
        (sample.name, sample.labels.get("quantile")): sample.value
        for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1])
        for sample in family.samples
    }
    expected = {(f"clientlab_run_{metric.name}", metric.quantile): figure.of(trial) for figure, metric in EXPORTED}
    assert {key: found.get(key) for key in expected} == expected


def test_streams_are_metrics_and_requests_have_none_of_them(store):
    """Times by quantile, events, and the rank by CPU time of an event; of requests there is no sample."""
    times = dict.fromkeys(("first_seconds", "gap_seconds", "lag_seconds", "late_seconds"), quantiles(0.001, 0.003))
    streams = Streams(ranked_by="cpu", events=50_000, most_open=3, together=0.25, kept=900, **times)
    trials = [a_trial("pycurl", streams=streams, cpu_seconds=2.0), a_trial("urllib3", streams=streams, cpu_seconds=1.0)]
    keep(store, a_run(*trials, workloads={"workload": Workload(stream="sse", goodput=StreamLimits.parse("first<1s"))}))
    found = {
        (sample.labels["arm"], sample.name.removeprefix("clientlab_run_"), sample.labels.get("quantile")): sample.value
        for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1])
        for sample in family.samples
        if "arm" in sample.labels
    }
    of_streams = [(figure, metric) for figure, metric in EXPORTED if figure in STREAM_FIGURES]
    expected = {("urllib3", metric.name, metric.quantile): figure.of(trials[1]) for figure, metric in of_streams}
    assert {key: found.get(key) for key in expected} == expected
    assert found["urllib3", "cpu_seconds_per_event", None] == 2e-5
    assert (found["urllib3", "rank", None], found["pycurl", "rank", None]) == (1, 2)
    assert not any(figure.of(a_trial()) is not None for figure, _ in of_streams)


def test_what_is_kept_of_a_run_for_its_metrics_has_no_histograms():
    """50 runs would take some hundred megabytes."""
    streams = Streams(
        ranked_by="cpu", events=1, most_open=1, gap_histogram=histogram_part(np.ones(1)),
        lag_histogram=histogram_part(np.ones(1)),
    )  # fmt: skip
    kept = _without_curves(a_trial(streams=streams)).streams
    assert (kept.events, kept.gap_histogram, kept.lag_histogram) == (1, None, None)


def test_an_arm_on_two_axes_is_on_two_curves(store):
    """Each has in common what does not vary along it, and is called with its strategy."""
    places = [(5, 1), (5, 2), (9, 1)]
    arms = [
        Arm(
            name=f"it[concurrency={c}, pool={p}]", strategy=f"requests-session@threads?pool={p}", upstream="aiohttp",
            route="direct", workload="workload", axes={"concurrency": c, "pool": p}, sweep="it",
        )
        for c, p in places
    ]  # fmt: skip
    trials = [a_trial(arm.strategy).model_copy(update={"arm": arm.name}) for arm in arms]
    keep(store, a_run(*trials, arms=arms))
    found = {}
    for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1]):
        for sample in family.samples:
            if sample.name == "clientlab_run_axis_value":
                found.setdefault((sample.labels["axis"], sample.labels["curve"]), []).append(sample.value)
    assert found == {
        ("concurrency", "it[pool=1] · requests-session@threads"): [5, 9],
        ("concurrency", "it[pool=2] · requests-session@threads"): [5],
        ("pool", "it[concurrency=5] · requests-session@threads"): [1, 2],
        ("pool", "it[concurrency=9] · requests-session@threads"): [1],
    }
