"""The list of figures: names, values, and what is unknown."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.judging.claim_verdicts import judged
from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_limits, limit
from clientlab.reports.figure_tables import figure_table
from clientlab.reports.rows import groups_of
from clientlab.results.cancel_counts import Cancelled, Probe
from clientlab.results.figures import BY_KEY, FIGURES, find, of_claim
from clientlab.results.plan import Claim
from clientlab.results.soak import Growth, Soak
from clientlab.results.streams import Streams
from clientlab.results.trial import Noise, OfSearch, OpenLoad, ServerUse
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial, quantiles

KNOWN = a_trial(
    wall=2.0, errors={"reset": 250}, cpu_seconds=0.5, idle_pss_bytes=30 << 20, overhead_seconds=quantiles(0.001),
    elapsed_seconds_sum=1.5, bytes_received=3 << 20, noise=Noise(seconds=2.0, run_delay_seconds=0.25),
    open_load=OpenLoad(
        planned_per_second=600.0, achieved_per_second=550.0, lateness_seconds=quantiles(0.003, 0.007),
        sent_seconds=quantiles(0.001, 0.006), dropped=50, most_backlog=40, most_in_flight=7,
    ),
    tail_seconds=0.5,
    cancelled=Cancelled(
        asked=260, by_timeout=100, by_task=150, ended={"none": 10}, seconds=1.0, held_before=1, held_after=5,
        before=Probe(at_once=10, answered=10, seconds=0.01, sockets=10, threads=1, tasks=0),
        after=Probe(at_once=8, answered=10, seconds=0.3, sockets=13, threads=3, tasks=6),
    ),
    soak=Soak(
        memory=Growth(per_hour=4e6, low=3e6, high=5e6, level=3e7, grows=True),
        open_files=Growth(per_hour=1.0, low=-1.0, high=3.0, level=12, grows=False),
        latency=Growth(per_hour=0.02, low=0.01, high=0.03, level=0.1, grows=True),
        readings=[],
    ),
    streams=Streams(
        ranked_by="cpu", events=100, head_seconds=quantiles(0.01), first_seconds=quantiles(0.05, 0.06),
        gap_seconds=quantiles(0.005, 0.007), lag_seconds=quantiles(0.0002, 0.0009), late_seconds=quantiles(1e-4, 4e-4),
        together=0.25, most_open=7, kept=600,
    ),
    search=OfSearch(rate=600.0, phase="comparison", capacity_per_second=1200.0),
    load_after_outage=2.5, upstream_use=ServerUse(cpu_seconds=1.0, requests=1300, duplicates=12),
)  # fmt: skip


def cells_of(group) -> dict[str, list[str]]:
    """Head → the cells of its column."""
    table = figure_table(group)
    heads, rows = table.headings, table.rows
    return dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))


def test_every_figure_is_read_from_a_trial():
    """In its unit: seconds, bytes, counts and shares."""
    found = {figure.key: figure.of(KNOWN) for figure in FIGURES}
    expected = {
        "wall": 2.0, "tail": 0.5, "throughput": 500, "time_per_request": 0.002,
        "received": 2 << 20, "mean": 0.002, "p50": 0.002, "p90": 0.002,
        "p95": 0.009,
        "cpu_wait": 0.25e-3, "planned_rate": 600, "achieved_rate": 550, "late_p50": 0.003, "late_p99": 0.007,
        "sent_p50": 0.001, "sent_p99": 0.006, "dropped": 0.05, "backlog": 40, "capacity": 1200,
        "p99": 0.009, "p999": 0.009, "max": 0.009, "overhead": 0.001, "elapsed": 1.5, "errors": 0.25, "connections": 1,
        "cpu_per_event": 0.005, "lag_p50": 0.0002, "lag_p99": 0.0009, "together": 0.25, "head_p50": 0.01,
        "first_p50": 0.05, "first_p99": 0.06, "gap_p50": 0.005, "gap_p99": 0.007, "event_rate": 100 / 1.5,
        "per_connection": 1000, "most_open": 7, "goodput": 400, "kept": 0.6, "write_p50": 1e-4, "write_p99": 4e-4,
        "served": 375, "served_share": 0.75, "amplification": 1300 / 1200, "duplicates": 12, "after_outage": 2.5,
        "reuse": 1000, "cpu": 0.5 / 1000, "cpu_total": 0.5, "memory": 32 << 20, "rss": 40 << 20, "above_idle": 2 << 20,
        "cancelled": 0.2, "slots_lost": 2, "sockets_left": 3, "threads_left": 2, "tasks_left": 6, "held_left": 4,
        "recovery": 0.3,
        "memory_growth": 3e6, "file_growth": 0.0, "latency_growth": 0.01,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert None not in found.values()


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.key)
def test_what_a_trial_does_not_have_is_unknown_and_not_0(figure):
    """Also per request, where there was no request."""
    nothing = a_failed_trial(
        "urllib3", connections_opened=None, cpu_seconds=None, peak_rss_bytes=None, peak_pss_bytes=None
    )
    assert figure.of(nothing) is None
    assert figure.over_rounds([nothing]) is None
    assert BY_KEY["cpu"].of(a_failed_trial("urllib3", cpu_seconds=0.5)) is None
    assert BY_KEY["cpu"].of(a_failed_trial("urllib3", cpu_seconds=0.5, requests=9, errors={"connect": 9})) is None


def test_a_figure_over_rounds_is_the_median_of_the_finished_trials_that_have_it():
    """Errors are the mean, and those of failed trials count."""
    trials = [a_trial(number=n, connections_opened=count) for n, count in enumerate((1, None, 2, 50), 1)]
    failed = a_failed_trial("urllib3", requests=1000, errors={"connect": 1000}, connections_opened=7000)
    assert BY_KEY["connections"].over_rounds([*trials, failed]) == 2
    assert BY_KEY["errors"].over_rounds([*trials, failed]) == 0.2


def test_a_figure_is_found_by_its_key_and_by_its_full_name():
    """No two figures share a name; every figure has a text for its table and its metric."""
    names = [name for figure in FIGURES for name in {figure.key, figure.name}]
    assert len(set(names)) == len(names)
    for figure in FIGURES:
        assert find(figure.key, "x") is find(figure.name, "x") is figure
        assert figure.label
        assert figure.description
    assert of_claim("cpu_seconds") is BY_KEY["cpu_total"]
    assert of_claim("peak_pss_bytes") is of_claim("memory")
    assert of_claim("peak_rss_bytes") is of_claim("rss")


def test_an_unknown_name_is_refused_with_the_known_ones():
    """A claim about errors is refused too: trials with an error are left out of claims."""
    with pytest.raises(LabError, match=r"^fail_on: 'p98' is not one of wall, throughput, .*, errors, "):
        find("p98", "fail_on")
    for name in ("p98", "errors"):
        with pytest.raises(ValueError, match=rf"^'{name}' is not one of wall, throughput, (?!.*errors)"):
            of_claim(name)


def test_bytes_received_per_second_can_be_limited_and_claimed():
    """A limit is written with a unit; only large bodies have the column."""
    trials = [a_trial(name, n, wall, bytes_received=2000 << 20) for name, wall in (("slow", 2.0), ("fast", 1.0))
              for n in (1, 2, 3)]  # fmt: skip
    claim = Claim(name="it", text="It is so", kind="less", figure="received", a="slow", b="fast")
    run = a_run(*trials, claims=[claim])
    outcomes = [one.outcome for one in judge_limits(run, [limit("received < 1500MiB/s")])]
    assert outcomes == ["failed", "held"]
    assert [(one.verdict, one.measured) for one in judged(run)] == [
        ("supported", "fast has 2.00 times the bytes received per second of slow")
    ]
    (group,) = groups_of(run)
    assert cells_of(group)["received"] == ["2,000 MiB/s", "1,000 MiB/s"]
    (small,) = groups_of(a_run(a_trial(bytes_received=1000)))
    assert "received" not in cells_of(small)


def test_requests_per_connection_can_be_limited_claimed_and_compared():
    """More is better; a trial of a duration has the column. Without a new connection the figure is unknown."""
    trials = [a_trial(name, n, connections_opened=count) for name, count in (("pool", 4), ("none", 1000))
              for n in (1, 2, 3)]  # fmt: skip
    claim = Claim(name="it", text="It is so", kind="less", figure="requests_per_connection", a="none", b="pool")
    run = a_run(*trials, claims=[claim])
    assert [one.outcome for one in judge_limits(run, [limit("reuse < 10")])] == ["held", "failed"]
    assert [(one.verdict, one.ratio) for one in judged(run)] == [("supported", pytest.approx(250))]
    fewer = a_run(*(trial.model_copy(update={"connections_opened": 1000}) for trial in trials))
    change = compare(run, [fewer], [BY_KEY["reuse"]], force=True).others[0].changes["pool"]["reuse"]
    assert (change.before, change.after, change.word) == (250, 1, "fewer")
    timed = a_run(a_trial("pool", connections_opened=4), workloads={"workload": Workload(requests=None, duration=1.0)})
    assert [cells_of(group).get("req/conn") for group in (*groups_of(run), *groups_of(timed))] == [
        None,
        ["250"],
    ]
    assert BY_KEY["reuse"].of(a_trial(connections_opened=0)) is None


def test_the_wait_for_a_cpu_can_be_limited_claimed_and_compared():
    """From the growth of the kernel's run delay; where the kernel has none, it is unknown and fails a limit."""
    waiting = [a_trial("a", number, noise=Noise(seconds=1.0, run_delay_seconds=0.05)) for number in (1, 2, 3)]
    steady = [a_trial("b", number, noise=Noise(seconds=1.0, run_delay_seconds=0.01)) for number in (1, 2, 3)]
    claim = Claim(name="steady", text="b waits less", kind="less", figure="cpu_wait", a="b", b="a")
    run = a_run(*waiting, *steady, claims=[claim])
    assert [one.outcome for one in judge_limits(run, [limit("cpu_wait > 30us")])] == ["failed", "held"]
    assert (judged(run)[0].verdict, judged(run)[0].ratio) == ("supported", pytest.approx(5))
    change = compare(run, [run], [BY_KEY["cpu_wait"]], force=True).others[0].changes["a"]["cpu_wait"]
    assert (change.before, change.ratio.value) == (50e-6, 1.0)


def test_a_claim_about_retries_counts_trials_with_errors():
    """Failed requests are a part of goodput and amplification; a claim about time has no such round."""
    use = ServerUse(cpu_seconds=1.0, requests=2000)
    trials = [a_trial(name, n, errors=errors, **more) for name, errors, more in (
        ("none", {"status-5xx": 500}, {"upstream_use": use.model_copy(update={"requests": 1000})}),
        ("again", {"status-5xx": 10}, {"upstream_use": use}),
    ) for n in (1, 2, 3)]  # fmt: skip
    claims = [
        Claim(name=figure, text="It is so", kind="less", figure=figure, a="none", b="again")
        for figure in ("amplification", "served_share", "wall_seconds")
    ]
    found = judged(a_run(*trials, claims=claims))
    assert [(one.verdict, one.ratio and round(one.ratio, 2), one.rounds) for one in found] == [
        ("supported", 2.0, 3), ("supported", 1.98, 3), ("inconclusive", None, 0),
    ]  # fmt: skip
