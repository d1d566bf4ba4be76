"""Carrying out an experiment: real trials of real clients, against a server that shares no code with the lab."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from clientlab import strategies
from clientlab.analysis.histogram import decoded
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun, ServerLost
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.ranking import ranked
from clientlab.results.document import Run
from clientlab.results.figures import FIGURES
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.running.execute import execute, new_run
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import SURROUNDINGS
from clients.fake_testbed import FakeTestbed
from clients.measured import trial_processes

pytestmark = pytest.mark.real


class Recorder:
    """An observer that notes what it is told; `at_start` and `at_end` are called with each trial."""

    def __init__(self, at_start=lambda _: None, at_end=lambda _: None) -> None:
        self.events = []
        self.at_start = at_start
        self.at_end = at_end

    def run_started(self, run, folder) -> None:
        self.events.append(("run", run.run, folder.name))

    def trials_started(self, trials, planned) -> None:
        for trial in trials:
            self.events.append(("start", trial.strategy, planned))
            self.at_start(trial)

    def progressed(self, finished) -> None:
        pass

    def trial_ended(self, trial) -> None:
        self.events.append(("end", trial.strategy, trial.status))
        self.at_end(trial)

    def round_judged(self, run, rounds) -> None:
        self.events.append(("round", rounds, dict(run.decided)))


NAME = "20240506-070809-mine-abcd"


def planned(*strategies: str, rounds: int = 1, **workload) -> Run:
    """A run that has not begun, of a dozen requests a trial unless told."""
    workload = {"requests": 12, "warmup": 2, "timeout": 5.0} | workload
    tables = {"w": WorkloadTable(first=Workload(**workload))}
    fields = {"name": "mine", "question": "?", "strategies": list(strategies), "rounds": rounds, "seed": 1}
    experiment = Experiment(**fields, workloads=tables)
    return new_run(NAME, make_plan(experiment), Target(testbed="local"), SURROUNDINGS)


@pytest.fixture
def store(tmp_path):
    """A results folder in which the run has its place."""
    made = Store(tmp_path)
    made.claim(NAME)
    return made


def test_the_figures_of_a_trial_are_those_that_the_server_saw(store):
    """Requests, errors, connections and bytes, exactly; the warm-up is in none of them. The sample logs are gone."""
    body = b"x" * 321
    with counting_server(lambda seen: ok(body, "404 Not Found" if seen.target == "/3" else "200 OK")) as server:
        run = execute(
            planned("http.client", "requests", path="/{k}"),
            TrialRunner(FakeTestbed(server)),
            store,
            Recorder(),
        )
    assert [path.name for path in (store.folder / NAME).iterdir()] == ["run.json"]
    assert {trial.strategy: trial.connections_opened for trial in run.trials} == {
        "http.client": 1, "requests": 12,
    }  # fmt: skip
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors) == ("done", 12, {"status-4xx": 1})
        assert trial.error_examples == {"status-4xx": "status 404"}
        assert trial.bytes_received == 12 * 321
        assert trial.upstream_use.requests == 12
        assert trial.upstream_use.connections == trial.connections_opened
        assert trial.requests_per_second == pytest.approx(11 / trial.wall_seconds)
        assert 0 < trial.latency_seconds.p50 <= trial.latency_seconds.p99 <= trial.latency_seconds.max
        assert trial.cpu_seconds > 0
        assert 5 << 20 < trial.peak_pss_bytes < trial.peak_rss_bytes < 1 << 30
        assert trial.noise.seconds >= trial.wall_seconds
        assert sum(row.requests for row in trial.over_time) == 12
        assert sum(row.errors for row in trial.over_time) == 1
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
def test_a_wait_for_a_connection_is_no_overhead(strategy, waits, store):
    """Where all clocks start at once, or where a small pool holds the requests back, the trial says so."""
    with counting_server(hold=0.01) as server:
        plan = planned(strategy, delay=Delay.parse("10ms"), concurrency=3)
        run = execute(plan, TrialRunner(FakeTestbed(server)), store, Recorder())
    (trial,) = run.trials
    assert trial.status == "done"
    assert trial.waits_for_connection is waits
    assert (trial.overhead_seconds is None) is waits
    assert trial.in_flight.client > (3.5 if "?" not in strategy and waits else 1)


def test_a_strategy_whose_process_fails_is_a_failed_trial_with_the_reason(store, monkeypatch):
    """It could not even begin; what it wrote is kept beside the run file."""
    monkeypatch.setitem(strategies.STRATEGIES, "broken", strategies.Strategy("broken", "no-such-client", "serial"))
    for order in range(2):  # as the lab leaves them that was killed in a trial
        (store.folder / NAME / f"trial-{order:04d}").mkdir()
        (store.folder / NAME / f"trial-{order:04d}" / "1.process").touch()
    with counting_server() as server:
        run = execute(planned("broken", "urllib3"), TrialRunner(FakeTestbed(server)), store, Recorder())
    found = {trial.strategy: trial for trial in run.trials}
    assert found["urllib3"].status == "done"
    assert found["broken"].status == "failed"
    assert found["broken"].reason.startswith("KeyError: 'no-such-client' (known.py:")
    log = store.folder / NAME / f"trial-{found['broken'].order:04d}" / "trial.log"
    assert "Traceback" in log.read_text()
    assert [path.name for path in log.parent.iterdir()] == ["trial.log"]


def test_a_trial_with_an_impossible_figure_has_failed_and_the_others_go_on(store):
    """The server's counter of requests falls while the second trial is measured, as that of a new process does."""

    class Testbed(FakeTestbed):
        readings = 0

        def reading(self, upstream: str, route: str) -> ServerCounters:
            self.readings += 1
            none = ServerCounters(upstream=ServerUse(cpu_seconds=0.0, requests=0))
            return none if self.readings == 4 else super().reading(upstream, route)

    with counting_server() as server:
        run = execute(planned("http.client", rounds=3), TrialRunner(Testbed(server)), store, Recorder())
    assert [trial.status for trial in run.trials] == ["done", "failed", "done"]
    assert run.trials[1].reason.startswith("impossible figure: requests")
    assert store.read(NAME) == run


def test_a_trial_tells_that_it_warms_up(store):
    """Before the first measured request, whose number follows."""
    told = []
    recorder = Recorder()
    recorder.progressed = told.append
    with counting_server(hold=0.3) as server:
        execute(planned("http.client", requests=3, warmup=3), TrialRunner(FakeTestbed(server)), store, recorder)
    phases = [finished is None for finished in told]
    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {True, False}


def test_the_requests_of_a_trial_that_is_killed_are_kept_as_partial(store):
    """With its cause. They stand in each report, and in no ranking, figure or judgement."""

    def kill(finished: int | None) -> None:
        (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
        if (finished or 0) >= 5 and recorder.events[-1][1] == "urllib3":
            trial.kill()

    recorder = Recorder()
    recorder.progressed = kill
    with counting_server(lambda seen: ok(b"x" * 50) if seen.target != "/1" else None, hold=0.03) as server:
        runner = TrialRunner(FakeTestbed(server), keep_samples=True)
        run = execute(planned("http.client", "urllib3", requests=40, path="/{k}"), runner, store, recorder)
    (whole,) = (trial for trial in run.trials if trial.status == "done")
    (killed,) = (trial for trial in run.trials if trial.status == "failed")
    assert (killed.strategy, killed.partial, whole.partial) == ("urllib3", True, None)
    assert killed.reason.startswith("its process was ended by SIGKILL")
    assert 5 <= killed.requests < 40
    assert killed.errors == {"reset": 1}
    assert killed.bytes_received == 50 * (killed.requests - 1)
    assert killed.latency_seconds.p50 >= 0.03
    assert sum(row.requests for row in killed.over_time) == killed.requests
    assert (killed.cpu_seconds, killed.peak_pss_bytes, killed.verdict) == (None, None, None)
    with np.load(store.folder / NAME / f"samples/trial-{killed.order:04d}.npz") as kept:
        assert kept["number"].tolist() == list(range(killed.requests))
    assert [standing.name for rows in ranked(run).values() for standing in rows] == ["http.client"]
    for figure in FIGURES:
        assert figure.values(run.trials) == figure.values([whole])
    assert store.read(NAME) == run


@pytest.mark.usefixtures("terminal_signals")
def test_the_requests_before_an_interrupt_are_kept_as_partial(store):
    """The trial is lost, and measured once more when the run goes on."""

    def interrupt(finished: int | None) -> None:
        if (finished or 0) >= 3:
            signal.raise_signal(signal.SIGINT)

    recorder = Recorder()
    recorder.progressed = interrupt
    with counting_server(hold=0.05) as server, pytest.raises(IncompleteRun, match="interrupted in trial 1 of 1"):
        execute(planned("http.client", requests=100), TrialRunner(FakeTestbed(server)), store, recorder)
    (trial,) = store.read(NAME).trials
    assert (trial.status, trial.reason, trial.partial) == ("lost", "interrupted", True)
    assert 3 <= trial.requests < 100
    assert [path.name for path in (store.folder / NAME).iterdir()] == ["run.json"]


def test_a_trial_ends_as_failed_where_requests_fail_and_no_health_check_is_answered(store):
    """After five failures in a row and a failed check behind which none succeeded; what had finished is partial."""

    class Testbed(FakeTestbed):
        def trouble(self, upstream: str, route: str, workload: Workload) -> str:  # noqa: ARG002
            return f"{upstream} by {route} does not answer"

    release = threading.Event()

    def answer(_seen):
        return ok() if len(server.seen) < 10 else release.wait(30) and None

    with counting_server(answer) as server:
        run = execute(
            planned("http.client", requests=300, timeout=0.1), TrialRunner(Testbed(server)), store, Recorder()
        )
        release.set()
    (trial,) = run.trials
    assert trial.status == "failed"
    assert "aiohttp by direct does not answer" in trial.reason
    assert len(server.seen) < 300
    assert (trial.partial, set(trial.errors)) == (True, {"timeout-read"})


def test_a_trial_without_any_success_has_failed_with_its_figures(store):
    """Errors are counted and named; there are no latencies to be proud of."""
    with counting_server(lambda _: ok(status="503 Service Unavailable")) as server:
        recorder = Recorder()
        run = execute(planned("urllib3"), TrialRunner(FakeTestbed(server)), store, recorder)
    assert run.status == "incomplete"
    assert next(caution.kind for caution in run.cautions) == "failed-trials"
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors) == ("failed", 12, {"status-5xx": 12})
        assert "status 503" in trial.reason
        assert trial.latency_seconds is None
        assert trial.requests_per_second == 0
    assert [event[2] for event in recorder.events if event[0] == "end"] == ["failed"]


def test_a_home_that_dies_ends_the_run_with_its_reason(store):
    """There is nothing left to measure against; what was finished is in the file."""
    error = OSError("out of descriptors")

    class Testbed(FakeTestbed):
        readings = 0

        def reading(self, upstream: str, route: str) -> ServerCounters:
            self.readings += 1
            if self.readings > 2:
                raise error
            return super().reading(upstream, route)

    with counting_server() as server, pytest.raises(IncompleteRun, match=f"{error} in trial 2 of 3"):
        execute(planned("http.client", rounds=3), TrialRunner(Testbed(server)), store, Recorder())
    run = store.read(NAME)
    assert (run.status, [trial.status for trial in run.trials]) == ("incomplete", ["done", "lost"])
    assert run.trials[1].reason == str(error)


def test_a_trial_whose_server_dies_is_measured_once_more(store):
    """The testbed starts the server again before the next trial; the reason is kept."""

    class Testbed(FakeTestbed):
        readings = served = 0

        def serve(self, upstream: str) -> None:
            self.served += 1
            if self.served == 1:
                raise ServerLost(f"{upstream} does not answer")

        def reading(self, upstream: str, route: str) -> ServerCounters:
            self.readings += 1
            if self.readings == 4:
                raise ServerLost("aiohttp was ended by SIGKILL")
            return super().reading(upstream, route)

    with counting_server() as server:
        run = execute(planned("http.client", rounds=3), TrialRunner(Testbed(server)), store, Recorder())
    assert [(trial.round, trial.status) for trial in run.trials] == [
        (1, "lost"), (2, "done"), (3, "lost"), (1, "done"), (3, "done"),
    ]  # fmt: skip
    assert (run.status, run.trials[0].reason) == ("done", "aiohttp does not answer")
    assert (run.trials[2].reason, run.trials[2].partial, run.trials[2].requests) == (
        "aiohttp was ended by SIGKILL", True, 12,
    )  # fmt: skip
