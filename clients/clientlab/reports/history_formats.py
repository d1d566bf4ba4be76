"""A history for the terminal, as Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from clientlab.judging.history import LineHistory, Step, Track
from clientlab.reports import markdown
from clientlab.reports.as_csv import no_formula
from clientlab.reports.as_terminal import AnswerInSight, plain_table
from clientlab.reports.history import (
    HEADINGS,
    KEYS,
    TEXTS,
    History,
    answer,
    brief_order,
    came_with,
    doubts,
    earlier,
    in_order,
    reasons,
    rows,
    titles,
)

_COLUMNS = (
    "line", "run", "created", "arm", "figure", "unit", "value", "low", "high", "judged", "new_level", "ratio",
    "ratio_low", "ratio_high",
)  # fmt: skip


def as_text(history: History, *, whole: bool = False) -> RenderableType:
    """The history, for a rich console: what changed and the first figure of each arm, or the `whole` of it."""
    first = Text(answer(history), style="bold")
    parts: list[RenderableType] = [first]
    for title, found in zip(titles(history), history.lines, strict=True):
        parts += [Text(), Text(title, style="bold")]
        parts += [Text(line) for line in (reasons(found), *earlier(found)) if line]
        tracks = in_order(found) if whole else brief_order(found)
        parts.append(_table(found, tracks))
        if rest := len(found.tracks) - len(tracks):
            parts.append(Text(f"{rest} more rows, none of which changed: --all", style="dim"))
        parts += [Text(line, style="dim") for line in doubts(found)]
    return AnswerInSight(parts, [first])


def _table(found: LineHistory, tracks: Sequence[Track]) -> RenderableType:
    table = plain_table()
    for index, name in enumerate(HEADINGS):
        left = index < KEYS or index in TEXTS
        table.add_column(name, justify="left" if left else "right", overflow="fold", no_wrap=index != 0)
    for track, row in zip(tracks, rows(found, tracks), strict=True):
        last = track.steps[-1] if track.steps else None
        style = "" if last is None else "bold red" if last.worse else "green"
        table.add_row(*(Text(cell, style=style if index == TEXTS[1] else "") for index, cell in enumerate(row)))
    return Lines(table)


def as_markdown(history: History) -> str:
    """The short form, for a pull request or the summary of a build."""
    escaped = markdown.escaped
    parts = [f"**{escaped(history.experiment)}: {escaped(answer(history))}**\n"]
    for title, found in zip(titles(history), history.lines, strict=True):
        parts.append(f"\n{escaped(title)}\n\n")
        parts += [f"{escaped(line)}\n\n" for line in (reasons(found), *earlier(found)) if line]
        parts.append(markdown.table(HEADINGS, rows(found, brief_order(found)), left=KEYS, texts=TEXTS))
        parts += [f"\n{escaped(line)}\n" for line in doubts(found)]
    if history.left_out:
        parts.append("\nLeft out:\n\n" + "".join(f"- {escaped(line)}\n" for line in history.left_out))
    return "".join(parts)


def as_json(history: History) -> str:
    """One object, with every figure in seconds, bytes, counts and shares."""
    document = {
        "experiment": history.experiment,
        "answer": answer(history),
        "left_out": list(history.left_out),
        "lines": [_line(one) for one in history.lines],
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _line(found: LineHistory) -> dict[str, Any]:
    return {
        "runs": [
            {"run": past.run.run, "created": past.run.created, "came_with": came_with(found, at)}
            for at, past in enumerate(found.line.runs)
        ],
        "reasons": found.line.reasons,
        "series": found.series,
        "more_runs_needed": found.missing,
        "tracks": [
            {
                "arm": track.arm,
                "figure": track.figure.key,
                "unit": track.figure.unit,
                "judged_by": "ratio to the other arms" if track.relative else "level",
                "levels": [
                    None if one is None else {"value": one.value, "interval": one.interval} for one in track.levels
                ],
                "changes": [_change(found, track, step) for step in track.steps],
            }
            for track in in_order(found)
        ],
    }


def _change(found: LineHistory, track: Track, step: Step) -> dict[str, Any]:
    direction = track.figure.direction
    estimate = step.ratio or step.difference
    return {
        "run": found.line.runs[step.at].run.run,
        "before": step.before,
        "after": step.after,
        "ratio": step.ratio and step.ratio.value,
        "difference": step.difference and step.difference.value,
        "interval": estimate and estimate.interval,
        "chance": step.chance,
        "verdict": direction.worse if step.worse else direction.better,
    }


def as_csv(history: History) -> str:
    """A row for each run, arm and figure. `judged`: what was tested; `new_level`: 1 in the first run of a new level."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for number, found in enumerate(history.lines, start=1):
        writer.writerows([no_formula(cell) for cell in (number, *row)] for row in _csv_rows(found))
    return text.getvalue()


def _csv_rows(found: LineHistory) -> Iterator[tuple[object, ...]]:
    for track in in_order(found):
        steps = {step.at: step for step in track.steps}
        for at, (past, level) in enumerate(zip(found.line.runs, track.levels, strict=True)):
            if level is None:
                continue
            step = steps.get(at)
            estimate = step and (step.ratio or step.difference)
            ratio = (estimate.value, estimate.low, estimate.high) if estimate else (None, None, None)
            run = past.run
            yield (
                run.run, run.created, track.arm, track.figure.key, track.figure.unit, level.value, level.low,
                level.high, float(track.judged[at]), int(step is not None), *ratio,
            )  # fmt: skip
