"""Runs of real trials, against a server that shares no code with the lab."""

from __future__ import annotations

import os
import statistics
import threading
import time

import numpy as np
import pytest

from clientlab import plugins
from clientlab.conformance.server import counting_server, ok
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.execute import execute
from clientlab.running.trial_runner import TrialRunner
from clientlab.workload.values import Delay
from clients.fake_testbed import FakeTestbed
from clients.measured import trial_processes
from clients.running.runs import NAME, Recorder, planned

pytestmark = pytest.mark.real


@pytest.fixture
def carry_out(store):
    """A function that carries out a run against a server, or against a testbed."""

    def carry_out(target, run, recorder: Recorder | None = None, **runner):
        testbed = target if isinstance(target, FakeTestbed) else FakeTestbed(target)
        return execute(
            run, TrialRunner(testbed, **runner), store, recorder or Recorder()
        )

    return carry_out


def test_the_figures_of_a_trial_are_those_that_the_server_saw(store, carry_out):
    """Requests, errors, connections and bytes are exact and leave out the warm-up.

    The sample logs are removed.
    """
    body = b"x" * 321
    with counting_server(
        lambda seen: ok(body, "404 Not Found" if seen.target == "/3" else "200 OK")
    ) as server:
        run = carry_out(server, planned("http.client", "requests", path="/{k}"))
    assert [path.name for path in (store.folder / NAME).iterdir()] == ["run.json"]
    opened = {
        trial.planned.strategy: trial.measured.connections_opened
        for trial in run.trials
    }
    assert opened == {"http.client": 1, "requests": 12}
    for trial in run.trials:
        figures = trial.figures
        upstream = trial.servers.upstream
        assert trial.status == "done"
        assert figures.requests == 12
        assert figures.errors == {"status-4xx": 1}
        assert figures.error_examples == {"status-4xx": "status 404"}
        assert figures.bytes_received == 12 * 321
        assert upstream.requests == 12
        assert upstream.connections == trial.measured.connections_opened
        assert figures.requests_per_second == pytest.approx(11 / trial.wall_seconds)
        # One process shares nothing, and the log of 12 requests is a page.
        rss = trial.measured.peak_rss_bytes
        assert 5 << 20 < rss < 1 << 30
        assert trial.measured.peak_pss_bytes == pytest.approx(rss, rel=0.02)
        assert trial.measured.disturbance.seconds >= trial.wall_seconds
        # One of 12 failed: the median is exact, and the maximum is unknown.
        assert figures.latency_seconds.at_least == ["mean", "p95", "p99", "max"]
        assert figures.overhead_seconds is None


def test_overhead_leaves_out_the_delay_that_the_server_was_asked_for_in_this_round(
    carry_out,
):
    """Lab and upstream agree on the delay of request k of each round, to the
    microsecond.
    """
    asked = []

    def answer(seen):
        asked.append(float(seen.target.partition("delay=")[2]))
        time.sleep(asked[-1])
        return ok(b"")

    with counting_server(answer) as server:
        run = carry_out(
            server,
            planned(
                "urllib3", rounds=2, warmup=0, delay=Delay.parse("uniform:1ms,20ms")
            ),
        )
    assert sorted(asked[:12]) != sorted(asked[12:])
    for trial, delays in zip(run.trials, (asked[:12], asked[12:]), strict=True):
        known = trial.figures.latency_seconds.mean - trial.figures.overhead_seconds.mean
        assert known == pytest.approx(statistics.fmean(delays), abs=1e-6)


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [
        ("aiohttp@gather", True),
        ("urllib3@threads", False),
        ("requests-session@threads?pool=1&pool_block=true", True),
    ],
)
def test_a_latency_that_holds_the_wait_for_a_connection_has_no_overhead(
    strategy, waits, carry_out
):
    """All clocks start at once, or a small pool holds the requests back."""
    with counting_server(hold=0.01) as server:
        (trial,) = carry_out(
            server, planned(strategy, delay=Delay.parse("10ms"), concurrency=3)
        ).trials
    assert trial.status == "done"
    assert trial.figures.waits_for_connection is waits
    assert (trial.figures.overhead_seconds is None) is waits
    assert trial.verdict.in_flight.client > (3.5 if strategy == "aiohttp@gather" else 1)


BREAKS = """
from clientlab.clients.http_client import HttpClient
class Breaks(HttpClient):
    def open(self): raise RuntimeError("not today")
"""


def test_a_strategy_whose_process_fails_is_a_failed_trial_with_the_reason(
    store, carry_out, tmp_path
):
    """What the process wrote is kept beside the run file.

    Files of a lab that was killed in a trial are removed.
    """
    (tmp_path / "mine.py").write_text(BREAKS)
    name = f"{tmp_path / 'mine.py'}:Breaks"
    plugins.admit([name])
    for order in range(2):
        (store.folder / NAME / f"trial-{order:04d}").mkdir()
        (store.folder / NAME / f"trial-{order:04d}" / "1.process").touch()
    with counting_server() as server:
        run = carry_out(server, planned(name, "urllib3"))
    broken, sound = sorted(
        run.trials, key=lambda trial: trial.planned.strategy
    )  # by the slash of the path
    assert broken.status == "failed"
    assert sound.status == "done"
    assert broken.reason.startswith("RuntimeError: not today (")
    assert broken.reason.endswith("mine.py:4)")
    log = store.folder / NAME / f"trial-{broken.planned.order:04d}" / "trial.log"
    assert "Traceback" in log.read_text()
    assert [path.name for path in log.parent.iterdir()] == ["trial.log"]


def test_a_trial_with_an_impossible_figure_has_failed_and_the_others_go_on(
    store, carry_out
):
    """The server's counter of requests falls during the second trial, as if its process
    had been replaced.
    """

    class Replaced(FakeTestbed):
        readings = 0

        def reading(self, upstream: str, route: str) -> ServerCounters:
            self.readings += 1
            restarted = ServerCounters(upstream=ServerUse(cpu_seconds=0.0, requests=0))
            return restarted if self.readings == 4 else super().reading(upstream, route)

    with counting_server() as server:
        run = carry_out(Replaced(server), planned("http.client", rounds=3))
    assert [trial.status for trial in run.trials] == ["done", "failed", "done"]
    assert run.trials[1].reason.startswith("impossible figure: requests")
    assert store.read(NAME) == run


def test_the_requests_of_a_trial_that_is_killed_are_kept_as_partial(store, carry_out):
    def kill(finished: int | None) -> None:
        (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
        if (finished or 0) >= 5 and recorder.events[-1][1] == "urllib3":
            trial.kill()

    recorder = Recorder(progressed=kill)
    run = planned("http.client", "urllib3", requests=40, path="/{k}")
    with counting_server(
        lambda seen: ok(b"x" * 50) if seen.target != "/1" else None, hold=0.03
    ) as server:
        run = carry_out(server, run, recorder, keep_samples=True)
    whole, killed = sorted(run.trials, key=lambda trial: trial.planned.strategy)
    figures = killed.figures
    assert [(one.status, one.partial) for one in (whole, killed)] == [
        ("done", None),
        ("failed", True),
    ]
    assert killed.reason.startswith("its process was ended by SIGKILL")
    assert 5 <= figures.requests < 40
    assert figures.errors == {"reset": 1}
    assert figures.bytes_received == 50 * (figures.requests - 1)
    assert figures.latency_seconds.p50 >= 0.03
    assert sum(row.requests for row in figures.over_time) == figures.requests
    assert killed.measured is None
    assert killed.verdict is None
    with np.load(
        store.folder / NAME / f"samples/trial-{killed.planned.order:04d}.npz"
    ) as kept:
        assert kept["number"].tolist() == list(range(figures.requests))
    assert store.read(NAME) == run


def test_a_trial_ends_as_failed_if_requests_fail_and_no_health_check_is_answered(
    carry_out,
):
    """After five failures in a row and a failed check without a success after it.

    The trial is partial.
    """

    class Testbed(FakeTestbed):
        def trouble(self, upstream, route, _workload):
            return f"{upstream} by {route} does not answer"

    release = threading.Event()

    def answer(_seen):
        return ok() if len(server.seen) < 10 else release.wait(30) and None

    with counting_server(answer) as server:
        (trial,) = carry_out(
            Testbed(server), planned("http.client", requests=300, timeout=0.1)
        ).trials
        release.set()
    assert trial.status == "failed"
    assert trial.partial
    assert set(trial.figures.errors) == {"timeout-read"}
    assert "aiohttp by direct does not answer" in trial.reason
    assert len(server.seen) < 300
