"""`clientlab compare`, the exports of `report`, `runs`, and `run --keep-samples`: words in, exit code out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from clients.documents import a_run, a_trial


def a_run_at(pace: float, name: str, **changes):
    return a_run(*(a_trial("urllib3", n, pace * (1 + n / 100), **changes) for n in (1, 2, 3)), name=name)


@pytest.fixture
def runs(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """A baseline, the same again, and one that is slower; `d-broken` is cut short."""
    for run in (a_run_at(1.0, "a-base"), a_run_at(1.0, "b-same"), a_run_at(1.5, "c-slow")):
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
def test_a_comparison_exits_1_where_a_threshold_failed(words, code, clientlab):
    """A change alone is no failure, and one that is not sure fails strictly only."""
    said = clientlab("compare", *words, "--json")
    assert (said.code, said.err) == (code, "")
    outcomes = {one["outcome"] for one in json.loads(said.out)["thresholds"]}
    assert ("failed" in outcomes) == (code == 1)


def test_a_report_writes_every_format_that_is_asked_for(clientlab, runs, tmp_path):  # noqa: ARG001
    begins = {"--csv=x.csv": "run,arm,", "--markdown=x.md": "**Which is fastest?**", "--junit=x.xml": "<?xml",
              "--html=x.html": "<!DOCTYPE html>", "--chart=x.svg": "<?xml"}  # fmt: skip
    said = clientlab("report", "a", *begins, "--fail-on", "wall > 2s")
    assert (said.code, "FAILED" in said.out, "Which is fastest?" in said.out) == (0, False, True)
    for option, beginning in begins.items():
        name = option.partition("=")[2]
        assert name in said.out
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(beginning)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("words", "begins"), [(("--markdown",), "**Which"), (("--csv", "-"), "run,arm")])
def test_a_format_that_goes_to_standard_output_is_alone_there(words, begins, clientlab):
    """The outcomes of thresholds and the places of files go to standard error."""
    said = clientlab("report", "a", "--junit", "x.xml", "--fail-on", "wall > 1ms", *words)
    assert said.code == 1
    assert said.out.startswith(begins)
    assert "x.xml" in said.err
    assert "FAILED: wall > 1ms" in said.err


def test_the_runs_are_listed_with_what_they_are(clientlab, runs):  # noqa: ARG001
    rows = {row["run"]: row for row in json.loads(clientlab("runs", "--json").out)}
    assert list(rows) == ["a-base", "b-same", "c-slow", "d-broken"]
    assert rows["a-base"] == {
        "run": "a-base", "experiment": "run", "when": "2024-05-06T07:08:09+00:00", "machine": "here, A CPU",
        "status": "done", "trials": 3, "failed": 0, "claims": {}, "reason": None, "strategies": ["urllib3"],
        "answer": "urllib3 made 980 requests/s.",
    }  # fmt: skip
    assert (rows["d-broken"]["status"], rows["d-broken"]["trials"]) == ("unreadable", None)
    table = clientlab("runs")
    assert (table.code, [name for name in rows if name not in table.out]) == (0, [])


def test_a_run_is_found_by_how_many_began_after_it(clientlab, runs):  # noqa: ARG001
    """`last~1` is the run before the last one; beyond the first one, one line names the oldest."""
    assert json.loads(clientlab("compare", "last~3", "last~1", "--json").out)["baseline"] == "a-base"
    assert "run b-same" in clientlab("report", "last~2").out
    for name in ("last~4", "last~999999999", "last~"):
        said = clientlab("report", name)
        assert (said.code, said.out) == (2, "")
        assert name in said.err


def test_a_comparison_writes_every_file_that_is_asked_for(clientlab, runs, tmp_path):  # noqa: ARG001
    files = ("--html", "x.html", "--markdown", "x.md", "--junit", "x.xml")
    said = clientlab("compare", "a", "b", "c", *files, "--fail-on", "wall +10%")
    assert (said.code, said.err) == (1, "")
    assert "a-base" in (tmp_path / "x.md").read_text()
    assert "FAILED: wall +10% · urllib3 · c-slow" in (tmp_path / "x.html").read_text()
    suites = {suite.get("name"): suite for suite in ET.fromstring((tmp_path / "x.xml").read_text())}  # noqa: S314 - written here
    assert list(suites) == ["run.changes", "run.thresholds", "run-2.changes", "run-2.thresholds"]
    assert [suites[name].get("failures") for name in suites] == ["0", "0", "0", "1"]


def test_runs_are_removed_by_name_or_beginning(clientlab, runs, monkeypatch):
    """Damaged ones as well. Others stay, such as one that is being measured, or without a yes."""
    with runs.hold("a-base"):
        said = clientlab("runs", "rm", "a-base", "--yes")
    assert (said.code, "a-base" in said.err) == (2, True)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert (clientlab("runs", "rm", "a").code, len(runs.names())) == (2, 4)
    said = clientlab("runs", "rm", "a", "d-broken", "a-base", "--yes")
    assert (said.code, said.out) == (0, "removed: a-base\nremoved: d-broken\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert (clientlab("runs", "rm", "b").code, runs.names()) == (0, ["c-slow"])


def test_runs_outside_the_folder_are_not_removed(clientlab, runs, tmp_path):
    (tmp_path / "other").mkdir()
    (runs.folder / "a-base").rename(tmp_path / "other" / "a-base")
    (runs.folder / "linked").symlink_to(tmp_path / "other" / "a-base")
    for name in ("other/a-base", tmp_path / "other" / "a-base" / "run.json", "linked", "results/linked"):
        said = clientlab("runs", "rm", name, "--yes")
        assert (said.code, said.out) == (2, "")
    assert (tmp_path / "other" / "a-base" / "run.json").exists()
    assert clientlab("runs", "rm", "a-base", "--out", "other", "--yes").code == 0
    assert not (tmp_path / "other" / "a-base").exists()


@pytest.mark.real
def test_samples_are_kept_where_they_are_asked_for(clientlab, server, results):
    words = ("run", "-t", "http.client", "-n", 20, "--rounds", 2, "--url", server.url)
    assert clientlab(*words, "--keep-samples").code == 0
    run, folder = results.read("last"), results.find("last").parent
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith("trial")) == []
    for trial in run.trials:
        with np.load(folder / "samples" / f"trial-{trial.order:04d}.npz") as columns:
            assert sorted(columns["number"].tolist()) == list(range(20))
            assert (columns["start_seconds"] >= 0).all()
            assert columns["seconds"].max() == pytest.approx(trial.latency_seconds.max)
            assert int(columns["bytes"].sum()) == trial.bytes_received
    assert len(list((folder / "samples").iterdir())) == 2


def test_no_report_replaces_a_run(clientlab, runs):  # noqa: ARG001
    """`--markdown` takes the next word as its file: a run file stays as it is."""
    path = "results/a-base/run.json"
    before = Path(path).read_bytes()
    for words in (("compare", "--markdown", path, "a", "b"), ("report", "a", "--csv", path)):
        said = clientlab(*words)
        assert (said.code, said.err.count("\n")) == (2, 1)
        assert path in said.err
    said = clientlab("compare", "--markdown", "a", "b")
    assert (said.code, "--markdown" in said.err) == (2, True)
    assert Path(path).read_bytes() == before
