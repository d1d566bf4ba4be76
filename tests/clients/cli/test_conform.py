"""`clientlab conform`, and strategies of the user's own that cannot be used."""

from __future__ import annotations

import json

import pytest

from clientlab.conformance import checking
from clientlab.conformance.checking import CheckResult

FAILED = [
    CheckResult("no answer", "the trial failed: stalled", checking.NO_TIME_LIMIT),
    CheckResult(
        "nothing sent again", "37 requests reached the server for 29", checking.RETRIES
    ),
]


@pytest.fixture(autouse=True)
def conform(monkeypatch):
    """Two checks of three find something in urllib3, and none in other strategies."""
    sound = CheckResult("sound")
    monkeypatch.setattr(
        "clientlab.conformance.conform",
        lambda strategy: [*FAILED, sound] if strategy.name == "urllib3" else [sound],
    )


def test_every_check_of_a_strategy_is_in_the_json(clientlab):
    said = clientlab("conform", "--json", "http.client", "urllib3", "urllib3")
    assert said.code == 1
    sound, failed = json.loads(said.out)
    assert (sound["strategy"], sound["conforms"]) == ("http.client", True)
    assert (failed["strategy"], failed["conforms"]) == ("urllib3", False)
    assert [row["check"] for row in failed["checks"]] == [
        "no answer",
        "nothing sent again",
        "sound",
    ]
    assert [(row["passed"], bool(row["broken"])) for row in failed["checks"]] == [
        (False, True)
    ] * 2 + [(True, False)]


@pytest.fixture
def broken(tmp_path):
    """The names of two strategies whose files cannot be used."""
    (tmp_path / "broken.py").write_text("import requests\n\nrequests.nothing\n")
    (tmp_path / "shapeless.py").write_text(
        "class Client:\n    def open(self): ...\n    def close(self): ...\n"
    )
    return ["broken.py:Client", "shapeless.py:Client"]


@pytest.mark.real
def test_strategies_whose_files_are_broken_are_left_out_and_the_others_are_measured(
    clientlab, broken, server, results
):
    first, second = broken
    said = clientlab(
        "run",
        "-t",
        first,
        "-t",
        "urllib3",
        "-t",
        second,
        "-n",
        "5",
        "--rounds",
        "1",
        "--url",
        server.url,
    )
    assert said.code == 3
    assert all(
        name in said.err
        for name in (
            "broken.py can't be imported, line 3",
            "shapeless.py, line 1",
            "send",
        )
    )
    run = results.read("last")
    assert [
        (trial.planned.strategy, trial.figures.requests) for trial in run.trials
    ] == [("urllib3", 5)]
    assert (run.status, list(run.experiment.left_out)) == (
        "incomplete",
        [first, second],
    )
    assert "left-out" in {caution.kind for caution in run.cautions}


def test_a_client_that_fails_has_a_verdict_a_cause_and_a_fix(clientlab):
    said = clientlab("conform", "urllib3")
    verdict, cause, fix = said.out.splitlines()
    assert said.code == 1
    assert ("2 of 3" in verdict, "retries" in cause, "retries=False" in fix) == (
        True,
        True,
        True,
    )
    whole = clientlab("conform", "-v", "urllib3").out
    assert said.out in whole
    assert all(result.broken in whole for result in FAILED)


@pytest.mark.parametrize("verb", [("conform",), ("run", "-t")])
def test_nothing_is_done_if_no_strategy_is_left(clientlab, broken, tmp_path, verb):
    first, second = broken
    said = clientlab(*verb, first, *verb[1:], second)
    assert (said.code, said.out) == (2, "")
    assert ("broken.py" in said.err, "shapeless.py" in said.err) == (True, True)
    assert not (tmp_path / "results").exists()
