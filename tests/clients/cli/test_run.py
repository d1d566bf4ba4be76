"""`clientlab run`: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
import threading
import zipfile
from contextlib import closing
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import jsonschema
import psutil
import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.conformance.tls import tls_relay
from clientlab.results.document import schema
from clientlab.results.plan import EnvironmentSpec
from clientlab.results.store import Store
from clientlab.results.surroundings import cpu_usable
from clientlab.results.target import Target
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial
from clients.measured import is_alive
from running import eventually
from signal_handlers import IN_A_TERMINAL, IN_THE_BACKGROUND, handling
from tls_servers import Authority

PROGRAM = [sys.executable, "-m", "clientlab"]
ON_A_FULL_DISK = """
import resource, runpy, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))
runpy.run_module("clientlab", run_name="__main__")
"""


@pytest.fixture
def foreign_server(tmp_path):
    """Python's own file server: HTTP/1.0, a connection a request."""

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *_) -> None:
            pass

    (tmp_path / "hello.txt").write_text("hello")
    with closing(ThreadingHTTPServer(("127.0.0.1", 0), Quiet)) as server:
        server.close = server.server_close
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_client_that_sends_nothing_is_no_record(clientlab, tmp_path, monkeypatch):
    """The lab's own upstream has counted the requests that it got."""
    (tmp_path / "mine.py").write_text(
        "class Cached:\n"
        "    def __init__(self, budget, opened): ...\n"
        "    def open(self): ...\n"
        "    def send(self, request): return 200, b'x'\n"
        "    def close(self): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    said = clientlab("run", "-t", "mine.py:Cached", "-n", 20, "--rounds", 1)
    assert said.code == 3
    assert "the client reports 20 answered requests, and the upstream got 0: send one" in " ".join(said.err.split())


def test_a_run_has_the_name_that_it_was_given_once(clientlab, server, results):
    """Runs are then compared by their names, in the order in which they began, if both did in one second."""
    words = ("run", "-t", "http.client", "-n", 5, "--rounds", 1, "--url", server.url)
    assert clientlab(*words, "--name", "old").code == 0
    assert clientlab(*words, "--name", "new").code == 0
    assert results.names() == ["old", "new"]
    assert results.read("last~1").run == "old"
    said = clientlab(*words, "--name", "old")
    assert (said.code, said.err) == (2, "clientlab: --name old: results has a run of this name; choose another\n")
    assert clientlab("compare", "old", "new").code == 0


def test_a_server_of_ones_own_is_measured(clientlab, foreign_server, results):
    """Its path is asked for, all its answers are counted, and it has no routes or upstreams of the lab."""
    said = clientlab("run", "-v", "-t", "http.client", "-t", "urllib3@threads", "-n", 20, "-c", 2, "--rounds", 2,
                     "--url", f"{foreign_server}/hello.txt")  # fmt: skip
    assert said.code == 0
    run = results.read("last")
    assert {trial.strategy for trial in run.trials} == {"http.client", "urllib3@threads"}
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors, trial.bytes_received) == ("done", 20, {}, 100)
        assert trial.connections_opened == 20
        assert (trial.upstream, trial.route) == (foreign_server.removeprefix("http://"), "direct")
        assert (trial.upstream_use, trial.proxy_use) == (None, None)
    assert {trial.strategy: trial.concurrency for trial in run.trials} == {"http.client": 1, "urllib3@threads": 2}
    assert "urllib3@threads" in said.out
    assert "2 of at least 3 rounds" in said.out
    lines = said.err.splitlines()
    assert (
        lines.pop(0)
        == "clientlab: http.client: one request after the other, whatever the concurrency of the others (2)"
    )
    assert lines[0].startswith("Which of these strategies is fastest here? -> results/")
    assert [line.partition(" ")[0] for line in lines[1:]] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]


def test_options_become_the_requests_that_are_sent(clientlab, server, results):
    """Method, headers, payload and number: in the run file and on the wire."""
    said = clientlab(
        "run", "-t", "urllib3", "-n", 4, "--rounds", 1, "--warmup", 0, "--method", "put", "--payload-size", 50,
        "--header", "X-Mine: a b", "--header", "accept:text/x", "--timeout", "2s", "--seed", 7,
        "--url", f"{server.url}/item/{{k}}?x=1",
    )  # fmt: skip
    assert said.code == 0
    probe, *sent = server.seen
    assert probe.target == "/item/0?x=1"
    assert [seen.target for seen in sent] == [f"/item/{k}?x=1" for k in range(4)]
    for seen in server.seen:
        assert (seen.method, seen.headers["x-mine"], seen.headers["accept"]) == ("PUT", "a b", "text/x")
        assert len(json.loads(seen.body)["data"]) == 50
    plan = results.read("last").experiment
    (workload,) = plan.workloads.values()
    assert (workload.requests, workload.timeout, plan.seed, workload.method) == (4, 2.0, 7, "PUT")


@pytest.mark.slow
def test_a_body_comes_from_the_words_or_from_a_file(clientlab, server, tmp_path):
    """A body is sent byte for byte, from the command line or from a file."""
    (tmp_path / "body.txt").write_text("from a file\n")
    for word in ("as written", "@body.txt"):
        clientlab("run", "-t", "http.client", "-n", 1, "--rounds", 1, "--warmup", 0, "--method", "POST",
                  "--body", word, "--url", server.url)  # fmt: skip
    assert {seen.body for seen in server.seen} == {b"as written", b"from a file\n"}


def test_recorded_requests_are_sent_once_each_and_stay_out_of_the_run_file(clientlab, server, results, tmp_path):
    """By each strategy alike, from a file that an experiment names too; what they hold is a secret of the file's."""
    recorded = [{"path": f"/{k}", "method": "POST", "body": str(k), "headers": {"X-Key": "hush"}} for k in range(3)]
    lines = "".join(f"{json.dumps(one)}\n" for one in recorded)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "r.jsonl").write_text(lines, encoding="utf-8")
    table = 'question = "Mine?"\nstrategies = ["http.client", "urllib3"]\nrounds = 1\n[workloads.w]\nwarmup = 0\n'
    (tmp_path / "sub" / "e.toml").write_text(f'{table}requests = 3\nreplay = "r.jsonl"\n', encoding="utf-8")
    run = ("run", "-t", "http.client", "-t", "urllib3", "--rounds", 1, "--warmup", 0, "--replay", "sub/r.jsonl")
    for words in (run, ("run", "sub/e.toml")):
        server.seen.clear()
        said = clientlab(*words, "--url", server.url)
        assert said.code == 0
        _, *sent = server.seen
        assert [(one.target, one.body, one.headers["x-key"]) for one in sent] == [
            (f"/{k}", str(k).encode(), "hush") for k in (0, 1, 2, 0, 1, 2)
        ]
        assert [trial.requests for trial in results.read("last").trials] == [3, 3]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".jsonl"
                and b"hush" in path.read_bytes()]  # fmt: skip
    (tmp_path / "sub" / "r.jsonl").write_text(lines.replace("/1", "/9"), encoding="utf-8")
    results.save(results.read("last").model_copy(update={"status": "incomplete"}))
    assert "not the one that was planned with" in clientlab("run", "--resume", "last").err
    assert "recorded requests have their own paths; name scheme" in clientlab(*run, "--url", f"{server.url}/x").err


def test_options_win_over_the_experiment(clientlab, server, results, tmp_path):
    """Those not given are the experiment's."""
    (tmp_path / "mine.toml").write_text(
        'question = "Mine?"\nstrategies = ["urllib3", "http.client"]\nrounds = 5\n'
        "[workloads.a]\nduration = 60\nwarmup = 0\n[workloads.b]\nrequests = 7\n"
    )
    said = clientlab("run", "mine.toml", "-t", "http.client", "-n", 3, "--rounds", 1, "--url", server.url)
    assert said.code == 0
    run = results.read("last")
    assert (run.experiment.name, run.experiment.question, run.experiment.rounds) == ("mine", "Mine?", 1)
    assert [(trial.strategy, trial.requests) for trial in run.trials] == [("http.client", 3)] * 2
    assert {name: (w.requests, w.duration, w.warmup) for name, w in run.experiment.workloads.items()} == {
        "a": (3, None, 0), "b": (3, None, 10),
    }  # fmt: skip


@pytest.mark.slow
def test_large_bodies_are_streamed_both_ways_and_their_memory_is_told(clientlab, results, tmp_path):
    """An experiment's words or the command line's: through the proxy as well, all bytes arrive and none is kept."""
    size = 48 << 20
    (tmp_path / "large.toml").write_text(
        f'question = "Large?"\nstrategies = ["http.client"]\nroutes = ["direct", "proxy"]\nrounds = 1\n'
        f'[workloads.down]\npath = "/bytes/{size}"\nrequests = 2\nwarmup = 1\nread = "chunks"\n'
        f'[workloads.up]\npath = "/upload"\nmethod = "POST"\nrequests = 2\nwarmup = 1\nupload_size = {size}\n'
    )
    said = clientlab("run", "-v", "large.toml", "--upload", "whole")
    assert said.code == 0
    assert "above idle" in said.out
    trials = {(trial.workload, trial.route): trial for trial in results.read("last").trials}
    assert len(trials) == 4
    for (workload, _), trial in trials.items():
        assert (trial.status, trial.errors, trial.elapsed_seconds_sum) == ("done", {}, None)
        above = trial.peak_pss_bytes - trial.idle_pss_bytes
        assert (above < size / 2) if workload == "down" else (above >= 0.9 * size)
        expected = size if workload == "down" else len(f'{{"length": {size}}}\n')
        assert trial.bytes_received == 2 * expected


def test_the_librarys_own_elapsed_is_summed(clientlab, server, results):
    """Beside the lab's own time, in the table and in the run file."""
    said = clientlab("run", "-v", "-t", "requests-session", "-n", 20, "--rounds", 1, "--elapsed", "--url", server.url)
    assert said.code == 0
    (trial,) = results.read("last").trials
    assert 0 < trial.elapsed_seconds_sum <= 20 * trial.latency_seconds.mean
    assert "own elapsed" in said.out


def test_a_duration_takes_the_place_of_a_number(clientlab, server, results):
    """The trial ends by the clock."""
    said = clientlab("run", "-t", "http.client", "-d", "200ms", "--rounds", 1, "--url", server.url)
    assert said.code == 0
    (trial,) = results.read("last").trials
    assert 0.2 <= trial.wall_seconds < 5
    assert trial.requests > 1


def test_a_pool_that_takes_the_whole_duration_is_measured_all_the_same(clientlab, server, results):
    """As on a busy machine: the duration is extended until each process has sent a request, and the run says so."""
    said = clientlab(
        "run", "-t", "requests-session@processes", "-c", 3, "-d", "10us", "--rounds", 1, "--url", server.url
    )
    assert said.code == 0
    run = results.read("last")
    assert [(trial.status, trial.requests, trial.duration_extended) for trial in run.trials] == [("done", 3, True)]
    assert "extended-durations" in {caution.kind for caution in run.cautions}


def test_a_server_of_ones_own_that_freezes_ends_the_trial(clientlab, results, tmp_path):
    """Not after the timeout of each of its requests: after five in a row and a plain request, which gets no answer."""
    release = threading.Event()

    def answer(_seen):
        return ok() if len(server.seen) < 40 else release.wait(60) and None

    with counting_server(answer) as server:
        said = clientlab("run", "-t", "urllib3", "-n", 1000, "--rounds", 1, "--timeout", "200ms", "--url", server.url,
                         "--keep-samples")  # fmt: skip
        release.set()
    assert said.code == 3
    (trial,) = results.read("last").trials
    assert (trial.status, trial.partial) == ("failed", True)
    reason = f"127.0.0.1:{server.port} does not answer a plain GET within 0.2 s (timed out)"
    assert trial.reason.endswith(f"failed requests in a row (5 are enough while the health check fails, too): {reason}")
    assert 28 <= trial.requests - sum(trial.errors.values()) < 40
    assert f"partial: {trial.requests} requests had finished" in said.err
    assert "Failed trials" in said.out
    assert clientlab("report", "last", "--html", "page.html", "--markdown", "page.md").code == 0
    for page in ("page.html", "page.md"):
        text = (tmp_path / page).read_text()
        assert f"{trial.requests} of 1,000" in text
        assert "does not answer a plain GET" in text


def test_a_deadline_is_chosen_and_refused_where_no_trial_can_keep_it(clientlab, server, results):
    """It is in the run file, and does not make the experiment another."""
    words = ("run", "-t", "http.client", "--rounds", 1, "--url", server.url)
    assert clientlab(*words, "-n", 5, "--deadline", "2m").code == 0
    run = results.read("last")
    (workload,) = run.experiment.workloads.values()
    assert (workload.deadline, run.trials[0].deadline_seconds) == (120, 120)
    said = clientlab(*words, "-d", "10s", "--deadline", "10s")
    assert (said.code, said.err) == (
        2, "clientlab: --deadline 10: write more than the trial needs, its duration included\n",
    )  # fmt: skip


def test_a_chart_is_drawn_where_it_is_asked_for(clientlab, server, tmp_path):
    """After the run, and its place is told."""
    said = clientlab("run", "-t", "http.client", "-n", 3, "--rounds", 1, "--url", server.url, "--chart", "x.svg")
    assert said.code == 0
    assert said.out.endswith("chart: x.svg\n")
    assert "http.client" in (tmp_path / "x.svg").read_text()


@pytest.mark.slow
def test_a_run_with_a_failed_trial_is_incomplete(clientlab, results):
    """Exit code 3; the table tells why, and the file holds the trial."""
    with counting_server(lambda seen: ok() if seen.target == "/?0" else None) as server:
        said = clientlab("run", "-t", "http.client", "-n", 3, "--rounds", 1, "--warmup", 0,
                         "--url", f"{server.url}/?{{k}}", "--chart", "x.svg")  # fmt: skip
        assert said.code == 0  # one of three requests succeeded
    answers = iter([ok()])
    with counting_server(lambda _: next(answers, None)) as server:
        said = clientlab("run", "-v", "-t", "http.client", "-n", 3, "--rounds", 1, "--warmup", 0, "--url", server.url,
                         "--chart", "y.svg")  # fmt: skip
    assert said.code == 3
    assert "1 of 1 trials failed: http.client" in said.out
    assert "[1/1] round 1" in said.err
    assert "FAILED, none of 3 requests succeeded; most often reset" in said.err
    assert said.err.splitlines()[-1].startswith("clientlab: chart y.svg: run ")
    run = results.read("last")
    assert (run.status, run.trials[0].status, run.trials[0].errors) == ("incomplete", "failed", {"reset": 3})


def test_json_is_all_that_standard_output_holds(server, tmp_path):
    """One document that fits the schema; progress, table and the chart's place go to standard error."""
    words = ["run", "-t", "http.client", "-t", "urllib3", "-n", "5", "--rounds", "1", "--url", server.url, "--json",
             "--chart", "x.png"]  # fmt: skip
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True)
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    assert document == json.loads(Store(tmp_path / "results").find("last").read_text())
    assert document["experiment"]["command"] == f"clientlab {' '.join(words)}"
    assert [trial["requests"] for trial in document["trials"]] == [5, 5]
    for word in ("[2/2] round 1", "req/s", "chart: x.png"):
        assert word in done.stderr


def test_the_labs_own_upstream_is_started_measured_and_stopped(clientlab, results):
    """Over both routes, with a delay: the server's counts agree with the client's, and nothing is left."""
    before = psutil.Process().children(recursive=True)
    said = clientlab("run", "-v", "-t", "urllib3", "-n", 30, "--rounds", 1, "--delay", "2ms", "--path", "/?number={k}",
                     "--route", "direct", "--route", "proxy")  # fmt: skip
    assert (said.code, psutil.Process().children(recursive=True)) == (0, before)
    run = results.read("last")
    assert sorted(trial.route for trial in run.trials) == ["direct", "proxy"]
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors) == ("done", 30, {})
        assert trial.upstream_use.requests == 30
        assert trial.connections_opened == 1
        assert (trial.proxy_use is not None) == (trial.route == "proxy")
        assert trial.latency_seconds.p50 == pytest.approx(trial.overhead_seconds.p50 + 0.002, abs=2e-4)
        assert trial.latency_seconds.p50 > 0.002
    assert set(run.surroundings.programs) == {"aiohttp", "proxy"}
    assert "overhead" in said.out


@pytest.mark.slow
@pytest.mark.skipif(cpu_usable() < 2, reason="parts need two cores to be apart")
def test_an_experiment_gives_its_parts_cores_of_their_own(clientlab, server, results, tmp_path):
    """The servers themselves report how many they may use; a server of somebody else is not placed."""
    table = 'question = "Mine?"\nstrategies = ["urllib3"]\nrounds = 1\n[workloads.w]\nrequests = 40\n'
    (tmp_path / "mine.toml").write_text(f"pin = true\nroutes = ['proxy']\n{table}", encoding="utf-8")
    said = clientlab("run", "-v", "mine.toml")
    assert said.code == 0
    run = results.read("last")
    placement, (trial,) = run.surroundings.placement, run.trials
    assert f"clientlab: pinned: {placement}\n" in said.err
    assert not set(placement.client) & {*placement.upstream, *placement.proxy}
    assert (trial.upstream_use.cores, trial.proxy_use.cores) == (len(placement.upstream), len(placement.proxy))
    assert f"pinned: {placement}" in " ".join(said.out.split())
    for words in (("run", "mine.toml", "--route", "direct"), ("run", "-t", "urllib3", "--pin")):
        said = clientlab(*words, "--url", server.url)
        assert said.code == 2
    assert "clientlab: --pin and --url: the lab cannot place a server that it did not start; leave it out" in said.err


@pytest.mark.slow
def test_http2_and_http1_are_compared_on_the_route_with_tls(clientlab, results):
    """In one run; what connections cost is seen: one for all, or one for each request."""
    said = clientlab("run", "-t", "httpx-async-h2@workers", "-t", "requests", "-n", 20, "-c", 4, "--rounds", 1,
                     "--route", "proxy-tls")  # fmt: skip
    assert said.code == 0
    trials = {trial.strategy: trial for trial in results.read("last").trials}
    for trial in trials.values():
        assert (trial.status, trial.requests, trial.errors, trial.route) == ("done", 20, {}, "proxy-tls")
        assert trial.upstream_use.requests == 20
        assert trial.proxy_use.cpu_seconds >= 0
    assert trials["httpx-async-h2@workers"].connections_opened == 1
    assert trials["requests"].connections_opened == 20


@pytest.mark.slow
def test_a_server_of_ones_own_with_tls_is_measured(clientlab, server, results, tmp_path):
    """With the file of its CA, named from wherever the command is called."""
    authority = Authority(tmp_path / "tls")
    with tls_relay(server.port, [authority.context("127.0.0.1")]) as relay:
        said = clientlab("run", "-t", "urllib3", "-t", "pycurl", "-n", 5, "--rounds", 1, "--warmup", 0,
                         "--url", relay.url, "--ca-file", "tls/ca.pem")  # fmt: skip
    assert said.code == 0
    assert [(trial.requests, trial.errors) for trial in results.read("last").trials] == [(5, {})] * 2
    assert len(server.seen) == 1 + 2 * 5  # and the probe


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "handlers"),
    [
        *((number, IN_A_TERMINAL) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)),
        (signal.SIGTERM, IN_THE_BACKGROUND),
    ],
    ids=["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTERM in the background"],
)
def test_an_interrupted_run_keeps_its_finished_trials_and_leaves_no_process(number, handlers, server, tmp_path):
    """In the middle of the second trial, of a pool of processes: exit code 3, and one line that says where.

    Also of a run in the background, which has to ignore Ctrl-C, as its processes do.
    """
    words = ["run", "-t", "requests-session@processes", "-c", "2", "-d", "1s", "--rounds", "3", "--url", server.url]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with handling(handlers):
        lab = subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, text=True, **pipes)
    with lab:
        while not lab.stderr.readline().startswith("[1/3]"):
            assert lab.poll() is None
        eventually(lambda: len(psutil.Process(lab.pid).children(recursive=True)) > 2, "the second trial's pool")
        started = psutil.Process(lab.pid).children(recursive=True)
        lab.send_signal(number)
        out, err = lab.communicate(timeout=30)
    assert (lab.returncode, out) == (3, "")
    (folder,) = (tmp_path / "results").iterdir()
    assert err == f"clientlab: interrupted in trial 2 of 3; what was done is in results/{folder.name}\n"
    run = Store(tmp_path / "results").read("last")
    assert run.status == "incomplete"
    assert [(trial.status, trial.reason) for trial in run.trials] == [("done", None), ("lost", "interrupted")]
    assert run.trials[0].requests > 0
    eventually(
        lambda: all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in started),
        "no process is left",
    )


def test_a_results_folder_cannot_command_the_terminal(server, clientlab):
    """Each line that names it, and each file in it, has a replacement for its control characters."""
    folder = "r\x1b]0;mine\x07"
    said = clientlab("run", "-t", "http.client", "-n", "5", "--url", server.url, "--out", folder)
    assert said.code == 0
    found = [said, clientlab("runs", "--out", folder), clientlab("report", "last", "--out", folder)]
    found += [clientlab("report", "last", "--out", folder, "--markdown", f"{folder}.md", "--html", f"{folder}.html")]
    found += [
        clientlab("runs", "--out", f"none{folder}"),
        clientlab("runs", "export", "last", f"{folder}.zip", "--out", folder),
    ]
    assert [one.code for one in found] == [0] * len(found)
    assert not any("\x1b" in one.out + one.err or "\x07" in one.out + one.err for one in found)
    assert "\ufffd" in said.err


def test_a_reader_that_goes_away_does_not_end_the_run(server, tmp_path):
    """`clientlab run … 2>&1 | head -1`: the run measures all its trials, and its file is that of any run."""
    words = ["run", "-t", "http.client", "-n", "20", "--rounds", "4", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as lab:
        lab.stdout.readline()
        lab.stdout.close()
        lab.wait(timeout=60)
    run = Store(tmp_path / "results").read("last")
    assert (run.status, [trial.status for trial in run.trials]) == ("done", ["done"] * 4)
    assert lab.returncode == 0


@pytest.mark.slow
def test_an_interrupted_run_is_resumed_where_it_stopped(server, tmp_path, clientlab):
    """The same schedule, with the trial in which it stopped once more; nothing that was done is done again."""
    words = ["run", "-t", "http.client", "-t", "urllib3", "-n", "20", "--rounds", "8", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as lab:
        lab.stderr.readline()
        lab.stderr.readline()
        lab.send_signal(signal.SIGTERM)
        _, said_to_the_end = lab.communicate(timeout=30)
    store = Store(tmp_path / "results")
    stopped = store.read("last")
    assert stopped.status == "incomplete", said_to_the_end
    said = clientlab("run", "--resume", "last")
    assert said.code == 0, said.err
    whole = store.read("last")
    assert (whole.status, whole.trials[: len(stopped.trials)]) == ("done", stopped.trials)
    done = [(trial.round, trial.arm) for trial in whole.trials if trial.status == "done"]
    assert sorted(done) == sorted((number, arm) for number in range(1, 9) for arm in ("http.client", "urllib3"))
    assert [(one.trials, one.differences) for one in whole.resumed] == [(len(stopped.trials), [])]
    again = clientlab("run", "--resume", "last")
    assert (again.code, "the run is whole" in again.err) == (2, True)


def test_a_run_goes_on_with_the_servers_of_its_file_and_not_with_those_of_its_command(server, clientlab, results):
    """The command of a run is a text for reports: one that cannot be read changes nothing."""
    run = a_run(a_trial("http.client", upstream=f"127.0.0.1:{server.port}"), rounds=2, command="clientlab run --url 'x")
    target = Target.external(server.url, None)
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete", "target": target}))
    said = clientlab("run", "--resume", run.run)
    assert said.code == 0, said.err
    assert (results.read("last").target, len(results.read("last").trials)) == (target, 2)


def test_a_run_whose_file_lacks_its_target_is_refused_and_can_be_read(clientlab, results):
    """It is shown as any other run. To go on, it is measured anew."""
    run = a_run(a_trial(), rounds=2, command="clientlab run -t urllib3")
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete", "target": None}))
    said = clientlab("run", "--resume", run.run)
    assert said.code == 2
    assert said.err.endswith(
        "its file does not hold what it measured against; measure anew with 'clientlab run -t urllib3'\n"
    )
    assert clientlab("report", run.run).code == 0


def test_a_run_whose_rounds_all_have_one_random_draw_is_refused_and_can_be_read(clientlab, results):
    """An older version planned it. Its report says what its intervals leave out; more rounds would be more copies."""
    trials = [a_trial("urllib3", number) for number in (1, 2, 3)]
    plan = {"rounds": 4, "draws": "run", "command": "clientlab run -t urllib3", "seed": 7}
    run = a_run(*trials, **plan, workloads={"workload": Workload(delay=Delay.parse("exponential:1ms"))})
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete"}))
    said = clientlab("run", "--resume", run.run)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "same random delays and arrivals; measure anew with 'clientlab run -t urllib3'" in said.err
    shown = clientlab("report", run.run, "--markdown")
    assert shown.code == 0
    assert "--seed 7 repeats the order of the trials, and the delays" in shown.out


def test_a_run_file_cannot_hide_where_load_goes(clientlab, results):
    """Reports show the upstream of its arms. A target that is another server is refused before anything is sent."""
    run = a_run(a_trial("http.client", upstream="127.0.0.1:8000"), rounds=2)
    results.claim(run.run)
    target = Target.external("http://127.0.0.1:9000/", None)
    results.save(run.model_copy(update={"status": "incomplete", "target": target}))
    says = "its target is another server than its arms name (127.0.0.1:8000); measure anew"
    assert says in clientlab("run", "--resume", run.run).err


def test_a_run_does_not_go_on_in_another_testbed(clientlab, results, monkeypatch):
    """Neither by the option nor by the variable: its rounds would have unlike servers."""
    run = a_run(a_trial(), rounds=2)
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete"}))
    says = "--testbed compose: the run goes on in its own testbed, local; leave it out, also as a variable"
    assert says in clientlab("run", "--resume", run.run, "--testbed", "compose").err
    monkeypatch.setenv("CLIENTLAB_TESTBED", "compose")
    assert says in clientlab("run", "--resume", run.run).err


def test_the_file_of_a_run_names_its_servers_without_the_secrets_of_the_url(server, clientlab, results):
    """The URL has its query, with … in place of secrets; `--keep-header` keeps one."""
    words = ("run", "-t", "http.client", "-n", "1", "--rounds", "1", "--url", f"{server.url}/?token=abcdefgh&page=2")
    assert clientlab(*words).code == 0
    assert results.read("last").target == Target(testbed="external", url=f"{server.url}/?token=…&page=2")
    assert clientlab(*words, "--keep-header", "token").code == 0
    assert results.read("last").target == Target(testbed="external", url=f"{server.url}/?token=abcdefgh&page=2")


def test_a_run_whose_process_is_gone_is_interrupted_and_a_run_that_goes_on_is_not_resumed(server, tmp_path, clientlab):
    """While its process lives, the run is running; then it is interrupted, and not running for ever."""
    words = ["run", "-t", "http.client", "-n", "20", "--rounds", "500", "--url", server.url]
    store = Store(tmp_path / "results")
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        eventually(lambda: store.names() and store.read("last").trials, "a trial is finished")
        assert " running " in clientlab("runs").out
        said = clientlab("run", "--resume", "last")
        assert (said.code, "is being measured by another process; wait for its end" in said.err) == (2, True)
        lab.kill()
    assert " interrupted " in clientlab("runs").out
    assert "· interrupted ·" in clientlab("report", "last").out
    said = clientlab("run", "--resume", "last", "-n", "5")
    assert (said.code, "--resume: the run goes on as it was planned; leave -n out" in said.err) == (2, True)


def test_a_run_that_is_killed_between_two_saves_is_shown_with_its_finished_trials(server, tmp_path, clientlab):
    """`report`, `runs` and `runs export` read the journal beside the run file, which holds no trial yet."""
    words = ["run", "-t", "http.client", "-n", "20", "--rounds", "500", "--url", server.url]
    store = Store(tmp_path / "results")
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        eventually(lambda: store.names() and len(store.read("last").trials) > 2, "three trials are finished")
        lab.kill()
    saved = store.read("last")
    assert json.loads(store.find("last").read_text())["trials"] == []
    assert (saved.status, {trial.status for trial in saved.trials}) == ("running", {"done"})
    assert "http.client" in clientlab("report", "last").out
    assert f" {len(saved.trials)} " in clientlab("runs").out
    assert clientlab("runs", "export", "last", "x.zip").code == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert len(json.loads(archive.read("run.json"))["trials"]) == len(saved.trials)


@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux'")
def test_a_run_that_is_killed_outright_leaves_no_process(server, tmp_path):
    """The kernel tells the trial, and the trial ends its pool; what was saved is whole."""
    words = ["run", "-t", "requests-session@processes", "-c", "3", "-d", "20s", "--rounds", "1", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        eventually(lambda: len(psutil.Process(lab.pid).children(recursive=True)) > 3, "the trial's pool")
        started = psutil.Process(lab.pid).children(recursive=True)
        lab.kill()
    eventually(
        lambda: all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in started),
        "no process is left",
    )
    assert Store(tmp_path / "results").read("last").status == "running"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the end of a process is noticed later")
def test_a_trial_that_is_killed_ends_at_once_with_its_pool_and_its_requests_are_shown(server, tmp_path, clientlab):
    """Not when it counts as stalled, 60 s later: the run ends with the signal as the reason."""
    words = ["run", "-t", "requests-session@processes", "-c", "3", "-d", "50s", "--rounds", "1", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        eventually(lambda: len(server.seen) > 50, "the pool sends requests")
        (trial,) = psutil.Process(lab.pid).children()
        pool = trial.children()
        trial.kill()
        eventually(lambda: not any(map(is_alive, pool)), "the pool ends", patience=5)
        lab.communicate(timeout=30)
    assert (lab.returncode, len(pool)) == (3, 3)
    (found,) = Store(tmp_path / "results").read("last").trials
    assert (found.status, found.partial) == ("failed", True)
    assert found.reason.startswith("its process was ended by SIGKILL")
    assert 30 < found.requests <= len(server.seen)
    said = clientlab("report", "last").out
    assert f"{found.requests:,}" in said.partition("Failed trials")[2]


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_what_was_saved(server, tmp_path):
    """A process that may write no file beyond 16 KiB: exit code 3, and the file holds what it could."""
    words = ["run", "-t", "http.client", "-n", "5", "--rounds", "5", "--url", server.url]
    done = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("clientlab: results/")
    assert "holds the trials that were saved; make room and run again" in done.stderr
    assert "Traceback" not in done.stderr
    run = Store(tmp_path / "results").read("last")
    assert [trial.status for trial in run.trials] == ["done"] * len(run.trials)
    assert 1 <= len(run.trials) < 5


def test_an_open_load_beyond_what_the_strategy_holds_is_late_and_drops(clientlab, results):
    """Two places of 0.1 s hold 20 requests a second, and 60 arrive. Run file, table and cautions agree on it."""
    with counting_server(hold=0.1) as server:
        said = clientlab("run", "-v", "-t", "requests-session@threads", "--rate", "60/s", "-n", 30, "-c", 2,
                         "--max-late", "300ms", "--rounds", 1, "--url", server.url)  # fmt: skip
    assert said.code == 0
    run = results.read("last")
    (trial,) = run.trials
    of = trial.open_load
    assert (of.planned_per_second, of.dropped, of.most_in_flight) == (60, trial.errors["dropped"], 2)
    assert 10 < of.achieved_per_second < 40
    assert of.lateness_seconds.p95 > 0.2
    assert trial.latency_seconds.p50 > 0.2 > of.sent_seconds.p50 > 0.1
    assert "p99" in trial.latency_seconds.at_least
    counts = [sum(getattr(part, name) for part in of.over_time) for name in ("planned", "sent", "dropped")]
    assert counts == [30, 30 - of.dropped, of.dropped]
    assert of.over_time[-1].backlog == 0
    assert max(part.backlog for part in of.over_time) <= of.most_backlog
    assert {"behind-schedule", "late-starts"} <= {caution.kind for caution in run.cautions}
    assert all(words in said.out for words in ("behind schedule", "x least p99", "all places were taken", "≥"))
    jsonschema.validate(json.loads(run.model_dump_json()), schema())


@pytest.mark.slow
def test_find_max_finds_the_capacity_of_an_upstream_that_has_one(clientlab, results, tmp_path):
    """Four threads of 100 ms hold 40 requests a second. Run file, table, page and CSV agree on it.

    The condition is one of the median: one stop of a busy machine does not change what is found.
    """
    words = ("-t", "aiohttp@workers", "--upstream", "flask?workers=1&threads=4", "--delay", "100ms", "-d", "2s")
    limits = ("--find-max", "p50<200ms,errors<1%", "--find-from", "20/s", "--rounds", 1)
    said = clientlab("run", *words, *limits, "--html", "found.html")
    assert said.code == 0, said.err
    run = results.read("last")
    (trial,) = run.trials
    assert 34 < trial.search.capacity_per_second < 44
    assert trial.open_load.planned_per_second == pytest.approx(trial.search.capacity_per_second / 2, rel=0.05)
    assert re.search(r"\[1/about \d+\] round 1 flask\S+ direct aiohttp@workers at [12]\d\.\d/s: held", said.err)
    assert re.search(r"aiohttp@workers held \S+ requests/s with p50<200ms,errors<1%\.", said.out)
    assert 'id="capacity"' in (tmp_path / "found.html").read_text()
    rows = list(csv.DictReader(io.StringIO(clientlab("report", "last", "--csv", "-").out)))
    assert [row["phase"] for row in rows] == ["probe"] * len(run.probes) + ["comparison"]
    rates = [float(row["planned_requests_per_second"]) for row in rows[:-1]]
    assert 20 / 1.42 < rates[0] < 20 * 1.42  # each round and arm begins at a rate of its own
    assert 44 < max(rates) < 88  # twice a rate that was held at most
    jsonschema.validate(json.loads(run.model_dump_json()), schema())


def test_limits_of_a_run_decide_its_exit_code_and_stand_in_junit_and_page(clientlab, tmp_path):
    """For all arms or for one; a run whose limits hold ends with 0."""
    with counting_server() as server:
        words = ("run", "-t", "http.client", "-t", "urllib3", "-n", 20, "--rounds", 1, "--strict", "--url", server.url)
        limits = ("--fail-on", "errors > 0", "--fail-on", "urllib3: p99 > 1us", "--fail-on", "p99 > 30s")
        said = clientlab(*words, *limits, "--junit", "found.xml", "--html", "found.html")
        held = clientlab(*words, "--fail-on", "http.client: p99 > 30s")
    assert said.code == 1
    failed = [line for line in said.out.splitlines() if line.startswith("FAILED")]
    assert len(failed) == 1
    assert failed[0].startswith("FAILED: urllib3: p99 > 1us · urllib3 · ")
    assert (tmp_path / "found.xml").read_text().count("<failure") == 1
    page = (tmp_path / "found.html").read_text()
    assert "Limits that did not hold" in page
    assert "urllib3: p99 &gt; 1us" in page
    assert (held.code, held.out.splitlines()[-1]) == (0, "all thresholds held (1 checked)")


@pytest.mark.parametrize(("hold", "verdict"), [(0.4, "behind-schedule"), (0.0, "on-schedule")])
def test_an_overload_shows_where_each_request_begins_when_it_is_due(hold, verdict, clientlab, results):
    """None is late or dropped: they queue inside the client. More of them than it has places are there at the end."""
    with counting_server(hold=hold) as server:
        words = ("-t", "aiohttp@gather", "--rate", "40", "-n", 24, "-c", 2, "--rounds", 1, "--warmup", 0)
        for _ in range(3):  # a busy machine may be behind by itself; none is on schedule with such a server
            assert clientlab("run", *words, "--url", server.url).code == 0
            (trial,) = results.read("last").trials
            if trial.verdict == verdict:
                break
    assert (trial.status, trial.verdict, trial.open_load.dropped) == ("done", verdict, 0)
    assert (trial.open_load.in_flight_at_end > 2) == (verdict == "behind-schedule")


def test_environments_of_a_run_that_goes_on_are_named_by_the_user(clientlab, results):
    """They install or run other code, and the run file may be somebody else's: `--yes` permits load, and no code."""
    run = a_run(a_trial("urllib3"), rounds=2)
    environments = {"mine": EnvironmentSpec(requirements=["evil @ https://example.org/x.tar.gz"])}
    experiment = run.experiment.model_copy(update={"environments": environments, "command": "clientlab run"})
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete", "experiment": experiment}))
    said = clientlab("run", "--resume", run.run, "--yes")
    assert said.code == 2
    assert "permit it with --allow-env 'evil @ https://example.org/x.tar.gz'" in said.err
