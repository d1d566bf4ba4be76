"""`clientlab run`: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import psutil
import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.machine.usage import cpu_usable
from clientlab.results.figures import BY_KEY
from clientlab.results.plan import Target
from clientlab.results.store import Store
from clientlab.workload.values import Link
from clients.measured import is_alive
from running import eventually
from signal_handlers import IN_A_TERMINAL, handling

pytestmark = pytest.mark.real

PROGRAM = [sys.executable, "-m", "clientlab"]


def test_options_become_the_requests_that_are_sent(clientlab, server, results):
    words = (
        "run",
        "-t",
        "urllib3",
        "-n",
        4,
        "--rounds",
        1,
        "--method",
        "put",
        "--payload-size",
        50,
        "--name",
        "mine",
        "--header",
        "X-Mine: a b",
        "--header",
        "accept:text/x",
        "--timeout",
        "2s",
        "--seed",
        7,
        "--url",
        f"{server.url}/item/{{k}}?page=abcdefgh",
    )
    assert clientlab(*words).code == 0
    probe, *sent = server.seen
    assert probe.target == "/item/0?page=abcdefgh"
    assert [seen.target for seen in sent[-4:]] == [
        f"/item/{k}?page=abcdefgh" for k in range(4)
    ]
    for seen in server.seen:
        assert seen.method == "PUT"
        assert seen.headers["x-mine"] == "a b"
        assert seen.headers["accept"] == "text/x"
        assert len(json.loads(seen.body)["data"]) == 50
    run = results.read("mine")
    (workload,) = run.experiment.workloads.values()
    assert workload.load.requests == 4
    assert workload.limits.timeout == 2.0
    assert run.experiment.seed == 7
    assert workload.request.method == "PUT"
    assert run.target == Target(
        testbed="external", url=f"{server.url}/item/{{k}}?page=abcdefgh"
    )
    said = clientlab(*words)  # the name is taken
    assert said.code == 2
    assert said.err.startswith("clientlab: --name mine: ")


def test_a_cold_run_ranks_by_the_time_from_the_start_of_the_interpreter(
    clientlab, server, results, tmp_path
):
    """Thresholds decide the exit code, and are in the JUnit file."""
    words = (
        "run",
        "--cold",
        "-t",
        "http.client",
        "-t",
        "aiohttp",
        "--rounds",
        3,
        "--url",
        server.url,
    )
    limits = ("errors > 0", "aiohttp: first_response > 1us", "first_response > 30s")
    said = clientlab(
        *words,
        *(word for limit in limits for word in ("--fail-on", limit)),
        "--junit",
        "found.xml",
    )
    assert said.code == 1, said.err
    (failed,) = [line for line in said.out.splitlines() if line.startswith("FAILED")]
    assert limits[1] in failed
    assert (tmp_path / "found.xml").read_text().count("<failure") == 1
    assert "after the start of the interpreter" in said.out
    assert len(server.seen) == 1 + 6  # one to see whether the server answers
    run = results.read("last")
    imports = {
        name: BY_KEY["import"].over_rounds(run.trials_of(name))
        for name in ("http.client", "aiohttp")
    }
    assert (
        0 < imports["http.client"] < imports["aiohttp"]
    )  # which imports http.client itself
    for trial in run.trials:
        assert (
            trial.measured.import_seconds + trial.figures.latency_seconds.max
            <= BY_KEY["first_response"].of(trial)
        )


def test_a_cold_stream_shows_the_import_and_the_first_event_of_an_sdk(
    clientlab, results
):
    """What the SDK does only in its first request counts, as in a script."""
    words = (
        "run",
        "--cold",
        "--stream",
        "openai-chat",
        "-t",
        "openai",
        "-t",
        "urllib3",
        "--rounds",
        1,
    )
    said = clientlab(*words, "--first", "20ms")
    assert said.code == 0, said.err
    run = results.read("last")
    sdk, below = (run.trials_of(name)[0] for name in ("openai", "urllib3"))
    for trial in (sdk, below):
        assert trial.figures.requests == 1
        assert trial.figures.stream.events == 1
        first_event = BY_KEY["first_event_p50"].of(trial)
        assert (
            0.02
            < first_event
            < BY_KEY["first_response"].of(trial) - trial.measured.import_seconds
        )
        assert BY_KEY["cpu_per_event"].of(trial) is None
    assert BY_KEY["first_event_p50"].of(below) < BY_KEY["first_event_p50"].of(sdk)
    assert "first event" in said.out


def test_recorded_requests_are_sent_once_each_and_stay_out_of_the_run_file(
    clientlab, server, results, tmp_path
):
    recorded = [
        {
            "path": f"/{k}",
            "method": "POST",
            "body": str(k),
            "headers": {"X-Key": "hush"},
        }
        for k in range(3)
    ]
    lines = "".join(f"{json.dumps(one)}\n" for one in recorded)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "r.jsonl").write_text(lines, encoding="utf-8")
    table = (
        'question = "Mine?"\nstrategies = ["http.client", "urllib3"]\nrounds ='
        " 1\n[workloads.w]\nwarmup = 0\n"
    )
    (tmp_path / "sub" / "e.toml").write_text(
        f'{table}requests = 3\nreplay = "r.jsonl"\n', encoding="utf-8"
    )
    said = clientlab("run", "sub/e.toml", "--url", server.url)
    assert said.code == 0, said.err
    _, *sent = server.seen
    assert [(one.target, one.body) for one in sent] == [
        (f"/{k}", str(k).encode()) for k in (0, 1, 2, 0, 1, 2)
    ]
    assert {one.headers["x-key"] for one in sent} == {"hush"}
    assert [trial.figures.requests for trial in results.read("last").trials] == [3, 3]
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and path.suffix != ".jsonl" and b"hush" in path.read_bytes()
    ]
    (tmp_path / "sub" / "r.jsonl").write_text(
        lines.replace("/1", "/9"), encoding="utf-8"
    )
    results.save(results.read("last").updated(status="incomplete"))
    assert (
        clientlab("run", "--resume", "last").code == 2
    )  # they are not those that it was planned with


def test_a_workload_may_expect_errors_and_time_the_first_byte(clientlab, results):
    """The lab's own upstream counts the error statuses, and the trial
    agrees with it.
    """
    words = (
        "run",
        "-t",
        "urllib3",
        "-n",
        20,
        "--rounds",
        1,
        "--path",
        "/status/404",
        "--first-byte",
    )
    said = clientlab(*words, "--expect", "404,5xx")
    assert said.code == 0, said.err
    (trial,) = results.read("last").trials
    assert trial.status == "done"
    assert trial.figures.errors == {}
    assert trial.servers.upstream.failed_requests == 20
    assert 0 < trial.figures.first_byte_seconds.p50 <= trial.figures.latency_seconds.max


def test_an_access_log_is_sent_at_its_recorded_times(
    clientlab, server, results, tmp_path
):
    """The requests of its second are spread over it.

    Lines that are not sent are counted, paths have their figures.
    """
    requests = (
        "GET /a?x=1 HTTP/1.1",
        "POST /b HTTP/1.1",
        "GET /c HTTP/1.1",
        "GET /a?x=2 HTTP/1.1",
        "-",
    )
    lines = [
        f'::1 - - [10/Oct/2025:13:55:36 +0200] "{one}" 200 12 "-" "curl"'
        for one in requests
    ]
    (tmp_path / "access.log").write_text(
        "\n".join(["a title", *lines]), encoding="utf-8"
    )
    words = (
        "run",
        "-v",
        "-t",
        "urllib3",
        "--rounds",
        1,
        "--replay",
        "access.log",
        "--url",
        server.url,
    )
    refused = clientlab(*words, "--replay-times")
    assert refused.code == 2
    assert "line 1" in refused.err
    assert "--skip-bad" in refused.err
    said = clientlab(*words, "--replay-times", "--skip-bad")
    assert said.code == 0, said.err
    assert [one.target for one in server.seen[-3:]] == ["/a?x=1", "/c", "/a?x=2"]
    (trial,) = results.read("last").trials
    assert trial.figures.requests == 3
    assert trial.figures.open_load.planned_per_second == pytest.approx(3)
    assert [(one.path, one.requests) for one in trial.figures.paths] == [
        ("/a", 2),
        ("/c", 1),
    ]
    assert "left out: 1 that cannot be read, 1 with other methods" in said.err
    assert "/c" in said.out
    for more in (("-n", 9), ("-d", "1s"), ("--rate", "5/s"), ("--find-max", "p99<1s")):
        said = clientlab(*words, "--replay-times", "--skip-bad", *more)
        assert (said.code, more[0] in said.err, said.err.count("\n")) == (
            2,
            True,
            1,
        ), said.err


def test_a_run_with_a_failed_trial_is_incomplete(clientlab, results):
    words = ("run", "-t", "http.client", "-n", 3, "--rounds", 1)
    answers = iter([ok()])
    with counting_server(lambda _: next(answers, None)) as server:
        said = clientlab(*words, "--url", server.url, "--chart", "y.svg")
    assert said.code == 3
    assert "y.svg" in said.err  # there is nothing to draw
    run = results.read("last")
    (trial,) = run.trials
    assert run.status == "incomplete"
    assert run.cautions[0].kind == "failed-trials"
    assert trial.status == "failed"
    assert trial.figures.errors == {"reset": 3}
    assert trial.figures.latency_seconds is None
    assert trial.figures.requests_per_second == 0


def test_standard_output_holds_only_the_json(clientlab, server, results, tmp_path):
    table = (
        'question = "?"\nstrategies = ["requests-session"]\nrounds ='
        " 1\n[workloads.w]\nrequests = 5\n"
    )
    (tmp_path / "mine.toml").write_text(f"{table}elapsed = true\n", encoding="utf-8")
    said = clientlab(
        "run", "mine.toml", "--url", server.url, "--json", "--chart", "x.svg"
    )
    assert said.code == 0
    document = json.loads(said.out)
    assert document == json.loads(results.find("last").read_text())
    (trial,) = results.read("last").trials
    assert trial.figures.requests == 5
    assert (
        0 < trial.figures.elapsed_seconds_sum <= 5 * trial.figures.latency_seconds.mean
    )  # the library's own times
    assert "x.svg" in said.err
    assert "requests-session" in (tmp_path / "x.svg").read_text()


def test_the_labs_own_upstream_is_started_measured_and_stopped(clientlab, results):
    """Over both routes, with a delay: the server's counts agree with the client's, and
    nothing is left.
    """
    before = psutil.Process().children(recursive=True)
    said = clientlab(
        "run",
        "-v",
        "-t",
        "urllib3",
        "-n",
        30,
        "--rounds",
        1,
        "--delay",
        "2ms",
        "--path",
        "/?number={k}",
        "--route",
        "direct",
        "--route",
        "proxy",
    )
    assert said.code == 0
    assert psutil.Process().children(recursive=True) == before
    run = results.read("last")
    assert sorted(trial.planned.route for trial in run.trials) == ["direct", "proxy"]
    for trial in run.trials:
        assert trial.status == "done"
        assert trial.figures.requests == 30
        assert trial.figures.errors == {}
        assert trial.servers.upstream.requests == 30
        assert trial.measured.connections_opened == 1
        assert (trial.servers.proxy is not None) == (trial.planned.route == "proxy")
        assert trial.figures.latency_seconds.p50 == pytest.approx(
            trial.figures.overhead_seconds.p50 + 0.002, abs=2e-4
        )
        assert trial.figures.latency_seconds.p50 > 0.002
    assert set(run.surroundings.programs) == {"aiohttp", "proxy"}
    assert "overhead" in said.out


@pytest.mark.skipif(cpu_usable() < 2, reason="parts need two cores to be apart")
def test_pin_gives_each_part_its_own_cores(clientlab, server, results, tmp_path):
    """The servers report how many they may use.

    The user's own server cannot be pinned.
    """
    table = (
        'question = "Mine?"\nstrategies = ["urllib3"]\nrounds ='
        " 1\n[workloads.w]\nrequests = 40\n"
    )
    (tmp_path / "mine.toml").write_text(
        f"pin = true\nroutes = ['proxy']\n{table}", encoding="utf-8"
    )
    said = clientlab("run", "-v", "mine.toml")
    assert said.code == 0
    run = results.read("last")
    placement = run.surroundings.placement
    (trial,) = run.trials
    assert f"clientlab: pinned: {placement}\n" in said.err
    assert not set(placement.client) & {*placement.upstream, *placement.proxy}
    assert trial.servers.upstream.cores == len(placement.upstream)
    assert trial.servers.proxy.cores == len(placement.proxy)
    assert f"pinned: {placement}" in " ".join(said.out.split())
    for words in (
        ("run", "mine.toml", "--route", "direct"),
        ("run", "-t", "urllib3", "--pin"),
    ):
        said = clientlab(*words, "--url", server.url)
        assert said.code == 2
    assert (
        "clientlab: --pin and --url: the lab cannot place a server that it did not"
        " start; leave it out" in said.err
    )


def test_an_interrupted_run_keeps_its_finished_trials_leaves_no_process_and_is_resumed(
    server, tmp_path, clientlab
):
    """Exit code 3, and one line that says where.

    The interrupted trial is measured once more, and no other.
    """
    words = [
        "run",
        "-t",
        "requests-session@processes",
        "-c",
        "2",
        "-d",
        "500ms",
        "--rounds",
        "3",
        "--url",
        server.url,
    ]
    words.append("--keep-samples")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with handling(IN_A_TERMINAL):
        lab = subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, text=True, **pipes)
    with lab:
        while not lab.stderr.readline().startswith("[1/3]"):
            assert lab.poll() is None
        eventually(
            lambda: len(psutil.Process(lab.pid).children(recursive=True)) > 2,
            "the second trial's pool",
        )
        started = psutil.Process(lab.pid).children(recursive=True)
        lab.send_signal(signal.SIGINT)
        out, err = lab.communicate(timeout=30)
    assert lab.returncode == 3
    assert out == ""
    (folder,) = (tmp_path / "results").iterdir()
    done = (
        f"what was done is in results/{folder.name}; go on with: clientlab run --resume"
        f" {folder.name}"
    )
    assert err.splitlines()[-1] == f"clientlab: interrupted in trial 2 of 3; {done}"
    store = Store(tmp_path / "results")
    stopped = store.read("last")
    assert stopped.status == "incomplete"
    assert [(trial.status, trial.reason) for trial in stopped.trials] == [
        ("done", None),
        ("lost", "interrupted"),
    ]
    eventually(lambda: not any(map(is_alive, started)), "no process is left")
    said = clientlab("run", "--resume", "last")
    assert said.code == 0, said.err
    whole = store.read("last")
    assert whole.status == "done"
    assert whole.trials[:2] == stopped.trials
    assert sorted(
        trial.planned.round for trial in whole.trials if trial.status == "done"
    ) == [1, 2, 3]
    assert [(one.trials, one.differences) for one in whole.resumed] == [(2, [])]
    kept = {path.stem for path in (folder / "samples").glob("trial-*.npz")}
    assert kept >= {
        f"trial-{trial.planned.order:04d}"
        for trial in whole.trials
        if trial.status == "done"
    }
    again = clientlab("run", "--resume", "last")
    assert again.code == 2
    assert "--resume" in again.err


def test_a_reader_that_goes_away_does_not_end_the_run(server, tmp_path):
    """`clientlab run … 2>&1 | head -1`: the run measures all its trials, and its file
    is that of any run.
    """
    words = [
        "run",
        "-t",
        "http.client",
        "-n",
        "20",
        "--rounds",
        "2",
        "--url",
        server.url,
    ]
    with subprocess.Popen(
        [*PROGRAM, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as lab:
        lab.stdout.readline()
        lab.stdout.close()
        lab.wait(timeout=60)
    run = Store(tmp_path / "results").read("last")
    assert run.status == "done"
    assert [trial.status for trial in run.trials] == ["done"] * 2
    assert lab.returncode == 0


def test_a_run_whose_lab_is_killed_is_interrupted_and_keeps_its_finished_trials(
    server, tmp_path, clientlab
):
    """While the lab lives, the run is running and not resumed.

    Finished trials are in a journal beside the run file.
    """
    words = [
        "run",
        "-t",
        "requests-session@processes",
        "-c",
        "2",
        "-n",
        "20",
        "--rounds",
        "500",
        "--url",
        server.url,
    ]
    store = Store(tmp_path / "results")
    with subprocess.Popen(
        [*PROGRAM, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as lab:
        eventually(
            lambda: store.names() and len(store.read("last").trials) > 2,
            "three trials are finished",
        )
        assert " running " in clientlab("runs").out
        assert clientlab("run", "--resume", "last").code == 2
        eventually(
            lambda: len(psutil.Process(lab.pid).children(recursive=True)) > 2,
            "a trial's pool",
        )
        started = psutil.Process(lab.pid).children(recursive=True)
        lab.kill()
    eventually(lambda: not any(map(is_alive, started)), "no process is left")
    assert " interrupted " in clientlab("runs").out
    saved = store.read("last")
    assert json.loads(store.find("last").read_text())["trials"] == []
    assert saved.status == "running"
    assert {trial.status for trial in saved.trials} == {"done"}
    assert "requests-session@processes" in clientlab("report", "last").out
    said = clientlab("run", "--resume", "last", "-n", "5")
    assert (said.code, "-n" in said.err) == (2, True)  # it goes on as it was planned


def test_a_run_behind_two_links_has_an_arm_for_each_and_compares_them(
    clientlab, results, server
):
    words = (
        "-t",
        "http.client",
        "-n",
        5,
        "--rounds",
        1,
        "--rtt",
        "0ms,10ms",
        "--url",
        server.url,
    )
    said = clientlab("run", *words)
    assert said.code == 0, said.err
    run = results.read("last")
    near, far = run.experiment.arms
    assert near.name == "http.client[rtt=0ms]"
    assert near.link == Link(0.0)
    assert far.name == "http.client[rtt=10ms]"
    assert far.link == Link(0.01)
    assert run.experiment.workloads[near.workload].request.headers == {
        "Host": f"127.0.0.1:{server.port}"
    }
    (found,) = [trial for trial in run.trials if trial.planned.link == far.link]
    assert found.figures.latency_seconds.p50 > 0.01
    assert (
        found.figures.overhead_seconds.p50 < found.figures.latency_seconds.p50 - 0.009
    )


@pytest.mark.release
def test_find_max_finds_the_highest_rate_of_an_upstream_that_has_one(
    clientlab, results
):
    """Four threads of 20 ms hold 200 requests a second."""
    words = (
        "-t",
        "aiohttp@workers",
        "--upstream",
        "flask?workers=1&threads=4",
        "--delay",
        "20ms",
        "-d",
        "500ms",
    )
    said = clientlab("run", *words, "--find-max", "p50<100ms", "--rounds", 1)
    assert said.code == 0, said.err
    (trial,) = results.read("last").trials
    assert 130 < trial.highest_rate.middle < 220
    assert f"held {trial.highest_rate.middle:.0f} requests/s" in said.out
