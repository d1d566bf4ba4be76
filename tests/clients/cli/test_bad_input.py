"""Bad input: one line that names the offending option, key or file; exit code 2, never
a traceback.
"""

from __future__ import annotations

import io
import socket
import sys
from importlib.util import find_spec

import pytest

from clientlab import strategies
from clientlab.conformance.server import counting_server
from clientlab.experiments.file import bundled
from clientlab.results.plan import Target
from clients.documents import a_run, a_trial
from tls_servers import Authority


def refused(said, *names: str) -> None:
    """Exactly one line on standard error, which has these names in it; nothing on
    standard output.
    """
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("clientlab: ")
    assert said.err.count("\n") == 1
    assert [name for name in names if name not in said.err] == [], said.err


RUN = ("run", "-t", "http.client")
HERE = "http://127.0.0.1:1/"
WRONG_WORDS = [
    (("run",), ["-t"]),
    (("run", "-t", "reqests-sesion"), ["'reqests-sesion'", "requests-session"]),
    (("run", "dmeo"), ["'dmeo'", "demo"]),
    ((*RUN, "--ruonds", "3"), ["'--ruonds'", "--rounds"]),
    ((*RUN, "-n", "0"), ["-n 0"]),
    (
        ("run", "-t", "aiohttp@workers", "-c", "90000000", "-n", "90000000"),
        ["aiohttp@workers", "-c"],
    ),
    ((*RUN, "--delay", "300"), ["'--delay'", "300ms or 300s"]),
    ((*RUN, "-n", "5", "-d", "1s"), ["-n", "-d"]),
    (("run", "-t", "aiohttp@gather", "-d", "1s"), ["-d 1", "'aiohttp@gather'"]),
    ((*RUN, "--cold", "-d", "1s"), ["-d", "--cold"]),
    (("run", "-t", "requests@threads", "--cold"), ["--cold", "'requests@threads'"]),
    ((*RUN, "--shards", "2"), ["--shards 2", "'http.client'"]),
    ((*RUN, "--find-max", "p98<1s"), ["--find-max", "'p98'"]),
    ((*RUN, "--replay-times"), ["--replay-times", "--replay"]),
    ((*RUN, "--max-gap", "10s"), ["--max-gap", "--replay"]),
    ((*RUN, "--stream", "xml"), ["'--stream'", "openai-chat"]),
    (
        (*RUN, "--stream", "sse", "-n", "100000", "--events", "1000"),
        ["--events and -n", "5,000,000"],
    ),
    (
        (*RUN, "--stream", "sse", "--stream-options", "colour=red"),
        ["--stream-options", "'colour'", "pings"],
    ),
    (
        (*RUN, "--stream", "sse", "--stream-options", "size=16777217"),
        ["--stream-options size=16777217", "2,684,354"],
    ),
    (
        (*RUN, "--stream", "sse", "--stream-options", "size=30"),
        ["--stream-options size=30", "31"],
    ),
    (
        (*RUN, "--stream", "sse", "--stream-options", "size=1MB"),
        ["--stream-options size=1MB"],
    ),
    ((*RUN, "--stream", "sse", "--delay", "1s"), ["--stream", "--delay", "--first"]),
    ((*RUN, "--url", HERE, "--stream", "sse", "--first", "5ms"), ["--url", "--first"]),
    (
        ("run", "-t", "httplib2", "--stream", "sse"),
        ["--stream", "'httplib2'", "requests-session"],
    ),
    (
        ("run", "-t", "openai", "--stream", "sse"),
        ["--stream", "'openai'", "openai-chat"],
    ),
    (("run", "-t", "openai"), ["--stream", "'openai'", "openai-chat"]),
    ((*RUN, "--path", "/metrics?x=1"), ["--path with /metrics", "--url"]),
    ((*RUN, "--path", "/h%65althz"), ["--path with /healthz"]),
    ((*RUN, "--header", "nonsense"), ["'--header'", "'nonsense'"]),
    ((*RUN, "--body", "@none.json"), ["'--body'", "@none.json"]),
    ((*RUN, "--cluster", "here"), ["--cluster here"]),
    (
        (*RUN, "--cluster", "tcp://127.0.0.1:1", "--keep-samples"),
        ["--keep-samples", "--cluster"],
    ),
    ((*RUN, "--url", "127.0.0.1:8000"), ["--url '127.0.0.1:8000'"]),
    ((*RUN, "--url", HERE, "--delay", "1s"), ["--url", "--delay"]),
    ((*RUN, "--url", HERE, "--url", HERE), ["'--url'", repr(HERE), "base=http"]),
    ((*RUN, "--url", f"my server={HERE}"), ["'--url'", "'my server'"]),
    (
        (*RUN, "--ca-file", "ca.pem", "--url", "https://127.0.0.1:1/"),
        ["--ca-file", "ca.pem"],
    ),
    (("run", "keepalive", "--rtt", "1ms,2ms"), ["'keepalive'"]),
    ((*RUN, "--env", "old"), ["'old'"]),
    ((*RUN, "--rounds", "0"), ["--rounds", "got 0"]),
    ((*RUN, "-d", "2s", "--budget", "1s"), ["--budget 1"]),
    ((*RUN, "--fail-on", "p98 > 1s"), ["--fail-on", "'p98'"]),
    ((*RUN, "--fail-on", "http.cleint: p99 > 1s"), ["'http.cleint'", "http.client"]),
    ((*RUN, "--name", "../x"), ["--name '../x'"]),
    ((*RUN, "--chart", "x.jpg"), ["x.jpg"]),
    ((*RUN, "--chart", "none/x.svg"), ["none/x.svg", "folder none"]),
    (("conform", "pycurl?pool=3"), ["'pycurl?pool=3'", "'pool'"]),
    (("compare", "last"), ["compare"]),
    (("compare", "a", "b", "--json", "--markdown"), ["--markdown", "--json"]),
    (("runs", "rm", "last", "--yes"), ["'last'"]),
    (("nonsense",), ["'nonsense'"]),
]


@pytest.mark.parametrize(
    ("words", "names"),
    WRONG_WORDS,
    ids=[" ".join(words)[:60] for words, _ in WRONG_WORDS],
)
def test_bad_arguments_are_refused_in_one_line(words, names, clientlab, results):
    refused(clientlab(*words), *names)
    assert not results.folder.exists()


@pytest.mark.real
def test_a_server_whose_certificate_is_not_trusted_is_refused(
    clientlab, results, tmp_path
):
    (tmp_path / "none.pem").write_text("nothing\n")
    with counting_server(
        tls=[Authority(tmp_path / "tls").context("127.0.0.1")]
    ) as server:
        words = (
            "run",
            "-t",
            "urllib3",
            "-t",
            "pycurl",
            "-n",
            5,
            "--rounds",
            1,
            "--url",
            server.url,
        )
        refused(clientlab(*words), "certificate verify failed", "--ca-file")
        refused(clientlab(*words, "--ca-file", "none.pem"), "--ca-file", "none.pem")
        assert server.seen == []
        assert clientlab(*words, "--ca-file", "tls/ca.pem").code == 0
    assert [
        (trial.figures.requests, trial.figures.errors)
        for trial in results.read("last").trials
    ] == [(5, {})] * 2
    assert len(server.seen) == 1 + 2 * (
        10 + 5
    )  # the probe, and in each trial ten requests to warm up


MINE = 'question = "?"\nstrategies = ["http.client"]\n[workloads.w]\n'


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        (f"{MINE}timeout = '0s'", ["-n", "5"], ["mine.toml: workloads.w.timeout"]),
        (f"{MINE}timeout = '0s'", ["--timeout", "5s", "-n", "0"], ["clientlab: -n 0"]),
        (
            f"{MINE}payload_size = 5",
            ["--body", "x"],
            ["clientlab: --body and --payload-size"],
        ),
        (f"{MINE}rtt = ['1ms', '2ms']", ["--rtt", "1ms"], ["--rtt"]),
    ],
)
def test_an_error_names_the_option_or_the_file_that_caused_it(
    text, options, names, clientlab, tmp_path
):
    (tmp_path / "mine.toml").write_text(text)
    refused(clientlab("run", "mine.toml", *options), *names)


def test_a_run_file_permits_neither_load_to_the_internet_nor_another_machine(
    clientlab, results, monkeypatch
):
    monkeypatch.setattr(
        socket.socket, "connect_ex", lambda *_: 1
    )  # nothing leaves this machine
    run = a_run(a_trial("http.client", upstream="93.184.215.14")).updated(
        status="incomplete"
    )
    results.claim(run.run)
    results.save(run)
    refused(
        clientlab("run", "--resume", "last", "--cluster", "tcp://127.0.0.1:1"),
        "--cluster tcp://127.0.0.1:1",
    )
    results.save(
        run.updated(target=Target(testbed="external", url="http://93.184.215.14/"))
    )
    refused(clientlab("run", "--resume", "last"), "93.184.215.14", "CLIENTLAB_PUBLIC=1")
    monkeypatch.setenv("CLIENTLAB_PUBLIC", "1")
    refused(clientlab("run", "--resume", "last"), "nothing listens at 93.184.215.14:80")


def test_a_run_longer_than_half_an_hour_asks_first_at_a_terminal(
    clientlab, results, monkeypatch
):
    """The question shows the load, so that a mistyped delay is noticed."""
    keyboard = io.StringIO("n\n")
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    said = clientlab(
        "run", "-t", "http.client", "-n", "100", "--delay", "20s", "--rounds", "1"
    )
    assert said.code == 2
    assert said.out == ""
    assert "delay 20s" in said.err
    assert " min" in said.err
    assert not list(results.folder.glob("*/run.json"))


@pytest.fixture
def two_runs(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """Two runs of two rounds with different workloads, and a run in another format."""
    for name, route in (("a", "direct"), ("b", "proxy")):
        run = a_run(
            *(a_trial("urllib3", number, route=route) for number in (1, 2)), name=name
        )
        results.claim(name)
        results.save(run)
    (results.claim("c") / "run.json").write_text(
        results.find("a").read_text().replace('"format": 2', '"format": 1')
    )


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("compare", "a", "b"), ["'urllib3'", "'direct'", "'proxy'", "--force"]),
        (("report", "c"), ["results/c/run.json", "format 1"]),
        (("claims", "a"), ["'run'"]),
        (
            ("compare", "a", "a", "--fail-on", "urllib: p99 +5%"),
            ["'urllib'", "nearest: urllib3"],
        ),
        (("report", "a", "--fail-on", "p99 < 5ms"), ["p99 > 5ms"]),
        (("report", "a", "--csv", "none/x.csv"), ["none/x.csv"]),
        (("report", "a", "--csv", "-", "--markdown", "-"), ["--csv", "--markdown"]),
    ],
)
def test_runs_that_cannot_be_compared_or_reported_are_refused(words, names, clientlab):
    refused(clientlab(*words), *names)


def test_an_experiment_is_refused_if_the_machine_can_run_none_of_its_arms(
    clientlab, monkeypatch, tmp_path
):
    """An experiment of the user's own is also refused if it can run only
    some of them.
    """
    monkeypatch.setattr(strategies, "which", lambda _: None)
    text = (
        bundled()["frameworks"]
        .read_text(encoding="utf-8")
        .replace("instead =", "# instead =")
    )
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    refused(clientlab("run", "mine.toml"), "strategy 'ab'")
    missing = {"requests", "httpx"}
    monkeypatch.setattr(
        strategies,
        "find_spec",
        lambda name: None if name in missing else find_spec(name),
    )
    refused(clientlab("run", "keepalive"), "'keepalive'", *missing)
    assert not (tmp_path / "results").exists()
