"""`clientlab compare`, the exports of `report`, `runs`, and `run --keep-samples`: words in, exit code out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from clients.documents import a_failed_trial, a_run, a_trial


def a_run_at(pace: float, name: str, **changes):
    """Three rounds of one arm."""
    return a_run(*(a_trial("urllib3", n, pace * (1 + n / 100), **changes) for n in (1, 2, 3)), name=name)


@pytest.fixture
def runs(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """A baseline, the same again, and one that is slower; `d-broken` is cut short."""
    for run in (a_run_at(1.0, "a-base"), a_run_at(1.0, "b-same"), a_run_at(1.5, "c-slow")):
        results.claim(run.run)
        results.save(run)
    (results.claim("d-broken") / "run.json").write_text("{")
    return results


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("a", "b"), 0),
        (("a", "c"), 0),
        (("a", "c", "--fail-on", "wall +10%"), 1),
        (("a", "c", "--fail-on", "wall +60%", "--fail-on", "errors +0"), 0),
        (("a", "c", "--fail-on", "wall +49%"), 0),
        (("a", "c", "--fail-on", "wall +49%", "--strict"), 1),
        (("a", "b", "c", "--fail-on", "p95 +0"), 0),
        (("c", "a", "--fail-on", "throughput -5%"), 0),
    ],
)
@pytest.mark.parametrize("form", [(), ("--markdown",), ("--json",)])
def test_a_comparison_exits_1_where_a_threshold_failed(words, code, form, clientlab, runs):  # noqa: ARG001
    """In every form alike, and a change alone is no failure."""
    said = clientlab("compare", *words, *form)
    assert (said.code, said.err) == (code, "")
    assert said.out
    if form == ("--json",):
        outcomes = {one["outcome"] for one in json.loads(said.out)["thresholds"]}
        assert ("failed" in outcomes) == (code == 1)


def test_a_comparison_counts_how_far_stored_runs_differ_as_a_whole(clientlab, results):
    """Older runs of the same surroundings make a failure unsure; without them, the output says so."""
    levels = {"a-base": 1.0, "b-after": 1.06, "c-old": 0.94, "d-old": 1.05, "e-old": 0.97}
    for name, level in levels.items():
        if name == "c-old":
            said = clientlab("compare", "a", "b", "--fail-on", "wall +1%")
            assert said.code == 1
            assert "how far two runs differ as a whole is unknown" in " ".join(said.out.split())
        results.claim(name)
        results.save(a_run_at(level, name))
    said = clientlab("compare", "a", "b", "--fail-on", "wall +1%", "--json")
    assert said.code == 0
    assert json.loads(said.out)["gate"][1].startswith("gate wall: 4 stored runs of these surroundings")


def test_a_comparison_shows_the_figures_that_are_named(clientlab, runs):  # noqa: ARG001
    """By key or full name, beside those that are always shown and those of the thresholds; each once."""
    said = clientlab(
        "compare", "a", "c", "--json", "--figure", "p95", "--figure", "latency_max_seconds", "--fail-on", "max +0"
    )
    figures = json.loads(said.out)["runs"][0]["arms"]["urllib3"]
    assert list(figures)[-2:] == ["p95", "max"]
    assert (figures["p95"]["unit"], figures["p95"]["before"]) == ("seconds", 0.009)


def test_a_report_writes_every_format_that_is_asked_for(clientlab, runs, tmp_path):  # noqa: ARG001
    """Beside the table, and says where."""
    said = clientlab("report", "a", "--csv", "x.csv", "--markdown", "x.md", "--junit", "x.xml")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if ": x." in line] == [
        "csv: x.csv",
        "markdown: x.md",
        "junit: x.xml",
    ]
    assert "Which is fastest?" in said.out
    assert (tmp_path / "x.csv").read_text().startswith("run,arm,")
    assert (tmp_path / "x.md").read_text().startswith("**Which is fastest?**")
    assert (tmp_path / "x.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "begins", "lists"),
    [(("--markdown",), "**Which", True), (("--markdown", "-"), "**Which", True), (("--csv", "-"), "run,arm", False)],
)
def test_a_format_that_goes_to_standard_output_is_alone_there(words, begins, lists, clientlab, runs):  # noqa: ARG001
    """The outcomes of thresholds go to standard error. Markdown, the body of a comment, lists them as well."""
    said = clientlab("report", "a", "--junit", "x.xml", "--fail-on", "wall > 1ms", *words)
    assert said.code == 1
    assert said.out.startswith(begins)
    assert ("\n- FAILED: wall &gt; 1ms · urllib3 · a-base" in said.out) is lists
    assert said.err.splitlines()[0] == "junit: x.xml"
    assert said.err.splitlines()[1].startswith("FAILED: wall > 1ms · urllib3 · a-base: wall time 1.02 s")


@pytest.mark.parametrize(("limit", "code"), [("wall > 2s", 0), ("wall > 0.9s", 1), ("throughput < 1100", 1)])
def test_limits_of_a_single_run_decide_the_exit_code(limit, code, clientlab, runs):  # noqa: ARG001
    """And are told below the table."""
    said = clientlab("report", "a", "--fail-on", limit)
    assert said.code == code
    assert ("FAILED: " in said.out, "all thresholds held (1 checked)" in said.out) == (code == 1, code == 0)


def test_a_limit_within_the_interval_is_not_sure_and_fails_strictly_only(clientlab, runs):  # noqa: ARG001
    """The median is beyond it, but three rounds do not show that surely."""
    said = clientlab("report", "a", "--fail-on", "wall > 1s")
    assert (said.code, "NOT SURE: wall > 1s" in said.out, "measure more rounds" in said.out) == (0, True, True)
    assert clientlab("report", "a", "--fail-on", "wall > 1s", "--strict").code == 1
    assert clientlab("report", "a", "--strict").code == 2


def test_the_runs_are_listed_with_what_they_are(clientlab, runs):  # noqa: ARG001
    """One that can't be read as well, with the reason."""
    rows = {row["run"]: row for row in json.loads(clientlab("runs", "--json").out)}
    assert list(rows) == ["a-base", "b-same", "c-slow", "d-broken"]
    assert rows["a-base"] == {
        "run": "a-base", "experiment": "run", "when": "2024-05-06T07:08:09+00:00", "machine": "here, A CPU",
        "status": "done", "trials": 3, "failed": 0, "claims": {}, "reason": None, "strategies": ["urllib3"],
        "answer": "urllib3 made 980 requests/s",
    }  # fmt: skip
    assert (rows["d-broken"]["status"], rows["d-broken"]["trials"]) == ("unreadable", None)
    assert "cut short" in rows["d-broken"]["reason"]
    table = clientlab("runs")
    assert table.code == 0
    assert [line.split()[0] for line in table.out.splitlines() if line[0] != " "] == ["run", *rows]
    assert table.out.splitlines()[1].split()[1:5] == ["urllib3", "2024-05-06", "07:08", "done"]


def test_the_list_of_runs_has_what_each_run_answered(clientlab, results):
    """The arm that is ahead and of how many others that is sure, the counted verdicts, or nothing without a trial."""
    arms = {"urllib3": 1.0, "pycurl": 1.5, "requests": 2.0}
    ahead = [a_trial(name, n, wall * (1 + n / 100)) for name, wall in arms.items() for n in (1, 2, 3, 4)]
    unsure = [a_trial(name, n, 1.0 + n % 3 / 10) for name in arms for n in (1, 2, 3, 4)]
    for name, trials in (("a", ahead), ("b", unsure), ("c", [a_failed_trial("urllib3")])):
        results.claim(name)
        results.save(a_run(*trials, name=name))
    answers = {row["run"]: row["answer"] for row in json.loads(clientlab("runs", "--json").out)}
    assert answers["a"] == "urllib3 is faster than 2 of 2 others"
    assert answers["b"].endswith(" is first, and none is surely slower")
    assert answers["c"] is None
    assert "urllib3 is faster than 2 of 2 others" in " ".join(clientlab("runs").out.split())


def test_a_run_is_found_by_how_many_began_after_it(clientlab, runs):  # noqa: ARG001
    """`last~1` is the run before the last one; beyond the first one, one line names the oldest."""
    assert json.loads(clientlab("compare", "last~3", "last~1", "--json").out)["baseline"] == "a-base"
    assert "run b-same" in clientlab("report", "last~2").out
    for name in ("last~4", "last~9", "last~999999999"):
        said = clientlab("report", name)
        assert (said.code, said.out) == (2, "")
        assert said.err == f"clientlab: run '{name}': results holds 4; the oldest is last~3\n"
    assert "run 'last~' is not in results" in clientlab("report", "last~").err


def test_a_comparison_writes_every_file_that_is_asked_for(clientlab, runs, tmp_path):  # noqa: ARG001
    """Beside the table, and says where; thresholds are test cases."""
    files = ("--html", "x.html", "--markdown", "x.md", "--junit", "x.xml")
    said = clientlab("compare", "a", "b", "c", *files, "--fail-on", "wall +10%")
    assert (said.code, said.err) == (1, "")
    assert "\nbaseline a-base" in said.out
    assert said.out.splitlines()[-3:] == ["report: x.html", "markdown: x.md", "junit: x.xml"]
    assert (tmp_path / "x.md").read_text().count("\nBaseline: a-base")
    page = (tmp_path / "x.html").read_text()
    assert "<title>b-same and c-slow against a-base · clientlab</title>" in page
    assert "FAILED: wall +10% · urllib3 · c-slow" in page
    assert "<script" not in page
    suites = {suite.get("name"): suite for suite in ET.fromstring((tmp_path / "x.xml").read_text())}  # noqa: S314 - written here
    assert list(suites) == ["b-same.changes", "b-same.thresholds", "c-slow.changes", "c-slow.thresholds"]
    assert [suites[name].get("failures") for name in suites] == ["0", "0", "0", "1"]
    slower = suites["c-slow.changes"].find("testcase[@name='urllib3: wall']/system-out")
    assert slower.text.startswith("slower x ")


def test_files_of_a_comparison_leave_standard_output_to_the_document(clientlab, runs):  # noqa: ARG001
    """Paths go to standard error beside JSON or Markdown, of which one can have standard output."""
    said = clientlab("compare", "a", "b", "--json", "--markdown", "x.md", "--junit", "x.xml")
    assert (said.code, said.err) == (0, "markdown: x.md\njunit: x.xml\n")
    assert json.loads(said.out)["baseline"] == "a-base"
    for words, says in (
        (("--json", "--markdown"), "--markdown and --json: leave out one of them, or name a file"),
        (("--html", "x.txt"), "report x.txt: the name must end with .html or .htm"),
        (("--junit", "none/x.xml"), "results none/x.xml: there is no folder none"),
        (("--markdown", "none/x.md"), "--markdown none/x.md: No such file or directory"),
    ):
        said = clientlab("compare", "a", "b", *words)
        assert (said.code, said.err.count("\n")) == (2, 1)
        assert says in said.err


def test_a_folder_without_runs_says_so(clientlab):
    """Also one that is not there."""
    assert clientlab("runs", "--out", "none").out == "no run in none yet\n"
    assert clientlab("runs", "--out", "none", "--json").out == "[]\n"


def test_runs_are_removed_by_name_or_beginning(clientlab, runs):
    """Damaged ones as well; others stay."""
    said = clientlab("runs", "rm", "a", "d-broken", "a-base", "--yes")
    assert (said.code, said.out) == (0, "removed: a-base\nremoved: d-broken\n")
    assert runs.names() == ["b-same", "c-slow"]


def test_a_folder_that_a_killed_run_has_left_is_removed_by_its_whole_name(clientlab, runs):
    """It has no run file yet. A folder with files of the user's is no such one."""
    left, mine = (runs.claim(f"20240102-00000000{number}-run-abcd") for number in range(2))
    (left / ".held").touch()
    (mine / "notes.txt").touch()
    said = clientlab("runs", "rm", left.name, "--yes")
    assert (said.code, said.out) == (0, f"removed: {left.name}\n")
    assert (left.exists(), clientlab("runs", "rm", mine.name, "--yes").code, mine.exists()) == (False, 2, True)


def test_a_run_that_is_being_measured_is_not_removed(clientlab, runs):
    """`runs rm` refuses a run that another process is still measuring."""
    with runs.hold("a-base"):
        said = clientlab("runs", "rm", "a-base", "--yes")
    assert said.code == 2
    assert "run a-base is being measured; stop it, or wait for its end" in said.err
    assert (runs.folder / "a-base").exists()


@pytest.mark.parametrize(("answer", "left"), [("y\n", 3), ("n\n", 4), ("", 4)])
def test_removing_is_asked_for(answer, left, clientlab, runs, monkeypatch):
    """`runs rm` asks for confirmation and takes a missing answer as no."""
    read = iter(answer.splitlines())

    def visible(_prompt: str) -> str:
        try:
            return next(read)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("click.termui.visible_prompt_func", visible)
    said = clientlab("runs", "rm", "a")
    assert (said.code, len(runs.names())) == (0 if left == 3 else 2, left)
    assert ("nothing was removed" in said.err) == (left == 4)


def test_runs_outside_the_folder_are_not_removed(clientlab, runs, tmp_path):
    """Neither by path nor through a link."""
    (tmp_path / "other").mkdir()
    (runs.folder / "a-base").rename(tmp_path / "other" / "a-base")
    (runs.folder / "linked").symlink_to(tmp_path / "other" / "a-base")
    for name in ("other/a-base", tmp_path / "other" / "a-base" / "run.json", "linked", "results/linked"):
        said = clientlab("runs", "rm", name, "--yes")
        assert (said.code, said.out) == (2, "")
        assert "is not a run of results; name its folder with --out" in said.err
    assert (tmp_path / "other" / "a-base" / "run.json").exists()
    assert clientlab("runs", "rm", "a-base", "--out", "other", "--yes").code == 0
    assert not (tmp_path / "other" / "a-base").exists()


def test_a_run_is_given_away_and_taken_in(clientlab, runs):  # noqa: ARG001
    """By one file; it can be compared there."""
    said = clientlab("runs", "export", "a", "x.zip")
    assert (said.code, said.out) == (0, "x.zip: the run, and samples of 0 trials\n")
    said = clientlab("runs", "--out", "other", "import", "x.zip")
    assert (said.code, said.out) == (0, "other/a-base: 3 trials\n")
    assert clientlab("compare", "other/a-base", "b").code == 0
    assert clientlab("runs", "import", "x.zip", "--out", "other").code == 2
    assert clientlab("runs", "import", "x.zip", "--out", "other", "--force").code == 0


def test_samples_are_kept_where_they_are_asked_for(clientlab, server, results):
    """Each trial's, every request once, the warm-up left out; without the words there are none."""
    words = ("run", "-t", "http.client", "-n", 20, "--rounds", 2, "--warmup", 3, "--url", server.url)
    assert clientlab(*words).code == 0
    assert not (results.find("last").parent / "samples").exists()
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
    """`--markdown` takes the next word as its file: a run file stays as it is, and the message says what happened."""
    path = "results/a-base/run.json"
    before = Path(path).read_bytes()
    for words in (("compare", "--markdown", path, "a", "b"), ("report", "a", "--csv", path)):
        said = clientlab(*words)
        assert (said.code, said.err.count("\n")) == (2, 1)
        assert "this is a run file, and would be lost; name another file" in said.err
    said = clientlab("compare", "--markdown", "a", "b")
    assert said.code == 2
    assert "--markdown took 'a' as its file: place it after the runs" in said.err
    assert Path(path).read_bytes() == before
