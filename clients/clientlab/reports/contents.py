"""The list of a report's sections, and those sections that consist of charts alone.

A new section is a function that returns it, and its entry in `SECTIONS`: every format has it then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from clientlab.reports import claims_section, failures, figure_tables, headline, servers, surroundings
from clientlab.reports.charts import bars, forest, latency
from clientlab.reports.charts import sweeps as sweep_charts
from clientlab.reports.charts.shapes import ChartPanel
from clientlab.reports.sections import Charts, Part, PartT, Report, Section, TextPart, in_text


def compared(report: Report) -> Section[Part]:
    """How many times as long each arm takes as the fastest, or as in the first environment."""
    charts = Charts(
        lambda: [
            *forest.comparisons(report.run, report.drawn),
            *forest.further_comparisons(report.run, report.drawn),
        ],
        "comparison",
        [forest.NOTE],
    )
    return Section("compared", "How the arms compare", [charts], label="Compared")


def times(report: Report) -> Section[Part]:
    """How long each arm takes. Arms on the curves of a sweep have no bar."""
    charts = Charts(lambda: bars.times(report.run, report.drawn), "chart", [bars.NOTE])
    return Section("times", "How long it takes", [charts], label="Time")


def sweeps(report: Report) -> Section[Part]:
    """Curves along the axes of the experiment."""
    return Section("sweep", "Sweeps", [Charts(lambda: sweep_charts.charts(report.run), "sweep")])


def percentiles(report: Report) -> Section[Part]:
    """Latency by percentile."""
    note = (
        "Latency from just before the send to the last byte of the body; of an open load, from the planned start of "
        "the request. A failed request ranks after every successful one, so a line ends at the share of requests that "
        'succeeded; "≥" marks a lower bound. At each percentile, a line is the median of the rounds, as in the table. '
        "Both axes are logarithmic: 90 %, 99 % and 99.9 % are equally far apart."
    )
    charts = Charts(lambda: latency.percentiles(report.drawn), notes=[note])
    return Section("latency", "Latency by percentile", [charts], label="Percentiles")


def distributions(report: Report) -> Section[Part]:
    """Each arm's latencies as an area."""
    note = (
        "Each area shows the successful requests and fills the height of its row, so heights of different arms do not "
        'compare. Rings mark p50 and p99 of all requests; "≥" marks one that falls on a failed request, which has no '
        "ring. The axis is logarithmic."
    )
    charts = Charts(lambda: latency.distributions(report.drawn), notes=[note])
    return Section("distribution", "Distribution of latencies", [charts], label="Distribution", folded=True)


def resources(report: Report) -> Section[Part]:
    """What a strategy costs besides time."""
    note = "Medians of the rounds; a dot is one round. CPU time and memory include child processes."
    charts = Charts(
        lambda: [ChartPanel(group.title, bars.costs(group)) for group in report.drawn], notes=[note], look="grids"
    )
    return Section("resources", "CPU, memory, connections", [charts])


SECTIONS: list[Callable[[Report], Section[Part]]] = [
    headline.headline,
    figure_tables.figures,
    compared,
    times,
    servers.servers,
    claims_section.claims,
    sweeps,
    percentiles,
    distributions,
    resources,
    failures.failures,
    surroundings.surroundings,
    surroundings.reproduction,
]
"""The sections of every report, in their order. A section without content is left out."""


def page_sections(report: Report) -> list[Section[Part]]:
    """The sections with all that they have, charts included."""
    return _with_content((section, section.parts) for section in _all(report))


def text_sections(report: Report) -> list[Section[TextPart]]:
    """The sections as formats of text show them. No chart is drawn."""
    return _with_content((section, [in_text(part) for part in section.parts]) for section in _all(report))


def _all(report: Report) -> list[Section[Part]]:
    return [make(report) for make in SECTIONS]


def _with_content(found: Iterable[tuple[Section[Part], Sequence[PartT]]]) -> list[Section[PartT]]:
    """The sections with those of the parts that have content, without sections that have none."""
    shown = (
        Section(
            one.id, one.heading, [part for part in parts if part.items], one.label, one.sentences, one.notes,
            brief=one.brief, folded=one.folded,
        )
        for one, parts in found
    )  # fmt: skip
    return [section for section in shown if section.parts or section.sentences]
