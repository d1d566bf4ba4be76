"""The dashboards as files: what can be said of them without Grafana and Prometheus."""

from __future__ import annotations

import json
import re

import pytest
from dashboards.source.__main__ import FOLDER, files
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

NAMES = sorted(path.stem for path in files())


def loaded(name: str) -> dict:
    """A dashboard as Grafana loads it."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def expressions(document: dict) -> list[str]:
    """The PromQL of all its panels."""
    return [target["expr"] for panel in document["panels"] for target in panel["targets"]]


def test_the_files_are_what_the_code_gives():
    """`python -m dashboards.source` was run after the last change, and nothing else lies there."""
    assert {path.name for path in FOLDER.iterdir()} == {path.name for path in files()}
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python -m dashboards.source"


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_is_one_to_grafanas_own_models(name):
    """Read and written again by the SDK, it is the same, but for what annotations have of Prometheus' data source."""
    document = loaded(name)
    for annotation in document.get("annotations", {}).get("list", []):
        assert {annotation.pop(key) for key in ("useValueForTime", "titleFormat", "step")} == {True, "{{arm}}", "1s"}
        assert annotation.pop("textFormat") in {"begins", "ends"}
    again = json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder))
    assert again["panels"]
    assert {key: again[key] for key in document if key != "panels"} == {
        key: value for key, value in document.items() if key != "panels"
    }
    assert [panel["type"] for panel in again["panels"]] == [panel["type"] for panel in document["panels"]]


def test_runs_of_one_experiment_are_compared():
    """Every query names it: runs of others have arms of the same names."""
    asked = expressions(loaded("compare"))
    assert all(
        expression.count('experiment="$experiment"') == expression.count("clientlab_run_") for expression in asked
    )


def test_uids_are_fixed_and_unique():
    """So that links and provisioning find them."""
    assert {loaded(name)["uid"] for name in NAMES} == {
        "clientlab-live", "clientlab-compare", "clientlab-servers", "clientlab-experiment",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_panel_says_what_it_shows(name):
    """Each has a title of its own, a description, the one datasource, and no two lie on each other."""
    panels = loaded(name)["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        assert panel["description"].endswith("."), panel["title"]
        assert panel["datasource"]["uid"] == "clientlab-prometheus"
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_a_unit(name):
    """Of the panel or of its columns; but for the table of surroundings, which are words."""
    for panel in loaded(name)["panels"]:
        config = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
        defaults, overrides = config["defaults"], config["overrides"]
        properties = [entry["id"] for override in overrides for entry in override["properties"]]
        cells = panel["type"] == "heatmap" and panel["options"].get("yAxis", {}).get("unit")
        assert "unit" in defaults or "unit" in properties or cells or panel["title"] == "Where were they measured?"


@pytest.mark.parametrize("name", NAMES)
def test_no_quantile_is_averaged_and_no_run_mixed_with_another(name):
    """Quantiles come from histograms or, exact, from the run file; every query on runs names its run."""
    for expression in expressions(loaded(name)):
        assert not re.search(r"\bavg", expression), expression
        if "clientlab" in expression:
            assert re.search(r'run=~?"\$(run|runs|baseline)', expression), expression
        if "run=~" in expression and "by (" in expression:
            assert re.search(r"by \([^)]*\b(run|when)\b", expression) or "count(" in expression, expression


def test_names_have_the_same_colour_everywhere():
    """Series are coloured by name, but where a colour is a run or a threshold."""
    for name in NAMES:
        for panel in loaded(name)["panels"]:
            if panel["type"] in {"timeseries", "bargauge"}:
                assert panel["fieldConfig"]["defaults"]["color"]["mode"] == "palette-classic-by-name", panel["title"]
