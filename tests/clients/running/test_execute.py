"""Carrying out an experiment: real trials of real clients, against a server that shares no code with the lab."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from clientlab import strategies
from clientlab.analysis.histogram import decoded
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun
from clientlab.results.document import Run
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.execute import execute
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.fake_testbed import FakeTestbed
from clients.measured import trial_processes
from clients.running.runs import NAME, Recorder, planned

pytestmark = pytest.mark.real


@pytest.fixture
def carry_out(store):
    """A function that carries out a run against a server, or against a testbed."""

    def carry_out(target, run: Run, recorder: Recorder | None = None, **runner) -> Run:
        testbed = target if isinstance(target, FakeTestbed) else FakeTestbed(target)
        return execute(run, TrialRunner(testbed, **runner), store, recorder or Recorder())

    return carry_out


class Failing(FakeTestbed):
    """A testbed with another fourth reading: an error, or counters."""

    readings, fourth = 0, OSError("no descriptors")

    def reading(self, upstream: str, route: str) -> ServerCounters:
        self.readings += 1
        if self.readings != 4:
            return super().reading(upstream, route)
        if isinstance(self.fourth, OSError):
            raise self.fourth
        return self.fourth


def test_the_figures_of_a_trial_are_those_that_the_server_saw(store, carry_out):
    """Requests, errors, connections and bytes, exactly; the warm-up is in none of them. The sample logs are gone."""
    body = b"x" * 321
    with counting_server(lambda seen: ok(body, "404 Not Found" if seen.target == "/3" else "200 OK")) as server:
        run = carry_out(server, planned("http.client", "requests", path="/{k}"))
    assert [path.name for path in (store.folder / NAME).iterdir()] == ["run.json"]
    assert {trial.strategy: trial.connections_opened for trial in run.trials} == {
        "http.client": 1, "requests": 12,
    }  # fmt: skip
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors) == ("done", 12, {"status-4xx": 1})
        assert (trial.error_examples, trial.bytes_received) == ({"status-4xx": "status 404"}, 12 * 321)
        assert (trial.upstream_use.requests, trial.upstream_use.connections) == (12, trial.connections_opened)
        assert trial.requests_per_second == pytest.approx(11 / trial.wall_seconds)
        assert 5 << 20 < trial.peak_pss_bytes < trial.peak_rss_bytes < 1 << 30
        assert trial.noise.seconds >= trial.wall_seconds
        # One of 12 failed: the median is exact, and nobody knows the longest.
        assert trial.latency_seconds.at_least == ["mean", "p95", "p99", "max"]
        assert decoded(trial.failed_histogram.encoded, 1e-9).total == 1
        assert trial.overhead_seconds is None


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [
        ("aiohttp@gather", True),
        ("urllib3@threads", False),
        ("requests-session@threads?pool=1&pool_block=true", True),
    ],
)
def test_a_wait_for_a_connection_is_no_overhead(strategy, waits, carry_out):
    """Where all clocks start at once, or where a small pool holds the requests back, the trial says so."""
    with counting_server(hold=0.01) as server:
        run = carry_out(server, planned(strategy, delay=Delay.parse("10ms"), concurrency=3))
    (trial,) = run.trials
    assert trial.status == "done"
    assert trial.waits_for_connection is waits
    assert (trial.overhead_seconds is None) is waits
    assert trial.in_flight.client > (3.5 if "?" not in strategy and waits else 1)


def test_a_strategy_whose_process_fails_is_a_failed_trial_with_the_reason(store, carry_out, monkeypatch):
    """It could not even begin; what it wrote is kept beside the run file."""
    monkeypatch.setitem(
        strategies.CLIENTS, "no-such-client", strategies.CLIENTS["urllib3"]
    )  # in the lab's process only
    monkeypatch.setitem(strategies.STRATEGIES, "broken", strategies.Strategy("broken", "no-such-client", "serial"))
    for order in range(2):  # as the lab leaves them that was killed in a trial
        (store.folder / NAME / f"trial-{order:04d}").mkdir()
        (store.folder / NAME / f"trial-{order:04d}" / "1.process").touch()
    with counting_server() as server:
        run = carry_out(server, planned("broken", "urllib3"))
    found = {trial.strategy: trial for trial in run.trials}
    assert found["urllib3"].status == "done"
    assert found["broken"].status == "failed"
    assert found["broken"].reason.startswith("KeyError: 'no-such-client' (")
    log = store.folder / NAME / f"trial-{found['broken'].order:04d}" / "trial.log"
    assert "Traceback" in log.read_text()
    assert [path.name for path in log.parent.iterdir()] == ["trial.log"]


def test_a_trial_with_an_impossible_figure_has_failed_and_the_others_go_on(store, carry_out):
    """The server's counter of requests falls while the second trial is measured, as that of a new process does."""
    with counting_server() as server:
        testbed = Failing(server)
        testbed.fourth = ServerCounters(upstream=ServerUse(cpu_seconds=0.0, requests=0))
        run = carry_out(testbed, planned("http.client", rounds=3))
    assert [trial.status for trial in run.trials] == ["done", "failed", "done"]
    assert run.trials[1].reason.startswith("impossible figure: requests")
    assert store.read(NAME) == run


def test_the_requests_of_a_trial_that_is_killed_are_kept_as_partial(store, carry_out):
    """With its cause."""

    def kill(finished: int | None) -> None:
        (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
        if (finished or 0) >= 5 and recorder.events[-1][1] == "urllib3":
            trial.kill()

    recorder = Recorder(progressed=kill)
    with counting_server(lambda seen: ok(b"x" * 50) if seen.target != "/1" else None, hold=0.03) as server:
        run = carry_out(
            server, planned("http.client", "urllib3", requests=40, path="/{k}"), recorder, keep_samples=True
        )
    whole, killed = sorted(run.trials, key=lambda trial: trial.strategy)
    assert [(one.status, one.partial) for one in (whole, killed)] == [("done", None), ("failed", True)]
    assert killed.reason.startswith("its process was ended by SIGKILL")
    assert 5 <= killed.requests < 40
    assert killed.errors == {"reset": 1}
    assert killed.bytes_received == 50 * (killed.requests - 1)
    assert killed.latency_seconds.p50 >= 0.03
    assert sum(row.requests for row in killed.over_time) == killed.requests
    assert (killed.cpu_seconds, killed.peak_pss_bytes, killed.verdict) == (None, None, None)
    with np.load(store.folder / NAME / f"samples/trial-{killed.order:04d}.npz") as kept:
        assert kept["number"].tolist() == list(range(killed.requests))
    assert store.read(NAME) == run


def test_a_trial_ends_as_failed_if_requests_fail_and_no_health_check_is_answered(carry_out):
    """After five failures in a row and a failed check without a success after it; what had finished is partial."""

    class Testbed(FakeTestbed):
        def trouble(self, upstream: str, route: str, workload: Workload) -> str:  # noqa: ARG002
            return f"{upstream} by {route} does not answer"

    release = threading.Event()

    def answer(_seen):
        return ok() if len(server.seen) < 10 else release.wait(30) and None

    with counting_server(answer) as server:
        (trial,) = carry_out(Testbed(server), planned("http.client", requests=300, timeout=0.1)).trials
        release.set()
    assert (trial.status, trial.partial, set(trial.errors)) == ("failed", True, {"timeout-read"})
    assert "aiohttp by direct does not answer" in trial.reason
    assert len(server.seen) < 300


def test_a_trial_without_any_success_has_failed_with_its_figures(carry_out):
    """Errors are counted and named; there are no latencies to be proud of."""
    with counting_server(lambda _: ok(status="503 Service Unavailable")) as server:
        run = carry_out(server, planned("urllib3"))
    (trial,) = run.trials
    assert (run.status, next(caution.kind for caution in run.cautions)) == ("incomplete", "failed-trials")
    assert (trial.status, trial.requests, trial.errors) == ("failed", 12, {"status-5xx": 12})
    assert "status 503" in trial.reason
    assert (trial.latency_seconds, trial.requests_per_second) == (None, 0)


def test_a_testbed_that_dies_ends_the_run_with_its_reason(store, carry_out):
    """There is nothing left to measure against; what was finished is in the file."""
    with counting_server() as server, pytest.raises(IncompleteRun, match="no descriptors in trial 2 of 3"):
        carry_out(Failing(server), planned("http.client", rounds=3))
    run = store.read(NAME)
    assert (run.status, [trial.status for trial in run.trials]) == ("incomplete", ["done", "lost"])
    assert run.trials[1].reason == "no descriptors"
