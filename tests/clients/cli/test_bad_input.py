"""Bad input: one line that says what, where and what to do, exit code 2, never a traceback."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import pytest

from clientlab.conformance.tls import tls_relay
from clientlab.results.target import Target
from clients.documents import a_run, a_trial
from tls_servers import Authority


def refused(said, says: str, code: int = 2) -> None:
    """Exactly one line on standard error, with these words in it; nothing on standard output."""
    assert said.err.startswith("clientlab: ")
    assert said.err.count("\n") == 1
    assert re.search(says, said.err), said.err
    assert (said.code, said.out) == (code, "")


RUN = ("run", "-t", "http.client")
FIND = (*RUN, "--find-max", "p99<900ms")
RECORDED = str(Path(__file__).with_name("recorded.jsonl"))
WRONG_WORDS = [
    (("run", "-t", "reqests-sesion"), "strategy 'reqests-sesion' is unknown; nearest: requests-session"),
    (("run", "-t", "http.client", "-t", "nonsense"), "strategy 'nonsense' is unknown.*clientlab list strategies"),
    (("run", "-t", ""), "strategy '' is unknown"),
    (("run", "-t", "aiohttp@threads"), "'aiohttp@threads': .*it goes with"),
    (("run", "-t", "pycurl", "-t", "pycurl"), "strategy 'pycurl' is given twice; name each once"),
    (("run",), "nothing to measure: name an experiment .*or strategies with -t"),
    (("run", "nonsense"), r"experiment 'nonsense': neither a bundled one \(.*demo.*\) nor a file"),
    (("run", "."), "experiment '.': neither"),
    ((*RUN, "-n", "0"), "-n 0: requests in all; write 1 to 1,000,000,000"),
    ((*RUN, "-n", "-5"), "-n -5: requests in all; write 1 to 1,000,000,000"),
    ((*RUN, "-n", "many"), "'-n'.*'many' is not a valid integer"),
    ((*RUN, "-c", "0"), "-c 0: requests in flight; write 1 to 1,000,000,000"),
    ((*RUN, "-c", "-1"), "-c -1: requests in flight; write 1 to 1,000,000,000"),
    ((*RUN, "-c", "16"), "-c 16: strategy 'http.client' sends one request after the other; write http.client@threads"),
    (("run", "-t", "aiohttp?pool=3", "-c", "2"), "'aiohttp.pool=3' sends one .*; write aiohttp@workers, or leave it"),
    (("run", "-t", "sync", "-t", "requests", "-c", "9"), "-c 9: strategy 'sync' sends one .*; write requests@threads"),
    (("run", "-t", "geventhttpclient", "-c", "2"), "'geventhttpclient' .*; write geventhttpclient@gevent, or leave it"),
    (("run", "-t", "aiohttp-per-call", "-c", "2"), "'aiohttp-per-call' sends one .* after the other; leave it out"),
    (("run", "-t", "trap-thread-sensitive", "-c", "2", "-n", "9"), "write requests-session@sync_to_async, or leave it"),
    ((*RUN, "-d", "10x"), "'-d'.*'10x' is not a length of time; write 120ms, 2s or 0.12"),
    ((*RUN, "-d", ""), "'-d'.*'' is not a length of time"),
    ((*RUN, "-d", "0"), "-d 0: write more than 0 seconds"),
    ((*RUN, "-d", "-1s"), "'-1s' is not a length of time"),
    ((*RUN, "-n", "5", "-d", "1s"), "-n and -d: .*leave out one of them"),
    (("run", "-t", "aiohttp@workers", "-c", "90000000", "-n", "90000000"),
     "aiohttp@workers needs 90,000,0.. (open files|connections).*; lower -c, or .* as root: (prlimit|sysctl)"),
    ((*RUN, "--rate", "0"), "'--rate'.*0 requests per second never arrive; write more than 0"),
    ((*RUN, "--rate", "-5/s"), "'--rate'.*'-5/s' is not a rate; write 500/s, 500 or 30/m"),
    ((*RUN, "--rate", "fast"), "'--rate'.*'fast' is not a rate"),
    ((*RUN, "--rate", "9/s", "--stages", "0s:5/s"), "--rate and --stages: .*leave out one of them"),
    ((*RUN, "--rate", "9/s", "-n", "5", "-d", "1s"), "-n and -d 5: 9 requests arrive in 1 s; leave out one"),
    ((*RUN, "--stages", "5/s"), "'--stages': '5/s' is not a stage; write '0s:100/s,30s:1000/s'"),
    ((*RUN, "--stages", "0s:0/s", "-d", "1s"), "'--stages': 0 requests per second never arrive"),
    ((*RUN, "--stages", "0s:5/s,2s:9/s", "-d", "1s"), "-d 1 s: the last stage begins at 2 s"),
    ((*RUN, "--max-late", "1s"), "--max-late 1.0: only an open load has it; set --rate or --stages"),
    ((*RUN, "--arrivals", "poisson"), "--arrivals poisson: only an open load has it"),
    (("run", "-t", "ab", "-n", "5", "--rate", "9/s"), "--rate: strategy 'ab': ab sends the next .*leave out --rate"),
    ((*RUN, "--find-max", "p98<1s"), "'--find-max': 'p98' is not one of mean, p50"),
    ((*RUN, "--find-max", "fast"), "'--find-max': 'fast' is not a condition; write a figure and what it "),
    ((*FIND, "-n", "5"), "-n and --find-max 5: a search for capacities chooses the rate .* leave it out"),
    ((*FIND, "--rate", "5/s"), "--rate and --find-max 5.0: a search for capacities chooses the rate .* leave it out"),
    ((*FIND, "--stages", "0s:5/s"), "--stages and --find-max 0s:5/s: a search for capacities chooses the rate"),
    ((*FIND, "--arrivals", "poisson"), "--arrivals and --find-max poisson: a search .* plans uniform arrivals"),
    ((*FIND, "--until-precision", "3%"), "--until-precision: the rounds of a search for capacities are planned"),
    ((*FIND, "--find-from", "1/s"), "--find-max: at the first rate, 1/s, a trial of 5 s has 5 requests, .* need 20; "),
    ((*FIND, "-d", "800ms"), "--find-max 'p99<900ms': no trial of 0.8 s can show that; write a lower limit or .* -d"),
    (("run", "-t", "ab", "--find-max", "p99<1s"), "--find-max: strategy 'ab' follows no rate, so it has no capac"),
    ((*RUN, "--find-from", "9/s"), "--find-from: only a search has it; add --find-max, or leave it out"),
    ((*RUN, "--overload", "150%"), "--overload: only a search has it; add --find-max, or leave it out"),
    ((*FIND, "--overload", "90%"), "'--overload': '90%' are no shares beyond a capacity, each once; write 110%,150%"),
    ((*RUN, "--fail-on", "capacity < 5"), "will have no capacity: only a search finds it; set --find-max"),
    ((*RUN, "--fail-on", "p98 > 1s"), "--fail-on 'p98 > 1s': 'p98' is not one of wall"),
    ((*RUN, "--fail-on", "p99 5ms"), "--fail-on 'p99 5ms': write a figure and its limit"),
    ((*RUN, "--fail-on", "p99 +5%"), "--fail-on 'p99 .5%': this run has no earlier environment .*name two --env, or"),
    ((*RUN, "--fail-on", "http.cleint: p99 > 1s"), "no arm is named 'http.cleint'; nearest: http.client"),
    ((*RUN, "--rounds", "2", "--fail-on", "p99 > 1s"), "2 of at least 3 rounds .* more --rounds, or .* with --strict"),
    ((*RUN, "--fail-on", "overhead > 1s"), "arm 'http.client' will have no median overhead; set --delay"),
    ((*RUN, "--fail-on", "dropped > 1%"), "will have no share of dropped requests: only an open load .*set --rate"),
    ((*RUN, "--strict"), "--strict without --fail-on"),
    ((*RUN, "--junit", "x.txt"), "results x.txt: the name must end with .xml"),
    ((*RUN, "--rounds", "0"), "--rounds 0: .*write 1 to 100,000"),
    ((*RUN, "--seed", "9" * 20), "--seed 9{20}: a seed; write 0 to 9,223,372,036,854,775,807"),
    ((*RUN, "--name", "../x"), "--name '../x': write up to 64 letters, digits, .*; neither last nor a date"),
    ((*RUN, "--name", "20240506-070809"), "--name '20240506-070809': write up to 64 letters"),
    ((*RUN, "--name", "last~2"), "--name 'last~2': write up to 64 letters"),
    ((*RUN, "--slices", "0"), "--slices 0: write 1 or more"),
    ((*RUN, "--budget", "0"), "--budget 0.0: write more than 0"),
    ((*RUN, "--rtt", "50"), "'--rtt': 50 without a unit is a time in seconds; write 50ms, or 0 to 10"),
    (("serve", "--patience", "0"), "'--patience': '0': write more than 0"),
    (("work", "-t", "*", "--linger", "soon"), "'--linger': 'soon' is not a length of time"),
    ((*RUN, "--seed", "-1"), "--seed -1: a seed; write 0 to 9,223,372,036,854,775,807"),
    ((*RUN, "--seed", "lucky"), "'--seed': 'lucky' is not a valid integer"),
    ((*RUN, "--rate", "2", "--arrivals", "poisson", "-d", "1s"), "-d 1.0: 2 requests arrive in it on average, so a"),
    ((*RUN, "--rate", "9", "--arrivals", "poisson", "-d", "9s", "-n", "81"), "-n and -d 81: each round draws how man"),
    ((*RUN, "--rate", "9", "--arrivals", "poisson", "-d", "1e8"), "-d: it plans 900,000,000 requests; no trial has"),
    ((*RUN, "-d", "1e-30"), "-d 1e-30: write more than 0 seconds: 1e-09 to 1,000,000,000"),
    ((*RUN, "--rounds", "100001"), "--rounds 100001: .*write 1 to 100,000"),
    ((*RUN, "--shards", "0"), "--shards 0: processes that divide a trial; write 1 to 1,000"),
    ((*RUN, "--shards", "2"), "--shards 2: strategy 'http.client' has at most 1 requests in flight here; write no mo"),
    (("run", "-t", "aiohttp@workers", "-n", "3", "--shards", "4"), "--shards 4: a trial has 3 requests; write no more"),
    (("run", "-t", "ab", "-c", "4", "--shards", "2"), "--shards: strategy .ab. is a program, whose load is not div"),
    (("run", "-t", "requests-session@threads?pool=0", "--shards", "2000"), "--shards 2000: .*write 1 to 1,000"),
    ((*RUN, "--warmup", "-1"), "--warmup -1: .*write 0 to 1,000,000,000"),
    ((*RUN, "--timeout", "soon"), "'--timeout'.*'soon' is not a length of time"),
    ((*RUN, "--delay", "soon"), "'--delay': 'soon' is not a length of time"),
    ((*RUN, "--delay", "uniform:2s"), "'--delay': 'uniform:2s' is not a delay; write 120ms"),
    ((*RUN, "--delay", "lognormal:1s,x"), "'--delay': 'x': sigma is a number"),
    ((*RUN, "--path", "todos"), "--path 'todos': write it from the root"),
    ((*RUN, "--method", "GE T"), "--method 'GE T': write one word"),
    ((*RUN, "--header", "nonsense"), "'--header'.*'nonsense' is not 'Name: value'"),
    ((*RUN, "--header", "X: a\nY: b"), "--header .*on one line"),
    ((*RUN, "--body", "x", "--payload-size", "1"), "--body and --payload-size"),
    ((*RUN, "--upload-size", "0"), "--upload-size 0: bytes; write 1 to 1,125"),
    ((*RUN, "--upload", "stream"), "--upload stream: .*--upload-size"),
    ((*RUN, "--chunk-size", "0"), "--chunk-size 0: bytes; write 1 to 1,125"),
    ((*RUN, "--read", "lines"), "'--read'.*'lines' is not one of 'whole', 'chunks'"),
    ((*RUN, "--read", "chunks", "--parse"), "--parse and --read: --parse needs a body that is read whole; "),
    (("run", "-t", "httplib2", "--read", "chunks"), "--read chunks: strategy 'httplib2' .* can are requests"),
    ((*RUN, "--elapsed"), "--elapsed: strategy 'http.client' .*; clients that can are requests, .*httpx"),
    ((*RUN, "--body", "@none.json"), "'--body'.*@none.json.*No such file"),
    ((*RUN, "--replay", "none.jsonl"), "--replay .*none.jsonl: there is no such file"),
    ((*RUN, "--replay", __file__), "--replay .*test_bad_input.py: line 1: "),
    (("run", "-t", "ab", "--replay", RECORDED), "--replay: strategy 'ab': ab sends one request again and again"),
    ((*RUN, "--replay", RECORDED, "--path", "/x"), "--replay and --path: recorded requests have their own; leave out"),
    ((*RUN, "--upstream", "nginx"), "upstream 'nginx' is unknown; there are flask, aiohttp"),
    ((*RUN, "--upstream", "flask?worker=4"), "upstream 'flask[?]worker=4' has no setting 'worker'; it has server"),
    ((*RUN, "--upstream", "aiohttp?workers=0"), "upstream 'aiohttp[?]workers=0': setting workers=0; write 1 to 256"),
    ((*RUN, "--upstream", "flask?workers=4", "--upstream", "flask", "--route", "proxy"),
     "'flask' and 'flask[?]workers=4': the proxy leads to one of them at a time"),
    ((*RUN, "--upstream", "flask?workers=4", "--testbed", "compose"), "containers serve flask, aiohttp as they are"),
    ((*RUN, "--upstream", "flask?workers=4", "--testbed", "compose"), "containers serve flask, aiohttp as they are"),
    ((*RUN, "--testbed", "cluster"), "'--testbed': 'cluster' is not one of 'local', 'compose'"),
    ((*RUN, "--route", "proxy", "--route", "proxy"), "--route: route 'proxy' is given twice"),
    ((*RUN, "--nonsense"), "No such option.*--nonsense.*See 'clientlab run --help'"),
    (("run", "-t", "aiohttp@gather", "-d", "1s"), "-d 1: .*'aiohttp@gather' starts all its .*; set -n instead"),
    ((*RUN, "--chart", "x.jpg"), "chart x.jpg: the name must end with .png or .svg"),
    ((*RUN, "--chart", "none/x.png"), "chart none/x.png: there is no folder none"),
    ((*RUN, "--url", "127.0.0.1:8000"), "--url '127.0.0.1:8000': no http:// or https:// and host; write it whole"),
    ((*RUN, "--url", "http://[::1/"), "--url 'http://.*': Invalid IPv6 URL"),
    ((*RUN, "--url", "http://h:1/", "--delay", "1s"), "--url with --delay: .*write it into the URL"),
    ((*RUN, "--url", "http://h:1/", "--route", "proxy"), "--url with --route: "),
    ((*RUN, "--url", "http://h:1/", "--upstream", "flask"), "--url with --upstream: "),
    ((*RUN, "--url", "http://h:1/", "--path", "/x"), "--url with --path: "),
    ((*RUN, "--pin", "--testbed", "compose"), "--pin and --testbed: containers are placed by UPSTREAM_CPUS and CLIENT"),
    ((*RUN, "--ca-file", "ca.pem"), "--ca-file without --url: the lab's own routes bring their CA; leave it out"),
    ((*RUN, "--ca-file", "ca.pem", "--url", "http://h:1/"), "--ca-file: only an https:// .*, and --url is 'http://h:1/'"),
    ((*RUN, "--ca-file", "ca.pem", "--url", "https://h:1/"), "--ca-file ca.pem: No such file or directory; write a f"),
    (("run", "-t", "aiohttp?loop=rloop", "--route", "proxy-tls"), "the event loop rloop has no TLS; use a route"),
    (("run", "-t", "pycurl-h2"), "strategy 'pycurl-h2' speaks HTTP/2, which needs TLS, and the route direct has none"),
    (("run", "-t", "httpx-client-h2", "--route", "proxy-tls", "--route", "proxy"), "the route proxy has none; use the"),
    (("run", "-t", "none.py:Client"), r"there is no file .*none.py; write the path of a Python file, and :CLASS"),
    (("run", "-t", "aiohttp@none.py:Runs"), "there is no file .*none.py"),
    (("run", "-t", "none.py"), "strategy 'none.py' is a file; write none.py:fetch, with the name of its function"),
    (("run", "-t", "mine:fetch"), "strategy 'mine:fetch' is unknown; a function of yours is mine.py:fetch"),
    (("run", "-t", "requests-session@thread"), "is unknown; nearest: requests-session@threads"),
    (("run", "dmeo"), r"experiment 'dmeo': neither a bundled one \(.*\) nor a file; nearest: demo"),
    ((*RUN, "--upstream", "fask"), "upstream 'fask' is unknown; nearest: flask; there are flask, aiohttp"),
    ((*RUN, "--require-claims"), "--require-claims: experiment 'run' makes no claims; leave it out"),
    (("run", "demo", "--require-claims"), "--require-claims: experiment 'demo' makes no claims; leave it out"),
    (("conform",), r"Missing argument 'NAME...'.*See 'clientlab conform --help'"),
    (("conform", "nonsense"), "strategy 'nonsense' is unknown.*clientlab list strategies"),
    (("conform", "urllib3", "aiohttp@threads"), "'aiohttp@threads': .*it goes with"),
    (("conform", "pycurl?pool=3"), "'pycurl.pool=3' has no setting 'pool'"),
    (("conform", "none.py:Client@threads"), "there is no file .*none.py"),
    (("report",), "Missing argument 'RUN'.*See 'clientlab report --help'"),
    (("report", "nothing"), "run 'nothing' is not in results; there is none yet"),
    (("report", "x" * 300), "File name too long"),
    (("report", "last", "--chart", "x.gif"), "chart x.gif: the name must end"),
    (("report", "last", "--fail-on", "p99 > 50ms"), "run 'last' is not in results"),
    (("compare",), "nothing to compare: name the baseline and one run or more"),
    (("compare", "last"), "nothing to compare: name the baseline and one run or more"),
    (("compare", "last", "other"), "run 'last' is not in results; there is none yet"),
    (("compare", "a", "b", "--fail-on", "p99"), "--fail-on 'p99': write a figure and a change, as 'p99 .10%'"),
    (("compare", "a", "b", "--fail-on", "p99 -5%"), "--fail-on 'p99 -5%': this is the good direction; write p99 .5%"),
    (("compare", "a", "b", "--fail-on", "p98 +5%"), "--fail-on 'p98 .5%': 'p98' is not one of wall, throughput"),
    (("compare", "a", "b", "--fail-on", "p99 +5ms"), "--fail-on 'p99 .5ms': write a figure and a change"),
    (("compare", "a", "b", "--figure", "p98"), "--figure 'p98': 'p98' is not one of wall, throughput"),
    (("compare", "a", "b", "--strict"), "--strict without --fail-on: .*leave it out"),
    (("compare", "a", "b", "--json", "--markdown"), "--markdown and --json: leave out one of them"),
    (("runs", "rm"), "Missing argument 'RUN...'.*See 'clientlab runs rm --help'"),
    (("runs", "rm", "last", "--yes"), "run 'last' is not in results; there is none yet"),
    (("runs", "export", "last", "x.zip"), "run 'last' is not in results; there is none yet"),
    (("runs", "export", "last", "x.tar"), "x.tar: a run is given away as a zip; end the name with .zip"),
    (("runs", "import", "x.zip"), "x.zip: No such file or directory"),
    (("runs", "nonsense"), "No such command 'nonsense'.*See 'clientlab runs --help'"),
    (("list", "nonsense"), "'nonsense' is not one of 'strategies', 'clients', 'executors', 'experiments'"),
    (("up", "--flask-port", "99999"), "'--flask-port': 99999 is not in the range"),
    (("up", "--proxy-metrics-port", "-1"), "'--proxy-metrics-port': -1 is not in the range"),
    (("up", "-c", "0"), "'-c'.*0 is not in the range"),
    (("nonsense",), "No such command 'nonsense'.*See 'clientlab --help'"),
    (("--nonsense",), "No such option.*--nonsense"),
]  # fmt: skip


@pytest.fixture
def some_ab(tmp_path_factory, monkeypatch):
    """`ab` is found, also where it is not installed. No command that is refused starts it."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "ab").write_text("#!/bin/sh\nexit 1\n")
    (folder / "ab").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")


@pytest.mark.usefixtures("some_ab")
@pytest.mark.parametrize(("words", "says"), WRONG_WORDS, ids=[" ".join(words)[:60] for words, _ in WRONG_WORDS])
def test_wrong_words_are_one_line_that_says_what_to_do(words, says, clientlab, results):
    """And nothing was begun: no results folder is there."""
    refused(clientlab(*words), says)
    assert not results.folder.exists()


def test_an_upstream_that_does_not_answer_is_refused(clientlab):
    """Nothing listens, or what listens answers with an error."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        refused(clientlab(*RUN, "--url", f"http://127.0.0.1:{port}/"), f"nothing listens at 127.0.0.1:{port}")


def test_http2_is_refused_at_an_address_without_tls(clientlab, server):
    """HTTP/2 at an http:// address is refused before a request is sent."""
    said = clientlab("run", "-t", "httpx-async-h2", "--url", server.url)
    refused(said, "'httpx-async-h2' speaks HTTP/2, which needs TLS.*or an https:// URL")
    assert server.seen == []


def test_a_server_whose_certificate_is_not_trusted_is_refused(clientlab, server, tmp_path):
    """With the option that names its CA; a file that holds none is refused as well."""
    (tmp_path / "none.pem").write_text("nothing\n")
    with tls_relay(server.port, [Authority(tmp_path / "tls").context("127.0.0.1")]) as relay:
        refused(clientlab(*RUN, "--url", relay.url), "certificate verify failed.*name the CA's PEM file with --ca-file")
        refused(clientlab(*RUN, "--url", relay.url, "--ca-file", "none.pem"), "--ca-file none.pem: .*PEM certificates")
    assert server.seen == []


def test_a_path_that_libraries_would_write_differently_is_refused(clientlab, server):
    """A path that libraries normalise differently is refused before a request is sent."""
    refused(
        clientlab(*RUN, "--url", f"{server.url}/a b"),
        "--path '/a b': ' ' cannot stand in a URL; write it perc",
    )
    assert server.seen == []


def test_an_experiment_with_a_delay_is_not_for_a_foreign_server(clientlab, server):
    """It would not know what it is asked, and the overhead told would be wrong."""
    said = clientlab("run", "demo", "--url", server.url)
    refused(said, "--url with experiment 'demo': workload 'json-after-5ms' needs a delay")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("question =", "mine.toml: "),
        (
            'question = "?"\nstrategies = ["http.client"]\n[workloads.w]\nrequest = 1',
            "mine.toml: line 4: workloads.w: unknown key `request`; nearest: requests",
        ),
        ('question = "?"\nstrategies = ["http.client"]\nupstreams = ["nginx"]\n[workloads.w]', "upstream 'nginx' is"),
        (
            'question = "?"\nstrategies = ["http.client"]\n[workloads.w]\nduration = nan',
            "mine.toml: line 4: workloads.w.duration: nan: ",
        ),
    ],
)
def test_an_experiment_with_a_mistake_is_refused(text, says, clientlab, tmp_path):
    """The refusal of an invalid experiment names its file and its key."""
    (tmp_path / "mine.toml").write_text(text)
    refused(clientlab("run", "mine.toml"), says)


MINE = 'question = "?"\nstrategies = ["http.client"]\n[workloads.w]\ntimeout = {}\npayload_size = 5\n'


@pytest.mark.parametrize(
    ("timeout", "options", "says"),
    [
        (0, ["-n", "5"], "mine.toml: line 4: workloads.w.timeout: 0: write more than 0 seconds"),
        (0, ["--timeout", "5s", "-n", "0"], "clientlab: -n 0: requests in all"),
        (5, ["--body", "x"], "clientlab: --body and --payload-size: a request has one body"),
        (5, ["--read", "chunks", "-t", "httplib2"], "clientlab: --read chunks: strategy 'httplib2' reads no body"),
    ],
)
def test_a_mistake_is_named_where_it_was_made(timeout, options, says, clientlab, tmp_path):
    """An option by its name; a value of the file by its line and field, also beside options."""
    (tmp_path / "mine.toml").write_text(MINE.format(timeout))
    refused(clientlab("run", "mine.toml", *options), says)


@pytest.mark.parametrize(("out", "says"), [("taken", "'--out'.*is a file"), ("taken/below", "Not a directory; name")])
def test_a_results_folder_that_cannot_be_written_is_refused(out, says, clientlab, server, tmp_path):
    """A results folder that is not writable is refused before anything is measured."""
    (tmp_path / "taken").touch()
    refused(clientlab(*RUN, "--url", server.url, "--out", out), says)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[:-100], "run.json: not a whole JSON document .*cut short"),
        (lambda _: "", "run.json: not a whole JSON document"),
        (
            lambda text: text.replace('"format":1', '"format":7'),
            "run.json: format 7, and this .* reads format 1",
        ),
        (lambda _: "{}", "run.json: format None"),
        (lambda text: text.replace('"status":"done"', '"status":"x"'), "run.json: .*status.*changed or damaged"),
        (
            lambda text: text.replace('"errors":{}', '"errors":{"reset":1000}'),
            "run.json: trials.0: .* 1000 errors of 1000",
        ),
        (lambda text: text.replace('"histogram":null', '"histogram":{"encoded":"x"}'), "encoded: no histogram: "),
        (
            lambda text: text.replace('"workloads":{"workload"', '"workloads":{"other"'),
            "there is no workload 'workload'",
        ),
    ],
)
def test_a_run_file_that_cannot_be_read_is_refused(change, says, clientlab, results):
    """Of another version, cut short, or damaged."""
    run = a_run(a_trial())
    results.claim(run.run)
    results.save(run)
    text = json.dumps(json.loads(run.model_dump_json()), separators=(",", ":"))
    results.find(run.run).write_text(change(text))
    refused(clientlab("report", "last"), says)


def test_a_run_file_does_not_permit_load_to_the_internet(clientlab, results, monkeypatch):
    """A run may be imported: the `--yes` of its command is not its user's own, who can add one."""
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_: 1)  # nothing leaves this machine
    target = Target.external("http://93.184.215.14/", None)
    command = "clientlab run -t http.client --url http://93.184.215.14/ --yes"
    run = a_run(a_trial("http.client", upstream="93.184.215.14"), command=command)
    run = run.model_copy(update={"status": "incomplete", "target": target})
    results.claim(run.run)
    results.save(run)
    refused(clientlab("run", "--resume", "last"), "load would go to 93.184.215.14 on the internet; add --yes if")
    refused(clientlab("run", "--resume", "last", "--yes"), "nothing listens at 93.184.215.14:80")


@pytest.fixture
def two_runs(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """Two runs of two rounds, of unlike workloads, and one of a run in another format."""
    for name, route in (("a", "direct"), ("b", "proxy")):
        run = a_run(*(a_trial("urllib3", number, route=route) for number in (1, 2)), name=name)
        results.claim(name)
        results.save(run)
    (results.claim("c") / "run.json").write_text(results.find("a").read_text().replace('"format": 1', '"format": 2'))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("compare", "a", "b"), "runs a and b are not alike: arm 'urllib3' has route 'direct' and 'proxy'; .*--force"),
        (("compare", "a", "c"), "results/c/run.json: format 2, and this clientlab reads format 1"),
        (("compare", "a", "d"), "run 'd' is not in results; there are a, b, c"),
        (("compare", "a", "a", "--fail-on", "p99 +5%"), "arm 'urllib3' has 2 of at least 3 rounds.*--strict"),
        (("report", "a", "--fail-on", "p99 5%"), "--fail-on 'p99 5%': write a figure and its limit, as 'p99 > 50ms'"),
        (("report", "a", "--fail-on", "p99 +5%"), "--fail-on 'p99 .5%': this run has no earlier environment"),
        (("report", "a", "--fail-on", "p99 < 5ms"), "it would fail good results; write p99 > 5ms"),
        (("report", "a", "--fail-on", "p99 > 5"), "write it in us or µs or ms or s or m"),
        (("report", "a", "--fail-on", "overhead > 5ms"), "run a has no median overhead for arm"),
        (("report", "a", "--csv", "none/x.csv"), "--csv none/x.csv: No such file or directory; name another file"),
        (("report", "a", "--csv", "-", "--markdown", "-"), "--csv and --markdown: only one of them can go to standard"),
        (("report", "a", "--junit", "results"), "'--junit': File 'results' is a directory"),
        (("runs", "export", "a", "none/x.zip"), "none/x.zip: No such file or directory; name another file"),
        (("runs", "import", "results/a/run.json"), "results/a/run.json: not a whole zip of a run"),
    ],
)
def test_runs_that_can_not_be_compared_or_given_away_are_refused(words, says, clientlab, two_runs):  # noqa: ARG001
    """With what stands in the way."""
    refused(clientlab(*words), says)


@pytest.mark.parametrize(("option", "name"), [("--flask-port", "flask"), ("--proxy-aiohttp-port", "proxy for aiohttp")])
def test_a_port_that_is_taken_is_refused(option, name, clientlab):
    """With the server that wanted it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ports = [f"--{part}-port=0" for part in ("flask", "aiohttp", "proxy-flask", "proxy-aiohttp", "proxy-flask-tls",
                                                        "proxy-aiohttp-tls", "proxy-metrics")]  # fmt: skip
        refused(clientlab("up", *ports, f"{option}={port}"), f"port {port} for {name}: Address already in use")


@pytest.mark.parametrize(
    ("words", "environment", "line"),
    [
        (["--experiment", "nonsense"], {}, "experiment 'nonsense': neither a bundled one (atlas, buffers, cancel"),
        ([], {"EXPERIMENT": "nonsense"}, "experiment 'nonsense': neither a bundled one (atlas, buffers, cancel"),
        (["--experiment", "demo", "--host", "192.0.2.1"], {"EXPERIMENT": "nonsense"}, "there is no token"),
        ([], {"ROUNDS": "none"}, "'none' is not a valid integer range"),
        (["--grafana", "javascript:alert(1)"], {}, "--grafana 'javascript:alert(1)': write it as http://"),
        ([], {"AIOHTTP_ADDRESS": "aiohttp"}, "AIOHTTP_ADDRESS='aiohttp' is no HOST:PORT"),
    ],
)
def test_a_service_that_can_not_begin_says_why(clientlab, monkeypatch, words, environment, line):
    """With code 2; a flag wins over the environment."""
    monkeypatch.delenv("CLIENTLAB_TOKEN", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    said = clientlab("serve", *words)
    refused(said, re.escape(line))


def test_a_port_that_is_taken_is_said(clientlab):
    """The service ends, with the port in its line."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = clientlab("serve", "--idle", "--port", taken.getsockname()[1])
    assert said.code == 2
    assert "address already in use; name another or stop what listens there" in said.err.lower()


@pytest.mark.parametrize(
    ("words", "environment", "line"),
    [
        ([], {}, "Missing option '-t' / '--strategy'"),
        (["-t", "reqests"], {}, "strategy 'reqests' is unknown; nearest: requests"),
        (["-t", "*", "--lab", "lab:8000"], {}, "LAB_URL 'lab:8000': write it as http://lab:8000"),
        (["-t", "*"], {"FLASK_ADDRESS": "flask"}, "FLASK_ADDRESS='flask' is no HOST:PORT"),
    ],
)
def test_a_worker_that_can_not_begin_says_why(clientlab, monkeypatch, words, environment, line):
    """With code 2, before it asks the lab for anything."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    said = clientlab("work", *words)
    refused(said, re.escape(line))
