"""The list of a report's sections, and the sections that consist of charts alone.

A new section is a function and its entry in `SECTIONS`; every format then has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from clientlab.reports import claims_section, figure_tables, headline, surroundings
from clientlab.reports.charts import row_charts
from clientlab.reports.sections import Charts, Facts, Lines, Part, Report, Section
from clientlab.reports.sweeps import sweeps_of


def compared(report: Report) -> Section:
    """How many times as long each arm takes as the fastest, or as in the first environment."""
    charts = Charts(lambda: row_charts.comparisons(report.run, report.drawn), "comparison", [row_charts.RATIOS_NOTE])
    return Section("compared", "How the arms compare", [charts], label="Compared")


def times(report: Report) -> Section:
    """How long each arm takes. Arms on the curves of a sweep have no bar."""
    charts = Charts(lambda: row_charts.times(report.run, report.drawn), notes=[row_charts.TIMES_NOTE])
    return Section("times", "How long it takes", [charts], label="Time")


def sweeps(report: Report) -> Section:
    """Curves along the axes of the experiment."""
    return Section("sweep", "Sweeps", [Charts(lambda: sweeps_of(report.run), "sweep")])


def latencies(report: Report) -> Section:
    """Each arm's latencies as an area."""
    charts = Charts(lambda: row_charts.distributions(report.run, report.drawn), notes=[row_charts.LATENCY_NOTE])
    return Section("latency", "Latency", [charts])


def resources(report: Report) -> Section:
    """What a strategy costs besides time."""
    note = "Medians of the rounds; a dot is one round. CPU time and memory include child processes."
    charts = Charts(lambda: row_charts.costs(report.run, report.drawn), notes=[note], small=True)
    return Section("resources", "CPU, memory, connections", [charts])


SECTIONS: list[Callable[[Report], Section]] = [
    headline.headline,
    claims_section.claims,
    figure_tables.figures,
    compared,
    times,
    figure_tables.servers,
    sweeps,
    latencies,
    resources,
    figure_tables.failures,
    surroundings.surroundings,
    surroundings.reproduction,
]
"""The sections of every report, in their order. Sections without content are left out."""


def page_sections(report: Report) -> list[Section]:
    """Return the sections as the page shows them."""
    return _with_content(make(report) for make in SECTIONS)


def text_sections(report: Report) -> list[Section]:
    """Return the sections as text formats show them: without charts, which are not even drawn, and with fewer facts."""
    sections = (make(report) for make in SECTIONS)
    return _with_content(replace(one, parts=[_text_part(part) for part in one.parts]) for one in sections)


def _text_part(part: Part) -> Part:
    if isinstance(part, Charts):
        return Lines([])
    return Lines(part.brief) if isinstance(part, Facts) else part


def _with_content(sections: Iterable[Section]) -> list[Section]:
    """Drop the parts that are empty, then the sections that are."""
    found = [replace(one, parts=[part for part in one.parts if part.items]) for one in sections]
    return [one for one in found if one.parts or one.sentences]
