"""What the reader chooses above the panels: experiments, runs and arms, and the time range of a run."""

from __future__ import annotations

from dashboards.source.house import SOURCE
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.models import dashboard as model


def variable(name: str, label: str, query: str, *, multi: bool = True, newest: bool = False) -> board.QueryVariable:
    """A choice of label values. `multi`: several, or all, can be chosen. `newest`: the latest is first.

    Grafana chooses the first value until the reader chooses another.
    """
    made = (
        board.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_DESC if newest else model.VariableSort.ALPHABETICAL_ASC)
        .multi(multi)
        .include_all(multi)
    )
    if multi:
        every = model.VariableOption(selected=True, text=["All"], value=["$__all"])
        made = made.current(every).all_value(".*")
    return made


def runs_variable(name: str, label: str, order: str) -> board.QueryVariable:
    """A choice of runs, in the order of the values of `order`, a query of this moment; its series have a label run."""
    return (
        variable(name, label, f"query_result(sort_desc({order}))", multi=False)
        .regex('/run="([^"]+)"/')
        .sort(model.VariableSort.DISABLED)
    )


def span_of_run(begun: str) -> list[board.QueryVariable]:
    """Hidden variables `begin` and `end`: the time range of the chosen run, in milliseconds."""
    ended = 'max(max_over_time(clientlab_trial_ended_timestamp_seconds{run="$run"}[$__range])) or vector(time())'
    ends = {"begin": f"max({begun}) - 5", "end": f"({ended}) + 5"}
    return [
        variable(name, name, f"query_result(round({seconds}) * 1000)", multi=False)
        .regex("/ ([0-9]+) /")
        .hide(model.VariableHide.HIDE_VARIABLE)
        for name, seconds in ends.items()
    ]


def link_to_run(uid: str) -> board.DashboardLink:
    """A link to the same dashboard over the time of the chosen run."""
    return (
        board.DashboardLink("This run only")
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{uid}?${{run:queryparam}}&from=$begin&to=$end")
        .icon("clock-nine")
        .tooltip("The time range from the begin of the chosen run to its end.")
    )
