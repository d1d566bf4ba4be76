"""Measuring a trial in its own process: what the process imports, what it costs, and
how it ends.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from clientlab import strategies
from clientlab.conformance.server import Stall, counting_server, ok
from clientlab.observing import measurement
from clientlab.observing.measurement import TrialEvents
from clientlab.observing.process_handle import OWN, Interpreter, TrialFailed
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.sample_log import SampleLog
from clientlab.workload.values import Delay
from clientlab.workload.workload import delay_of, make_workload
from clients.measured import is_alive, measure, trial_processes
from running import ROOT, eventually

pytestmark = pytest.mark.real

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it")


@pytest.mark.parametrize(
    ("client", "foreign"), [("aiohttp", "requests"), ("requests", "aiohttp")]
)
def test_a_trial_imports_only_its_own_library(client, foreign):
    code = (
        "import sys; import clientlab.trial.process; from clientlab import strategies;"
        f" client = strategies.CLIENTS[{client!r}];"
        " strategies.load(client.import_path); print(*sys.modules)"
    )
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert client in modules
    libraries = {"numpy", "pydantic", "rich", "click", "psutil", foreign}
    own = {"clientlab.results", "clientlab.running", "mockupstream"}
    assert not (libraries | own) & set(modules)


ENVIRONMENT = Interpreter(lab=str(ROOT / "clients"))


OPTIONAL = {"click.core", "rich.console", "trio.abc"}


@pytest.mark.parametrize(
    ("interpreter", "found"), [(OWN, set()), (ENVIRONMENT, OPTIONAL)]
)
def test_a_cold_trial_finds_only_what_its_library_requires(
    interpreter, found, server, tmp_path, monkeypatch
):
    """An environment shows all that it has: httpx imports click and rich, and trio at
    its first request.
    """
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    workload = make_workload(requests=1, cold=True, warmup=0)
    strategy = strategies.find("httpx")
    address = PeerAddress(server.url)
    context = TrialContext(strategy, workload, address, str(tmp_path))
    measured = measurement.measure(context, interpreter=interpreter)
    assert measured.samples.errors == {}
    log = (tmp_path / "trial.log").read_text(encoding="utf-8")
    imported = {line.rpartition("|")[2].strip() for line in log.splitlines()}
    assert {"httpx", "httpcore", "h11"} <= imported
    assert imported & OPTIONAL == found


@pytest.mark.parametrize(
    "strategy",
    [
        "http.client@threads",
        "http.client@queue",
        "http.client@sync_to_async",
        "http.client@process-chunks",
        "http.client@processes?start_method=spawn",
        "aiohttp@async-threads?threads=4",
        "requests-session-per-thread",
        "http.client@thread-pool",
        "aiohttp@async-processes",
    ],
)
def test_every_worker_of_a_warm_trial_is_warm(strategy, server):
    """However quick the answers are, no worker opens its connection inside
    the clock.
    """
    workload = make_workload(requests=200, concurrency=5, warmup=5, connections="warm")
    measured = measure(strategy, workload, server.url)
    assert measured.samples.errors == {}
    assert server.connections == 5
    assert measured.outcome.connections_begun == 0


LATE = """
import importlib
import sys

class Late:
    '''Imports a module when it is opened. A body has one byte if that was new.'''

    def __init__(self, budget, opened):
        self.body = b""

    def open(self):
        if "wave" not in sys.modules:
            import wave
            self.body = b"x"

    def send(self, request):
        return 200, self.body

    def close(self): ...

class AsyncLate(Late):
    async def open(self):
        super().open()

    async def send(self, request):
        return super().send(request)

    async def close(self): ...
"""


@linux
@pytest.mark.parametrize(
    ("strategy", "late"),
    [
        ("Late@processes", 0),
        ("Late@process-chunks", 0),
        ("AsyncLate@async-processes", 0),
        ("Late@processes?start_method=forkserver", 0),
        ("Late@processes?start_method=spawn", 1),
    ],
)
def test_processes_of_a_cold_pool_have_the_modules_that_a_client_imports_late(
    strategy, late, tmp_path
):
    """Threads and tasks have imported them in the warm-up.

    Only a spawned process imports everything itself.
    """
    path = tmp_path / "late.py"
    path.write_text(LATE)
    workload = make_workload(requests=30, concurrency=3, warmup=2, connections="cold")
    done = measure(f"{path}:{strategy}", workload, "http://127.0.0.1:9")
    assert set(done.samples.records["bytes"].tolist()) == {late}


def test_a_client_with_threads_of_its_own_runs_in_a_cold_pool(server):
    """A process that is forked from one in which pyqwest has sent a request hangs."""
    workload = make_workload(requests=20, concurrency=2, warmup=2, connections="cold")
    measured = measure("pyqwest@processes", workload, server.url)
    assert measured.samples.errors == {}
    assert measured.outcome.processes == 2


@linux
def test_cpu_and_memory_are_those_of_all_processes(server):
    """Pages that forked processes share are counted once in PSS, and in each process in
    RSS.
    """

    def children():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = children()
    workload = make_workload(requests=400, concurrency=8, warmup=0)
    outcome = measure("requests-session@processes", workload, server.url).outcome
    whole = children() - before
    assert 0.1 * whole < outcome.cpu_seconds < whole
    assert outcome.processes == 8
    assert 0 < outcome.startup_seconds <= outcome.wall_seconds
    assert 0 < outcome.fullest_cpu_seconds < outcome.cpu_seconds
    alone = measure("requests-session", make_workload(requests=4), server.url).outcome
    assert alone.startup_seconds == 0
    assert outcome.peak_rss_bytes > 6 * alone.peak_rss_bytes
    assert alone.peak_pss_bytes < outcome.peak_pss_bytes < outcome.peak_rss_bytes / 2


@pytest.mark.parametrize(
    ("strategy", "read", "least", "most"),
    [
        ("http.client", "whole", 30, 48),
        ("pycurl@multi", "whole", 30, 48),
        ("http.client", "chunks", 0, 20),
    ],
)
def test_memory_above_idle_is_what_the_bodies_cost(strategy, read, least, most):
    """The peak includes a body of 32 MiB once if it is read whole, and not if it is
    read in chunks.
    """
    body = ok(bytes(32 << 20))
    with counting_server(lambda _: body) as server:
        workload = make_workload(requests=3, concurrency=1, warmup=1, read=read)
        outcome = measure(strategy, workload, server.url).outcome
    above_idle = outcome.peak_pss_bytes - outcome.idle_pss_bytes
    assert least << 20 <= above_idle <= most << 20
    assert outcome.idle_pss_bytes < 64 << 20


FEW = 16
"""Descriptors left: enough for event loops, too few for `WANTED` connections."""
WANTED = 40


@pytest.mark.parametrize(
    "strategy", ["http.client", "requests", "aiohttp", "httpx", "pycurl"]
)
def test_a_name_that_is_not_found_opens_no_connection(strategy):
    workload = make_workload(requests=2, warmup=0, timeout=20)
    measured = measure(strategy, workload, "http://nowhere.invalid:9")
    assert measured.samples.errors == {"connect": 2}
    assert measured.outcome.connections_opened == 0


def leave_few_descriptors():
    (trial,) = trial_processes()
    used = {int(entry.name) for entry in Path(f"/proc/{trial.pid}/fd").iterdir()}
    possible = range(len(used) + FEW + 1)
    free = [number for number in possible if number not in used]
    limit = free[FEW]
    resource.prlimit(trial.pid, resource.RLIMIT_NOFILE, (limit, limit))


@linux
@pytest.mark.parametrize(
    "strategy", ["requests-session@threads", "aiohttp@workers", "urllib3@gevent"]
)
def test_a_process_without_descriptors_says_so_and_counts_what_it_opened(strategy):
    with counting_server(hold=0.1) as server:
        workload = make_workload(requests=2 * WANTED, concurrency=WANTED, warmup=0)
        measured = measure(
            strategy, workload, server.url, events=TrialEvents(leave_few_descriptors)
        )
        assert set(measured.samples.errors) == {"other:EMFILE"}
        assert measured.outcome.connections_opened == server.accepted > 0


LITTERS = """
import gc

class Cycle:
    def __init__(self):
        self.itself = self

class Litters:
    '''Each request leaves garbage that only the collector frees. Bodies count it.'''

    def __init__(self, budget, opened): ...

    def open(self):
        gc.disable()  # otherwise it runs at moments that nobody chose

    def send(self, request):
        left = sum(type(one) is Cycle for one in gc.get_objects())
        Cycle()
        return 200, b"x" * left

    def close(self): ...
"""


@pytest.mark.parametrize("connections", ["cold", "warm"])
def test_no_garbage_of_the_warm_up_is_left_when_the_clock_starts(connections, tmp_path):
    path = tmp_path / "litters.py"
    path.write_text(LITTERS)
    workload = make_workload(requests=1, warmup=10, connections=connections)
    done = measure(f"{path}:Litters", workload, "http://127.0.0.1:9")
    assert done.samples.records["bytes"].tolist() == [0]


@linux
def test_a_trial_that_is_killed_takes_its_pool_with_it():
    """The pool's processes hold the pipe open, so only the process itself shows that it
    has ended, and how.
    """
    pool = []

    def kill_after_some(finished, _failures):
        if finished >= 5 and not pool:
            (trial,) = [
                process
                for process in trial_processes()
                if process.ppid() == os.getpid()
            ]
            pool.extend(trial.children())
            trial.kill()

    with counting_server(hold=0.02) as server:
        workload = make_workload(duration=30, concurrency=4, warmup=0)
        with pytest.raises(TrialFailed, match="SIGKILL"):
            measure(
                "requests-session@processes",
                workload,
                server.url,
                events=TrialEvents(on_progress=kill_after_some),
                patience=-26,
            )
    assert len(pool) == 4
    eventually(lambda: not any(map(is_alive, pool)), "the pool ends")


HEAD = b"HTTP/1.1 200 OK\r\n"


def be_silent():
    return Stall(b"")


def never_end():
    yield HEAD + b"\r\n"
    while True:
        yield bytes(1 << 20)


def drip():
    yield HEAD + b"Content-Length: 1000000\r\n\r\n"
    while True:
        time.sleep(0.1)  # the server's work, not a wait for a condition
        yield b"x"


@pytest.mark.parametrize(
    ("answer", "workload", "limits", "reason"),
    [
        (ok, {"requests": 1_000_000}, {"deadline": 0.6}, "deadline"),
        (be_silent, {"timeout": 5.0}, {"patience": -4}, "stalled"),
        (drip, {"timeout": 0.5, "request_limit": 0.7}, {}, r"0\.7 s"),
        (never_end, {"memory_limit": 200 << 20}, {}, "200 MiB"),
    ],
    ids=["deadline", "silence", "byte by byte", "endless"],
)
def test_a_trial_ends_at_each_of_its_limits(answer, workload, limits, reason):
    usual = {"requests": 1, "concurrency": 1, "warmup": 0}
    workload = make_workload(**usual | workload)
    with (
        counting_server(lambda _: answer()) as server,
        pytest.raises(TrialFailed, match=reason),
    ):
        measure("http.client@process-chunks", workload, server.url, **limits)
    assert trial_processes() == []


def a_context(folder, **options) -> TrialContext:
    strategy = strategies.find("http.client")
    workload = make_workload(duration=2.0)
    address = PeerAddress("http://host")
    return TrialContext(strategy, workload, address, str(folder), **options)


def test_failures_in_a_row_are_counted_until_a_request_succeeds(tmp_path):
    seen = []
    context = TrialContext(
        strategies.find("http.client"),
        make_workload(),
        PeerAddress("http://host"),
        str(tmp_path),
    )
    events = TrialEvents(on_progress=lambda *progress: seen.append(progress))
    processes = SimpleNamespace(each=[])
    watch = measurement.Watch(
        context, processes, events, deadline=math.inf, patience=30
    )
    warm_up, log = SampleLog(tmp_path / "warm-up", 0, 4), SampleLog(tmp_path, 0, 20)
    watch.look()
    warm_up.write_late(0, 1.0, 0.1, 0, 0, 1)
    watch.look()
    for number in range(3):
        log.write_late(number, 2.0, 0.1, 0, 0, 1)
    watch.look()
    log.write_late(3, 3.0, 0.1, 0, 200, 0)
    log.write_late(4, 3.0, 0.1, 0, 0, 1)
    watch.look()
    watch.look()
    watch.begin("end")  # nothing is sent any more
    log.write_late(5, 3.0, 0.1, 0, 0, 1)
    watch.look()
    warm_up.close(0)
    log.close(0)
    assert seen == [(0, 0), (0, 1), (3, 4), (5, 0), (5, 0), (6, 0)]


@pytest.mark.parametrize("client", ["requests-session", "aiohttp"])
def test_no_client_uses_passwords_or_proxies_of_the_environment_or_keeps_cookies(
    client, tmp_path, monkeypatch
):
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    netrc = tmp_path / ".netrc"
    for_any_host = "default login mine password secret\n"
    netrc.write_text(for_any_host, encoding="ascii")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    answer = ok().replace(b"\r\n", b"\r\nSet-Cookie: seen=before; Path=/\r\n", 1)
    with counting_server(lambda _: answer) as server:
        measured = measure(client, make_workload(requests=4, warmup=0), server.url)
        assert len(server.seen) == 4
        for seen in server.seen:
            assert "authorization" not in seen.headers
            assert "cookie" not in seen.headers
    assert measured.samples.errors == {}


@pytest.mark.parametrize(
    ("wave", "least_waves", "slices"),
    [(0.005, 10, 8), (0.05, 10, 4), (1.6, 10, 1), (None, 10, 8), (1.6, 0, 8)],
    ids=["0.1 s each", "ten waves", "one wave", "unknown", "fixed"],
)
def test_a_slice_lasts_for_several_waves(wave, least_waves, slices, tmp_path):
    context = a_context(tmp_path, slices=8, least_waves=least_waves)
    assert measurement.choose_slices(context, wave) == slices


@pytest.mark.real
def test_a_trial_has_as_many_slices_as_its_waves_permit():
    """Ten waves of 40 ms take 0.4 s, however many slices are planned."""
    workload = make_workload(duration=0.8, concurrency=4, timeout=5.0)
    with counting_server(hold=0.04) as server:
        found = measure("urllib3@threads", workload, server.url, slices=8)
    assert len(found.outcome.slices) in {1, 2}  # a busy machine may take longer
    assert found.outcome.steady_requests > 0
    assert 0 < found.outcome.steady_cpu_seconds < found.outcome.cpu_seconds


@pytest.mark.real
@pytest.mark.parametrize(
    "strategy",
    ["http.client@threads", "pycurl@multi", "aiohttp@workers", "http.client@processes"],
)
def test_a_load_begins_as_if_it_had_been_going_on(strategy):
    """Of its delay, the first request of a slot asks for a fourth, two,
    three, or all.
    """
    workload = make_workload(
        duration=0.3, concurrency=4, delay=Delay.parse("20ms"), warmup=0
    )
    with counting_server(hold=0.001) as server:
        found = measure(strategy, workload, server.url, slices=2)
    asked = found.samples.delays(delay_of(workload))
    targets = Counter(float(seen.target.rpartition("=")[2]) for seen in server.seen)
    slices = max(1, len(found.outcome.slices))
    for delay in (0.005, 0.010, 0.015):
        assert targets[delay] == slices
        assert np.isclose(asked, delay).sum() == slices
    assert targets.keys() == {0.005, 0.010, 0.015, 0.020}
