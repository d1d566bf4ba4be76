"""The dashboards as files: what can be said of them without Grafana and Prometheus."""

from __future__ import annotations

import importlib
import json
import re
import tempfile
from pathlib import Path

import pytest
import yaml
from dashboards.source.__main__ import FOLDER, dashboard_files
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.prometheus import Dataquery
from prometheus_client import Metric

from clientlab.cluster import run_metrics
from clientlab.cluster.live_metrics import BUCKETS, TrialMetrics
from clientlab.results.figures import EXPORTED
from clientlab.results.labels import ARM
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_trial
from grafana_panels import flat
from mockupstream.ledger import Book
from mockupstream.metrics import UpstreamCollector

ROOT = Path(__file__).parents[2]
LABELS = {*ARM, "outcome", "le", "instance", "job", "round", "state", "status", "code", "handler"}
LABELS |= {label for family in run_metrics.families().values() for label in family._labelnames}
NAMES = ("comparison", "live")


def loaded(name: str) -> dict:
    """A dashboard as Grafana loads it."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def expressions(name: str) -> list[str]:
    """The PromQL of all panels and annotations of a dashboard."""
    document = loaded(name)
    marks = [mark["expr"] for mark in document.get("annotations", {}).get("list", [])]
    return [*marks, *(target["expr"] for panel in flat(document) for target in panel["targets"])]


def rules() -> list[dict]:
    """The recording rules."""
    document = yaml.safe_load((ROOT / "dashboards" / "prometheus" / "rules.yml").read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_the_files_are_current():
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == dashboard_files()


def again(model, document: dict) -> dict:
    """What the SDK's model keeps of a part: unknown fields are lost."""
    return json.loads(json.dumps(model.from_json(document), cls=JSONEncoder))


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_is_one_to_grafanas_own_models(name):
    document = loaded(name)
    assert again(Dashboard, document)["panels"] == document["panels"]
    for panel in flat(document):
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type']}")
        assert again(kind.Options, panel["options"]) == panel["options"], panel["title"]
        if custom := panel.get("fieldConfig", {}).get("defaults", {}).get("custom"):
            assert again(kind.FieldConfig, custom) == custom, panel["title"]
        for target in panel["targets"]:
            assert again(Dataquery, target) == target, panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_no_quantile_is_averaged_and_no_run_mixed_with_another(name):
    """Quantiles come from histograms or, exact, from the run file; every query on runs names its run."""
    for expression in expressions(name):
        assert not re.search(r"\bavg", expression), expression
        if "clientlab" in expression:
            assert re.search(r'run=~?"\$(run|runs|baseline)', expression), expression
        if "run=~" in expression and "by (" in expression:
            assert re.search(r"by \([^)]*\b(run|when)\b", expression) or "count(" in expression, expression


def exported() -> set[str]:
    """The names of all metrics that workers, the exporter and upstreams export, and those that rules record."""
    ours = [run_metrics.schedule(), *run_metrics.families().values(), *UpstreamCollector(Book(), "", "").collect()]
    names = {metric.name + ("_total" if metric.type == "counter" else "") for metric in [*ours, *of_a_worker()]}
    return names | {rule["record"] for rule in rules()}


def of_a_worker() -> list[Metric]:
    """The metrics of a trial with a delay, under an open load: a worker has no others."""
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload(delay=Delay.parse("1ms"), rate=1)
        metrics = TrialMetrics("run", "experiment", a_trial(), workload, Path(folder))
        metrics.started()
        metrics.ended()
        return list(metrics.collect())


def test_every_metric_and_label_exists():
    for expression in (one for name in NAMES for one in expressions(name)):
        written = expression.replace("clientlab_(run|present)_", "clientlab_run_")  # either name, by its pattern
        ours = set(re.findall(r"\b(?:clientlab|mockupstream)[\w:]+", written))
        assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in ours} <= exported(), expression
        asked = {
            label
            for labels in re.findall(r"(?:by|on|group_left) \(([^)]*)\)", expression)
            for label in labels.split(", ")
        }
        asked |= set(re.findall(r"[{,] ?(\w+)(?:=~|!=|=)\"", expression))
        made = set(re.findall(r"label_(?:replace|join)\(.*?, \"(\w+)\"", expression)) | set(
            re.findall(r'count_values by \([^)]*\) \("(\w+)"', expression)
        )
        assert asked <= LABELS | made | {"", "__name__"}, expression


def test_the_rules_have_the_labels_of_arms_and_drop_what_is_beyond_the_last_bucket():
    quantiles = {figure.key for figure, metric in EXPORTED if metric.quantile and metric.name == "latency_seconds"}
    assert {rule["record"] for rule in rules()} == {f"clientlab:request_seconds:{key}" for key in quantiles}
    for rule in rules():
        assert f"by ({', '.join(ARM)}, le)" in rule["expr"]
        assert rule["expr"].endswith(f"< {BUCKETS[-1]:g}")


def test_every_recorded_rule_is_asked_for():
    asked = " ".join(one for name in NAMES for one in expressions(name))
    assert {rule["record"] for rule in rules() if rule["record"] not in asked} == set()
