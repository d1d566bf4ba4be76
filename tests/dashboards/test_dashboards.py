"""The dashboards as files: what can be checked without Grafana and Prometheus."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest
import yaml
from dashboards.source.__main__ import make_files
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.prometheus import Dataquery

from clientlab.cluster.exporter import FAMILIES
from clientlab.cluster.live_metrics import ARM_LABELS, RunMetrics
from clientlab.workload.workload import make_workload
from clients.documents import a_planned_trial
from grafana_panels import DASHBOARDS, FOLDER, expressions, panels
from mockupstream.metrics import Book, UpstreamCollector
from running import ROOT

LABELS = {*ARM_LABELS, "outcome", "le", "instance", "job", "round", "status"}
LABELS |= {label for _, labels in FAMILIES.values() for label in labels}


def test_the_files_are_current():
    assert {
        path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()
    } == make_files()


def reread(model, document: dict) -> dict:
    """Return what the SDK's model keeps of a part: unknown fields are lost."""
    return json.loads(json.dumps(model.from_json(document), cls=JSONEncoder))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_own_models_know_every_field(name):
    assert reread(Dashboard, DASHBOARDS[name])["panels"] == DASHBOARDS[name]["panels"]
    for panel in panels(name):
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type']}")
        assert reread(kind.Options, panel["options"]) == panel["options"], panel[
            "title"
        ]
        if custom := panel.get("fieldConfig", {}).get("defaults", {}).get("custom"):
            assert reread(kind.FieldConfig, custom) == custom, panel["title"]
        for target in panel["targets"]:
            assert reread(Dataquery, target) == target, panel["title"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_refreshes_by_itself(name):
    """Grafana sets no timer for an interval that its picker does not offer."""
    dashboard = DASHBOARDS[name]
    assert dashboard["refresh"] in dashboard["timepicker"]["refresh_intervals"]


def test_the_newest_run_is_the_first_choice_and_stays_so():
    """Choices keep the order of the query, which is by time, and are read again at each
    refresh.
    """
    variables = {one["name"]: one for one in DASHBOARDS["live"]["templating"]["list"]}
    assert (
        variables["choice"]["query"]["query"]
        == "query_result(sort_desc(clientlab_run_choice))"
    )
    assert {(one["sort"], one["refresh"]) for one in variables.values()} == {(0, 2)}
    assert [name for name, one in variables.items() if one["hide"]] == [
        "run",
        "experiment",
    ]


def test_the_dashboards_lead_to_each_other_with_the_run():
    for name, other in (("live", "comparison"), ("comparison", "live")):
        [link] = DASHBOARDS[name]["links"]
        path, _, chosen = link["url"].partition("?")
        assert path == f"/d/{DASHBOARDS[other]['uid']}"
        variables = {one["name"] for one in DASHBOARDS[other]["templating"]["list"]}
        own = {one["name"] for one in DASHBOARDS[name]["templating"]["list"]}
        pairs = re.findall(r"var-(\w+)=\$\{(\w+)\}", chosen)
        assert pairs
        for target, source in pairs:
            assert target in variables
            assert source in own


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_query_averages_quantiles_or_mixes_runs(name):
    for panel in panels(name):
        for target in panel["targets"]:
            expression = target["expr"]
            assert not re.search(r"\bavg", expression), expression
            if "clientlab" in expression and panel["title"] != "Which runs are there?":
                assert re.search(r'(run|baseline)="\$(run|baseline)"', expression), (
                    expression
                )


@pytest.fixture
def exported(tmp_path) -> set[str]:
    """The names of all metrics that workers, the exporter and upstreams export."""
    workload = make_workload(stream="sse", rate=1)
    run = RunMetrics("run", "experiment")
    trial = run.begin(a_planned_trial(), workload, workload, Path(tmp_path))
    trial.started()
    trial.ended()
    upstream = UpstreamCollector(Book(), "", "")
    metrics = [*upstream.collect(), *run.collect()]
    names = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in metrics
    }
    rules = yaml.safe_load((ROOT / "dashboards/prometheus/rules.yml").read_text())
    recorded = {rule["record"] for group in rules["groups"] for rule in group["rules"]}
    return names | recorded | {f"clientlab_run_{family}" for family in FAMILIES}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_metric_and_label_exists(name, exported):
    for expression in expressions(name):
        ours = set(re.findall(r"\b(?:clientlab|mockupstream)[_:][\w:]+", expression))
        assert {
            re.sub(r"_(bucket|count|sum)$", "", metric) for metric in ours
        } <= exported
        lists = re.findall(r"(?:by|on|group_left) \(([^)]*)\)", expression)
        used = {label for labels in lists for label in labels.split(", ") if label}
        used |= set(re.findall(r"[{,] ?(\w+)(?:=~|!=|=)\"", expression))
        assert used <= LABELS, expression
