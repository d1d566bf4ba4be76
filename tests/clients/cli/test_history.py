"""`clientlab history`: its answer, its formats, and input of which some or all can't be read."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

from browser import headless_chromium
from clientlab.results.store import Store
from clients.histories import a_history, on_day, saved

SINCE = "20260311-020000-nightly"


@pytest.fixture
def nightly(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    """Twenty runs; urllib3 takes 15 % longer since the eleventh, whose version of it is another one."""
    runs = [
        on_day(run, at, libraries={"urllib3": "2.5.0" if at < 10 else "2.6.0"})
        for at, run in enumerate(a_history(slower=1.15))
    ]
    return saved(results, runs)


def test_the_answer_comes_first_and_names_run_day_arm_and_what_came_with_it(clientlab, nightly):  # noqa: ARG001
    """Then the course and the table, and below them the doubts."""
    said = clientlab("history", "results")
    assert (said.code, said.err) == (0, "")
    words = " ".join(said.out.split())
    assert words.startswith(f"since run {SINCE} of 2026-03-11: urllib3 ")
    assert "% slower (req/s), nothing else changed; with it came urllib3 2.5.0 -> 2.6.0." in words
    assert said.out.count("│") == 1
    assert words.index("20 runs, 2026-03-01 to 2026-03-20") < words.index("Of 100 histories without a change, 95")
    assert "none of which changed: --all" in words
    assert clientlab("history", "--all").out.count("\n") > said.out.count("\n")


def test_equal_runs_have_no_change_and_few_runs_are_undecided(clientlab, results):
    """The answer states the runs and the days, or how many more runs are needed."""
    saved(results, a_history(20))
    assert clientlab("history").out.startswith("no change in 20 runs, 2026-03-01 to 2026-03-20.")
    few = clientlab("history", "--last", "5").out
    assert few.startswith("undecided: 9 more runs would decide, 5 in like surroundings are too few.")


def test_every_format_holds_the_same_change(clientlab, nightly):  # noqa: ARG001
    """JSON, CSV and Markdown to standard output; only one of them can go there."""
    found = json.loads(clientlab("history", "--json").out)
    (line,) = found["lines"]
    changed = [(one["arm"], one["figure"], change) for one in line["tracks"] for change in one["changes"]]
    ((arm, figure, change),) = changed
    assert (arm, figure, change["run"], change["verdict"]) == ("urllib3", "throughput", SINCE, "slower")
    assert change["interval"][0] < 1 / 1.15 < change["interval"][1]
    rows = list(csv.DictReader(io.StringIO(clientlab("history", "--csv", "-").out)))
    assert [(row["run"], row["arm"], row["figure"]) for row in rows if row["new_level"] == "1"] == [
        (SINCE, "urllib3", "throughput")
    ]
    assert float(rows[0]["low"]) < float(rows[0]["value"]) < float(rows[0]["high"])
    text = clientlab("history", "--markdown").out
    assert text.startswith("**run: since run 20260311")
    assert "| urllib3 | req/s | " in text
    refused = clientlab("history", "--json", "--csv", "-")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_the_page_has_a_picture_of_each_arm_and_figure_and_asks_for_nothing(clientlab, nightly, tmp_path):  # noqa: ARG001
    """A browser draws the two levels of the arm that changed."""
    said = clientlab("history", "--html", "history.html")
    assert "report: history.html" in said.out
    page = (tmp_path / "history.html").read_text()
    assert "<script" not in page
    assert f"since run {SINCE}" in page
    with headless_chromium() as browser:
        opened = browser.new_page()
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((tmp_path / "history.html").as_uri())
        assert len(asked) == 1
        assert opened.locator("main figure h3").first.inner_text() == "urllib3: requests per second"
        # Four arms with seven figures, five of which all arms have in common; and the large one.
        assert opened.locator("svg.area-of-lines").count() == 4 * 7 + 5 + 1


@pytest.mark.parametrize(
    ("limit", "code"),
    [("throughput -5%", 1), ("throughput -40%", 0), ("requests-session: throughput -5%", 0), ("p99 +5%", 0)],
)
def test_a_threshold_fails_if_the_newest_level_is_worse_by_more(limit, code, clientlab, nightly):  # noqa: ARG001
    """Of the arms that it is for. The line names arm, change and run."""
    said = clientlab("history", "--fail-on", limit)
    assert said.code == code
    assert (f"FAILED: {limit} · urllib3: " in said.out) == bool(code)


def test_a_damaged_run_among_a_hundred_is_one_line_and_the_rest_is_shown(clientlab, results):
    """So is one that is not finished."""
    saved(results, a_history(20))
    names = results.names()
    (results.folder / names[3] / "run.json").write_text('{"format": 1, "run": "cut')
    running = results.read(names[7]).model_copy(update={"status": "running"})
    results.save(running)
    said = clientlab("history")
    assert said.code == 0
    assert said.out.startswith("no change in 18 runs")
    damaged, unfinished = said.err.splitlines()
    assert damaged.startswith(f"clientlab: left out: results/{names[3]}/run.json: not a whole JSON document")
    assert f"--resume {names[7]}" in unfinished


def test_runs_of_other_experiments_and_folders_without_one_are_a_line_each(clientlab, results):
    """`--experiment` shows the others; one that no run has is refused."""
    saved(results, a_history(20))
    other = [
        run.model_copy(update={"experiment": run.experiment.model_copy(update={"name": "other"})})
        for run in a_history(3, seed=2)
    ]
    saved(Store(results.folder.parent / "elsewhere"), other)
    said = clientlab("history", "results", "elsewhere")
    assert said.code == 0
    assert said.out.startswith("no change in 20 runs")
    assert said.err.splitlines() == [
        "clientlab: left out: 3 runs are of other experiments: other (3); --experiment NAME shows one of them",
        "clientlab: left out: elsewhere has no finished run of experiment 'run'",
    ]
    assert "3 runs" in clientlab("history", "results", "elsewhere", "--experiment", "other").out
    refused = clientlab("history", "--experiment", "none")
    assert (refused.code, refused.err) == (
        2,
        "clientlab: --experiment none: no run of this experiment; there are run (20)\n",
    )


def test_a_run_that_is_named_twice_counts_once(clientlab, nightly, tmp_path):  # noqa: ARG001
    """By its file, its folder, its name, or as a copy."""
    shutil.copytree("results", "copy")
    said = clientlab("history", "results", "last", f"results/{SINCE}", "copy", "--json")
    assert len(json.loads(said.out)["lines"][0]["runs"]) == 20


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("empty",), "empty: there is no run in this folder; name a folder of results, or run files"),
        (("nowhere",), "run 'nowhere' is not in results; there is none yet"),
        (("--fail-on", "p99"), "--fail-on 'p99': write a figure and a change, as 'p99 +10%' or 'throughput -5%'"),
        (("--html", "page.txt"), "report page.txt: the name must end with .html or .htm"),
    ],
)
def test_input_without_a_run_is_refused_in_one_line(words, problem, clientlab, tmp_path):
    """With exit code 2."""
    (tmp_path / "empty").mkdir()
    said = clientlab("history", *words)
    assert (said.code, said.out, said.err) == (2, "", f"clientlab: {problem}\n")
