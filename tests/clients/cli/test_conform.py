"""`clientlab conform`."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from clientlab.conformance import CheckResult, Scenario, scenarios_of
from clientlab.strategies import find

pytestmark = pytest.mark.slow

MINE = """
    from clientlab.clients.http_client import HttpClient

    class Silent(HttpClient):
        policy = "per thread"
        errors = ()

        def send(self, request):
            status, body = super().send(request)
            return 200, body
"""


@pytest.fixture(scope="module", autouse=True)
def made_once():
    """Scenarios that several tests want of a strategy are done once. The file of `mine` is the same in each test."""
    judge = Scenario.judge
    results: dict[tuple[str, str], list[CheckResult]] = {}

    def once(scenario: Scenario, strategy):
        key = strategy.name, scenario.name
        if key not in results:
            results[key] = judge(scenario, strategy)
        return results[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scenario, "judge", once)
        yield


@pytest.fixture
def mine(tmp_path):
    """A user's file in the folder that the command is called in."""
    (tmp_path / "mine.py").write_text(dedent(MINE))
    return "mine.py:Silent"


def test_a_strategy_that_conforms_is_said_to_with_the_kinds_of_its_faults(clientlab):
    """Exit code 0. Over HTTP/2 the faults are those that Caddy hands on."""
    said = clientlab("conform", "http.client@threads", "pycurl-h2")
    assert (said.code, said.err) == (0, "")
    for name in ("http.client@threads", "pycurl-h2"):
        checks = sum(len(scenario.checks) for scenario in scenarios_of(find(name)))
        assert f"{name}: does the work right: yes, passes all {checks} checks\n" in said.out
    rows = {line[:23].strip(): line[23:].split() for line in said.out.splitlines()[3:]}
    assert rows["truncated body"] == ["protocol", "protocol"]
    assert rows["connection refused"] == ["connect", "connect"]
    assert rows["certificates verified"] == ["tls", "tls"]
    assert rows["reset before an answer"] == ["reset", "–"]
    assert rows["redirect"] == ["none", "none"]


def test_as_json_it_is_every_check(clientlab, mine):
    """Of every strategy, each asked once. Exit code 1 where one of them breaks something."""
    said = clientlab("conform", "--json", "http.client@threads", mine, mine)
    assert said.code == 1
    sound, silent = json.loads(said.out)
    assert (sound["strategy"], sound["conforms"], silent["strategy"], silent["conforms"]) == (
        "http.client@threads", True, mine, False,
    )  # fmt: skip
    assert [row["check"] for row in sound["checks"]] == [row["check"] for row in silent["checks"]]
    assert all(row["passed"] and row["broken"] == "" for row in sound["checks"])
    found = {row["check"]: row for row in silent["checks"]}
    assert found["answer 404"] == {
        "check": "answer 404",
        "passed": False,
        "broken": "its kind is status-4xx, and it is recorded as none",
        "kind": "none",
        "unchecked": "",
    }


BROKEN = {
    "broken.py:Client": (
        "import requests\n\nrequests.nothing\n",
        "{path} can't be imported, line 3",
        "AttributeError: module 'requests' has no attribute 'nothing'",
    ),
    "shapeless.py:Client": (
        "class Client:\n    def open(self): ...\n    def close(self): ...\n",
        "{path}, line 1: class Client",
        "it lacks send: a client has open, send, close",
    ),
}


@pytest.fixture
def broken(tmp_path):
    """Two files that can't be used: the lines that are said of each, by its name."""
    said = {}
    for name, (text, where, what) in BROKEN.items():
        path = tmp_path / name.partition(":")[0]
        path.write_text(text)
        said[name] = [f"clientlab: {where.format(path=path)}", f"  {what}"]
    return said


def test_broken_files_are_told_in_two_lines_each_and_the_others_are_measured(clientlab, broken, server, results):
    """With file and line. Exit code 3; the run is incomplete and says what was left out, and why."""
    first, second = broken
    said = clientlab("run", "-t", first, "-t", "urllib3", "-t", second, "-n", "5", "--rounds", "1", "--url", server.url)
    assert said.code == 3
    assert said.err.splitlines()[:4] == broken[first] + broken[second]
    run = results.read("last")
    assert [(trial.strategy, trial.requests) for trial in run.trials] == [("urllib3", 5)]
    assert (run.status, list(run.experiment.left_out)) == ("incomplete", [first, second])
    cautions = [caution.text for caution in run.cautions if caution.kind == "left-out"]
    assert [text.partition(" was ")[0] for text in cautions] == [first, second]
    assert "line 3: AttributeError: module 'requests' has no attribute 'nothing'" in cautions[0]


def test_what_a_strategy_breaks_is_said_check_by_check_where_the_file_of_another_is_broken(clientlab, broken, mine):
    """A pair that is not listed, or a class of one's own. Exit code 3, for not all strategies were checked."""
    first, _ = broken
    said = clientlab("conform", mine, first)
    assert (said.code, said.err.splitlines()) == (3, broken[first])
    wrong, kinds = said.out.split(" errors are recorded with another kind:\n")
    assert wrong.startswith("mine.py:Silent: does the work right: no, because ")
    assert "\n  answer 503: its kind is status-5xx, and it is recorded as none\n" in wrong
    assert "silence in the body: its kind is timeout-read, and it is recorded as other:TimeoutError" in kinds
    assert "  1,000 requests: " not in said.out


def test_each_message_stands_once_and_kinds_come_after_the_answer(clientlab, monkeypatch):
    """A strategy whose errors only have another kind does the work right. Exit code 1 all the same."""
    found = [
        CheckResult("urllib3", "sound"),
        CheckResult("urllib3", "no answer", "its kind is timeout-read, and it is recorded as reset", "reset"),
        CheckResult("urllib3", "silence", "its kind is timeout-read, and it is recorded as reset", "reset"),
        CheckResult("urllib3", "truncated body", "", "protocol"),
        CheckResult("urllib3", "one", unchecked="this machine cannot"),
    ]
    monkeypatch.setattr("clientlab.cli.checks.results_of", lambda _: found)
    said = clientlab("conform", "urllib3")
    assert said.code == 1
    assert [line.split("  ")[-1].strip() if line[0] != " " else line for line in said.out.splitlines()][:5] == [
        "urllib3: does the work right: yes, passes all 3 checks",
        "urllib3: 2 errors are recorded with another kind:",
        "  no answer, silence: its kind is timeout-read, and it is recorded as reset",
        "  one: not checked, this machine cannot",
        "urllib3",
    ]
    assert [line.split() for line in said.out.splitlines()[5:]] == [
        ["no", "answer", "(above)"], ["silence", "(above)"], ["truncated", "body", "protocol"],
    ]  # fmt: skip


@pytest.mark.parametrize("verb", [("conform",), ("run", "-t")])
def test_where_no_strategy_is_left_nothing_is_done(clientlab, broken, tmp_path, verb):
    """Exit code 2, two lines for each file."""
    first, second = broken
    said = clientlab(*verb, first, *verb[1:], second)
    assert (said.code, said.out) == (2, "")
    assert sorted(said.err.splitlines()) == sorted(broken[first] + broken[second])
    assert not (tmp_path / "results").exists()


def test_a_users_strategy_that_raises_fails_alone(clientlab, mine, server, tmp_path, results):
    """The other strategies of the run go on; exit code 3, with the reason in the run file."""
    text = (tmp_path / "mine.py").read_text().replace("status, body = super().send(request)", "status, body = 1")
    (tmp_path / "raises.py").write_text(text.replace("def send", "def open(self):\n        1 / 0\n\n    def send"))
    said = clientlab("run", "-t", "raises.py:Silent", "-t", mine, "-n", "5", "--rounds", "1", "--url", server.url)
    assert said.code == 3
    trials = {trial.strategy: trial for trial in results.read("last").trials}
    assert trials["mine.py:Silent"].requests == 5
    assert trials["raises.py:Silent"].status == "failed"
    assert trials["raises.py:Silent"].reason == f"ZeroDivisionError: division by zero ({tmp_path}/raises.py:9)"
