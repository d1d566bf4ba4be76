"""`--rtt` and `--bandwidth`: a run behind links, and what is refused in a line before anything is measured."""

from __future__ import annotations

import re

import pytest

from clientlab.workload.link import Link


def test_a_run_behind_two_links_has_an_arm_for_each_and_compares_them(clientlab, results, server):
    """The user's own server; each arm has its link in the run file, its group, and the sentence on both."""
    words = ("-t", "http.client", "-n", 20, "--rounds", 3, "--rtt", "0ms,10ms", "--url", server.url)
    said = clientlab("run", *words)
    assert said.code == 0, said.err
    run = results.read("last")
    near, far = run.experiment.arms
    assert [(arm.name, arm.link) for arm in (near, far)] == [
        ("http.client[rtt=0ms]", Link(0.0)),
        ("http.client[rtt=10ms]", Link(0.01)),
    ]
    assert run.experiment.workloads[near.workload].headers == {"Host": f"127.0.0.1:{server.port}"}
    found = [trial for trial in run.trials if trial.link == far.link]
    assert len(found) == 3
    assert all(trial.latency_seconds.p50 > 0.01 and trial.connections_opened == 1 for trial in found)
    assert all(trial.overhead_seconds.p50 < trial.latency_seconds.p50 - 0.009 for trial in found)
    assert "direct · link of 10 ms" in said.out
    assert re.search(r"http.client\[rtt=10ms\] takes [\d.]+ \(.*\) times the time per request of", said.out)
    assert clientlab("run", "--resume", "last").code == 2  # it is whole


def test_a_link_of_an_experiments_arm_is_counted_as_changed(clientlab, results, tmp_path, server):
    """What the command line replaced stands in the run."""
    text = 'question = "?"\nstrategies = ["urllib3"]\n[workloads.w]\nrequests = 5\nrtt = "1ms"\n'
    (tmp_path / "mine.toml").write_text(text)
    said = clientlab("run", "mine.toml", "--rtt", "0ms", "--rounds", 1, "--url", server.url)
    assert said.code == 0, said.err
    assert "rtt: 1ms → 0ms" in results.read("last").experiment.changed


def test_the_link_of_the_stack_does_not_stand_before_the_users_own_server(clientlab, results, server, monkeypatch):
    """It leads to the stack's servers only; `--rtt` puts one before any server."""
    monkeypatch.setenv("CLIENTLAB_TESTBED", "compose")
    monkeypatch.setenv("LINK_RTT", "20ms")
    said = clientlab("run", "-t", "urllib3", "-n", 5, "--rounds", 1, "--url", server.url)
    assert said.code == 0, said.err
    assert [trial.link for trial in results.read("last").trials] == [None]


WITH_CONTROL = """
question = "?"
[workloads.w]
requests = 5
[arms.one]
strategy = "urllib3"
[arms.two]
strategy = "http.client"
[arms.far]
strategy = "urllib3"
control = true
rtt = "50ms"
[claims.near]
text = "!"
kind = "less"
a = "one"
b = "two"
[claims.far]
text = "!"
kind = "less"
a = "one"
b = "far"
"""


def test_control_arms_behind_their_own_link_are_left_out_of_a_run_behind_another(clientlab, results, tmp_path, server):
    """The run names them; the claim about the other arms stays."""
    (tmp_path / "mine.toml").write_text(WITH_CONTROL)
    said = clientlab("run", "mine.toml", "--rtt", "1ms", "--rounds", 1, "--url", server.url)
    assert said.code == 0, said.err
    plan = results.read("last").experiment
    assert [(arm.name, arm.link) for arm in plan.arms] == [("one", Link(0.001)), ("two", Link(0.001))]
    assert [claim.name for claim in plan.claims] == ["near"]
    assert "without the arms behind a link: far" in plan.changed


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rtt", "-1ms"), r"'--rtt': '-1ms' is not a length of time; write 120ms, 2s or 0.12"),
        (("--rtt", "20s"), r"'--rtt': a round-trip time of 20 s; write 0ms to 10s"),
        (("--rtt", "1ms,1ms"), r"'--rtt': '1ms,1ms' has one value twice"),
        (("--bandwidth", "0"), r"'--bandwidth': '0' is not a bandwidth; write 512kbit, 20mbit or 1gbit"),
        (("--bandwidth", "0mbit"), r"'--bandwidth': a bandwidth of 0 bit/s; write 1kbit to 100gbit"),
        (("--bandwidth", "1tbit"), r"'--bandwidth': '1tbit' is not a bandwidth"),
        (("--buffer", "0"), r"'--buffer': '0' is not a buffer; write 64KiB, 128KB or 1MB"),
        (("--buffer", "0KB"), r"'--buffer': a buffer of 0 bytes; write 1500B to 1GiB"),
        (("--bandwidth", "20mbit", "--buffer", "64000"), r"'--buffer': '64000' is not a buffer; write 64KiB"),
        (("--rtt", "1ms", "--buffer", "64KiB"), r"--buffer: a buffer of 65,536 bytes without a bandwidth"),
        (("--rtt", "1ms", "--testbed", "compose"), r"a link of 1 ms, and the stack has no link; start"),
    ],
)
def test_a_link_that_cannot_be_is_refused_in_a_line(words, says, clientlab, tmp_path):
    """Exit code 2; there is no run."""
    said = clientlab("run", "-t", "urllib3", *words)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(f"clientlab: .*{says}.*\n", said.err)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("keepalive", "--rtt", "1ms,2ms"), "--rtt with experiment 'keepalive': its claims and its baseline name arms"),
        (("mine.toml", "--rtt", "1ms"), "--rtt: rtt is an axis of workload 'w'; change it in a file"),
        (("mine.toml", "--bandwidth", "1gbit"), "--bandwidth: arm 'it' has its own value; change it in a file"),
    ],
)
def test_a_link_that_contradicts_the_experiment_is_refused(words, says, clientlab, tmp_path):
    """An option for the link that contradicts the experiment is refused like any other option."""
    (tmp_path / "mine.toml").write_text(
        'question = "?"\n[workloads.w]\nrtt = ["1ms", "2ms"]\n[arms.it]\nstrategy = "urllib3"\nbandwidth = "1mbit"\n'
    )
    said = clientlab("run", *words)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(f"clientlab: {re.escape(says)}.*\n", said.err)
