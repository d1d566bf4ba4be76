"""Panels about what goes wrong: what each client meets with each fault, and what cancelled requests leave."""

from __future__ import annotations

from dashboards.source import house
from dashboards.source.house import TALL, WHOLE, grid, query
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import dashboard as model

from clientlab.reports.charts.shapes import Tone
from clientlab.reports.fault_section import PATTERNS
from clientlab.results.cancel_figures import CANCEL_FIGURES

_COLOURS: dict[Tone, str] = {"good": "green", "open": "orange", "bad": "red"}
"""Tone → Grafana's name of its colour, on either ground."""

_CLIENT = "client\\fault"  # as Grafana names the first column of a matrix


def matrix(chosen: str) -> tables.Panel:
    """What the caller meets: a row for each client, a column for each fault. `chosen`: the run's label."""
    panel = grid(
        "What does the caller meet with each fault?",
        "The error, or ok. Red: it hangs, passes unnoticed, or costs other requests. Orange: a time limit or another "
        "try was needed.",
        query(f"max by (client, fault, met) (clientlab_run_fault{{{chosen}}})", now=True),
    ).transformations(
        [
            house.transformation(
                "groupingToMatrix", columnField="fault", rowField="client", valueField="met", emptyValue="empty"
            )
        ]
    )
    mappings = [
        model.RegexMap(
            model.DashboardRegexMapOptions(
                pattern=f"/^(.*(?:{pattern}).*)$/", result=model.ValueMappingResult(text="$1", color=_COLOURS[tone])
            )
        )
        for pattern, tone in PATTERNS
    ]
    looks = house.looks_like("", mappings=mappings, custom_cellOptions={"type": "color-text", "wrapText": True})
    named = house.looks_like("", custom_width=180)
    return (
        panel.override_by_regexp("/^(?!client)/", looks)
        .override_by_name(_CLIENT, named)
        .no_value("no axis of faults in this run")
        .span(WHOLE)
        .height(TALL + 6)
    )


def left(chosen: str) -> tables.Panel:
    """What cancelled requests leave of each arm. `chosen`: the run's label."""
    shown = [figure for figure in CANCEL_FIGURES if figure.metric is not None]
    refs = dict(zip("ABCDEFGH", shown, strict=False))
    panel = grid(
        "What do cancelled requests leave of each client?",
        "Medians over the rounds: what a probe behind the measured part lacks, or has in addition. A client that hangs "
        "has none.",
        *(
            query(f"max by (legend) (clientlab_run_{figure.metric.name}{{{chosen}}})", ref=ref, now=True)
            for ref, figure in refs.items()
            if figure.metric is not None
        ),
    )
    columns = [("legend", "arm"), *((f"Value #{ref}", figure.label) for ref, figure in refs.items())]
    panel = panel.transformations([house.joined("legend"), *house.columns(columns, "arm", descending=False)])
    for figure in shown:
        unit = "s" if figure.unit == "seconds" else "short"
        panel = panel.override_by_name(figure.label, house.looks_like(unit))
    return panel.no_value("no cancelled requests in this run").span(WHOLE).height(TALL + 3)
