"""Every panel's query against a real Prometheus that has scraped real runs: it must return data."""

from __future__ import annotations

import json
import re
import time

import pytest

from clientlab.runs.document import Arm, Claim
from clients.documents import a_run, a_trial
from containers.compose import ROOT
from running import eventually

FOLDER = ROOT / "dashboards" / "grafana" / "dashboards"
SWEEP = "20240506-070809-sweep-abcd"
MINUTES = 30


@pytest.fixture(scope="session")
def watched(finished, troubled):
    """The lab after a run, one with errors, and with a run of an experiment that has an axis and claims."""
    project, run = finished
    project.up()
    project.idle()
    project.write("lab", f"/results/{SWEEP}/run.json", _sweep().model_dump_json(indent=1))
    eventually(lambda: project.prometheus(f'clientlab_run_axis_value{{run="{SWEEP}"}}'), "the run in Prometheus", 30)
    both = {"baseline": run["run"], "runs": f"{run['run']}|{troubled['run']}"}
    everything = dict.fromkeys(("strategy", "upstream", "route"), ".*")
    runs = {"demo": run["run"], "faulty": troubled["run"], "sweep": SWEEP}
    return project, [{**both, **everything, "experiment": name, "run": found} for name, found in runs.items()]


def _sweep():
    """A finished run along an axis, with a claim of each verdict."""
    places = (1, 10, 100)
    trials = [
        a_trial("aiohttp@workers", number, 1.0 + 0.01 * number + 1 / place).model_copy(update={"arm": f"c={place}"})
        for place in places
        for number in (1, 2, 3)
    ]
    arms = [
        Arm(
            name=f"c={place}", label=f"c={place}", group="workload", strategy="aiohttp@workers", upstream="aiohttp",
            route="direct", workload="workload", axes={"concurrency": place},
        )
        for place in places
    ]  # fmt: skip
    claims = [
        Claim(
            name=verdict, text="it is so", source=None, kind="less", figure="wall_seconds", control=False,
            published=None, verdict=verdict, ratio=1.5, interval=(1.2, 1.8), rounds=3, measured="so",
        )
        for verdict in ("supported", "contradicted", "inconclusive")
    ]  # fmt: skip
    run = a_run(*trials, name=SWEEP, arms=arms)
    settings = run.experiment.model_copy(update={"name": "sweep"})
    return run.model_copy(update={"claims": claims, "experiment": settings})


def _queries():
    for path in sorted(FOLDER.glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                yield pytest.param(target["expr"], id=f"{path.stem}-{panel['title']}-{target['refId']}")


@pytest.mark.parametrize("expression", list(_queries()))
def test_a_panels_query_returns_data(expression, watched):
    """Its variables filled in, of one of the runs at least: one has errors, one claims and an axis."""
    project, choices = watched
    assert any(_values(project, _filled(expression, values)) for values in choices), expression


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
    """The variables' queries find labels that exist."""
    project, (values, *_) = watched
    for path in FOLDER.glob("*.json"):
        for variable in json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]:
            query = variable["query"]["query"]
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
            found = project.prometheus(f"group by ({label}) (last_over_time({_filled(selector, values)}[{MINUTES}m]))")
            assert [row["metric"][label] for row in found], query


def test_every_metric_is_described_and_every_description_exported(watched):
    """What is exported stands in docs/metrics.md, and what stands there is exported."""
    project, _ = watched
    ours = '{__name__=~"(clientlab|mockupstream)_.+"}'
    rows = project.prometheus(f"group by (__name__) (last_over_time({ours}[{MINUTES}m]))")
    names = {re.sub(r"_(bucket|count|sum)$", "", row["metric"]["__name__"]) for row in rows}
    exported = {name.replace("clientlab_present_", "clientlab_run_") for name in names if not name.endswith("_created")}
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert exported == set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))


@pytest.mark.parametrize(
    "selector", ["clientlab_run_.+", "clientlab_(requests|request|delay|connections|cpu|memory|trial|measured).+"]
)
def test_a_run_has_no_more_series_than_a_prometheus_can_keep(selector, watched):
    """At most 3,000 a run, of the workers and of the lab."""
    project, (values, *_) = watched
    series = f'{{__name__=~"{selector}", run="{values["baseline"]}"}}'
    rows = project.prometheus(f"count(last_over_time({series}[{MINUTES}m]))")
    assert 0 < int(rows[0]["value"][1]) <= 3000
