"""Every panel's query against a real Prometheus that has scraped real runs: it must return data."""

from __future__ import annotations

import json
import re
import time

import pytest

from clientlab.results.document import ClaimResult
from clientlab.results.trial import OpenLoad
from clientlab.workload.link import Link
from clients.documents import a_run, a_trial, quantiles
from grafana_panels import flat
from running import ROOT, eventually

pytestmark = [pytest.mark.real, pytest.mark.release, pytest.mark.timeout(900)]  # their waits are bounded by 300 s each

FOLDER = ROOT / "dashboards" / "grafana" / "dashboards"
ARTICLE = "20240506-070809-article-abcd"
ELSEWHERE = "20240506-080910-article-abcd"
SLOWER = "20240506-080911-article-abcd"
ARRIVALS = "20240506-080912-arrivals-abcd"
AGAIN = "20240506-091011-demo-abcd"
MINUTES = 30
LATER = "2044-05-06T08:09:10+00:00"
"""When the second run of an experiment began: after the first, whenever that was measured."""

LATEST = "2045-05-06T08:09:10+00:00"


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
"""An open load whose requests are all answered with 503. For 4 s, all go through the proxy, which a panel waits for."""


@pytest.fixture(scope="session")
def watched(stack, run):
    """The stack after a run, one with errors, one of open load, and three of an experiment that has claims.

    Of these three, one is of another machine, and one is surely worse in every figure.
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
    """The run as if it had been measured on another machine."""
    surroundings = run.surroundings.model_copy(update={"cpu_model": "another"})
    return run.model_copy(update={"surroundings": surroundings, "created": LATER})


def _slower(run):
    """The run with every compared figure ten times as bad in each trial."""

    def worse(trial):
        quick = trial.latency_seconds.model_dump(exclude={"at_least"})
        slow = {name: value and 10 * value for name, value in quick.items()}
        names = ("wall_seconds", "cpu_seconds", "peak_pss_bytes", "peak_rss_bytes", "connections_opened")
        changes = {name: 10 * getattr(trial, name) for name in names}
        changes["requests_per_second"] = trial.requests_per_second / 10
        changes["latency_seconds"] = trial.latency_seconds.model_copy(update=slow)
        return trial.model_copy(update=changes)

    return run.model_copy(update={"trials": [worse(trial) for trial in run.trials], "created": LATEST})


def _arrivals():
    """A finished run behind a link, whose requests arrived at a rate. The lateness of one arm is a lower bound."""
    load = OpenLoad(
        planned_per_second=600.0, achieved_per_second=550.0, lateness_seconds=quantiles(0.003, 0.007, at_least=["p99"]),
        sent_seconds=quantiles(0.001, 0.006), dropped=10, most_backlog=40, most_in_flight=7,
    )  # fmt: skip
    both = {"open_load": load, "link": Link(0.02)}
    trials = [a_trial("pycurl", number, errors={"dropped": 30}, **both) for number in (1, 2, 3)]
    prompt = {**both, "open_load": load.model_copy(update={"lateness_seconds": quantiles(0.003, 0.007)})}
    trials += [a_trial("aiohttp@workers", number, **prompt) for number in (1, 2, 3)]
    run = a_run(*trials, name=ARRIVALS)
    return run.model_copy(update={"experiment": run.experiment.model_copy(update={"name": "arrivals"})})


def _article(name):
    """A finished run with a claim of each verdict. For its last arm, quantiles fall on failures."""
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


def _queries() -> list[tuple[str, str]]:
    """Where it is asked, and the expression, of all panels and annotations."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        queries = [(mark["name"], mark["expr"]) for mark in document.get("annotations", {}).get("list", [])]
        queries += [(p["title"], target["expr"]) for p in flat(document) for target in p["targets"]]
        found += [(f"{path.stem}: {title}", expression) for title, expression in queries]
    return found


def test_the_query_of_each_panel_returns_data(watched):
    """With its variables filled in, for at least one of the runs: one has errors, one has claims."""
    project, choices = watched
    empty = [
        (where, expression)
        for where, expression in _queries()
        if not any(_values(project, _filled(expression, values)) for values in choices)
    ]
    assert empty == []


def _filled(expression: str, values: dict[str, str]) -> str:
    for name, value in sorted(values.items(), key=lambda item: -len(item[0])):
        expression = expression.replace(f"${name}", value)
    return expression.replace("$__range", f"{MINUTES}m")


def _values(project, expression: str) -> list[str]:
    """All numbers that a query gives over the time of the runs."""
    now = time.time()
    found = project.prometheus(expression, start=str(now - MINUTES * 60), end=str(now), step="2")
    return [value for row in found for _, value in row["values"] if value != "NaN"]


def test_every_choice_of_a_dashboard_has_values(watched):
    project, choices = watched
    for path in FOLDER.glob("*.json"):
        for variable in json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]:
            query = variable["query"]["query"]
            if result := re.fullmatch(r"query_result\((.+)\)", query):
                assert any(_chosen(project, _filled(result[1], values), variable) for values in choices), query
                continue
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
            seen = f"group by ({label}) (last_over_time({selector}[{MINUTES}m]))"
            found = [row for values in choices for row in project.prometheus(_filled(seen, values))]
            assert any(label in row["metric"] for row in found), query


def _chosen(project, expression: str, variable: dict) -> list[str]:
    """The values of a variable in their order, as Grafana takes them from the text of each row of a result."""
    rows = project.prometheus(expression)
    labels = [",".join(f'{name}="{value}"' for name, value in row["metric"].items()) for row in rows]
    texts = [
        f"{{{text}}} {row['value'][1]} {row['value'][0] * 1000:.0f}" for text, row in zip(labels, rows, strict=True)
    ]
    found = [re.search(variable["regex"].strip("/"), text) for text in texts]
    return [match[1] for match in found if match]
