"""A comparison as Markdown, for a pull request or a build's summary: one table a run, the notices above."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.reports import compared
from clientlab.reports.markdown import escaped, table
from clientlab.runs.changes import Comparison
from clientlab.runs.thresholds import Judged


def render(comparison: Comparison, judged: Sequence[Judged]) -> str:
    """The whole comparison; a column a run."""
    parts = [f"Baseline: {escaped(compared.heading(comparison.base))}  \n"]
    parts += [f"Against: {escaped(compared.heading(one.run))}  \n" for one in comparison.others]
    for name, lines in compared.notices(comparison):
        parts.append(f"\n**{escaped(name)}**\n\n" + "".join(f"- {escaped(line)}\n" for line in lines))
    parts.append("\n" + table(_heads(comparison), _rows(comparison), left=2))
    parts.append(f"\n{escaped(compared.summary(comparison))}\n")
    lines = compared.judged_lines(judged)
    return "".join([*parts, "\n" if lines else "", *(f"- **{escaped(line)}**\n" for line in lines)])


def _heads(comparison: Comparison) -> list[str]:
    runs = [one.run.run for one in comparison.others] if len(comparison.others) > 1 else ["now"]
    return ["arm", "figure", "baseline", *(head for run in runs for head in (run, "change", "ratio (95 %)"))]


def _rows(comparison: Comparison) -> list[list[str]]:
    rows = []
    for arm in comparison.arms():
        for name in comparison.quantities:
            found = [one.changes[arm][name] if arm in one.changes else None for one in comparison.others]
            row = [arm, name, next(compared.figure(change.before, change.quantity.unit) for change in found if change)]
            for change in found:
                if change is None:
                    row += ["-", "-", "-"]
                else:
                    after = compared.figure(change.after, change.quantity.unit)
                    row += [after, change.word, compared.estimate(change)]
            rows.append(row)
    return rows
