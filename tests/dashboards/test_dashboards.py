"""The dashboards as files: what can be said of them without Grafana and Prometheus."""

from __future__ import annotations

import importlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.prometheus import Dataquery

from clientlab.experiments.file import bundled, read_plan
from clientlab.reports.charts.chart_data import HUES, colour_of
from clientlab.reports.fault_section import tone_of
from clientlab.results.figures import EXPORTED
from clientlab.results.labels import ARM, legend
from clientlab.service import run_metrics
from clientlab.strategies import STRATEGIES, STREAM_STRATEGIES
from generate.dashboards import FOLDER, files
from grafana_panels import flat

ROOT = Path(__file__).parents[2]
LABELS = {*ARM, "outcome", "le", "instance", "job", "round", "state", "status", "code", "handler"}
LABELS |= {label for family in run_metrics.families().values() for label in family._labelnames}
NAMES = sorted(Path(path).stem for path in files())
FAULTS = "What does the caller meet with each fault?"
WORDS = {"Where were they measured?", FAULTS}


def loaded(name: str) -> dict:
    """A dashboard as Grafana loads it."""
    return json.loads((ROOT / FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def panels_of(name: str) -> list[dict]:
    """Of a dashboard, those in closed rows included."""
    return flat(loaded(name))


def expressions(document: dict) -> list[str]:
    """The PromQL of all its panels."""
    return [target["expr"] for panel in flat(document) for target in panel["targets"]]


def test_the_folder_has_the_generated_files_only():
    """Grafana loads every file in it. tests/docs/test_generated.py checks their content."""
    assert {path.name for path in (ROOT / FOLDER).iterdir()} == {Path(path).name for path in files()}


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_is_one_to_grafanas_own_models(name):
    """Read and written again by the SDK, it is the same, but for what annotations have of Prometheus' data source."""
    document = loaded(name)
    for annotation in document.get("annotations", {}).get("list", []):
        assert {annotation.pop(key) for key in ("useValueForTime", "titleFormat", "step")} == {True, "{{legend}}", "1s"}
        assert annotation.pop("textFormat") in {"begins", "ends"}
    assert document["panels"]
    assert again(Dashboard, document) == document


@pytest.mark.parametrize("name", NAMES)
def test_a_panels_parts_are_ones_to_the_models_of_its_kind(name):
    """Its options, what its fields have of their own, and its queries: a dashboard's model leaves them unread."""
    for panel in panels_of(name):
        kind = importlib.import_module(f"grafana_foundation_sdk.models.{panel['type']}")
        assert again(kind.Options, panel["options"]) == panel["options"], panel["title"]
        if custom := panel.get("fieldConfig", {}).get("defaults", {}).get("custom"):
            assert again(kind.FieldConfig, custom) == custom, panel["title"]
        for target in panel["targets"]:
            assert again(Dataquery, target) == target, panel["title"]


def again(model, document: dict) -> dict:
    """What the SDK's model keeps of a part: unknown fields are lost."""
    return json.loads(json.dumps(model.from_json(document), cls=JSONEncoder))


def test_runs_of_one_experiment_are_compared():
    """Every query names it: runs of others have arms of the same names."""
    asked = expressions(loaded("compare"))
    assert all(
        expression.count('experiment="$experiment"') == expression.count("clientlab_run_") for expression in asked
    )


def test_a_ratio_has_a_colour_only_where_it_is_beyond_the_noise():
    """The margins of both runs decide, and not a fixed percentage; each figure is judged by its own."""
    tables = [panel for panel in panels_of("compare") if "ratio to the baseline" in panel["title"]]
    figures = [figure for figure, _ in EXPORTED if figure.compared and figure.key != "wall"]
    assert len(tables) == len(figures)
    for panel, figure in zip(tables, figures, strict=True):
        ((expression,),) = ([target["expr"] for target in panel["targets"]],)
        assert set(re.findall(r'clientlab_run_margin\{figure="(\w+)"', expression)) == {figure.key}
        assert "abs(ln(" in expression
        overrides = {one["matcher"]["options"]: str(one["properties"]) for one in panel["fieldConfig"]["overrides"]}
        assert [name for name, looks in overrides.items() if "red" in looks] == ["/ ×/"]
        assert "red" not in overrides["/ ×≈| ×≠/"]
        assert list(overrides).index("/ ×/") < list(overrides).index("/ ×≈| ×≠/")


def test_the_comparison_begins_with_intervals_beside_the_band_of_equality():
    """A bar from the interval's lower end, in the colour of what it says; the part below it is not seen."""
    forests = [panel for panel in panels_of("compare") if panel["title"].endswith("than the baseline?")]
    assert [panel["title"].partition(":")[0] for panel in forests] == ["Time per request", "CPU time per request"]
    for panel in forests:
        assert panel["options"]["stacking"] == "normal"
        assert [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]] == [
            None, pytest.approx(1 / 1.05), 1.05,
        ]  # fmt: skip
        looks = {one["matcher"]["options"]: str(one["properties"]) for one in panel["fieldConfig"]["overrides"]}
        assert list(looks) == ["below", "slower", "faster", "equal or undecided"]
        assert "transparent" in looks["below"]
    assert not any("wall_seconds" in expression for expression in expressions(loaded("compare")))


@pytest.mark.parametrize("cell", ["ok", "status-5xx", "timeout-read", "hangs", "4 of 30 failed", "ok · 2 lost beside"])
def test_a_fault_has_the_colour_that_it_has_in_reports(cell):
    """Of the first pattern that matches, as Grafana takes them; the word stays."""
    (panel,) = [panel for panel in panels_of("experiment") if panel["title"] == FAULTS]
    mappings = next(
        entry["value"] for one in panel["fieldConfig"]["overrides"] for entry in one["properties"]
        if entry["id"] == "mappings"
    )  # fmt: skip
    options = next(one["options"] for one in mappings if re.search(one["options"]["pattern"].strip("/"), cell))
    colour = {"good": "green", "open": "orange", "bad": "red"}[tone_of(cell)]
    assert options["result"]["color"] == colour
    assert re.sub(options["pattern"].strip("/"), r"\1", cell) == cell


def test_what_most_experiments_do_not_have_is_closed():
    """Claims, streams, failures and sweeps are in rows that a reader opens."""
    rows = {panel["title"]: panel for panel in loaded("experiment")["panels"] if panel["type"] == "row"}
    assert list(rows) == [
        "Claims of the experiment", "Streams: the cost and the lag of an event", "Faults: what the caller meets",
        "Cancelled requests: what they leave", "Sweep over an axis of the experiment",
    ]  # fmt: skip
    assert all(row["collapsed"] for row in rows.values())


def test_uids_are_fixed_and_unique():
    """So that links and provisioning find them."""
    assert {loaded(name)["uid"] for name in NAMES} == {
        "clientlab-live", "clientlab-compare", "clientlab-servers", "clientlab-experiment",
        "clientlab-history",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_panel_says_what_it_shows(name):
    """Each has a title of its own, a description, the one datasource, and no two lie on each other."""
    panels = panels_of(name)
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
    """Of the panel or of its columns; but for tables of words."""
    for panel in panels_of(name):
        config = panel.get("fieldConfig", {"defaults": {}, "overrides": []})
        defaults, overrides = config["defaults"], config["overrides"]
        properties = [entry["id"] for override in overrides for entry in override["properties"]]
        cells = panel["type"] == "heatmap" and panel["options"].get("yAxis", {}).get("unit")
        assert "unit" in defaults or "unit" in properties or cells or panel["title"] in WORDS


@pytest.mark.parametrize("name", NAMES)
def test_no_quantile_is_averaged_and_no_run_mixed_with_another(name):
    """Quantiles come from histograms or, exact, from the run file; every query on runs names its run."""
    for expression in expressions(loaded(name)):
        assert not re.search(r"\bavg", expression), expression
        if "clientlab" in expression:
            assert re.search(r'run=~?"\$(run|runs|baseline)', expression), expression
        if "run=~" in expression and "by (" in expression:
            assert re.search(r"by \([^)]*\b(run|when)\b", expression) or "count(" in expression, expression


def test_a_strategy_has_one_colour_on_every_panel_and_dashboard():
    """Whatever its arms are called, on whatever route and place of an axis; of a listed one, never Grafana's choice."""
    seen = defaultdict(set)
    for panel in of_arms():
        for strategy in (*STRATEGIES, *STREAM_STRATEGIES):
            for arm in (
                strategy,
                f"{strategy} (proxy)",
                f"{strategy}[concurrency=20]",
                "arm",
                "arm (small, proxy)[pool=5]",
            ):
                seen[strategy].add(colours_of(panel, legend(arm, f"{strategy}?pool=8")))
    assert {len(colours) for colours in seen.values()} == {1}
    assert {len(colour) for colours in seen.values() for colour in colours} == {1}


def test_what_is_no_listed_strategy_has_a_colour_by_its_name():
    """The same on every panel as well, but where a colour is a run or a threshold."""
    for name in NAMES:
        for panel in panels_of(name):
            if panel["type"] in {"timeseries", "bargauge", "trend"} and "$arm" not in panel["title"]:
                assert panel["fieldConfig"]["defaults"]["color"]["mode"] == "palette-classic-by-name", panel["title"]


def test_a_strategy_has_the_colour_that_it_has_in_reports():
    """One list for both; on Grafana's grounds, light or dark, in the form for either."""
    panel = next(of_arms())
    for strategy in (
        *STRATEGIES,
        *STREAM_STRATEGIES,
        *(arm.strategy for path in bundled().values() for arm in read_plan(path).arms),
    ):
        assert colours_of(panel, strategy) == (HUES[colour_of(strategy)].either,)


def of_arms() -> Iterator[dict]:
    """The panels in which a series or a bar is an arm: not the one whose bars are buckets of one arm."""
    for name in ("live", "experiment"):
        panels = (p for p in panels_of(name) if p["type"] in {"timeseries", "bargauge", "trend"})
        yield from (panel for panel in panels if "$arm" not in panel["title"])


def colours_of(panel: dict, series: str) -> tuple[str, ...]:
    """The colours that a panel's overrides give to a series of that name."""
    return tuple(
        entry["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["id"] == "byRegexp" and re.search(override["matcher"]["options"].strip("/"), series)
        for entry in override["properties"]
        if entry["id"] == "color"
    )


def test_every_metric_and_label_exists():
    """Metrics as docs/metrics.md has them, which is held to what is exported; and those that rules record."""
    recorded = {rule["record"] for rule in rules()}
    documented = set(
        re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for expression in everything_asked():
        written = expression.replace("clientlab_(run|present)_", "clientlab_run_")  # either name, by its pattern
        ours = set(re.findall(r"\b(?:clientlab|mockupstream)[\w:]+", written))
        names = {re.sub(r"_(bucket|count|sum)$", "", name).replace("lab_present_", "lab_run_") for name in ours}
        assert names <= recorded | documented, expression
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
    legends = {target["legendFormat"] for name in NAMES for panel in panels_of(name) for target in panel["targets"]}
    assert {label for text in legends for label in re.findall(r"{{(\w+)}}", text)} <= LABELS


def test_the_live_dashboard_begins_with_the_race():
    """Below a strip with the state of the run, the first screen is bars by strategy, the fastest first."""
    panels = panels_of("live")
    race = next(panel for panel in panels if panel["type"] == "bargauge")
    assert race["gridPos"] == {"x": 0, "y": 3, "w": 24, "h": 15}
    assert {panel["type"] for panel in panels if panel["gridPos"]["y"] < 3} == {"stat"}
    (target,) = race["targets"]
    assert "requests_per_second_low" in target["expr"]
    assert target["expr"].startswith("sort_desc(")


@pytest.mark.parametrize("name", ["live", "experiment"])
def test_a_bar_whose_name_has_an_interval_keeps_its_colour(name):
    """The interval and the rounds are part of the name of a bar."""
    panel = next(panel for panel in panels_of(name) if panel["type"] == "bargauge")
    for strategy in STRATEGIES:
        for arm in (strategy, legend("arm (proxy)[c=8]", strategy)):
            plain = colours_of(panel, arm)
            assert colours_of(panel, f"{arm}: c=32, 812–835, n=5") == plain
            assert colours_of(panel, f"{arm}: c=1, n=1      ") == plain


def test_no_panel_mixes_the_times_of_strategies():
    """A histogram is of one arm, which a variable names; a quantile is of one arm by its labels."""
    for name in NAMES:
        for panel in panels_of(name):
            for expression in (target["expr"] for target in panel["targets"]):
                if "_bucket{" in expression and "clientlab_" in expression and "histogram_quantile" not in expression:
                    assert expression.count('legend="$arm"') >= 1, panel["title"]
                    assert "$arm" in panel["title"]


def test_a_run_without_a_sweep_has_a_panel_that_states_so():
    """The panel always has a field for its axis: without one, Grafana shows an error."""
    panel = next(panel for panel in panels_of("experiment") if panel["type"] == "trend")
    (target,) = panel["targets"]
    assert re.search(r"or on \(\) label_replace\(.*this run has no sweep", target["expr"])


def test_streams_are_told_from_requests():
    """Panels of streams say so in their titles, and state in a run without streams that it has none."""
    panels = [
        panel
        for panel in (*panels_of("live"), *panels_of("experiment"))
        if re.search("_stream|per_event|event_lag", panel["targets"][0]["expr"]) and len(panel["targets"]) == 1
    ]
    assert {panel["type"] for panel in panels} == {"bargauge", "timeseries", "heatmap"}
    for panel in panels:
        assert panel["title"].startswith("Streams: ")
        assert panel["fieldConfig"]["defaults"]["noValue"] == "no streams in this run"


def test_each_query_of_a_table_has_a_name_of_its_own():
    """Two of one name are one column, and the second of them is lost."""
    for name in NAMES:
        for panel in panels_of(name):
            names = [target["refId"] for target in panel["targets"]]
            assert len(set(names)) == len(names), panel["title"]


def test_claims_are_shown_by_their_sentences():
    """With verdict, ratio and the ends of its interval."""
    panel = next(p for p in panels_of("experiment") if p["title"] == "Do the article's claims hold here?")
    named = next(step["options"]["renameByName"] for step in panel["transformations"] if step["id"] == "organize")
    assert set(named.values()) == {"verdict", "claim", "ratio", "low", "high"}
    assert named["sentence"] == "claim"


def test_every_recorded_rule_is_asked_for():
    """A rule is evaluated each second, and its series are kept."""
    asked = " ".join(everything_asked())
    assert {rule["record"] for rule in rules() if rule["record"] not in asked} == set()


def everything_asked() -> list[str]:
    """The PromQL of all panels and annotations."""
    marks = [mark["expr"] for name in NAMES for mark in loaded(name).get("annotations", {}).get("list", [])]
    return [*marks, *(expression for name in NAMES for expression in expressions(loaded(name)))]


def rules() -> list[dict]:
    """The recording rules."""
    document = yaml.safe_load((ROOT / "dashboards" / "prometheus" / "rules.yml").read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]
