"""`--fault` and the key `faults`: what arrives, what the run file and the report state of it, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from clientlab.workload.faults import Faults
from clientlab.workload.link import Link
from clientlab.workload.seeds import in_round

WITHOUT_LIMIT = """
import http.client
from urllib.parse import urlsplit

class Patient:
    errors = ((ConnectionError, "reset"),)
    def __init__(self, budget, opened): ...
    def open(self): ...
    def send(self, request):
        url = urlsplit(request.url)
        connection = http.client.HTTPConnection(url.hostname, url.port)
        connection.request(request.method, url.path + "?" + url.query, headers=request.headers)
        response = connection.getresponse()
        return response.status, response.read()
    def close(self): ...
"""


@pytest.mark.slow
def test_all_arms_of_a_round_meet_the_same_faults(clientlab, results):
    """Those that seed, round and number decide; the upstream made as many as were asked for, and each was noticed."""
    said = clientlab(
        "run", "-t", "http.client", "-t", "aiohttp@workers", "--upstream", "aiohttp", "--upstream", "flask",
        "-n", 200, "-c", 4, "--rounds", 2, "--seed", 3, "--keep-samples",
        "--fault", "reset:10%", "--fault", "status=429@2s:5%,truncated:5%",
    )  # fmt: skip
    assert said.code == 0, said.err
    run = results.read("last")
    faults = Faults.parse("reset:10%,status=429@2s:5%,truncated:5%")
    assert run.experiment.workloads["workload"].faults == faults
    kinds = {"reset": "reset", "status=429@2s": "status-4xx", "truncated": "protocol"}
    for trial in run.trials:
        drawn = in_round(run.experiment.workloads["workload"], 3, trial.round)
        expected = [fault.text if (fault := faults.at(drawn.seed)(k)) else "" for k in range(200)]
        with np.load(results.folder / run.run / "samples" / f"trial-{trial.order:04d}.npz") as samples:
            order = np.argsort(samples["number"])
            assert samples["fault"][order].tolist() == expected
            assert samples["error"][order].tolist() == [kinds.get(fault, "") for fault in expected]
        for fault, found in trial.faults.by_fault.items():
            assert found.asked == expected.count(fault) > 0
            assert found.met == {kinds[fault]: found.asked}
            assert trial.upstream_use.faults[fault.partition("=")[0]] == found.asked
        assert trial.faults.beside == {}
    assert "Faults by arm" in said.out


def test_a_proxy_answers_for_an_upstream_that_failed(clientlab, results):
    """A reset arrives as status 502 through Caddy, and is met as the reset that it is without it."""
    words = ("-t", "http.client", "-n", 40, "--rounds", 1, "--fault", "reset:25%", "--method", "POST")
    said = clientlab("run", *words, "--route", "direct", "--route", "proxy")
    assert said.code == 0, said.err
    met = {trial.route: trial.faults.by_fault["reset"] for trial in results.read("last").trials}
    assert met["direct"].met == {"reset": met["direct"].asked}
    assert met["proxy"].met == {"status-5xx": met["direct"].asked}


@pytest.mark.slow
def test_a_strategy_that_hangs_is_a_result(clientlab, results, tmp_path):
    """A limit ends its trial; the run is complete, the report has the word, and other arms are measured."""
    (tmp_path / "mine.py").write_text(WITHOUT_LIMIT)
    said = clientlab(
        "run", "-t", "mine.py:Patient", "-t", "http.client", "-n", 40, "--rounds", 1, "--seed", 5,
        "--fault", "stall:10%", "--timeout", "300ms", "--request-limit", "1s",
    )  # fmt: skip
    assert said.code == 0, said.err
    run = results.read("last")
    assert run.status == "done"
    patient, other = sorted(run.trials, key=lambda trial: trial.strategy == "http.client")
    assert (patient.hangs, patient.status) == (True, "failed")
    assert "--request-limit" in patient.reason
    assert other.faults.by_fault["stall"].met == {"timeout-read": other.faults.by_fault["stall"].asked}
    assert 0.3 <= other.faults.by_fault["stall"].notice_seconds < 5
    assert "HANGS" in said.err
    assert re.search(r"mine\.py:Patient.*stall .*hangs", said.out)
    assert "failed-trials" not in {caution.kind for caution in run.cautions}


AXIS = """
question = "?"
strategies = ["http.client", "requests"]
[workloads.w]
requests = 40
faults = ["none", "reset:25%", "close:25%"]
"""


@pytest.mark.slow
def test_faults_are_an_axis_of_an_experiment_and_a_matrix_of_its_report(clientlab, results, tmp_path):
    """A row for each strategy, a column for each fault, and a word in each cell, also on the page, with its colour."""
    (tmp_path / "mine.toml").write_text(AXIS)
    said = clientlab("run", "mine.toml", "--rounds", 1, "--html", "page.html")
    assert said.code == 0, said.err
    assert [arm.name for arm in results.read("last").experiment.arms][:2] == [
        "http.client[faults=none]",
        "http.client[faults=reset:25%]",
    ]
    assert "2 clients met 2 faults: no client hung; no fault passed unnoticed; no request was sent again" in said.out
    assert "times as fast" not in said.out
    table = said.out.partition("What the caller meets: w")[2]
    assert re.search(r"http\.client +reset · [\d.]+ \S+ +ok", table)
    assert re.search(r'<td class="text good">ok</td>', (tmp_path / "page.html").read_text())


def test_time_that_a_fault_takes_is_delay_and_no_mystery(clientlab, results):
    """The verdict of a trial whose requests mostly stalled is that of one whose upstream waits as long."""
    said = clientlab("run", "-t", "http.client", "-n", 20, "--rounds", 1, "--fault", "stall=60ms:50%")
    assert said.code == 0, said.err
    (trial,) = results.read("last").trials
    asked = trial.faults.by_fault["stall=60ms"].asked
    assert trial.verdict == "latency-bound"
    assert trial.busy["latency"] * trial.wall_seconds == pytest.approx(0.06 * asked, rel=0.01)


@pytest.mark.slow
def test_the_link_makes_faults_of_connections_before_any_server(clientlab, results, server):
    """Drawn by number of connection, equally for all arms; counted, and shown in the report."""
    said = clientlab(
        "run", "-t", "requests", "-t", "http.client", "-n", 40, "--rounds", 1, "--seed", 2, "--url", server.url,
        "--fault", "reset-after=50B:25%",
    )  # fmt: skip
    assert said.code == 0, said.err
    requests, other = sorted(results.read("last").trials, key=lambda trial: trial.strategy == "http.client")
    assert requests.link == other.link == Link(0.0, faults=Faults.parse("reset-after=50B:25%"))
    count = requests.link_use.faults["reset-after"]
    assert 2 <= count < 25
    assert requests.faults.beside == {"reset": count}
    assert other.link_use.faults is None or other.link_use.faults["reset-after"] == other.errors["reset"]
    assert re.search(r"requests .*reset-after=50B .*reset", said.out)


@pytest.mark.slow
def test_an_outage_has_its_moment_in_each_trial(clientlab, results):
    """Trials with one are not measured by turns, and the connections that it reset are opened again after it."""
    words = ("-t", "requests-session", "-t", "urllib3", "-d", "1s", "--rounds", 1, "--fault", "outage=300ms@300ms")
    said = clientlab("run", *words)
    assert said.code == 0, said.err
    for trial in results.read("last").trials:
        assert trial.slices == 1
        assert trial.link_use.faults == {"outage": 1}
        assert trial.faults.beside["connect"] > 0
        moments = [one.at for one in trial.over_time if one.errors]
        assert 0.25 <= min(moments) <= max(moments) < 0.75
        assert trial.over_time[-3].requests > trial.over_time[-3].errors == 0


@pytest.mark.slow
def test_an_upstream_closes_idle_connections_after_the_time_of_its_setting(clientlab, results):
    """Requests that come a little later find the connection closed; with the lab's own setting, it is kept."""
    words = ("-t", "urllib3", "-n", 3, "--rate", "43/m", "--connections", "cold", "--warmup", 0, "--rounds", 1)
    said = clientlab("run", *words, "--upstream", "flask", "--upstream", "flask?keep_alive=1")
    assert said.code == 0, said.err
    run = results.read("last")
    opened = {trial.upstream: trial.connections_opened for trial in run.trials}
    assert opened == {"flask": 1, "flask?keep_alive=1": 3}
    assert "idle connections kept for 1 s" in run.surroundings.programs["flask?keep_alive=1"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--fault", "reste:3%"),
            r"'--fault': 'reste:3%': there is no fault 'reste'; nearest: reset; there are",
        ),
        (("--fault", "reset:60%", "--fault", "empty:70%"), r"'--fault': .*: the shares add up to 130 %; write 100 %"),
        (("--fault", "reset"), r"'--fault': 'reset' has no share; write reset:10%"),
        (("--fault", "reset:200%"), r"'--fault': 'reset:200%': '200%' is not a share"),
        (("--fault", "truncated:1%", "--method", "HEAD"), r"--fault truncated: it shows in a body, and HEAD / is"),
        (("--fault", "reset:1%", "--url", "http://127.0.0.1:1/"), r"--url with --fault reset: only the lab's own"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_in_a_line(words, says, clientlab, tmp_path):
    """Exit code 2; there is no run."""
    said = clientlab("run", "-t", "urllib3", *words)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(f"clientlab: .*{says}.*\n", said.err)
    assert not (tmp_path / "results").exists()


def test_a_wrong_fault_of_a_file_is_refused_with_its_line(clientlab, tmp_path):
    """As each wrong value is; and an experiment with faults goes with the lab's own upstreams only."""
    (tmp_path / "mine.toml").write_text(AXIS.replace("close:25%", "clsoe:25%"))
    said = clientlab("run", "mine.toml")
    assert said.code == 2
    assert re.search(r"mine\.toml: line 6: .*there is no fault 'clsoe'; nearest: close", said.err)
    (tmp_path / "mine.toml").write_text(AXIS)
    said = clientlab("run", "mine.toml", "--url", "http://127.0.0.1:1/")
    assert said.code == 2
