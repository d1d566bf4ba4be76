"""Experiment: how fast each arm is and how surely; below, closed, claims, streams, failures and a sweep's curve."""

from __future__ import annotations

from typing import Any

from dashboards.source import failures, house, streams, variables
from dashboards.source.bars import bars, with_interval
from dashboards.source.house import LOW, WHOLE, grid, number, query
from grafana_foundation_sdk.builders import common, trend
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as model

from clientlab.reports.claims_section import SIGNS

UID = "clientlab-experiment"

_RUN = 'run="$run"'
_AXIS = "place on the axis of a sweep"
_NO_SWEEP = "this run has no sweep"
_SCREEN, _BELOW = 14, 12
"""Heights: of the bars, which fill a screen of 900 pixels with the counts above them, and of what is below them."""

COLOURS = {"supported": "green", "contradicted": "red", "inconclusive": "orange"}
"""Verdict → Grafana's name of its colour, on either ground."""

_VERDICTS = model.ValueMap(
    {
        verdict: model.ValueMappingResult(text=f"{sign} {verdict}", color=COLOURS[verdict])
        for verdict, sign in SIGNS.items()
    }
)
_COLOURED = {"custom_cellOptions": {"type": "color-text"}}

_PLACES = "place\\curve"  # as Grafana names the first column of a matrix


def dashboard() -> board.Dashboard:
    """One run of one experiment."""
    made = house.dashboard(UID, "clientlab: experiment", "What did this run of the experiment find?", "30s", "now-1h")
    for chosen in (
        variables.variable("experiment", "Experiment", "label_values(clientlab_run_info, experiment)", multi=False),
        variables.variable(
            "run", "Run", 'label_values(clientlab_run_info{experiment="$experiment"}, run)', multi=False, newest=True
        ),
        variables.variable(
            "axis", "Axis of the sweep", f"label_values(clientlab_run_axis_value{{{_RUN}}}, axis)", multi=False
        ),
    ):
        made = made.with_variable(chosen)
    for panel in (_begun(), _speed(), _spread()):
        made = made.with_panel(panel)
    # Closed, because most experiments have none of these.
    claims = board.Row("Claims of the experiment").collapsed(collapsed=True)
    for panel in (_counts(), _claims()):
        claims = claims.with_panel(panel)
    of_streams = board.Row("Streams: the cost and the lag of an event").collapsed(collapsed=True)
    for panel in streams.of_run(_RUN):
        of_streams = of_streams.with_panel(panel)
    faults = board.Row("Faults: what the caller meets").collapsed(collapsed=True).with_panel(failures.matrix(_RUN))
    cancelled = board.Row("Cancelled requests: what they leave").collapsed(collapsed=True)
    cancelled = cancelled.with_panel(failures.left(_RUN))
    sweep = board.Row("Sweep over an axis of the experiment").collapsed(collapsed=True).with_panel(_sweep())
    for row in (claims, of_streams, faults, cancelled, sweep):
        made = made.with_row(row)
    return made


def _speed() -> Any:
    """Requests per second and not seconds: one slow arm would make the bars of all others too short to compare."""

    def metric(name: str) -> str:
        return f"max by (legend) (clientlab_run_{name}{{{_RUN}}})"

    return (
        bars(
            "How fast is each arm? Successful requests per second, longer is better",
            "The median over the rounds. Beside each name: requests in flight (c), the 95 % confidence interval of the "
            "median, and rounds (n). An interval needs three rounds.",
            "reqps",
            with_interval(metric),
        )
        .span(WHOLE)
        .height(_SCREEN)
    )


def _claims() -> tables.Panel:
    sentence = f"on (claim) group_left (sentence) clientlab_run_claim_info{{{_RUN}}}"
    shown = [
        ("verdict", "verdict"),
        ("sentence", "claim"),
        ("Value #A", "ratio"),
        ("Value #B", "low"),
        ("Value #C", "high"),
    ]
    return (
        grid(
            "Do the article's claims hold here?",
            "Ratio: the second arm's figure divided by the first's, with its 95 % confidence interval. Inconclusive: "
            "the interval allows both answers.",
            query(f"max by (claim, verdict, sentence) (clientlab_run_claim{{{_RUN}}} * {sentence})", now=True),
            query(f"max by (claim) (clientlab_run_claim_low{{{_RUN}}})", ref="B", now=True),
            query(f"max by (claim) (clientlab_run_claim_high{{{_RUN}}})", ref="C", now=True),
        )
        .transformations([house.joined("claim"), *house.columns(shown, "verdict", descending=False)])
        .override_by_name("verdict", house.looks_like("", custom_width=130, mappings=[_VERDICTS], **_COLOURED))
        .override_by_name("claim", house.looks_like("", custom_cellOptions={"type": "auto", "wrapText": True}))
        .override_by_regexp("/^(ratio|low|high)$/", house.ratio(custom_width=75))
        .no_value("this experiment makes no claims")
        .span(WHOLE)
        .height(_BELOW)
    )


def _sweep() -> Any:
    """One curve for all arms that differ along the axis only, with one point per arm."""
    places = f'count_values by (arm, curve) ("place", clientlab_run_axis_value{{{_RUN}, axis="$axis"}})'
    seconds = f"max by (arm) (1 / clientlab_run_requests_per_second{{{_RUN}}})"
    # Without a point, Grafana would show an error: a run without a sweep has one point without a value.
    none = f'label_replace(label_replace(vector(0) / 0, "curve", "{_NO_SWEEP}", "", ""), "place", "1", "", "")'
    return house.coloured(
        trend.Panel()
        .title("Where is the knee of the sweep?")
        .description(
            "Time per request of an arm by its place on the axis, both logarithmic. Beyond the knee, it gains nothing."
        )
        .datasource(house.SOURCE)
        .unit("suffix:s")  # Grafana's unit "s" writes the decade of 100 s as "1.67 mins"
        .scale_distribution(common.ScaleDistributionConfig().type(looks.ScaleDistribution.LOG).log(10))
        .span(WHOLE)
        .height(_BELOW)
        .x_field(_AXIS)
        .override_by_name(_AXIS, house.looks_like("short"))
        .color_scheme(house.by_name())
        .line_width(2)
        .span_nulls(span_nulls=True)
        .show_points(looks.VisibilityMode.ALWAYS)
        .legend(house.legend_below())
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI))
        .with_target(
            query(f"max by (curve, place) ({places} * on (arm) group_left () {seconds}) or on () {none}", now=True)
        )
        .transformations(
            [
                house.transformation(
                    "groupingToMatrix", columnField="curve", rowField="place", valueField="Value", emptyValue="null"
                ),
                house.transformation(
                    "convertFieldType", fields={}, conversions=[{"targetField": _PLACES, "destinationType": "number"}]
                ),
                house.transformation("sortBy", fields={}, sort=[{"field": _PLACES, "desc": False}]),
                house.transformation("organize", renameByName={_PLACES: _AXIS}),
            ]
        ),
        dashes=True,
    )


def _spread() -> tables.Panel:
    refs = {
        "A": "clientlab_run_requests_per_second_low",
        "B": "clientlab_run_requests_per_second",
        "C": "clientlab_run_requests_per_second_high",
    }
    shown = [
        ("legend", "arm"),
        ("Value #A", "low"),
        ("Value #B", "median"),
        ("Value #C", "high"),
        ("verdict", "bottleneck"),
    ]
    panel = grid(
        "How precise are the figures?",
        "Requests per second: median and 95 % interval over the rounds. Fewer than three rounds have no interval.",
        *(query(f"max by (legend) ({metric}{{{_RUN}}})", ref=ref, now=True) for ref, metric in refs.items()),
        query(f"max by (legend, verdict) (clientlab_run_verdict{{{_RUN}}})", ref="D", now=True),
    ).transformations([house.joined("legend"), *house.columns(shown, "median", descending=True)])
    panel = panel.override_by_name("arm", house.looks_like("", custom_width=420))
    for heading in ("low", "median", "high"):
        panel = panel.override_by_name(heading, house.looks_like("reqps"))
    return panel.span(WHOLE)


def _counts() -> Any:
    counted = (f'count(clientlab_run_claim{{{_RUN}, verdict="{verdict}"}}) or vector(0)' for verdict in SIGNS)
    claims = number(
        "How many claims hold?",
        "On this machine, in this run.",
        "short",
        *(query(one, verdict, ref).instant() for one, verdict, ref in zip(counted, SIGNS, "ABC", strict=True)),
    ).color_mode(looks.BigValueColorMode.VALUE)
    for verdict, colour in COLOURS.items():
        steps = house.thresholds((None, "text"), (1, colour)).build()
        claims = claims.override_by_name(verdict, [model.DynamicConfigValue(id_val="thresholds", value=steps)])
    return claims.span(WHOLE).height(LOW - 1)


def _begun() -> Any:
    return (
        number(
            "When did the run begin?",
            "The start of the run.",
            "dateTimeFromNow",
            query(f"clientlab_run_created_timestamp_seconds{{{_RUN}}} * 1000", "run").instant(),
        )
        .span(WHOLE)
        .height(LOW - 1)
    )
