"""Bad input: one line that names the offending option, key or file; exit code 2, never a traceback."""

from __future__ import annotations

import io
import os
import socket
import sys
from pathlib import Path

import pytest

from clientlab.cli.run import confirm_long_run, permits_public
from clientlab.conformance.server import counting_server
from clientlab.results.target import Target
from clients.documents import a_run, a_trial
from tls_servers import Authority


def refused(said, *names: str) -> None:
    """Exactly one line on standard error, which has these names in it; nothing on standard output."""
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("clientlab: ")
    assert said.err.count("\n") == 1
    assert [name for name in names if name not in said.err] == [], said.err


RUN = ("run", "-t", "http.client")
HERE = "http://127.0.0.1:1/"
RECORDED = str(Path(__file__).with_name("recorded.jsonl"))
WRONG_WORDS = [
    # strategies and experiments
    (("run",), ["-t"]),
    (("run", "-t", "reqests-sesion"), ["'reqests-sesion'", "requests-session"]),
    (("run", "-t", "aiohttp@threads"), ["'aiohttp@threads'"]),
    (("run", "-t", "pycurl", "-t", "pycurl"), ["'pycurl'"]),
    (("run", "-t", "none.py:Client"), ["none.py"]),
    (("run", "dmeo"), ["'dmeo'", "demo"]),
    ((*RUN, "--ruonds", "3"), ["'--ruonds'", "--rounds"]),
    # the load
    ((*RUN, "-n", "0"), ["-n 0"]),
    ((*RUN, "-c", "16"), ["-c 16", "'http.client'", "http.client@threads"]),
    (("run", "-t", "aiohttp@workers", "-c", "90000000", "-n", "90000000"), ["aiohttp@workers", "-c"]),
    ((*RUN, "-d", "10x"), ["'-d'", "'10x'"]),
    ((*RUN, "-d", "0"), ["-d 0"]),
    ((*RUN, "-n", "5", "-d", "1s"), ["-n", "-d"]),
    (("run", "-t", "aiohttp@gather", "-d", "1s"), ["-d 1", "'aiohttp@gather'"]),
    ((*RUN, "--rate", "fast"), ["'--rate'", "'fast'"]),
    ((*RUN, "--rate", "1s:5/s"), ["'--rate'", "1 s"]),
    (("run", "-t", "ab", "-n", "5", "--rate", "9/s"), ["--rate", "'ab'"]),
    ((*RUN, "--shards", "2"), ["--shards 2", "'http.client'"]),
    ((*RUN, "--find-max", "p98<1s"), ["'--find-max'", "'p98'"]),
    ((*RUN, "--find-max", "p99<250"), ["'--find-max'", "p99<250ms"]),
    (("run", "-t", "ab", "--find-max", "p99<900ms"), ["--find-max", "'ab'"]),
    # the request
    ((*RUN, "--path", "todos"), ["--path 'todos'"]),
    ((*RUN, "--header", "nonsense"), ["'--header'", "'nonsense'"]),
    ((*RUN, "--body", "x", "--payload-size", "1"), ["--body", "--payload-size"]),
    ((*RUN, "--body", "@none.json"), ["'--body'", "@none.json"]),
    ((*RUN, "--replay", "none.jsonl"), ["--replay", "none.jsonl"]),
    ((*RUN, "--replay", RECORDED, "--path", "/x"), ["--replay", "--path"]),
    # servers
    ((*RUN, "--upstream", "fask"), ["'fask'", "flask"]),
    ((*RUN, "--upstream", "flask?worker=4"), ["flask?worker=4", "'worker'"]),
    ((*RUN, "--delay", "uniform:2s"), ["'--delay'", "'uniform:2s'"]),
    ((*RUN, "--cluster", "here"), ["--cluster here"]),
    ((*RUN, "--cluster", "tcp://127.0.0.1:1", "--keep-samples"), ["--keep-samples", "--cluster"]),
    ((*RUN, "--url", "127.0.0.1:8000"), ["--url '127.0.0.1:8000'"]),
    ((*RUN, "--url", HERE, "--delay", "1s"), ["--url", "--delay"]),
    ((*RUN, "--ca-file", "ca.pem", "--url", "https://127.0.0.1:1/"), ["--ca-file", "ca.pem"]),
    (("run", "-t", "pycurl-h2"), ["'pycurl-h2'", "direct"]),
    ((*RUN, "--rtt", "20s"), ["'--rtt'"]),
    ((*RUN, "--bandwidth", "1tbit"), ["'--bandwidth'"]),
    (("run", "keepalive", "--rtt", "1ms,2ms"), ["'keepalive'"]),
    # environments
    ((*RUN, "--env", "old"), ["'old'"]),
    (("run", "keepalive", "--env", "a=x", "--env", "b=y"), ["'keepalive'"]),
    # rounds, limits and results
    ((*RUN, "--rounds", "0"), ["--rounds 0"]),
    ((*RUN, "-d", "2s", "--budget", "1s"), ["--budget 1"]),
    ((*RUN, "--fail-on", "p98 > 1s"), ["--fail-on", "'p98'"]),
    ((*RUN, "--fail-on", "p99 +5%"), ["--fail-on", "--env"]),
    ((*RUN, "--fail-on", "http.cleint: p99 > 1s"), ["'http.cleint'", "http.client"]),
    ((*RUN, "--name", "../x"), ["--name '../x'"]),
    ((*RUN, "--junit", "x.txt"), ["x.txt"]),
    ((*RUN, "--chart", "x.jpg"), ["x.jpg"]),
    # other subcommands
    (("conform", "pycurl?pool=3"), ["'pycurl?pool=3'", "'pool'"]),
    (("report",), ["RUN"]),
    (("report", "nothing"), ["'nothing'"]),
    (("compare", "last"), ["compare"]),
    (("compare", "a", "b", "--fail-on", "p99 -5%"), ["--fail-on 'p99 -5%'"]),
    (("compare", "a", "b", "--json", "--markdown"), ["--markdown", "--json"]),
    (("runs", "rm", "last", "--yes"), ["'last'"]),
    (("runs", "nonsense"), ["'nonsense'"]),
    (("list", "nonsense"), ["'nonsense'"]),
    (("up", "--flask-port", "99999"), ["'--flask-port'"]),
    (("nonsense",), ["'nonsense'"]),
]  # fmt: skip


@pytest.fixture
def some_ab(tmp_path_factory, monkeypatch):
    """`ab` is found, also where it is not installed. No command that is refused starts it."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "ab").write_text("#!/bin/sh\nexit 1\n")
    (folder / "ab").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")


@pytest.mark.usefixtures("some_ab")
@pytest.mark.parametrize(("words", "names"), WRONG_WORDS, ids=[" ".join(words)[:60] for words, _ in WRONG_WORDS])
def test_wrong_words_are_refused_in_one_line(words, names, clientlab, results):
    """And nothing was begun: no results folder is there."""
    refused(clientlab(*words), *names)
    assert not results.folder.exists()


@pytest.mark.real
def test_an_upstream_that_does_not_answer_is_refused(clientlab):
    """The line has its address."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        refused(clientlab(*RUN, "--url", f"http://127.0.0.1:{port}/"), f"127.0.0.1:{port}")


@pytest.mark.real
def test_a_server_whose_certificate_is_not_trusted_is_refused(clientlab, tmp_path):
    """With the option that names its CA; a file that holds none is refused as well."""
    (tmp_path / "none.pem").write_text("nothing\n")
    with counting_server(tls=[Authority(tmp_path / "tls").context("127.0.0.1")]) as server:
        refused(clientlab(*RUN, "--url", server.url), "certificate verify failed", "--ca-file")
        refused(clientlab(*RUN, "--url", server.url, "--ca-file", "none.pem"), "--ca-file", "none.pem")
    assert server.seen == []


MINE = 'question = "?"\nstrategies = ["http.client"]\n[workloads.w]\n'


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ("question =", [], ["mine.toml"]),
        (f"{MINE}request = 1", [], ["mine.toml: line 4: workloads.w", "`request`"]),
        (f"{MINE}timeout = '0s'", ["-n", "5"], ["mine.toml: line 4: workloads.w.timeout"]),
        (f"{MINE}timeout = '0s'", ["--timeout", "5s", "-n", "0"], ["clientlab: -n 0"]),
        (f"{MINE}payload_size = 5", ["--body", "x"], ["clientlab: --body and --payload-size"]),
        (f"{MINE}rtt = ['1ms', '2ms']", ["--rtt", "1ms"], ["--rtt"]),
    ],
)
def test_a_mistake_is_named_where_it_was_made(text, options, names, clientlab, tmp_path):
    """An option by its name; a value of the file by its line and field, also beside options."""
    (tmp_path / "mine.toml").write_text(text)
    refused(clientlab("run", "mine.toml", *options), *names)


def test_a_results_folder_that_is_a_file_is_refused(clientlab, tmp_path):
    """Before anything is measured."""
    (tmp_path / "taken").touch()
    refused(clientlab(*RUN, "--out", "taken"), "'--out'")


def test_a_run_file_does_not_permit_load_to_the_internet(clientlab, results, monkeypatch):
    """Only the variable does, or an answer at a terminal."""
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_: 1)  # nothing leaves this machine
    target = Target.external("http://93.184.215.14/", None)
    run = a_run(a_trial("http.client", upstream="93.184.215.14"))
    run = run.model_copy(update={"status": "incomplete", "target": target})
    results.claim(run.run)
    results.save(run)
    refused(clientlab("run", "--resume", "last"), "93.184.215.14", "CLIENTLAB_PUBLIC=1")
    monkeypatch.setenv("CLIENTLAB_PUBLIC", "1")
    refused(clientlab("run", "--resume", "last"), "nothing listens at 93.184.215.14:80")


def test_a_run_whose_file_lacks_its_target_is_refused_and_can_be_read(clientlab, results):
    """It is shown as any other run. To go on, it is measured anew."""
    run = a_run(a_trial(), rounds=2, command="clientlab run -t urllib3")
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete", "target": None}))
    refused(clientlab("run", "--resume", run.run), "'clientlab run -t urllib3'")
    assert clientlab("report", run.run).code == 0


def test_a_run_of_this_machine_does_not_go_on_on_a_cluster(clientlab, results, monkeypatch):
    """Neither by the option nor by the variable: its rounds would have other servers."""
    run = a_run(a_trial(), rounds=2)
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete"}))
    address = "tcp://127.0.0.1:1"
    refused(clientlab("run", "--resume", run.run, "--cluster", address), f"--cluster {address}")
    monkeypatch.setenv("CLIENTLAB_CLUSTER", address)
    refused(clientlab("run", "--resume", run.run), f"--cluster {address}")


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_asks_before_load_goes_to_the_internet(answer, monkeypatch):
    """The question names the addresses."""
    at_a_terminal(monkeypatch, "y\n" if answer else "n\n")
    assert permits_public(["93.184.215.14"]) is answer


LONG = ("run", "-t", "http.client", "-n", "100", "--delay", "20", "--rounds", "1")
"""It takes more than half an hour."""


def at_a_terminal(monkeypatch, answer: str) -> None:
    """Somebody types this answer."""
    keyboard = io.StringIO(answer)
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def test_a_run_of_more_than_half_an_hour_needs_a_yes_at_a_terminal(clientlab, results, monkeypatch):
    """The question shows the delay with its unit: `--delay 20` may have meant 20 ms."""
    at_a_terminal(monkeypatch, "n\n")
    said = clientlab(*LONG)
    assert (said.code, said.out) == (2, "")
    assert "delay 20s" in said.err
    assert " min" in said.err
    assert not list(results.folder.glob("*/run.json"))


@pytest.mark.parametrize(("seconds", "answer"), [(1980.0, "y\n"), (60.0, "")])
def test_a_run_is_measured_after_a_yes_or_if_it_is_short(seconds, answer, monkeypatch):
    """A short run asks nothing."""
    at_a_terminal(monkeypatch, answer)
    confirm_long_run(a_run(a_trial()).experiment, seconds)


def test_nobody_is_asked_without_a_terminal():
    """A pipeline cannot answer."""
    confirm_long_run(a_run(a_trial()).experiment, 1e6)


@pytest.fixture
def two_runs(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """Two runs of two rounds, of unlike workloads, and one of a run in another format."""
    for name, route in (("a", "direct"), ("b", "proxy")):
        run = a_run(*(a_trial("urllib3", number, route=route) for number in (1, 2)), name=name)
        results.claim(name)
        results.save(run)
    (results.claim("c") / "run.json").write_text(results.find("a").read_text().replace('"format": 1', '"format": 2'))


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("compare", "a", "b"), ["'urllib3'", "'direct'", "'proxy'", "--force"]),
        (("compare", "a", "c"), ["results/c/run.json", "format 2"]),
        (("report", "c"), ["results/c/run.json", "format 2"]),
        (("compare", "a", "a", "--fail-on", "p99 +5%"), ["'urllib3'", "--strict"]),
        (("report", "a", "--fail-on", "p99 < 5ms"), ["p99 > 5ms"]),
        (("report", "a", "--fail-on", "p99 > 5"), ["--fail-on", "ms"]),
        (("report", "a", "--csv", "none/x.csv"), ["--csv none/x.csv"]),
        (("report", "a", "--html", "x.txt"), ["x.txt"]),
        (("report", "a", "--csv", "-", "--markdown", "-"), ["--csv", "--markdown"]),
    ],
)
def test_runs_that_can_not_be_compared_or_reported_are_refused(words, names, clientlab):
    """With what stands in the way."""
    refused(clientlab(*words), *names)


@pytest.mark.real
def test_a_port_that_is_taken_is_refused(clientlab):
    """With the server that wanted it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ports = [f"--{part}-port=0" for part in ("flask", "aiohttp", "proxy-flask", "proxy-aiohttp", "proxy-flask-tls",
                                                        "proxy-aiohttp-tls", "proxy-metrics")]  # fmt: skip
        refused(clientlab("up", *ports, f"--proxy-aiohttp-port={port}"), f"port {port} for proxy for aiohttp")
