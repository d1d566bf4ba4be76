"""Carrying out an experiment: real trials of real clients, against a server that shares no code with the lab."""

from __future__ import annotations

import json
import signal

import jsonschema
import pytest

from clientlab import strategies
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun
from clientlab.measuring.connections import Address
from clientlab.runs.document import Run, ServerUse, Trial, schema
from clientlab.runs.execute import TrialLost, execute
from clientlab.runs.experiment import Experiment, new_run
from clientlab.runs.figures import Reading
from clientlab.runs.here import Here
from clientlab.runs.store import Store
from clientlab.workload import Workload
from clients.documents import SURROUNDINGS
from clients.measured import trial_processes


class FakeHome:
    """A home whose upstream is the counting server; its counters are read off that."""

    def __init__(self, server) -> None:
        self.server = server

    def serve(self, upstream: str) -> None:
        """It runs."""

    def base_url(self, upstream: str, route: str) -> str:  # noqa: ARG002
        return self.server.url

    def address(self, upstream: str, route: str) -> Address:  # noqa: ARG002
        return Address(self.server.port)

    def ca_file(self, upstream: str, route: str) -> None:
        """It has no TLS."""

    def reading(self, upstream: str, route: str) -> Reading:  # noqa: ARG002
        use = ServerUse(cpu_seconds=0.0, requests=len(self.server.seen), connections=self.server.connections)
        return Reading(use)


class Recorder:
    """An observer that notes what it is told; `at_start` and `at_end` are called with each trial."""

    def __init__(self, at_start=lambda _: None, at_end=lambda _: None) -> None:
        self.events = []
        self.at_start = at_start
        self.at_end = at_end

    def run_started(self, run, folder) -> None:
        self.events.append(("run", run.run, folder.name))

    def trial_started(self, trial, planned) -> None:
        self.events.append(("start", trial.strategy, planned))
        self.at_start(trial)

    def progressed(self, finished) -> None:
        pass

    def trial_ended(self, trial) -> None:
        self.events.append(("end", trial.strategy, trial.status))
        self.at_end(trial)


NAME = "20240506-070809-mine-abcd"


def planned(*strategies: str, rounds: int = 1, **workload) -> Run:
    """A run that has not begun, of a dozen requests a trial unless told."""
    workload = {"requests": 12, "warmup": 2, "timeout": 5.0} | workload
    asked = Experiment(
        name="mine", question="?", strategies=list(strategies), rounds=rounds, workloads={"w": Workload(**workload)}
    )
    return new_run(NAME, asked, SURROUNDINGS, "clientlab run")


@pytest.fixture
def store(tmp_path):
    """A results folder in which the run has its place."""
    made = Store(tmp_path)
    made.claim(NAME)
    return made


def test_the_figures_of_a_trial_are_those_that_the_server_saw(store):
    """Requests, errors, connections and bytes, exactly; the warm-up is in none of them."""
    body = b"x" * 321
    with counting_server(lambda seen: ok(body, "404 Not Found" if seen.target == "/3" else "200 OK")) as server:
        run = execute(
            planned("http.client", "requests", "urllib3", path="/{k}"), Here(FakeHome(server)), store, Recorder()
        )
    assert {trial.strategy: trial.connections_opened for trial in run.trials} == {
        "http.client": 1, "requests": 12, "urllib3": 1,
    }  # fmt: skip
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors) == ("done", 12, {"status-4xx": 1})
        assert trial.error_examples == {"status-4xx": "status 404"}
        assert trial.bytes_received == 12 * 321
        assert trial.upstream_use.requests == 12
        assert trial.upstream_use.connections == trial.connections_opened
        assert trial.requests_per_second == pytest.approx(11 / trial.wall_seconds)
        assert 0 < trial.latency_seconds.p50 <= trial.latency_seconds.p99 <= trial.latency_seconds.max < 1
        assert 12 * trial.latency_seconds.mean < 1.2 * trial.wall_seconds
        assert 0 < trial.cpu_seconds < 5
        assert 5 << 20 < trial.peak_rss_bytes < 1 << 30
        assert sum(row.requests for row in trial.over_time) == 12
        assert sum(row.errors for row in trial.over_time) == 1
        assert trial.overhead_seconds is None


def test_overhead_is_what_the_client_adds_to_the_delay(store):
    """The server holds each request for the delay that it was asked for, and answers."""
    with counting_server(hold=0.02) as server:
        run = execute(planned("urllib3", delay="20ms"), Here(FakeHome(server)), store, Recorder())
    (trial,) = run.trials
    assert trial.latency_seconds.p50 == pytest.approx(trial.overhead_seconds.p50 + 0.02, abs=1e-4)
    assert 0 < trial.overhead_seconds.p50 < 0.02
    assert trial.busy["latency"] == pytest.approx(12 * 0.02 / trial.wall_seconds)


def test_the_run_is_saved_after_every_trial(store):
    """The file holds each trial by the time that it is told of, and fits the schema."""
    saved = []

    def look(_) -> None:
        document = json.loads((store.folder / NAME / "run.json").read_text())
        jsonschema.validate(document, schema())
        saved.append((document["status"], len(document["trials"])))

    with counting_server() as server:
        recorder = Recorder(at_start=look, at_end=look)
        run = execute(planned("http.client", "urllib3", rounds=2), Here(FakeHome(server)), store, recorder)
    assert saved == [("running", count) for count in (0, 1, 1, 2, 2, 3, 3, 4)]
    assert store.read(NAME) == run
    assert (run.status, [trial.order for trial in run.trials]) == ("done", [0, 1, 2, 3])
    assert [trial.round for trial in run.trials] == [1, 1, 2, 2]
    assert recorder.events[0] == ("run", NAME, NAME)
    assert [event[0] for event in recorder.events[1:]] == ["start", "end"] * 4


def test_a_run_leaves_its_file_and_nothing_else(store):
    """The sample logs were read and are gone."""
    with counting_server() as server:
        execute(planned("http.client"), Here(FakeHome(server)), store, Recorder())
    assert [path.name for path in (store.folder / NAME).iterdir()] == ["run.json"]


def test_a_strategy_that_fails_is_a_failed_trial_and_the_others_go_on(store):
    """The server closes on whoever writes `Connection: keep-alive`, as requests does and the others do not."""
    with counting_server(lambda seen: None if "connection" in seen.headers else ok()) as server:
        run = execute(planned("http.client", "requests", "urllib3"), Here(FakeHome(server)), store, Recorder())
    found = {trial.strategy: trial for trial in run.trials}
    assert {name: trial.status for name, trial in found.items()} == {
        "http.client": "done", "requests": "failed", "urllib3": "done",
    }  # fmt: skip
    assert found["requests"].reason.startswith("none of 12 requests succeeded; most often reset: ConnectionError: ")
    assert found["requests"].connections_opened == 12
    assert run.status == "incomplete"


def test_a_strategy_whose_process_fails_is_a_failed_trial_with_the_reason(store, monkeypatch):
    """It could not even begin; what it wrote is kept beside the run file."""
    monkeypatch.setitem(strategies.STRATEGIES, "broken", strategies.Strategy("broken", "no-such-client", "serial"))
    with counting_server() as server:
        run = execute(planned("broken", "urllib3"), Here(FakeHome(server)), store, Recorder())
    found = {trial.strategy: trial for trial in run.trials}
    assert found["urllib3"].status == "done"
    assert found["broken"].status == "failed"
    assert found["broken"].reason.startswith("KeyError: 'no-such-client' (plugins.py:")
    log = store.folder / NAME / f"trial-{found['broken'].order:04d}" / "trial.log"
    assert "Traceback" in log.read_text()


def test_a_trial_without_any_success_has_failed_with_its_figures(store):
    """Errors are counted and named; there are no latencies to be proud of."""
    with counting_server(lambda _: ok(status="503 Service Unavailable")) as server:
        recorder = Recorder()
        run = execute(planned("http.client", "urllib3"), Here(FakeHome(server)), store, recorder)
    assert run.status == "incomplete"
    assert next(caution.kind for caution in run.cautions) == "failed-trials"
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors) == ("failed", 12, {"status-5xx": 12})
        assert trial.reason == "none of 12 requests succeeded; most often status-5xx: status 503"
        assert trial.latency_seconds is None
        assert trial.requests_per_second == 0
    assert [event[2] for event in recorder.events if event[0] == "end"] == ["failed"] * 2


@pytest.mark.parametrize("moment", ["as it starts", "while it waits", "as it ends"])
def test_an_interrupted_run_keeps_what_was_finished(moment, store):
    """Ctrl-C around the second of four trials: what was done is in the file, and no process goes on."""

    class Home(FakeHome):
        def reading(self, upstream: str, route: str) -> Reading:
            if moment == "while it waits" and recorder.events[-1][0] == "start" and len(recorder.events) == 4:
                signal.raise_signal(signal.SIGINT)
            return super().reading(upstream, route)

    def interrupt(event: str):
        return lambda trial: signal.raise_signal(signal.SIGINT) if (moment, trial.order) == (event, 1) else None

    recorder = Recorder(interrupt("as it starts"), interrupt("as it ends"))
    with counting_server() as server, pytest.raises(IncompleteRun, match="interrupted in trial 2 of 4; what was done"):
        execute(planned("http.client", "urllib3", rounds=2), Here(Home(server)), store, recorder)
    run = store.read(NAME)
    second = ("done", None) if moment == "as it ends" else ("failed", "interrupted")
    assert run.status == "incomplete"
    assert [(trial.status, trial.reason) for trial in run.trials] == [("done", None), second]
    assert trial_processes() == []


@pytest.mark.parametrize("error", [IncompleteRun("aiohttp was ended by SIGKILL"), OSError("out of descriptors")])
def test_a_home_that_dies_ends_the_run_with_its_reason(error, store):
    """There is nothing left to measure against; what was finished is in the file."""

    class Home(FakeHome):
        readings = 0

        def reading(self, upstream: str, route: str) -> Reading:
            self.readings += 1
            if self.readings > 2:
                raise error
            return super().reading(upstream, route)

    with counting_server() as server, pytest.raises(IncompleteRun, match=f"{error} in trial 2 of 3"):
        execute(planned("http.client", rounds=3), Here(Home(server)), store, Recorder())
    run = store.read(NAME)
    assert (run.status, [trial.status for trial in run.trials]) == ("incomplete", ["done", "failed"])
    assert run.trials[1].reason == str(error)


def test_a_run_that_cannot_be_saved_ends_and_keeps_its_last_save(store):
    """Its folder goes while the second trial is measured: the error says where the file was to be."""

    def remove(trial) -> None:
        if trial.order == 1:
            (store.folder / NAME / "run.json").unlink()
            (store.folder / NAME / "run.json").mkdir()

    with counting_server() as server, pytest.raises(IncompleteRun, match=r"run.json: Is a directory; .*make room"):
        execute(planned("http.client", rounds=3), Here(FakeHome(server)), store, Recorder(at_start=remove))


def test_a_run_that_holds_trials_goes_on_behind_them(store):
    """The order is the seed's, so that it does not matter who had begun."""
    with counting_server() as server:
        whole = execute(planned("http.client", "urllib3", rounds=2), Here(FakeHome(server)), store, Recorder())
        half = whole.model_copy(update={"trials": whole.trials[:3], "status": "running"})
        recorder = Recorder()
        run = execute(half, Here(FakeHome(server)), store, recorder)
    assert run.trials[:3] == whole.trials[:3]
    assert [(trial.arm, trial.round, trial.order) for trial in run.trials] == [
        (trial.arm, trial.round, trial.order) for trial in whole.trials
    ]
    assert [event[0] for event in recorder.events] == ["run", "start", "end"]
    assert run.status == "done"


def test_a_lost_trial_fails_and_is_given_once_more_at_the_end(store):
    """Once only: a trial that is lost again leaves the run incomplete."""

    def measure(planned: Trial, *_: object) -> Trial:
        if planned.order in {0, 2} or planned.order >= 4:
            if planned.order == 4:
                return planned.model_copy(update={"status": "done"})
            raise TrialLost("box was not heard of")
        return planned.model_copy(update={"status": "done"})

    run = execute(planned("http.client", "urllib3", rounds=2), measure, store, Recorder())
    assert [trial.status for trial in run.trials] == ["failed", "done", "failed", "done", "done", "failed"]
    assert run.trials[0].reason == "worker lost: box was not heard of"
    assert [(run.trials[k].arm, run.trials[k].round) for k in (4, 5)] == [
        (run.trials[k].arm, run.trials[k].round) for k in (0, 2)
    ]
    assert run.status == "incomplete"
    made_good = run.model_copy(update={"trials": run.trials[:5], "status": "running"})
    again = execute(made_good, lambda planned, *_: planned.model_copy(update={"status": "done"}), store, Recorder())
    assert (again.status, len(again.trials)) == ("done", 6)
