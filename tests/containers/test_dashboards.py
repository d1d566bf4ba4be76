"""The panels' queries on a real Prometheus, beside the run documents that they are
about.
"""

from __future__ import annotations

import json
import re
import time
from statistics import median

import pytest

from clientlab.judging.comparison import compare
from clientlab.judging.judgement import with_judgement
from clientlab.reports.change_contents import change_cells, is_known
from clientlab.reports.rows import groups_of
from clientlab.results.document import Run
from clients.documents import (
    a_failed_trial,
    a_run,
    a_trial,
    a_whole_run,
    quantiles,
    with_changes,
)
from grafana_panels import DASHBOARDS, expressions, panels
from running import eventually

# Their waits are bounded by 300 s each.
pytestmark = [pytest.mark.real, pytest.mark.release, pytest.mark.timeout(900)]

BASE = "base"
SLOWER = "slower"
FAILING = "failing"
MINUTES = 30
EXPERIMENTS = """\
question = "What do errors, streams and faults look like?"
strategies = ["urllib3"]
routes = ["proxy"]
rounds = 1
[workloads.refused]
path = "/status/503"
requests = 100
rate = 25
[workloads.streams]
stream = "sse"
events = 20
every = "20ms"
requests = 20
concurrency = 4
[workloads.faults]
faults = "503:10%"
requests = 100
"""
"""An open load whose requests all get 503, streams, and faults."""


def _base() -> Run:
    """Return the canned run, without the trial whose arm it does not name."""
    run = a_whole_run()
    arms = {arm.name for arm in run.experiment.arms}
    trials = [trial for trial in run.trials if trial.planned.arm in arms]
    return run.updated(run=BASE, trials=trials)


def _slower() -> Run:
    """Return the canned run with twice the times."""

    def twice(trial):
        figures = trial.figures
        if not trial.wall_seconds or not figures.requests_per_second:
            return trial
        half = figures.requests_per_second / 2
        return with_changes(
            trial, wall_seconds=2 * trial.wall_seconds, requests_per_second=half
        )

    run = _base()
    later = {"run": SLOWER, "created": "2044-05-06T08:09:10+00:00"}
    return run.updated(**{**later, "trials": [twice(trial) for trial in run.trials]})


def _failing() -> Run:
    """Return a run with a lower bound, and an arm of which everything failed."""
    bounds = quantiles(0.005, 0.3, at_least=["p99", "max"])
    trials = [
        a_trial("urllib3", number, errors={"timeout": 30}, latency_seconds=bounds)
        for number in (1, 2, 3)
    ]
    return with_judgement(a_run(*trials, a_failed_trial("pycurl"), name=FAILING))


@pytest.fixture(scope="session")
def canned(stack) -> dict[str, Run]:
    """Runs that the exporter publishes."""
    runs = [_base(), _slower(), _failing()]
    for run in runs:
        stack.write(
            "lab", f"/results/{run.run}/run.json", run.model_dump_json(indent=1)
        )
    for run in runs:
        seen = f'clientlab_run_info{{run="{run.run}"}}'
        eventually(
            lambda seen=seen: stack.prometheus(seen), "the run in Prometheus", 30
        )
    return {run.run: run for run in runs}


@pytest.fixture(scope="session")
def measured(stack) -> Run:
    """A run with three trials of each arm, measured while Prometheus looks."""
    words = (
        "-t",
        "pycurl",
        "-t",
        "aiohttp@workers",
        "-c",
        "8",
        "-d",
        "1s",
        "--delay",
        "5ms",
    )
    stack.lab("run", *words, "--rounds", "3", "--name", "measured")
    return Run.model_validate(stack.document("measured"))


def expression_of(title: str) -> str:
    """Return the first query of the panel with this title."""
    [found] = [
        panel["targets"][0]["expr"]
        for name in DASHBOARDS
        for panel in panels(name)
        if panel["title"] == title
    ]
    return found


def fill(expression: str, **values: str) -> str:
    """Return the expression with the values of the dashboard's variables."""
    return re.sub(r"\$([a-z]+)", lambda found: values[found[1]], expression)


def rows(stack, title: str, *labels: str, **values: str) -> set[tuple[str, ...]]:
    """Return the values of these labels in a panel's table."""
    found = stack.prometheus(fill(expression_of(title), **values))
    return {tuple(row["metric"][label] for label in labels) for row in found}


@pytest.mark.parametrize("name", [BASE, FAILING])
def test_the_standings_are_those_of_the_report(stack, canned, name):
    run = canned[name]
    expected = {
        (row.planned.arm, row.ratio_text, row.bottleneck, str(row.planned.concurrency))
        for group in groups_of(run)
        for row in group.rows
    }
    labels = ("arm", "ratio", "bottleneck", "concurrency")
    assert rows(stack, "Who is ahead?", *labels, run=name) == expected


@pytest.mark.usefixtures("canned")
def test_failed_trials_and_bounds_are_shown(stack):
    found = rows(stack, "Is anything wrong?", "kind", "text", run=FAILING)
    assert ("! failed", "pycurl: it broke") in found
    assert rows(stack, "Who is ahead?", "p99", "errors", run=FAILING) == {
        ("≥ 300 ms", "3.00 %")
    }


def test_changes_are_those_of_compare(stack, canned):
    found = compare(canned[BASE], [canned[SLOWER]])
    [other] = found.others
    expected = set()
    for arm in found.compared_arms():
        for figure in found.figures:
            change = other.changes[arm][figure.key]
            if is_known(change) and figure.key != "received":  # the panel leaves it out
                expected.add((arm, figure.key, " ".join(change_cells(change)[1:])))
    pair = {"run": SLOWER, "baseline": BASE}
    assert (
        rows(stack, "Which arms changed?", "arm", "figure", "text", **pair) == expected
    )


def test_claims_have_their_verdicts(stack, canned):
    expected = {(claim.name, claim.verdict) for claim in canned[BASE].claims}
    title = "Do the article's claims hold in this run?"
    assert rows(stack, title, "claim", "verdict", run=BASE) == expected


def test_rates_over_time_are_those_of_the_trials(stack, measured):
    """Within 10 %, although each trial is shorter than the window of the rate."""
    found = series(stack, "How many requests a second succeed?", measured.run)
    for arm in measured.experiment.arms:
        trials = measured.finished_trials_of(arm.name)
        requests = sum(trial.figures.requests for trial in trials)
        rate = requests / sum(trial.wall_seconds for trial in trials)
        assert median(found[arm.name]) == pytest.approx(rate, rel=0.1)


def test_p99_over_time_is_in_the_bucket_of_the_trials(stack, measured):
    """Or beside it, because the buckets do not tell where in them a request was."""
    found = series(stack, "How long does a request take (p99)?", measured.run)
    for arm in measured.experiment.arms:
        trials = measured.finished_trials_of(arm.name)
        true = median(trial.figures.latency_seconds.p99 for trial in trials)
        assert 0.65 * true < median(found[arm.name]) < 1.5 * true


def series(stack, title: str, run: str) -> dict[str, list[float]]:
    """Return the numbers of each arm in a panel, over the last minutes."""
    now = time.time()
    when = {"start": str(now - MINUTES * 60), "end": str(now), "step": "1"}
    found = stack.prometheus(fill(expression_of(title), run=run), **when)
    return {
        row["metric"]["legend"]: [
            float(value) for _, value in row["values"] if value != "NaN"
        ]
        for row in found
    }


@pytest.mark.usefixtures("measured")
def test_the_query_of_each_panel_returns_data(stack, canned):
    """With its variables filled in, for at least one of the runs."""
    stack.write("lab", "/results/faulty.toml", EXPERIMENTS)
    stack.lab(
        "run", "/results/faulty.toml", "--name", "faulty", check=False
    )  # exit code 3
    pair = {"baseline": BASE, "run": SLOWER, "figure": "throughput"}
    about = {"experiment": canned[SLOWER].experiment.name, "choice": "newest run"}
    choices = [
        {**pair, **about},
        *({**pair, **about, "run": run} for run in ("measured", "faulty")),
    ]
    now = time.time()
    when = {"start": str(now - MINUTES * 60), "end": str(now), "step": "2"}

    def has_data(expression: str) -> bool:
        found = [fill(expression, **values) for values in choices]
        return any(
            value != "NaN"
            for one in found
            for row in stack.prometheus(one, **when)
            for _, value in row["values"]
        )

    differing = (
        'clientlab_run_difference{run="$run", baseline="$baseline"}'  # nothing differs
    )
    for name in DASHBOARDS:
        for expression in expressions(name):
            assert expression == differing or has_data(expression), expression


def test_every_choice_of_a_dashboard_has_values(stack, canned):
    values = {
        "run": SLOWER,
        "choice": "newest run",
        "experiment": canned[SLOWER].experiment.name,
    }
    for dashboard in DASHBOARDS.values():
        for variable in dashboard["templating"]["list"]:
            query = fill(variable["query"]["query"], **values)
            if found := re.fullmatch(r"query_result\((.+)\)", query):
                result = stack.prometheus(found[1])
                texts = [
                    json.dumps(row["metric"]).replace('": "', '="') for row in result
                ]
                pattern = variable["regex"].strip("/").replace("[{ ,]", '"')
                assert any(re.search(pattern, text) for text in texts), query
                continue
            selector, label = re.fullmatch(
                r"label_values\((.+), (\w+)\)", query
            ).groups()
            assert any(label in row["metric"] for row in stack.prometheus(selector)), (
                query
            )
