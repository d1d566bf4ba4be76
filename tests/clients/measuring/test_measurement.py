"""Measuring a trial in its own process: its events, its resources, and its end."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import time
from itertools import chain, repeat

import pytest

from clientlab.conformance.server import Stall, counting_server, ok
from clientlab.measuring import measurement, trial_handle
from clientlab.measuring.trial_handle import TrialFailed
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


@pytest.mark.parametrize(("client", "foreign"), [("aiohttp", "requests"), ("requests", "aiohttp")])
def test_a_trial_imports_its_own_library_only(client, foreign):
    code = (
        "import sys; from clientlab import strategies; import clientlab.measuring.trial_process;"
        f"strategies.load(strategies.CLIENTS[{client!r}].import_path); print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert client in modules
    own = {"clientlab.results", "clientlab.running", "mockupstream"}
    assert not {foreign, "numpy", "pydantic", "rich", "click", "psutil", *own} & set(modules)


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
    outcome = measure("requests-session@processes", Workload(requests=400, concurrency=8, warmup=0), server.url).outcome
    whole = children() - before
    assert 0.1 * whole < outcome.cpu_seconds < whole
    assert outcome.processes == 8
    assert 0 < outcome.startup_seconds <= outcome.wall_seconds
    assert 0 < outcome.fullest_cpu_seconds < outcome.cpu_seconds
    alone = measure("requests-session", Workload(requests=4), server.url).outcome
    assert alone.startup_seconds == 0
    assert outcome.peak_rss_bytes > 6 * alone.peak_rss_bytes
    assert alone.peak_pss_bytes < outcome.peak_pss_bytes < outcome.peak_rss_bytes / 2


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


@linux
def test_a_trial_whose_pool_lives_on_is_killed_with_it_at_once():
    """The pool's processes hold the pipe open: only the process itself shows that it has ended, and how."""
    pool = []

    def kill_after_some(finished):
        if finished >= 5 and not pool:
            (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
            pool.extend(trial.children())
            trial.kill()

    with counting_server(hold=0.02) as server:
        workload = Workload(duration=30, concurrency=4, warmup=0)
        with pytest.raises(TrialFailed, match="SIGKILL"):
            measure("requests-session@processes", workload, server.url, on_progress=kill_after_some, patience=-26)
    assert len(pool) == 4
    eventually(lambda: not any(map(is_alive, pool)), "the pool ends")


def test_a_trial_that_is_stopped_is_frozen(monkeypatch):
    """By SIGSTOP, in a process of its pool: it would not go on by itself, and the reason names the process."""
    monkeypatch.setattr(trial_handle, "_LOOK_SECONDS", 0.0)
    stopped = []

    def stop_after_some(finished):
        if finished >= 3 and not stopped:
            (trial,) = (one for one in trial_processes() if one.ppid() == os.getpid())
            stopped.append(trial.children()[0])
            stopped[0].suspend()

    with counting_server(hold=0.02) as server:
        workload = Workload(requests=100, concurrency=2, warmup=0)
        with pytest.raises(TrialFailed, match="frozen") as caught:
            measure("http.client@process-chunks", workload, server.url, on_progress=stop_after_some)
    assert str(stopped[0].pid) in str(caught.value)
    eventually(lambda: not is_alive(stopped[0]), "the stopped process ends")


HEAD = b"HTTP/1.1 200 OK\r\n"


def drip():
    """A response byte by byte."""
    yield HEAD + b"Content-Length: 1000000\r\n\r\n"
    while True:
        time.sleep(0.1)  # the server's work, not a wait for a condition
        yield b"x"


@pytest.mark.parametrize(
    ("answer", "workload", "limits", "reason"),
    [
        (ok, {"requests": 1_000_000}, {"deadline": 1.0}, "deadline"),
        (lambda: Stall(b""), {"timeout": 5.0}, {"patience": -4}, "stalled"),
        (drip, {"timeout": 1.0, "request_limit": 1.5}, {}, r"1\.5 s"),
        (lambda: chain([HEAD + b"\r\n"], repeat(bytes(1 << 20))), {"memory_limit": 200 << 20}, {}, "200 MiB"),
    ],
    ids=["deadline", "silence", "byte by byte", "endless"],
)
def test_a_trial_ends_at_each_of_its_limits(answer, workload, limits, reason):
    """Those of the whole, of a pause, of one request and of memory: the reason names it, and no process is left."""
    workload = Workload(**{"requests": 1, "concurrency": 1, "warmup": 0} | workload)
    with counting_server(lambda _: answer()) as server, pytest.raises(TrialFailed, match=reason):
        measure("http.client@process-chunks", workload, server.url, **limits)
    assert trial_processes() == []


def test_failures_in_a_row_are_counted_until_one_succeeds(tmp_path):
    """Over several looks; a warm-up with a log of its own counts as well, and is progress."""
    seen, finished = [], []
    callbacks = measurement.Callbacks(on_progress=finished.append, on_failures=seen.append)
    progress = measurement.Progress(tmp_path, callbacks, math.inf)
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
