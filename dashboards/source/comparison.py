"""The comparison dashboard: which arms changed between runs, by how much, and whether
that is sure.
"""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.source import panels
from dashboards.source.panels import (
    COLOURED,
    TALL,
    coloured,
    grid,
    looks_like,
    matrix,
    query,
    variable,
)
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import dashboard as model

_CHANGES = {"^✗": "red", "^✓": "green", ".*": "text"}
_VERDICTS = {"supported": "green", "contradicted": "red", ".*": "text"}
_PAIR = 'run="$run", baseline="$baseline"'


def make_dashboard() -> board.Dashboard:
    """Return the dashboard.

    The reader chooses a run and an earlier one as its baseline.
    """
    made = panels.start_dashboard(
        "comparison", "Is this run better than another?", "10s", "now-1h"
    )
    live = "/d/clientlab-live?var-choice=${run}"
    made = made.link(panels.link("Show this run", live))
    for choice in _choices():
        made = made.with_variable(choice)
    for panel in (_arms(), _surroundings(), _history(), _claims()):
        made = made.with_panel(panel)
    return made


def _choices() -> Iterator[board.QueryVariable]:
    yield variable(
        "experiment", "Experiment", "label_values(clientlab_run_info, experiment)"
    )
    begun = "clientlab_run_created_timestamp_seconds"
    of_run = '/[{ ,]run="([^"]+)"/'
    runs = f'query_result(sort_desc({begun}{{experiment="$experiment"}}))'
    yield variable("run", "Run", runs, of_run)
    pairs = 'group by (baseline) (clientlab_run_change{run="$run"})'
    bases = f'label_replace({pairs}, "run", "$1", "baseline", "(.+)")'
    earlier = f"query_result(sort_desc({begun} * on (run) {bases}))"
    yield variable("baseline", "Baseline", earlier, of_run)
    figures = "label_values(clientlab_run_change, figure)"
    speed = model.VariableOption(selected=True, text="throughput", value="throughput")
    yield variable("figure", "Figure of all runs", figures).current(speed)


def _changes(table: tables.Panel) -> tables.Panel:
    """Colour the cells of a table of changes."""
    wrapped = {"type": "color-text", "wrapText": True}
    colours = looks_like(mappings=coloured(_CHANGES), custom_cellOptions=wrapped)
    return table.override_by_regexp("/.*/", colours).override_by_name(
        "arm", looks_like(**COLOURED, custom_width=260)
    )


def _arms() -> tables.Panel:
    table = matrix(
        "Which arms changed?",
        "As clientlab compare says: how many times as much a typical round of this run"
        " has as one of the baseline. All intervals together hold the truth in 95 of"
        " 100 comparisons. ✗: worse. ✓: better. ?: the rounds cannot tell.",
        ("arm", "figure", "text"),
        query(f'clientlab_run_change{{{_PAIR}, figure!="received"}}', now=True),
    )
    nothing = "no earlier run has the same arms and workloads"
    return _changes(table).height(2 * TALL).no_value(nothing)


def _surroundings() -> tables.Panel:
    shown = [("part", "part"), ("before", "baseline"), ("after", "run")]
    table = grid(
        "What differs in the surroundings?",
        "Machine, limits, versions and servers. Changes may come from these.",
        shown,
        query(f"clientlab_run_difference{{{_PAIR}}}", now=True),
    )
    return table.height(TALL - 2).no_value("nothing")


def _history() -> tables.Panel:
    later = 'clientlab_run_change{experiment="$experiment", baseline="$baseline"'
    table = matrix(
        "How did one figure change in each run since the baseline?",
        "The runs that were compared with the baseline.",
        ("arm", "when", "text"),
        query(f'{later}, figure="$figure"}}', now=True),
    )
    return (
        _changes(table).height(TALL + 4).no_value("no run since the baseline is alike")
    )


def _claims() -> tables.Panel:
    shown = [
        *(("verdict", "verdict"), ("sentence", "claim")),
        *(("text", "ratio (95 %)"), ("claim", "name")),
    ]
    table = grid(
        "Do the article's claims hold in this run?",
        "Ratio: the second arm's figure divided by the first's. Inconclusive: its"
        " interval allows both answers.",
        shown,
        query('clientlab_run_claim{run="$run"}', now=True),
    )
    wrapped = looks_like(custom_cellOptions={"type": "auto", "wrapText": True})
    colours = looks_like(mappings=coloured(_VERDICTS), **COLOURED, custom_width=130)
    return (
        table.override_by_name("verdict", colours)
        .override_by_name("claim", wrapped)
        .override_by_name("ratio (95 %)", looks_like(custom_width=170))
        .override_by_name("name", looks_like(custom_width=220))
        .height(TALL + 9)
        .no_value("this experiment makes no claims")
    )
