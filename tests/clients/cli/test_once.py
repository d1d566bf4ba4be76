"""`clientlab run --once`: one request with every strategy, a line for each, and nothing that is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

EXPERIMENT = """
name = "mine"
question = "Which is fastest?"
strategies = ["urllib3", "aiohttp@workers"]

[workloads.all]
path = "{path}"
duration = "20s"
"""


def test_every_strategy_of_an_experiment_sends_one_request_and_nothing_is_stored(clientlab, server):
    """Whatever its load is. The server counts one request of each."""
    Path("mine.toml").write_text(EXPERIMENT.format(path="/"))
    said = clientlab("run", "mine.toml", "--once", "--url", server.url)
    assert said.code == 0
    assert [line.split(":")[0] for line in said.out.splitlines()] == [
        "ok      urllib3",
        "ok      aiohttp@workers",
        "2 strategies work",
    ]
    assert not Path("results").exists()


def test_a_strategy_that_fails_says_why_and_the_others_are_tried(clientlab):
    """The exit code is 3."""
    said = clientlab("run", "--once", "-t", "urllib3", "-t", "pycurl", "--path", "/status/503")
    assert said.code == 3
    assert said.out.splitlines() == [
        "FAILED  urllib3: status-5xx: status 503",
        "FAILED  pycurl: status-5xx: status 503",
        "2 of 2 strategies failed",
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--html", "page.html"), "--once: it measures and stores nothing; leave --html out"),
        (("--fail-on", "p99 > 1s"), "--once: it measures and stores nothing; leave --fail-on out"),
        (
            ("--url", "http://127.0.0.1:9/"),
            "--url: nothing listens at 127.0.0.1:9; start the server or correct the URL",
        ),
    ],
)
def test_what_cannot_begin_is_refused_as_for_a_run(words, problem, clientlab):
    """With exit code 2; and options about figures have no meaning."""
    said = clientlab("run", "--once", "-t", "urllib3", *words)
    assert (said.code, said.out, said.err) == (2, "", f"clientlab: {problem}\n")
