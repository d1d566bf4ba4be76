"""`clientlab compare`, `report`, `claims` and `runs`, and what `run` keeps for them."""

from __future__ import annotations

import html
import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from clientlab.cli import output, run_command_line
from clientlab.results.plan import Claim
from clients.documents import a_run, a_trial, quantiles


def a_run_at(pace: float, name: str, **changes):
    return a_run(
        *(a_trial("urllib3", n, pace * (1 + n / 100), **changes) for n in (1, 2, 3)),
        name=name,
    )


@pytest.fixture
def runs(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """A baseline, the same again, and one that is slower; `d-broken` is cut short."""
    for run in (
        a_run_at(1.0, "a-base"),
        a_run_at(1.0, "b-same"),
        a_run_at(1.5, "c-slow"),
    ):
        results.claim(run.run)
        results.save(run)
    (results.claim("d-broken") / "run.json").write_text("{")
    return results


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("a", "b", "--fail-on", "p95 +0"), 0),
        (("a", "c", "--fail-on", "wall +10%"), 1),
        (("a", "c", "--fail-on", "wall +49%"), 0),
        (("a", "c", "--fail-on", "wall +49%", "--strict"), 1),
    ],
)
def test_a_comparison_exits_with_1_if_a_threshold_failed(words, code, clientlab):
    """A change alone is not a failure, and an uncertain one fails only with
    --strict.
    """
    said = clientlab("compare", *words, "--json")
    assert said.code == code
    assert said.err == ""
    outcomes = {one["outcome"] for one in json.loads(said.out)["thresholds"]}
    assert ("failed" in outcomes) == (code == 1)


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (("report", "two"), "wall > 1ms"),
        (("report", "two"), "p999 > 1s"),
        (("compare", "two", "two"), "wall +1%"),
        (("compare", "two", "two"), "p999 +1%"),
    ],
)
def test_what_cannot_be_judged_is_not_sure_and_all_files_are_written(
    words, limit, clientlab, results, tmp_path
):
    """Two rounds have no interval, and nobody measured the 99.9th percentile."""
    without = quantiles().updated(p999=None)
    run = a_run(
        *(a_trial("urllib3", number, latency_seconds=without) for number in (1, 2)),
        name="two",
    )
    results.claim("two")
    results.save(run)
    names = ("x.html", "x.md", "x.xml")
    said = clientlab(
        *words,
        "--html",
        "x.html",
        "--markdown",
        "x.md",
        "--junit",
        "x.xml",
        "--fail-on",
        limit,
    )
    assert said.code == 3
    assert said.err == ""
    for text in (
        said.out,
        *(
            html.unescape((tmp_path / name).read_text(encoding="utf-8"))
            for name in names
        ),
    ):
        assert limit in text
        assert "it cannot be judged: " in " ".join(text.split())
    always = clientlab(
        *words, "--fail-on", "errors +0" if words[0] == "compare" else "errors > 0"
    )
    assert always.code == 0


def test_a_report_is_readable_in_an_encoding_that_lacks_its_characters(
    runs,  # noqa: ARG001
    clientlab,
    monkeypatch,
):
    """ISO 8859-1 and ASCII have no ≥ and no →."""
    clientlab("--version")
    for words in (
        ("report", "c", "-v"),
        ("compare", "a", "c"),
        ("list", "cautions"),
        ("runs", "--json"),
    ):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
        assert run_command_line([*words]) == 0
        assert written.getvalue().decode("ascii")


def test_an_interrupted_report_says_nothing_of_measuring(runs, clientlab, monkeypatch):  # noqa: ARG001
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "show", interrupt)
    said = clientlab("report", "a")
    assert said.code == 3
    assert said.err.strip() == "clientlab: interrupted"


def test_one_file_that_cannot_be_written_does_not_keep_others_from_it(
    clientlab,
    runs,  # noqa: ARG001
    tmp_path,
):
    said = clientlab("report", "a", "--csv", "none/x.csv", "--junit", "x.xml")
    assert said.code == 2
    assert "none/x.csv" in said.err
    assert (tmp_path / "x.xml").exists()


def test_a_report_writes_every_requested_format(clientlab, runs, tmp_path):  # noqa: ARG001
    begins = {
        "--csv=x.csv": "run,arm,",
        "--markdown=x.md": "**Which is fastest?**",
        "--junit=x.xml": "<?xml",
        "--html=x.html": "<!DOCTYPE html>",
        "--chart=x.svg": "<?xml",
    }
    said = clientlab("report", "a", *begins, "--fail-on", "wall > 2s")
    assert said.code == 0
    assert "FAILED" not in said.out
    assert "Which is fastest?" in said.out
    for option, beginning in begins.items():
        name = option.partition("=")[2]
        assert name in said.out
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(beginning)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("words", "begins"), [(("--markdown",), "**Which"), (("--csv", "-"), "run,arm")]
)
def test_standard_output_holds_only_the_format_that_goes_there(
    words, begins, clientlab
):
    """The outcomes of thresholds and the places of files go to standard error."""
    said = clientlab(
        "report", "a", "--junit", "x.xml", "--fail-on", "wall > 1ms", *words
    )
    assert said.code == 1
    assert said.out.startswith(begins)
    assert "x.xml" in said.err
    assert "FAILED: wall > 1ms" in said.err


def test_runs_are_listed(clientlab, runs):  # noqa: ARG001
    rows = {row["run"]: row for row in json.loads(clientlab("runs", "--json").out)}
    assert list(rows) == ["a-base", "b-same", "c-slow", "d-broken"]
    assert rows["a-base"] == {
        "run": "a-base",
        "experiment": "run",
        "when": "2024-05-06T07:08:09+00:00",
        "machine": "here, A CPU",
        "status": "done",
        "trials": 3,
        "failed": 0,
        "claims": {},
        "reason": None,
        "strategies": ["urllib3"],
        "answer": "urllib3 made 980 requests/s.",
    }
    assert rows["d-broken"]["status"] == "unreadable"
    assert rows["d-broken"]["trials"] is None
    table = clientlab("runs")
    assert table.code == 0
    assert [name for name in rows if name not in table.out] == []


def test_a_run_is_found_by_its_path_name_or_place_before_the_last(clientlab, runs):  # noqa: ARG001
    """`last~1` is the run before the last one."""
    before = Path("results/b-same/run.json").read_bytes()
    short = clientlab("report", "results/b-same/run.json")
    whole = clientlab("report", "b", "--all")
    assert short.code == 0
    assert short.err == ""
    assert len(short.out) < len(whole.out)
    assert Path("results/b-same/run.json").read_bytes() == before
    assert (
        json.loads(clientlab("compare", "last~3", "last~1", "--json").out)["baseline"]
        == "a-base"
    )
    assert "run b-same" in clientlab("report", "last~2").out
    for name in ("last~4", "last~999999999", "last~"):
        said = clientlab("report", name)
        assert said.code == 2
        assert said.out == ""
        assert name in said.err


def test_a_comparison_writes_every_requested_file(clientlab, runs, tmp_path):  # noqa: ARG001
    files = ("--html", "x.html", "--markdown", "x.md", "--junit", "x.xml")
    said = clientlab("compare", "a", "b", "c", *files, "--fail-on", "wall +10%")
    assert said.code == 1
    assert said.err == ""
    assert "a-base" in (tmp_path / "x.md").read_text()
    assert "FAILED: wall +10% · urllib3 · c-slow" in (tmp_path / "x.html").read_text()
    suites = {
        suite.get("name"): suite
        for suite in ET.fromstring((tmp_path / "x.xml").read_text())  # noqa: S314 - written here
    }
    assert list(suites) == [
        "run.changes",
        "run.thresholds",
        "run-2.changes",
        "run-2.thresholds",
    ]
    assert [suites[name].get("failures") for name in suites] == ["0", "0", "0", "1"]


def test_runs_are_removed_by_name_or_beginning(clientlab, runs, monkeypatch):
    """Damaged runs too, but none that is being measured, and none without a yes."""
    with runs.hold("a-base"):
        said = clientlab("runs", "rm", "a-base", "--yes")
    assert said.code == 2
    assert "a-base" in said.err
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert clientlab("runs", "rm", "a").code == 2
    assert len(runs.names()) == 4
    said = clientlab("runs", "rm", "a", "d-broken", "a-base", "--yes")
    assert said.code == 0
    assert said.out == "removed: a-base\nremoved: d-broken\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert clientlab("runs", "rm", "b").code == 0
    assert runs.names() == ["c-slow"]


def test_runs_outside_the_folder_are_not_removed(clientlab, runs, tmp_path):
    (tmp_path / "other").mkdir()
    (runs.folder / "a-base").rename(tmp_path / "other" / "a-base")
    (runs.folder / "linked").symlink_to(tmp_path / "other" / "a-base")
    for name in (
        "other/a-base",
        tmp_path / "other" / "a-base" / "run.json",
        "linked",
        "results/linked",
    ):
        said = clientlab("runs", "rm", name, "--yes")
        assert said.code == 2
        assert said.out == ""
    assert (tmp_path / "other" / "a-base" / "run.json").exists()
    assert clientlab("runs", "rm", "a-base", "--out", "other", "--yes").code == 0
    assert not (tmp_path / "other" / "a-base").exists()


def test_a_report_never_replaces_a_run_file(clientlab, runs):  # noqa: ARG001
    """`--markdown` takes the next word as its file, which may be the name of a run."""
    path = "results/a-base/run.json"
    before = Path(path).read_bytes()
    for words in (
        ("compare", "--markdown", path, "a", "b"),
        ("report", "a", "--csv", path),
    ):
        said = clientlab(*words)
        assert said.code == 2
        assert said.err.count("\n") == 1
        assert path in said.err
    said = clientlab("compare", "--markdown", "a", "b")
    assert said.code == 2
    assert "--markdown" in said.err
    assert Path(path).read_bytes() == before


TRUE = Claim(
    name="true",
    text="a takes less than b",
    kind="less",
    a="a",
    b="b",
    published="3 times",
)
FALSE = Claim(
    name="false", text="b takes less than a", kind="less", a="b", b="a", control=True
)


@pytest.fixture
def save(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    def call(*claims: Claim) -> None:
        walls = {"a": (1.0, 1.01, 0.99), "b": (2.0, 2.03, 1.99)}
        trials = [
            a_trial(name, number, wall)
            for name in walls
            for number, wall in enumerate(walls[name], start=1)
        ]
        run = a_run(*trials, claims=list(claims))
        results.claim(run.run)
        results.save(run)

    return call


def test_claims_are_shown_with_verdict_ratio_and_what_was_published(clientlab, save):
    """A contradicted one fails only if claims are required.

    A report has them too, with controls last.
    """
    save(FALSE, TRUE)
    said = clientlab("claims", "last")
    assert said.code == 0
    assert said.err == ""
    assert clientlab("claims", "last", "--require").code == 1
    for words in (
        "a takes less than b",
        "supported",
        "2.01",
        "3 times",
        "contradicted",
    ):
        assert words in said.out
    first, second = (
        line
        for line in clientlab("report", "last").out.splitlines()
        if "takes less than" in line
    )
    assert "supported a takes" in " ".join(first.split())
    assert "contradicted" in second
    found = {
        claim["name"]: claim
        for claim in json.loads(clientlab("claims", "last", "--json").out)
    }
    assert {name: claim["verdict"] for name, claim in found.items()} == {
        "true": "supported",
        "false": "contradicted",
    }
    assert (
        found["true"]["interval"][0]
        < found["true"]["ratio"]
        < found["true"]["interval"][1]
    )


def test_supported_claims_fail_nothing_if_claims_are_required(clientlab, save):
    save(TRUE)
    assert clientlab("claims", "last", "--require").code == 0


FILE = """
question = "Which?"
strategies = ["http.client", "requests"]
workloads.w = {requests = 5, warmup = 0}
[claims.connections]
text = "One opens fewer connections"
kind = "less"
figure = "connections_opened"
a = "requests"
b = "http.client"
"""


@pytest.mark.real
def test_a_run_judges_its_claims(clientlab, server, results, tmp_path):
    """One connection in all, compared with one per request."""
    (tmp_path / "mine.toml").write_text(FILE)
    said = clientlab("run", "mine.toml", "--url", server.url)
    assert said.code == 0
    assert clientlab("claims", "last", "--require").code == 1
    (claim,) = results.read("last").claims
    assert claim.verdict == "contradicted"
    assert claim.rounds == 3
    assert claim.ratio == pytest.approx(0.2)


@pytest.mark.real
def test_a_run_with_a_budget_says_what_is_decided_and_what_is_open(
    clientlab, server, results
):
    said = clientlab(
        "run",
        "-t",
        "http.client",
        "-t",
        "urllib3",
        "-n",
        "20",
        "--budget",
        "2s",
        "--url",
        server.url,
    )
    run = results.read("last")
    assert said.code == 0
    assert run.rounds_ended in {"budget", "decided"}
    assert "after round 1: " in said.err
