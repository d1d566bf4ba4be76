"""The table of figures of a run, by its headings."""

from __future__ import annotations

from clientlab.reports.figure_tables import figure_table
from clientlab.reports.rows import groups_of


def columns(run) -> dict[str, list[str]]:
    """Heading → cells of the only table of a run."""
    (group,) = groups_of(run)
    table = figure_table(group)
    return {heading: [row[place] for row in table.rows] for place, heading in enumerate(table.headings)}
