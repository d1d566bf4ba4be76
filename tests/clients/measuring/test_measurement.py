"""Measuring a trial in its own process: its events, its resources, and its end."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import threading
import time

import pytest

from clientlab import strategies
from clientlab.conformance.server import counting_server, ok
from clientlab.measuring import measurement, rests
from clientlab.measuring import trial_processes as trial_processes_module
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.samples import log_reader
from clientlab.samples.log import SampleLog
from clientlab.workload.workload import Workload
from clients.measured import is_alive, measure, trial_processes
from running import eventually

pytestmark = pytest.mark.real

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it")


@pytest.fixture
def server():
    """A server that answers at once."""
    with counting_server() as running:
        yield running


def context_of(name, workload, server, folder):
    """A context that is not yet running."""
    return TrialContext(strategies.find(name), workload, server.url, str(folder), PeerAddress(server.port))


@pytest.mark.parametrize(("client", "foreign"), [("aiohttp", "requests"), ("requests", "aiohttp")])
def test_a_trial_imports_its_own_library_only(client, foreign):
    """The measured process holds neither the other libraries nor the lab's reports and servers."""
    code = (
        "import sys; from clientlab import strategies; import clientlab.measuring.trial_process;"
        f"strategies.load(strategies.CLIENTS[{client!r}].import_path); print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert client in modules
    unwanted = {
        foreign,
        "numpy",
        "pydantic",
        "rich",
        "click",
        "psutil",
        "clientlab.results",
        "clientlab.running",
        "mockupstream",
    }
    assert not unwanted & set(modules)


@pytest.mark.parametrize(("strategy", "connections"), [("aiohttp@workers", 0), ("requests", 9)])
def test_warm_connections_are_opened_before_the_clock(strategy, connections, server):
    """A pool that is warm opens nothing more; a client a call opens one a call all the same."""
    workload = Workload(requests=9, concurrency=3, warmup=6, connections="warm")
    measured = measure(strategy, workload, server.url)
    assert measured.outcome.connections_begun == connections
    assert measured.numbers == list(range(9))


@pytest.mark.parametrize(
    "strategy",
    ["http.client@threads", "http.client@queue", "http.client@sync_to_async", "http.client@process-chunks",
     "http.client@processes?start_method=spawn", "aiohttp@async-threads?threads=4", "requests-session-per-thread"],
)  # fmt: skip
def test_every_worker_of_a_warm_trial_is_warm(strategy, server):
    """However quick the answers are: none is left to open its connection inside the clock."""
    workload = Workload(requests=200, concurrency=5, warmup=5, connections="warm")
    measured = measure(strategy, workload, server.url)
    assert measured.samples.errors == {}
    assert server.connections == 5
    assert measured.outcome.connections_begun == 0


@linux
def test_cpu_and_memory_are_those_of_all_processes(server):
    """As the kernel tells their parent. Pages that forked processes share are counted once, and in the RSS of each."""

    def children():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = children()
    workload = Workload(requests=400, concurrency=8, warmup=0)
    outcome = measure("requests-session@processes", workload, server.url).outcome
    whole = children() - before
    assert 0.1 * whole < outcome.cpu_seconds < whole
    assert outcome.processes == 8
    assert 0 < outcome.startup_seconds <= outcome.wall_seconds
    assert 0 < outcome.fullest_cpu_seconds < outcome.cpu_seconds
    alone = measure("requests-session", Workload(requests=4), server.url).outcome
    assert alone.startup_seconds == 0
    assert outcome.peak_rss_bytes > 6 * alone.peak_rss_bytes
    assert alone.peak_pss_bytes < outcome.peak_pss_bytes < outcome.peak_rss_bytes / 2


@linux
def test_a_trial_reports_what_disturbed_it():
    """Another program that computes during the trial takes CPU time of the machine."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as hog, counting_server(hold=0.03) as server:
        outcome = measure("http.client", Workload(requests=30), server.url).outcome
        hog.kill()
    found = outcome.disturbance
    assert found.seconds >= outcome.wall_seconds
    assert found.machine_cpu_seconds > 0
    assert found.run_delay_seconds >= 0
    assert found.involuntary_switches >= 0


def test_the_pause_before_the_end_is_no_part_of_the_trial(server, monkeypatch):
    """However long the memory of many processes takes to be read: wall and CPU time stand still meanwhile."""

    def slow(*_arguments):
        time.sleep(1)

    monkeypatch.setattr(rests.usage, "footprint", slow)
    outcome = measure("http.client", Workload(requests=2, warmup=0), server.url).outcome
    assert outcome.wall_seconds < 1 <= outcome.disturbance.seconds
    assert (outcome.idle_pss_bytes, outcome.peak_pss_bytes) == (None, None)


@pytest.mark.parametrize(
    ("strategy", "read", "least", "most"),
    [("http.client", "whole", 30, 48), ("pycurl@multi", "whole", 30, 48), ("http.client", "chunks", 0, 20)],
)
def test_memory_above_idle_is_what_the_bodies_cost(strategy, read, least, most):
    """A body of 32 MiB read whole is in the peak once, one read in chunks is not, nor is the warm-up in either."""
    body = ok(bytes(32 << 20))
    with counting_server(lambda _: body) as server:
        workload = Workload(requests=3, concurrency=1, warmup=1, read=read)
        outcome = measure(strategy, workload, server.url).outcome
    assert least << 20 <= outcome.peak_pss_bytes - outcome.idle_pss_bytes <= most << 20
    assert outcome.idle_pss_bytes < 64 << 20


def test_the_peak_is_that_of_the_measured_part():
    """A large answer in the warm-up alone does not count: the mark is set back before the clock starts."""
    answers = iter([ok(bytes(64 << 20))])
    with counting_server(lambda _: next(answers, ok())) as server:
        outcome = measure("http.client", Workload(requests=2, warmup=1), server.url).outcome
    assert outcome.peak_rss_bytes < 64 << 20
    assert outcome.peak_pss_bytes < 64 << 20


def test_callbacks_get_start_progress_and_end_in_this_order():
    """The progress is a number of finished requests that grows. No request is sent before the start."""
    calls = []
    with counting_server(hold=0.15) as server:
        measured = measure(
            "http.client",
            Workload(requests=6, warmup=0),
            server.url,
            on_start=lambda: calls.append(("start", len(server.seen))),
            on_progress=lambda finished: calls.append(("progress", finished)),
            on_end=lambda: calls.append(("end", len(server.seen))),
        )
    assert len(measured.samples.records) == 6
    assert [call for call in calls if call[0] != "progress"] == [("start", 0), ("end", 6)]
    finished = [count for name, count in calls if name == "progress"]
    assert finished == sorted(finished)
    assert 0 < finished[-1] <= 6


@linux
def test_a_trial_whose_pool_lives_on_is_killed_with_it_at_once(tmp_path):
    """The pool's processes hold the pipe open: only the process itself shows that it has ended, and how."""
    pool = []

    def kill_after_some(finished):
        if finished >= 5 and not pool:
            (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
            pool.extend(trial.children())
            trial.kill()

    with counting_server(hold=0.02) as server:
        workload = Workload(duration=30, concurrency=4, warmup=0)
        context = context_of("requests-session@processes", workload, server, tmp_path)
        with pytest.raises(TrialFailed, match="SIGKILL"):
            measurement.measure(context, on_progress=kill_after_some, patience=-26)
    assert len(pool) == 4
    eventually(lambda: not any(map(is_alive, pool)), "the pool ends")
    found = log_reader.read_measured(tmp_path)
    assert len(found.records) >= 5


def test_a_trial_that_is_stopped_is_frozen(tmp_path, monkeypatch):
    """By SIGSTOP, in a process of its pool: it would not go on by itself, and the reason names the process."""
    monkeypatch.setattr(trial_processes_module, "_LOOK_SECONDS", 0.0)
    stopped = []

    def stop_after_some(finished):
        if finished >= 3 and not stopped:
            (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
            stopped.append(trial.children()[0])
            stopped[0].suspend()

    with counting_server(hold=0.02) as server:
        workload = Workload(requests=100, concurrency=2, warmup=0)
        context = context_of("http.client@process-chunks", workload, server, tmp_path)
        with pytest.raises(TrialFailed, match="frozen") as caught:
            measurement.measure(context, on_progress=stop_after_some)
    assert str(stopped[0].pid) in str(caught.value)
    eventually(lambda: not is_alive(stopped[0]), "the stopped process ends")


def test_a_trial_ends_at_its_deadline(tmp_path):
    """The reason names the key; no process is left."""
    with counting_server(hold=0.02) as server:
        context = context_of("http.client", Workload(requests=10_000, warmup=0), server, tmp_path)
        with pytest.raises(TrialFailed, match="deadline"):
            measurement.measure(context, deadline=1.0)
    assert trial_processes() == []


def test_failures_in_a_row_are_counted_until_one_succeeds(tmp_path):
    """Over several looks; a warm-up with a log of its own counts as well, and is progress."""
    seen, finished = [], []
    progress = measurement._Progress(
        tmp_path, measurement.Callbacks(on_progress=finished.append, on_failures=seen.append), math.inf
    )
    warm_up, log = SampleLog(tmp_path / "warm-up", 0, 4), SampleLog(tmp_path, 0, 20)
    looks = [progress.look()]
    warm_up.write_late(0, 1.0, 0.1, 0, 0, 1)
    looks.append(progress.look())
    for number in range(3):
        log.write_late(number, 2.0, 0.1, 0, 0, 1)
    looks.append(progress.look())
    log.write_late(3, 3.0, 0.1, 0, 200, 0)
    log.write_late(4, 3.0, 0.1, 0, 0, 1)
    looks += [progress.look(), progress.look()]
    warm_up.close(0)
    log.close(0)
    assert (looks, finished, seen) == ([0, 1, 4, 6, 6], [0, 0, 3, 5, 5], [0, 1, 4, 0, 0])


@pytest.mark.parametrize("strategy", ["requests-session@processes", "pycurl@multi"])
def test_a_duration_that_is_too_short_for_a_pool_is_extended(strategy, server):
    """Until as many requests began as may be in flight: a busy machine must not leave a trial without any."""
    measured = measure(strategy, Workload(duration=1e-6, concurrency=4, warmup=0), server.url)
    assert (measured.numbers, measured.outcome.extended) == ([0, 1, 2, 3], True)


def test_a_trial_in_which_nothing_happens_has_stalled(tmp_path):
    """It is ended when no request has finished for longer than its time limit allows."""
    release = threading.Event()

    def answer(_seen):
        release.wait(30)
        return ok()

    with counting_server(answer) as server:
        context = context_of("aiohttp", Workload(requests=1, warmup=0, timeout=5), server, tmp_path)
        with pytest.raises(TrialFailed, match="stalled"):
            measurement.measure(context, patience=-4)
        release.set()
    assert trial_processes() == []


@pytest.mark.parametrize("client", ["requests-session", "aiohttp"])
def test_no_client_uses_passwords_or_proxies_of_the_environment_or_sends_a_cookie_back(client, tmp_path, monkeypatch):
    """No entry of ~/.netrc, nor of the file that NETRC names, is used. What a server sets is not sent again."""
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    (tmp_path / ".netrc").write_text("default login mine password secret\n", encoding="ascii")  # for any host
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: seen=before; Path=/\r\nContent-Length: 2\r\n\r\n"
    with counting_server(lambda _: head + b"{}") as server:
        measured = measure(client, Workload(requests=4, warmup=0), server.url)
        assert [seen.headers.get("authorization") for seen in server.seen] == [None] * 4
        assert [seen.headers.get("cookie") for seen in server.seen] == [None] * 4
    assert measured.samples.errors == {}
