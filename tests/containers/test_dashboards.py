"""Every panel's query must return data from a real Prometheus that has scraped real runs."""

from __future__ import annotations

import json
import re
import time

import pytest

from clientlab.results.document import ClaimResult
from clientlab.trial.result import OpenLoad
from clientlab.workload.values import Link
from clients.documents import a_run, a_trial, quantiles, with_changes
from grafana_panels import DASHBOARDS, expressions
from running import eventually

pytestmark = [pytest.mark.real, pytest.mark.release, pytest.mark.timeout(900)]  # their waits are bounded by 300 s each

ARTICLE = "20240506-070809-article-abcd"
ELSEWHERE = "20240506-080910-article-abcd"
SLOWER = "20240506-080911-article-abcd"
ARRIVALS = "20240506-080912-arrivals-abcd"
AGAIN = "20240506-091011-demo-abcd"
MINUTES = 30
LATER, LATEST = "2044-05-06T08:09:10+00:00", "2045-05-06T08:09:10+00:00"
"""When further runs of an experiment began: after the first, whenever that was measured."""

FAULTY = """\
question = "What do errors look like?"
strategies = ["urllib3"]
routes = ["proxy"]
rounds = 1
[workloads.refused]
path = "/status/503"
requests = 100
rate = 25
"""
"""An open load whose requests all get 503. For 4 s, all go through the proxy, which one panel needs."""


@pytest.fixture(scope="session")
def watched(stack, run):
    """The stack after a run, one with errors, one of open load, and three of an experiment that has claims.

    One of these three is of another machine, and one is surely worse in every figure.
    """
    stack.write("lab", "/results/faulty.toml", FAULTY)
    stack.lab("run", "/results/faulty.toml", "--name", "faulty", check=False)  # a failed trial: exit code 3
    again = json.dumps(run | {"run": AGAIN, "created": LATER})
    made = (_arrivals(), _article(ARTICLE), _elsewhere(_article(ELSEWHERE)), _slower(_article(SLOWER)))
    for name, text in ((AGAIN, again), *((one.run, one.model_dump_json(indent=1)) for one in made)):
        stack.write("lab", f"/results/{name}/run.json", text)
    for name in (AGAIN, *(one.run for one in made)):
        seen = f'clientlab_run_wall_seconds{{run="{name}"}}'
        eventually(lambda seen=seen: stack.prometheus(seen), "the run in Prometheus", 30)
    both = {"baseline": "first", "runs": "first|faulty"}
    everything = dict.fromkeys(("strategy", "upstream", "route", "link"), ".*")
    runs = {"demo": "first", "faulty": "faulty", "article": ARTICLE, "arrivals": ARRIVALS}
    choices = [{**both, **everything, "experiment": name, "run": found} for name, found in runs.items()]
    unlike = {"baseline": ARTICLE, "runs": f"{ARTICLE}|{ELSEWHERE}"}
    worse = {"baseline": ARTICLE, "runs": f"{ARTICLE}|{SLOWER}"}
    alike = {"baseline": "first", "runs": f"first|{AGAIN}"}
    return stack, [*choices, choices[2] | unlike, choices[2] | worse, choices[0] | alike]


def _elsewhere(run):
    """Return the run as if it had been measured on another machine."""
    surroundings = run.surroundings.model_copy(update={"cpu_model": "another"})
    return run.model_copy(update={"surroundings": surroundings, "created": LATER})


def _slower(run):
    """Return the run with every compared figure ten times as bad in each trial."""

    def worse(trial):
        quick = trial.figures.latency_seconds.model_dump(exclude={"at_least"})
        slow = {name: value and 10 * value for name, value in quick.items()}
        names = ("cpu_seconds", "peak_pss_bytes", "peak_rss_bytes", "connections_opened")
        changes = {name: 10 * getattr(trial.measured, name) for name in names}
        changes["wall_seconds"] = 10 * trial.figures.wall_seconds
        changes["requests_per_second"] = trial.figures.requests_per_second / 10
        changes["latency_seconds"] = trial.figures.latency_seconds.model_copy(update=slow)
        return with_changes(trial, **changes)

    return run.model_copy(update={"trials": [worse(trial) for trial in run.trials], "created": LATEST})


def _arrivals():
    """Return a cold run of open load behind a link. The lateness of one arm is a lower bound."""
    load = OpenLoad(
        planned_per_second=600.0, achieved_per_second=550.0, lateness_seconds=quantiles(0.003, 0.007, at_least=["p99"]),
        sent_seconds=quantiles(0.001, 0.006), dropped=10, most_backlog=40, most_in_flight=7,
    )  # fmt: skip
    both = {"open_load": load, "link": Link(0.02), "first_byte_seconds": quantiles(0.002), "import_seconds": 0.1}
    trials = [a_trial("pycurl", number, errors={"dropped": 30}, **both) for number in (1, 2, 3)]
    prompt = {**both, "open_load": load.model_copy(update={"lateness_seconds": quantiles(0.003, 0.007)})}
    trials += [a_trial("aiohttp@workers", number, **prompt) for number in (1, 2, 3)]
    run = a_run(*trials, name=ARRIVALS)
    return run.model_copy(update={"experiment": run.experiment.model_copy(update={"name": "arrivals"})})


def _article(name):
    """Return a run with a claim of each verdict. For its last arm, quantiles fall on failures."""
    bounds = {
        "errors": {"timeout": 30},
        "latency_seconds": quantiles(0.005, 0.3, at_least=["p99", "max"]),
        "overhead_seconds": quantiles(0.001, at_least=["p50"]),
    }
    trials = [
        a_trial(strategy, number, 1.0 + 0.01 * number, **changes)
        for strategy, changes in (("aiohttp@workers", {}), ("urllib3", bounds))
        for number in (1, 2, 3)
    ]
    claims = [
        ClaimResult(
            name=verdict, text="it is so", source=None, kind="less", figure="wall_seconds", control=False,
            published=None, verdict=verdict, ratio=1.5, interval=(1.2, 1.8), rounds=3, measured="so",
        )
        for verdict in ("supported", "contradicted", "inconclusive")
    ]  # fmt: skip
    run = a_run(*trials, name=name)
    settings = run.experiment.model_copy(update={"name": "article"})
    return run.model_copy(update={"claims": claims, "experiment": settings})


def test_the_query_of_each_panel_returns_data(watched):
    """With its variables filled in, for at least one of the runs: one has errors, one has claims."""
    project, choices = watched
    for name in DASHBOARDS:
        for expression in expressions(name):
            assert any(_values(project, _fill(expression, values)) for values in choices), expression


def _fill(expression: str, values: dict[str, str]) -> str:
    for name, value in sorted(values.items(), key=lambda item: -len(item[0])):
        expression = expression.replace(f"${name}", value)
    return expression.replace("$__range", f"{MINUTES}m")


def _values(project, expression: str) -> list[str]:
    """Return all numbers that a query gives over the time of the runs."""
    now = time.time()
    found = project.prometheus(expression, start=str(now - MINUTES * 60), end=str(now), step="2")
    return [value for row in found for _, value in row["values"] if value != "NaN"]


def test_every_choice_of_a_dashboard_has_values(watched):
    project, choices = watched
    for dashboard in DASHBOARDS.values():
        for variable in dashboard["templating"]["list"]:
            query = variable["query"]["query"]
            if result := re.fullmatch(r"query_result\((.+)\)", query):
                assert any(_chosen(project, _fill(result[1], values), variable) for values in choices), query
                continue
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
            seen = f"group by ({label}) (last_over_time({selector}[{MINUTES}m]))"
            found = [row for values in choices for row in project.prometheus(_fill(seen, values))]
            assert any(label in row["metric"] for row in found), query


def _chosen(project, expression: str, variable: dict) -> list[str]:
    """Return the values of a variable, as Grafana takes them from the labels of each row of a result."""
    rows = project.prometheus(expression)
    labels = [",".join(f'{name}="{value}"' for name, value in row["metric"].items()) for row in rows]
    found = [re.search(variable["regex"].strip("/"), f"{{{text}}}") for text in labels]
    return [match[1] for match in found if match]
