"""Claims on the command line: verdicts of a saved run, and of one just measured."""

from __future__ import annotations

import json

import pytest

from clientlab.errors import LabError
from clientlab.results.plan import Claim
from clients.documents import a_run, a_trial

TRUE = Claim(name="true", text="a takes less than b", kind="less", a="a", b="b", published="3 times")
FALSE = Claim(name="false", text="b takes less than a", kind="less", a="b", b="a", control=True)


@pytest.fixture
def save(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """Save a run of three rounds with these claims."""

    def call(*claims: Claim) -> None:
        walls = {"a": (1.0, 1.01, 0.99), "b": (2.0, 2.03, 1.99)}
        trials = [a_trial(name, number, wall) for name in walls for number, wall in enumerate(walls[name], start=1)]
        run = a_run(*trials, claims=list(claims))
        results.claim(run.run)
        results.save(run)

    return call


def test_claims_are_shown_with_verdict_ratio_and_what_was_published(clientlab, save):
    """Recomputed from the trials: the file holds no verdicts."""
    save(TRUE, FALSE)
    said = clientlab("claims", "last")
    assert (said.code, said.err) == (0, "")
    for words in ("a takes less than b", "supported", "2.01 (1.99 to 2.02)", "3 times", "(control) b takes less than a",
                  "contradicted", "b has 2.01 times the wall time of a"):  # fmt: skip
        assert words in " ".join(said.out.split())


def test_a_report_ends_with_the_verdict_on_each_claim(clientlab, save):
    """The sentence, the verdict and the ratio with its interval; controls after the claims of the source."""
    save(FALSE, TRUE)
    said = clientlab("report", "last")
    assert (said.code, said.err) == (0, "")
    table, _, claims = said.out.partition("verdict ")
    assert "req/s" in table
    first, second = (" ".join(line.split()) for line in claims.splitlines() if "takes less than" in line)
    assert first == "✓ supported a takes less than b 2.01 (1.99 to 2.02)"
    assert second == "✗ contradicted (control) b takes less than a 0.498 (0.495 to 0.502)"


def test_a_report_without_claims_lists_no_verdicts(clientlab, save):
    """The report of an experiment without claims has no table of verdicts, not even an empty one."""
    save()
    assert "verdict" not in clientlab("report", "last").out


def test_claims_as_json_are_those_of_the_run_document(clientlab, save):
    """`claims --json` prints every field of each claim for other programs."""
    save(TRUE, FALSE)
    found = json.loads(clientlab("claims", "last", "--json").out)
    assert [(claim["name"], claim["verdict"], claim["rounds"]) for claim in found] == [
        ("true", "supported", 3), ("false", "contradicted", 3),
    ]  # fmt: skip
    assert found[0]["interval"][0] < found[0]["ratio"] < found[0]["interval"][1]


@pytest.mark.parametrize(("claims", "code"), [((TRUE,), 0), ((TRUE, FALSE), 1)])
def test_a_contradicted_claim_fails_where_claims_are_required(claims, code, clientlab, save):
    """Otherwise a verdict is only news."""
    save(*claims)
    assert clientlab("claims", "last", "--require").code == code
    assert clientlab("claims", "last").code == 0


def test_a_run_without_claims_is_refused(clientlab, save):
    """`claims` refuses a run without claims in one line."""
    save()
    said = clientlab("claims", "last")
    assert (said.code, said.out) == (LabError.exit_code, "")
    assert said.err.endswith("its experiment 'run' makes no claims\n")


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
a = "{}"
b = "{}"
[quick]
rounds = 1
[quick.workloads.w]
requests = 3
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "verdict", "code"),
    [("http.client", "calls", "supported", 0), ("calls", "http.client", "contradicted", 1)],
)
def test_a_run_judges_its_claims_and_fails_where_they_are_required(
    a, b, verdict, code, clientlab, server, results, tmp_path
):
    """Real trials: one connection, against one for each request."""
    (tmp_path / "mine.toml").write_text(FILE.format(a, b))
    said = clientlab("run", "mine.toml", "--url", server.url, "--require-claims")
    assert said.code == code
    assert f"{verdict} One opens fewer connections" in " ".join(said.out.split())
    (claim,) = results.read("last").claims
    assert (claim.verdict, claim.rounds) == (verdict, 3)
    assert claim.ratio == pytest.approx(5 if code == 0 else 0.2)


def test_the_quick_form_says_what_it_shortened(clientlab, server, results, tmp_path):
    """In the run, and above the numbers; with too few rounds, claims are left open."""
    (tmp_path / "mine.toml").write_text(FILE.format("http.client", "calls"))
    said = clientlab("run", "-v", "mine.toml", "--url", server.url, "--quick", "--require-claims")
    run = results.read("last")
    assert said.code == 0
    assert run.experiment.shortened == ["rounds: 3 → 1", "workloads.w.requests: 5 → 3"]
    assert {trial.requests for trial in run.trials} == {3}
    assert run.claims[0].verdict == "inconclusive"
    assert "the quick form was measured: rounds: 3 → 1; workloads.w.requests: 5 → 3" in said.out.replace("\n", " ")


@pytest.mark.slow
def test_what_is_changed_on_top_of_an_experiment_is_said(clientlab, server, results, tmp_path):
    """In the run and above the numbers: claims are judged on something else than was written. Rounds are as good."""
    other = '[workloads.v]\nrequests = 3\nwarmup = 0\nheaders = { X-V = "1" }\n[quick]'
    text = FILE.format("http.client", "calls").replace("[quick]", other)
    text = text.replace('a = "http.client"', 'a = "http.client (w)"').replace('b = "calls"', 'b = "calls (w)"')
    (tmp_path / "mine.toml").write_text(text)
    words = (
        "run",
        "-v",
        "mine.toml",
        "--url",
        f"{server.url}/x",
        "-n",
        "2",
        "--timeout",
        "9s",
        "--rounds",
        "1",
        "--seed",
        7,
    )
    said = clientlab(*words)
    assert said.code == 0, said.err
    run = results.read("last")
    assert run.experiment.changed == [
        f"upstreams: aiohttp → 127.0.0.1:{server.port}", "path: / → /x", "requests: 5 → 2", "timeout: 30.0 → 9.0",
        "requests: 3 → 2",
    ]  # fmt: skip
    assert "changed on the command line: upstreams: aiohttp" in " ".join(said.out.split())


def test_a_named_strategy_is_no_experiment_that_was_changed(clientlab, server, results):
    """Its words are all that there is."""
    clientlab("run", "-t", "http.client", "-n", "2", "--rounds", "1", "--url", server.url)
    assert results.read("last").experiment.changed == []


@pytest.mark.slow
def test_rounds_are_added_until_the_time_budget_ends(clientlab, server, results):
    """A precision that no machine has: five rounds at the least, and then the time is over."""
    words = ("-n", "5", "--until-precision", "0.0001%", "--time-budget", "1ms")
    said = clientlab("run", "-t", "http.client", "-t", "urllib3", "--url", server.url, *words)
    run = results.read("last")
    assert said.code == 0
    assert (run.rounds_ended, max(trial.round for trial in run.trials)) == ("time-budget", 5)
    assert run.experiment.precision == pytest.approx(1e-6)
    assert "the time budget ended the rounds" in said.out


@pytest.mark.slow
def test_rounds_end_with_the_precision(clientlab, server, results):
    """Rounds end once the wanted precision is reached; the test wants one that any machine reaches."""
    clientlab(
        "run", "-t", "http.client", "-t", "urllib3", "-n", "5", "--url", server.url, "--until-precision", "0.999999"
    )
    run = results.read("last")
    assert run.rounds_ended in ("precision", "time-budget")
    assert max(trial.round for trial in run.trials) >= 5


def test_a_budget_shorter_than_a_round_is_refused_with_the_least_that_works(clientlab, server):
    """Before anything is measured."""
    said = clientlab("run", "-t", "http.client", "-t", "urllib3", "-d", "2s", "--budget", "3s", "--url", server.url)
    assert said.code == 2
    assert "--budget 3.00 s: one round of 2 arms takes about 4.80 s; write 5s or more" in said.err.replace("\n", " ")
    assert server.seen == []


def test_a_budget_beside_a_precision_is_refused(clientlab, server):
    """Each of them decides when rounds are enough."""
    said = clientlab("run", "-t", "http.client", "--url", server.url, "--budget", "60s", "--until-precision", "3%")
    assert said.code == 2
    assert "each of them decides when rounds are enough" in said.err


def test_a_run_with_a_budget_says_what_is_decided_and_what_is_open(clientlab, server, results):
    """After each round; two arms that do the same work are open for long."""
    said = clientlab("run", "-t", "http.client", "-t", "urllib3", "-n", "20", "--budget", "4s", "--url", server.url)
    run = results.read("last")
    assert (said.code, run.rounds_ended in {"budget", "decided"}) == (0, True)
    assert "after round 1: no arm is decided yet" in said.err
