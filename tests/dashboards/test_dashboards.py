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

from clientlab.cluster.exporter import make_families
from clientlab.cluster.live_metrics import ARM_LABELS, BUCKETS, TrialMetrics
from clientlab.results.figures import EXPORTED
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial
from grafana_panels import DASHBOARDS, FOLDER, expressions, panels
from mockupstream.metrics import Book, UpstreamCollector
from running import ROOT

LABELS = {*ARM_LABELS, "outcome", "le", "instance", "job", "round", "state", "status", "code", "handler", "__name__"}
LABELS |= {label for family in make_families("present").values() for label in family._labelnames}
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "dashboards/prometheus/rules.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]


def test_the_files_are_current():
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == make_files()


def reread(model, document: dict) -> dict:
    """Return what the SDK's model keeps of a part: unknown fields are lost."""
    return json.loads(json.dumps(model.from_json(document), cls=JSONEncoder))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_own_models_know_every_field(name):
    assert reread(Dashboard, DASHBOARDS[name])["panels"] == DASHBOARDS[name]["panels"]
    for panel in panels(name):
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type']}")
        assert reread(kind.Options, panel["options"]) == panel["options"], panel["title"]
        if custom := panel.get("fieldConfig", {}).get("defaults", {}).get("custom"):
            assert reread(kind.FieldConfig, custom) == custom, panel["title"]
        for target in panel["targets"]:
            assert reread(Dataquery, target) == target, panel["title"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_query_averages_quantiles_or_mixes_runs(name):
    for expression in expressions(name):
        assert not re.search(r"\bavg", expression), expression
        if "clientlab" in expression:
            assert re.search(r'run=~?"\$(run|runs|baseline)', expression), expression
        if "run=~" in expression and "by (" in expression:
            assert re.search(r"by \([^)]*\b(run|when)\b", expression) or "count(" in expression, expression


@pytest.fixture
def exported(tmp_path) -> set[str]:
    """The names of all metrics that workers, the exporter and upstreams export, and those that rules record."""
    trial = TrialMetrics("run", "experiment", a_planned_trial(), Workload(stream="sse", rate=1), Path(tmp_path))
    trial.started()
    trial.ended()
    upstream = UpstreamCollector(Book(), "", "")
    runs = [*make_families("run").values(), make_families("present")["schedule"]]
    metrics = [*runs, *upstream.collect(), *trial.collect()]
    names = {metric.name + ("_total" if metric.type == "counter" else "") for metric in metrics}
    return names | {rule["record"] for rule in RULES}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_metric_and_label_exists(name, exported):
    for expression in expressions(name):
        written = expression.replace("clientlab_(run|present)_", "clientlab_run_")  # a pattern for either name
        ours = set(re.findall(r"\b(?:clientlab|mockupstream)[\w:]+", written))
        assert {re.sub(r"_(bucket|count|sum)$", "", metric) for metric in ours} <= exported, expression
        lists = re.findall(r"(?:by|on|group_left) \(([^)]*)\)", expression)
        used = {label for labels in lists for label in labels.split(", ") if label}
        used |= set(re.findall(r"[{,] ?(\w+)(?:=~|!=|=)\"", expression))
        made = set(re.findall(r"label_(?:replace|join)\(.*?, \"(\w+)\"", expression))
        made |= set(re.findall(r'count_values by \([^)]*\) \("(\w+)"', expression))
        assert used <= LABELS | made, expression


def test_the_rules_keep_the_labels_of_arms_and_drop_values_beyond_the_last_bucket():
    quantiles = {figure.key for figure, metric in EXPORTED if metric.quantile and metric.name == "latency_seconds"}
    assert {rule["record"] for rule in RULES} == {f"clientlab:request_seconds:{key}" for key in quantiles}
    queries = " ".join(one for name in DASHBOARDS for one in expressions(name))
    for rule in RULES:
        assert f"by ({', '.join(ARM_LABELS)}, le)" in rule["expr"]
        assert rule["expr"].endswith(f"< {BUCKETS[-1]:g}")
        assert rule["record"] in queries
