"""Claims on the command line: verdicts of a saved run, and of one just measured."""

from __future__ import annotations

import json

import pytest

from clientlab.results.plan import Claim
from clients.documents import a_run, a_trial

TRUE = Claim(name="true", text="a takes less than b", kind="less", a="a", b="b", published="3 times")
FALSE = Claim(name="false", text="b takes less than a", kind="less", a="b", b="a", control=True)


@pytest.fixture
def save(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    def call(*claims: Claim) -> None:
        walls = {"a": (1.0, 1.01, 0.99), "b": (2.0, 2.03, 1.99)}
        trials = [a_trial(name, number, wall) for name in walls for number, wall in enumerate(walls[name], start=1)]
        run = a_run(*trials, claims=list(claims))
        results.claim(run.run)
        results.save(run)

    return call


def test_claims_are_shown_with_verdict_ratio_and_what_was_published(clientlab, save):
    """Recomputed from the trials: the file holds no verdicts. A report has them as well, controls last."""
    save(FALSE, TRUE)
    said = clientlab("claims", "last")
    assert (said.code, said.err) == (0, "")
    for words in ("a takes less than b", "supported", "2.01", "3 times", "contradicted"):
        assert words in said.out
    first, second = (line for line in clientlab("report", "last").out.splitlines() if "takes less than" in line)
    assert ("supported a takes" in " ".join(first.split()), "contradicted" in second) == (True, True)
    found = {claim["name"]: claim for claim in json.loads(clientlab("claims", "last", "--json").out)}
    assert {name: claim["verdict"] for name, claim in found.items()} == {"true": "supported", "false": "contradicted"}
    assert found["true"]["interval"][0] < found["true"]["ratio"] < found["true"]["interval"][1]


@pytest.mark.parametrize(("claims", "code"), [((TRUE,), 0), ((TRUE, FALSE), 1)])
def test_a_contradicted_claim_fails_where_claims_are_required(claims, code, clientlab, save):
    save(*claims)
    assert clientlab("claims", "last", "--require").code == code
    assert clientlab("claims", "last").code == 0


FILE = """
question = "Which?"
rounds = 3
strategies = ["http.client"]
[workloads.w]
requests = 5
warmup = 0
[arms.calls]
strategy = "requests"
[claims.connections]
text = "One opens fewer connections"
kind = "less"
figure = "connections_opened"
a = "calls"
b = "http.client"
"""


@pytest.mark.real
def test_a_run_judges_its_claims(clientlab, server, results, tmp_path):
    """Real trials: one connection, against one for each request."""
    (tmp_path / "mine.toml").write_text(FILE)
    said = clientlab("run", "mine.toml", "--url", server.url)
    assert said.code == 0
    assert clientlab("claims", "last", "--require").code == 1
    (claim,) = results.read("last").claims
    assert (claim.verdict, claim.rounds) == ("contradicted", 3)
    assert claim.ratio == pytest.approx(0.2)


@pytest.mark.real
def test_a_run_with_a_budget_says_what_is_decided_and_what_is_open(clientlab, server, results):
    said = clientlab("run", "-t", "http.client", "-t", "urllib3", "-n", "20", "--budget", "2s", "--url", server.url)
    run = results.read("last")
    assert (said.code, run.rounds_ended in {"budget", "decided"}) == (0, True)
    assert "after round 1: " in said.err
