"""Stored runs as metrics, as Prometheus reads them from the exporter."""

from __future__ import annotations

import socket
import threading
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from clientlab.cluster.exporter import StoredRuns, make_server
from clientlab.errors import LabError
from clientlab.judging.judgement import with_judgement
from clientlab.reports.rows import figure_table, groups_of
from clientlab.results.plan import Claim
from clientlab.results.store import Store
from clientlab.results.trial import OpenLoad
from clientlab.workload.workload import change, make_workload
from clients.documents import a_failed_trial, a_run, a_trial, quantiles, rounds

NAME = "20240506-070809-run-abcd"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


def samples(store: Store, family: str) -> list:
    """The samples of one of the exporter's families."""
    said = []
    page = StoredRuns(store, said.append).render().decode()
    assert not said
    found = []
    for each in text_string_to_metric_families(page):
        found += each.samples
    return [sample for sample in found if sample.name == f"clientlab_run_{family}"]


def cells(store: Store, family: str, *labels: str) -> list[tuple]:
    """The values of some labels of each sample, and its own value."""
    rows = []
    for sample in samples(store, family):
        values = [sample.labels[label] for label in labels]
        rows.append((*values, sample.value))
    return rows


def test_an_arm_has_the_figures_that_its_report_shows(store):
    """The slower one is shown as the fastest times the ratio, which is
    paired by round.
    """
    run = a_run(*rounds("urllib3", 1.0, 2.0, 4.0), *rounds("pycurl", 3.0, 2.5, 4.5))
    keep(store, run)
    (group,) = groups_of(run)
    _, slow = group.rows
    assert cells(store, "requests_per_second", "arm") == [
        ("urllib3", 500.0),
        ("pycurl", pytest.approx(slow.figures["throughput"])),
    ]
    shown = figure_table(group)
    texts = dict(zip(shown.headings, shown.rows[1], strict=True))
    labels = ("place", "arm", "figure", "ratio", "p50", "bottleneck")
    first, second = cells(store, "standing", *labels)
    assert first == ("001", "urllib3", "500 req/s", "1", "2.00 ms", "client", 1.0)
    assert second == (
        "002",
        "pycurl",
        f"{texts['req/s']} req/s",
        texts["x fastest (95 %)"],
        texts["p50"],
        texts["bottleneck"],
        pytest.approx(1 / slow.ratio.value),
    )
    assert cells(store, "ratio_low", "arm") == [
        ("urllib3", 1.0),
        ("pycurl", slow.ratio.low),
    ]
    assert cells(store, "rounds", "arm") == [("urllib3", 3), ("pycurl", 3)]


def test_a_lower_bound_has_a_name_of_its_own(store):
    bounded = quantiles(0.005, 0.3, at_least=["p99"])
    trials = rounds("urllib3", errors={"reset": 9}, latency_seconds=bounded)
    keep(store, a_run(*trials))
    assert cells(store, "latency_at_least_seconds", "quantile") == [("0.99", 0.3)]
    assert ("0.99", 0.3) not in cells(store, "latency_seconds", "quantile")
    assert cells(store, "standing", "p99", "errors") == [("≥ 300 ms", "0.900 %", 1.0)]


def test_a_run_in_which_everything_fails_says_why(store):
    keep(store, a_run(a_failed_trial("pycurl"), a_failed_trial("pycurl", number=2)))
    [(kind, text, count), *_] = cells(store, "problem", "kind", "text")
    assert kind == "! failed"
    assert count == 2
    assert text.startswith("pycurl: ")
    assert cells(store, "trials", "state") == [("done", 0), ("failed", 2), ("left", 0)]
    assert cells(store, "arm_info", "arm") == [("pycurl", 1)]


def test_a_run_says_whether_it_is_running_killed_or_done(store):
    run = a_run(a_trial(), rounds=3).updated(status="running")
    keep(store, run)
    with store.hold(run.run):
        assert cells(store, "info", "status") == [("running", 1)]
        assert cells(store, "trials", "state") == [
            ("done", 1),
            ("failed", 0),
            ("left", 2),
        ]
    assert cells(store, "info", "status") == [("interrupted", 1)]
    store.save(run.updated(status="done"))
    assert cells(store, "info", "status") == [("done", 1)]
    assert cells(store, "trials", "state")[2] == ("left", 0)


def test_the_newest_run_is_the_one_that_began_last(store):
    """Names say nothing: `before` would be sorted behind those that begin
    with a date.
    """
    keep(store, a_run(a_trial(), name="before"))
    later = "2024-05-08T07:08:09.000+00:00"
    keep(store, a_run(a_trial(), name="after").updated(created=later))
    found = sorted(cells(store, "choice", "choice", "run"), key=lambda row: -row[2])
    assert [row[:2] for row in found] == [
        ("newest run", "after"),
        ("after", "after"),
        ("before", "before"),
    ]


def test_runs_of_the_same_workload_have_the_changes_that_compare_prints(store):
    """Another workload is another comparison."""
    later = "2024-05-08T07:08:{:02}.000+00:00"
    workload = make_workload(requests=1000)
    for second, (name, wall, path) in enumerate(
        (("base", 1.0, "/"), ("slower", 2.0, "/"), ("other", 1.0, "/other"))
    ):
        workloads = {"workload": change(workload, path=path)}
        trials = rounds("urllib3", wall, wall, wall)
        run = a_run(*trials, name=name, workloads=workloads)
        keep(store, run.updated(created=later.format(second)))
    found = cells(store, "change", "run", "baseline", "arm", "figure", "text")
    for run, baseline, arm, *_ in found:
        assert run == "slower"
        assert baseline == "base"
        assert arm == "urllib3"
    ((text, ratio),) = [row[4:] for row in found if row[3] == "throughput"]
    assert text == "✗ slower x 0.500 (0.500 to 0.500)"
    assert ratio == pytest.approx(0.5)
    ids = {run: name for run, name, _ in cells(store, "arm_info", "run", "workload_id")}
    assert ids["base"] == ids["slower"]
    assert ids["base"] != ids["other"]


def test_a_claim_has_its_sentence_and_its_interval(store):
    claim = Claim(name="it", text="It is so", kind="less", a="urllib3", b="pycurl")
    trials = [*rounds("urllib3", 1.0, 1.01, 0.99), *rounds("pycurl", 2.0, 2.01, 1.99)]
    keep(store, with_judgement(a_run(*trials, claims=[claim])))
    [(sentence, verdict, text, ratio)] = cells(
        store, "claim", "sentence", "verdict", "text"
    )
    assert sentence == "It is so"
    assert verdict == "supported"
    assert text.startswith("2.00 (1.9")
    assert ratio == pytest.approx(2.0, rel=0.01)


def test_control_characters_and_quotes_do_not_break_the_page(store):
    run = a_run(a_trial())
    machine = run.surroundings.updated(cpu_model='a "CPU"\\\n\x1b')
    keep(store, run.updated(surroundings=machine))
    [(machine, _)] = cells(store, "info", "machine")
    assert machine.startswith('a "CPU"\\')


@pytest.mark.real
def test_the_page_is_served_over_ipv6(store):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    keep(store, a_run(a_trial()))
    with make_server(store, "::1", 0, print) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://[::1]:{server.server_port}/metrics"
        with urllib.request.urlopen(page, timeout=10) as answer:
            assert answer.status == 200
        server.shutdown()


@pytest.mark.real
def test_the_page_is_served_and_a_damaged_run_hides_no_other(store):
    keep(store, a_run(a_trial()))
    keep(store, a_run(a_trial(), name="damaged"))
    (store.folder / "damaged" / "run.json").write_text("{")
    said = []
    with make_server(store, "127.0.0.1", 0, said.append) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(page, timeout=10) as answer:
            assert "clientlab_run_wall_seconds{" in answer.read().decode()
        with pytest.raises(LabError, match="choose another"):
            make_server(store, "127.0.0.1", server.server_port, said.append)
        server.shutdown()
    assert "damaged" in said[0]


def test_an_arm_whose_p99_is_a_lower_bound_has_no_speed(store):
    """In an open load, nobody knows how far behind it is: a full bar would mislead."""
    load = OpenLoad(
        planned_per_second=600.0,
        achieved_per_second=600.0,
        lateness_seconds=quantiles(),
        sent_seconds=quantiles(),
        dropped=0,
        most_backlog=0,
        most_in_flight=7,
    )
    bounded = quantiles(0.005, 0.3, at_least=["p99", "max"])
    good = rounds("urllib3", open_load=load)
    failing = rounds(
        "pycurl", open_load=load, errors={"timeout": 30}, latency_seconds=bounded
    )
    keep(store, a_run(*good, *failing))
    assert cells(store, "standing", "arm") == [("urllib3", 1.0), ("pycurl", 0.0)]
