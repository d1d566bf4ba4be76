"""`clientlab conform`, and strategies of the user's own that cannot be used."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from clientlab.conformance import checks
from clientlab.conformance.checks import CheckResult
from clientlab.conformance.load import check_same_work

MINE = """
    from clientlab.clients.http_client import HttpClient

    class Double(HttpClient):
        policy = "per thread"
        errors = ()

        def send(self, request):
            status, body = super().send(request)
            return status, body + body
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(dedent(MINE))
    return "mine.py:Double"


@pytest.mark.real
def test_every_check_of_a_strategy_is_in_the_json(clientlab, mine, monkeypatch):
    monkeypatch.setattr("clientlab.conformance._SCENARIOS", [check_same_work])
    said = clientlab("conform", "--json", "http.client", mine, mine)
    assert said.code == 1
    sound, double = json.loads(said.out)
    assert (sound["strategy"], sound["conforms"]) == ("http.client", True)
    assert (double["strategy"], double["conforms"]) == (mine, False)
    assert [row["check"] for row in sound["checks"]] == [row["check"] for row in double["checks"]]
    assert all(row["passed"] and row["broken"] == "" for row in sound["checks"])
    assert any(row["broken"] and not row["passed"] for row in double["checks"])


@pytest.fixture
def broken(tmp_path):
    """The names of two strategies whose files cannot be used."""
    (tmp_path / "broken.py").write_text("import requests\n\nrequests.nothing\n")
    (tmp_path / "shapeless.py").write_text("class Client:\n    def open(self): ...\n    def close(self): ...\n")
    return ["broken.py:Client", "shapeless.py:Client"]


@pytest.mark.real
def test_strategies_whose_files_are_broken_are_left_out_and_the_others_are_measured(clientlab, broken, server, results):
    first, second = broken
    said = clientlab("run", "-t", first, "-t", "urllib3", "-t", second, "-n", "5", "--rounds", "1", "--url", server.url)
    assert said.code == 3
    assert all(name in said.err for name in ("broken.py can't be imported, line 3", "shapeless.py, line 1", "send"))
    run = results.read("last")
    assert [(trial.planned.strategy, trial.figures.requests) for trial in run.trials] == [("urllib3", 5)]
    assert (run.status, list(run.experiment.left_out)) == ("incomplete", [first, second])
    assert "left-out" in {caution.kind for caution in run.cautions}


def test_a_client_that_fails_has_a_verdict_a_cause_and_a_fix(clientlab, monkeypatch):
    failed = [
        CheckResult("no answer", "the trial failed: stalled", checks.NO_TIME_LIMIT),
        CheckResult("nothing sent again", "37 requests reached the server for 29", checks.RETRIES),
    ]
    monkeypatch.setattr("clientlab.conformance.conform", lambda _: [*failed, CheckResult("sound")])
    said = clientlab("conform", "urllib3")
    verdict, cause, fix = said.out.splitlines()
    assert said.code == 1
    assert ("2 of 3" in verdict, "retries" in cause, "retries=False" in fix) == (True, True, True)
    whole = clientlab("conform", "-v", "urllib3").out
    assert said.out in whole
    assert all(result.broken in whole for result in failed)


@pytest.mark.parametrize("verb", [("conform",), ("run", "-t")])
def test_nothing_is_done_if_no_strategy_is_left(clientlab, broken, tmp_path, verb):
    first, second = broken
    said = clientlab(*verb, first, *verb[1:], second)
    assert (said.code, said.out) == (2, "")
    assert ("broken.py" in said.err, "shapeless.py" in said.err) == (True, True)
    assert not (tmp_path / "results").exists()
