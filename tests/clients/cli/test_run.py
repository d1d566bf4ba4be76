"""`clientlab run`: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import psutil
import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.results.store import Store
from clientlab.results.surroundings import cpu_usable
from clientlab.results.target import Target
from clients.measured import is_alive
from running import eventually
from signal_handlers import IN_A_TERMINAL, handling
from tls_servers import Authority

pytestmark = pytest.mark.real

PROGRAM = [sys.executable, "-m", "clientlab"]


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


def test_options_become_the_requests_that_are_sent(clientlab, server, results):
    """Method, headers, payload and number: in the run file and on the wire."""
    said = clientlab(
        "run", "-t", "urllib3", "-n", 4, "--rounds", 1, "--method", "put", "--payload-size", 50,
        "--header", "X-Mine: a b", "--header", "accept:text/x", "--timeout", "2s", "--seed", 7,
        "--url", f"{server.url}/item/{{k}}?token=abcdefgh",
    )  # fmt: skip
    assert said.code == 0
    probe, *sent = server.seen
    assert probe.target == "/item/0?token=abcdefgh"
    assert [seen.target for seen in sent[-4:]] == [f"/item/{k}?token=abcdefgh" for k in range(4)]
    for seen in server.seen:
        assert (seen.method, seen.headers["x-mine"], seen.headers["accept"]) == ("PUT", "a b", "text/x")
        assert len(json.loads(seen.body)["data"]) == 50
    run = results.read("last")
    (workload,) = run.experiment.workloads.values()
    assert (workload.requests, workload.timeout, run.experiment.seed, workload.method) == (4, 2.0, 7, "PUT")
    assert run.target == Target(testbed="external", url=f"{server.url}/item/{{k}}?token=abcdefgh")


def test_recorded_requests_are_sent_once_each_and_stay_out_of_the_run_file(clientlab, server, results, tmp_path):
    """By each strategy alike, from a file that an experiment names."""
    recorded = [{"path": f"/{k}", "method": "POST", "body": str(k), "headers": {"X-Key": "hush"}} for k in range(3)]
    lines = "".join(f"{json.dumps(one)}\n" for one in recorded)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "r.jsonl").write_text(lines, encoding="utf-8")
    table = 'question = "Mine?"\nstrategies = ["http.client", "urllib3"]\nrounds = 1\n[workloads.w]\nwarmup = 0\n'
    (tmp_path / "sub" / "e.toml").write_text(f'{table}requests = 3\nreplay = "r.jsonl"\n', encoding="utf-8")
    said = clientlab("run", "sub/e.toml", "--url", server.url)
    assert said.code == 0, said.err
    _, *sent = server.seen
    assert [(one.target, one.body, one.headers["x-key"]) for one in sent] == [
        (f"/{k}", str(k).encode(), "hush") for k in (0, 1, 2, 0, 1, 2)
    ]
    assert [trial.requests for trial in results.read("last").trials] == [3, 3]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".jsonl"
                and b"hush" in path.read_bytes()]  # fmt: skip
    (tmp_path / "sub" / "r.jsonl").write_text(lines.replace("/1", "/9"), encoding="utf-8")
    results.save(results.read("last").model_copy(update={"status": "incomplete"}))
    assert clientlab("run", "--resume", "last").code == 2  # they are not those that it was planned with


def test_options_win_over_the_experiment(clientlab, server, results, tmp_path):
    """Those not given are the experiment's, and the run says what was changed."""
    (tmp_path / "mine.toml").write_text(
        'question = "Mine?"\nstrategies = ["urllib3", "http.client"]\nrounds = 5\n'
        "[workloads.a]\nduration = '60s'\nwarmup = 0\n[workloads.b]\nrequests = 7\n"
    )
    said = clientlab("run", "mine.toml", "-t", "http.client", "-n", 3, "--rounds", 1, "--url", server.url)
    assert said.code == 0
    run = results.read("last")
    assert (run.experiment.name, run.experiment.question, run.experiment.rounds) == ("mine", "Mine?", 1)
    assert [(trial.strategy, trial.requests) for trial in run.trials] == [("http.client", 3)] * 2
    assert {name: (w.requests, w.duration, w.warmup) for name, w in run.experiment.workloads.items()} == {
        "a": (3, None, 0), "b": (3, None, 10),
    }  # fmt: skip
    assert "requests: 7 → 3" in run.experiment.changed


def test_a_run_with_a_failed_trial_is_incomplete(clientlab, results):
    """Exit code 3, and the file holds the trial."""
    words = ("run", "-t", "http.client", "-n", 3, "--rounds", 1)
    answers = iter([ok()])
    with counting_server(lambda _: next(answers, None)) as server:
        said = clientlab(*words, "--url", server.url, "--chart", "y.svg")
    assert said.code == 3
    assert "y.svg" in said.err  # there is nothing to draw
    run = results.read("last")
    assert (run.status, run.trials[0].status, run.trials[0].errors) == ("incomplete", "failed", {"reset": 3})


def test_json_is_all_that_standard_output_holds(clientlab, server, results, tmp_path):
    """One document; progress and the places of other files go to standard error."""
    table = 'question = "?"\nstrategies = ["requests-session"]\nrounds = 1\n[workloads.w]\nrequests = 5\n'
    (tmp_path / "mine.toml").write_text(f"{table}elapsed = true\n", encoding="utf-8")
    said = clientlab("run", "mine.toml", "--url", server.url, "--json", "--chart", "x.svg")
    assert said.code == 0
    document = json.loads(said.out)
    assert document == json.loads(results.find("last").read_text())
    (trial,) = results.read("last").trials
    assert trial.requests == 5
    assert 0 < trial.elapsed_seconds_sum <= 5 * trial.latency_seconds.mean  # the library's own times
    assert "x.svg" in said.err
    assert "requests-session" in (tmp_path / "x.svg").read_text()


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


def test_a_server_of_ones_own_with_tls_is_measured(clientlab, results, tmp_path):
    """With the file of its CA, named from wherever the command is called."""
    authority = Authority(tmp_path / "tls")
    with counting_server(tls=[authority.context("127.0.0.1")]) as server:
        said = clientlab("run", "-t", "urllib3", "-t", "pycurl", "-n", 5, "--rounds", 1,
                         "--url", server.url, "--ca-file", "tls/ca.pem")  # fmt: skip
    assert said.code == 0
    assert [(trial.requests, trial.errors) for trial in results.read("last").trials] == [(5, {})] * 2
    assert len(server.seen) == 1 + 2 * (10 + 5)  # and the probe, and warm-ups


def test_an_interrupted_run_keeps_its_finished_trials_and_leaves_no_process(server, tmp_path):
    """In the middle of the second trial, of a pool of processes: exit code 3, and one line that says where."""
    words = ["run", "-t", "requests-session@processes", "-c", "2", "-d", "500ms", "--rounds", "3", "--url", server.url]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with handling(IN_A_TERMINAL):
        lab = subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, text=True, **pipes)
    with lab:
        while not lab.stderr.readline().startswith("[1/3]"):
            assert lab.poll() is None
        eventually(lambda: len(psutil.Process(lab.pid).children(recursive=True)) > 2, "the second trial's pool")
        started = psutil.Process(lab.pid).children(recursive=True)
        lab.send_signal(signal.SIGINT)
        out, err = lab.communicate(timeout=30)
    assert (lab.returncode, out) == (3, "")
    (folder,) = (tmp_path / "results").iterdir()
    assert err == f"clientlab: interrupted in trial 2 of 3; what was done is in results/{folder.name}\n"
    run = Store(tmp_path / "results").read("last")
    assert run.status == "incomplete"
    assert [(trial.status, trial.reason) for trial in run.trials] == [("done", None), ("lost", "interrupted")]
    assert run.trials[0].requests > 0
    eventually(lambda: not any(map(is_alive, started)), "no process is left")


def test_a_reader_that_goes_away_does_not_end_the_run(server, tmp_path):
    """`clientlab run … 2>&1 | head -1`: the run measures all its trials, and its file is that of any run."""
    words = ["run", "-t", "http.client", "-n", "20", "--rounds", "2", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as lab:
        lab.stdout.readline()
        lab.stdout.close()
        lab.wait(timeout=60)
    run = Store(tmp_path / "results").read("last")
    assert (run.status, [trial.status for trial in run.trials]) == ("done", ["done"] * 2)
    assert lab.returncode == 0


def test_an_interrupted_run_is_resumed_where_it_stopped(server, tmp_path, clientlab):
    """The same schedule, with the trial in which it stopped once more; nothing that was done is done again."""
    words = ["run", "-t", "http.client", "-t", "urllib3", "-n", "20", "--rounds", "3", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as lab:
        while not lab.stderr.readline().startswith(b"[1/6]"):
            pass
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
    assert sorted(done) == sorted((number, arm) for number in range(1, 4) for arm in ("http.client", "urllib3"))
    assert [(one.trials, one.differences) for one in whole.resumed] == [(len(stopped.trials), [])]
    again = clientlab("run", "--resume", "last")
    assert (again.code, "the run is whole" in again.err) == (2, True)


def test_a_run_whose_lab_is_killed_is_interrupted_and_keeps_its_finished_trials(server, tmp_path, clientlab):
    """While the lab lives, the run is running and not resumed. Finished trials are in a journal beside the run file."""
    words = ["run", "-t", "requests-session@processes", "-c", "2", "-n", "20", "--rounds", "500", "--url", server.url]
    store = Store(tmp_path / "results")
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        eventually(lambda: store.names() and len(store.read("last").trials) > 2, "three trials are finished")
        assert " running " in clientlab("runs").out
        assert clientlab("run", "--resume", "last").code == 2
        eventually(lambda: len(psutil.Process(lab.pid).children(recursive=True)) > 2, "a trial's pool")
        started = psutil.Process(lab.pid).children(recursive=True)
        lab.kill()
    eventually(lambda: not any(map(is_alive, started)), "no process is left")
    assert " interrupted " in clientlab("runs").out
    saved = store.read("last")
    assert json.loads(store.find("last").read_text())["trials"] == []
    assert (saved.status, {trial.status for trial in saved.trials}) == ("running", {"done"})
    assert "requests-session@processes" in clientlab("report", "last").out
    said = clientlab("run", "--resume", "last", "-n", "5")
    assert (said.code, "-n" in said.err) == (2, True)  # it goes on as it was planned


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the end of a process is noticed later")
def test_a_trial_that_is_killed_ends_at_once_with_its_pool_and_its_requests_are_shown(server, tmp_path, clientlab):
    """Not when it counts as stalled, 60 s later: the run ends with the signal as the reason."""
    words = ["run", "-t", "requests-session@processes", "-c", "3", "-d", "50s", "--rounds", "1", "--url", server.url]
    with subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
        eventually(lambda: len(server.seen) > 50, "the pool sends requests")
        (trial,) = psutil.Process(lab.pid).children()
        pool = trial.children()
        trial.kill()
        eventually(lambda: not any(map(is_alive, pool)), "the pool ends", patience=30)
        lab.communicate(timeout=30)
    assert (lab.returncode, len(pool)) == (3, 3)
    (found,) = Store(tmp_path / "results").read("last").trials
    assert (found.status, found.partial) == ("failed", True)
    assert found.reason.startswith("its process was ended by SIGKILL")
    assert 30 < found.requests <= len(server.seen)
    said = clientlab("report", "last").out
    assert f"{found.requests:,}" in said.partition("Failed trials")[2]


def test_an_open_load_beyond_what_the_strategy_holds_is_late_and_drops(clientlab, results, tmp_path):
    """Two places of 0.1 s hold 20 requests a second, and 60 arrive. Run file and cautions agree on it."""
    table = 'question = "?"\nstrategies = ["requests-session@threads"]\n[workloads.w]\nmax_late = "300ms"\n'
    (tmp_path / "mine.toml").write_text(table, encoding="utf-8")
    with counting_server(hold=0.1) as server:
        said = clientlab("run", "mine.toml", "--rate", "60/s", "-n", 30, "-c", 2, "--rounds", 1, "--url", server.url)
    assert said.code == 0
    run = results.read("last")
    (trial,) = run.trials
    of = trial.open_load
    assert (of.planned_per_second, of.dropped, of.most_in_flight) == (60, trial.errors["dropped"], 2)
    assert of.dropped > 0
    assert trial.latency_seconds.p50 > of.sent_seconds.p50 > 0.1
    assert "p99" in trial.latency_seconds.at_least
    counts = [sum(getattr(part, name) for part in of.over_time) for name in ("planned", "sent", "dropped")]
    assert counts == [30, 30 - of.dropped, of.dropped]
    assert {"behind-schedule", "late-starts"} <= {caution.kind for caution in run.cautions}


@pytest.mark.release
def test_find_max_finds_the_highest_rate_of_an_upstream_that_has_one(clientlab, results):
    """Four threads of 20 ms hold 200 requests a second."""
    words = ("-t", "aiohttp@workers", "--upstream", "flask?workers=1&threads=4", "--delay", "20ms", "-d", "500ms")
    said = clientlab("run", *words, "--find-max", "p50<100ms", "--rounds", 1)
    assert said.code == 0, said.err
    (trial,) = results.read("last").trials
    assert 130 < trial.highest_rate.middle < 220
    assert f"held {trial.highest_rate.middle:.0f} requests/s" in said.out


def test_limits_of_a_run_decide_its_exit_code_and_stand_in_junit(clientlab, server, tmp_path):
    """For all arms or for one."""
    words = ("run", "-t", "http.client", "-t", "urllib3", "-n", 5, "--url", server.url)
    limits = ("--fail-on", "errors > 0", "--fail-on", "urllib3: p99 > 1us", "--fail-on", "p99 > 30s")
    said = clientlab(*words, *limits, "--junit", "found.xml")
    assert said.code == 1
    (failed,) = [line for line in said.out.splitlines() if line.startswith("FAILED")]
    assert "urllib3: p99 > 1us" in failed
    assert (tmp_path / "found.xml").read_text().count("<failure") == 1
