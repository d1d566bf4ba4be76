"""A comparison of runs for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.analysis.unpaired import POWER
from clientlab.judging.changes import Change
from clientlab.judging.comparison import Compared, Comparison, Difference
from clientlab.judging.ranking import shortfall
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import headline, markdown
from clientlab.reports.as_terminal import plain_table
from clientlab.results.document import Run
from clientlab.results.trial import shown_time

_UNPAIRED = (
    "A ratio is how many times as much a round of one run typically has as a round of the baseline. The baseline's "
    "figure is the median of its rounds; a later one is that times the ratio. All intervals together hold the truth in "
    "95 of 100 comparisons; those that thresholds judge do so by themselves."
)
_LONGEST = 60
_STYLES = {"better": "green", "worse": "bold red", "undecided": "yellow"}


def as_text(comparison: Comparison, judged: Sequence[ThresholdResult]) -> RenderableType:
    """The whole comparison, for a rich console: a column for each run."""
    parts: list[RenderableType] = [
        Text(summary(comparison), style="bold green"),
        Text.assemble("baseline ", (_heading(comparison.base), "bold")),
    ]
    parts += [Text.assemble("against  ", (_heading(one.run), "bold")) for one in comparison.others]
    for name, lines in notices(comparison):
        parts.append(Text.assemble(("! ", "bold yellow"), (f"{name}:", "yellow")))
        parts += [Text(f"    {line}") for line in lines]
    parts += [Text(), _table(comparison)]
    parts += [Text(line, style="dim") for line in notes(comparison)]
    outcomes = [Text(line, style="bold red" if "FAILED" in line else "bold") for line in headline.lines(judged)]
    return Lines(*parts, *outcomes)


def as_markdown(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """The whole comparison, for a pull request or the summary of a build: three columns for each run."""
    escaped = markdown.escaped
    parts = [
        f"**{escaped(summary(comparison))}**\n\n",
        *(f"- **{escaped(line)}**\n" for line in headline.lines(judged)),
        "\n",
        *(f"{escaped(line)}  \n" for line in headings(comparison)),
    ]
    for name, items in notices(comparison):
        parts.append(f"\n**{escaped(name)}**\n\n" + "".join(f"- {escaped(line)}\n" for line in items))
    lines = [
        [arm, figure, before, *(cell for change in changes for cell in cells(change))]
        for arm, figure, before, changes in rows(comparison)
    ]
    parts.append("\n" + markdown.table(["arm", "figure", "baseline", *columns(comparison)], lines, left=2))
    parts += [f"\n{escaped(line)}\n" for line in notes(comparison)]
    return "".join(parts)


def as_json(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """One object, with every figure in seconds, bytes, counts and shares.

    `baseline`: name of the run. `confidence`: of each interval. `runs`: surroundings that differ, and
    changes by arm and figure. `thresholds`.
    """
    document = {
        "baseline": comparison.base.run,
        "confidence": comparison.confidence,
        "runs": [
            {
                "run": one.run.run,
                "surroundings": [asdict(difference) for difference in one.differences],
                "unlike": one.unlike,
                "arms": {
                    arm: {name: _change(change) for name, change in changes.items()}
                    for arm, changes in one.changes.items()
                    if arm in comparison.compared_arms()
                },
            }
            for one in comparison.others
        ],
        "thresholds": [
            {"threshold": one.threshold.text, "run": one.run, "arm": one.arm, "outcome": one.outcome}
            for one in judged
        ],
    }  # fmt: skip
    return json.dumps(document, indent=1, allow_nan=False)


def _change(change: Change) -> dict[str, Any]:
    found = change.ratio or change.difference
    return {
        "unit": change.figure.unit,
        "before": change.before,
        "after": change.after,
        "at_least": list(change.bounds),
        "ratio": None if change.ratio is None else change.ratio.value,
        "difference": None if change.difference is None else change.difference.value,
        "interval": None if found is None else found.interval,
        "confidence": change.confidence,
        "rounds": list(change.rounds),
        "smallest_detectable_ratio": change.detectable,
        "verdict": change.word,
    }


def _names(comparison: Comparison) -> list[str]:
    """The heads of the runs' columns."""
    return [one.run.run for one in comparison.others] if len(comparison.others) > 1 else ["now"]


def headings(comparison: Comparison) -> list[str]:
    """A line for each run: its name, time and machine."""
    others = [f"Against: {_heading(one.run)}" for one in comparison.others]
    return [f"Baseline: {_heading(comparison.base)}", *others]


def columns(comparison: Comparison) -> list[str]:
    """The heads of `cells`, for each run."""
    return [head for name in _names(comparison) for head in (name, "change", "ratio (95 % together)")]


def rows(comparison: Comparison) -> Iterator[tuple[str, str, str, list[Change | None]]]:
    """Arm, figure, the baseline's value, and the change of each run; None where a run has no such arm."""
    for arm in comparison.compared_arms():
        for figure in comparison.figures:
            changes = [one.changes[arm][figure.key] if arm in one.changes else None for one in comparison.others]
            known = next(change for change in changes if change)
            yield arm, figure.key, figure.text(known.before, at_least=known.bounds[0]), changes


def cells(change: Change | None) -> tuple[str, str, str]:
    """Value, verdict, and ratio or difference."""
    if change is None:
        return units.UNKNOWN, units.UNKNOWN, units.UNKNOWN
    return change.figure.text(change.after, at_least=change.bounds[1]), change.word, _estimate(change)


def _estimate(change: Change) -> str:
    """The ratio with its interval. Of a share: the difference in percentage points, nothing where both are 0."""
    found = change.difference
    if found is None:
        return units.UNKNOWN if change.ratio is None else f"x {units.ratio_of(change.ratio)}"
    if not (change.before or change.after or found.value):
        return ""
    ends = [units.signed(100 * end) for end in found.interval or ()]
    return f"{units.signed(100 * found.value)} points" + (f" ({' to '.join(ends)})" if ends else "")


def _table(comparison: Comparison) -> Table:
    table = plain_table()
    table.add_column("", overflow="fold")
    table.add_column("baseline", justify="right", no_wrap=True)
    for name in _names(comparison):
        table.add_column(name, overflow="fold")
    for arm, of_arm in itertools.groupby(rows(comparison), lambda row: row[0]):
        table.add_row(Text(arm, style="bold"))
        for _, figure, before, changes in of_arm:
            table.add_row(Text(f"  {figure}"), before, *map(_cell, changes))
        table.add_row()
    return table


def _cell(change: Change | None) -> Text:
    after, verdict, estimate = cells(change)
    if change is None:
        return Text(after)
    return Text.assemble(f"{after:>10}  ", (f"{verdict:<12}", _STYLES.get(change.verdict, "")), f" {estimate}")


def _heading(run: Run) -> str:
    return f"{run.run} ({shown_time(run.created)}, {run.surroundings.host}, {run.surroundings.python})"


def notices(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """A heading and lines for each run with something to know before its figures are read."""
    if lines := list(_incomplete(comparison.base)):
        yield f"the baseline {comparison.base.run}", lines
    for one in comparison.others:
        if lines := [*_differences(one), *_incomplete(one.run)]:
            yield one.run.run, lines


def _differences(one: Compared) -> list[str]:
    return [*(f"not alike: {line}" for line in one.unlike), *map(_difference, one.differences)]


def _difference(one: Difference) -> str:
    before, after = (_short(value or "none") for value in (one.before, one.after))
    return f"{one.part}: {before} -> {after}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _incomplete(run: Run) -> Iterator[str]:
    """What the figures of a run leave out."""
    trials = len(run.trials)
    failed = sum(trial.status != "done" for trial in run.trials)
    faulty = sum(trial.status == "done" and bool(trial.errors) for trial in run.trials)
    if failed:
        yield f"{failed} of {trials} trials failed: only their errors count"
    if faulty:
        yield (
            f"requests failed in {faulty} of {trials} trials: their totals (wall time, …) are left out, because they "
            "did less work; throughput counts successful requests"
        )
    for arm in run.experiment.arms:
        if why := shortfall(run.trials_of(arm.name)):
            yield f"{arm.name} is not compared: {why}"
    if run.status != "done":
        yield f"the run is {run.status}: it has {trials} trials of {run.experiment.rounds} rounds"


def summary(comparison: Comparison) -> str:
    """How many figures changed."""
    arms = comparison.compared_arms()
    changes = [
        change
        for one in comparison.others
        for arm, by_name in one.changes.items()
        if arm in arms
        for change in by_name.values()
        if change.before is not None or change.after is not None
    ]
    verdicts = Counter(change.verdict for change in changes)
    undecided = [change for change in changes if change.verdict == "undecided"]
    unknown = sum(change.bounded or min(change.rounds) < FEWEST_ROUNDS for change in undecided)
    few = f" ({unknown} without an interval, which needs 3 rounds of both runs and no lower bounds)" if unknown else ""
    return (
        f"{len(changes)} figures compared: {verdicts['better']} better, {verdicts['worse']} worse, {verdicts['equal']} "
        f"equal within {EQUAL_SHARE}, {len(undecided)} undecided{few}."
    )


def notes(comparison: Comparison) -> Iterator[str]:
    """What a ratio is, and the smallest changes that this comparison could have seen, by figure over the arms."""
    yield _UNPAIRED
    found = []
    for figure in comparison.figures:
        changes = [by_key[figure.key] for one in comparison.others for by_key in one.changes.values()]
        shares = sorted(round(change.detectable - 1, 6) for change in changes if change.detectable is not None)
        if shares and shares[-1]:  # figures that never vary show every change
            ends = dict.fromkeys((units.share(shares[0]), units.share(shares[-1])))
            found.append(f"{figure.key} {' to '.join(ends)}")
    if found:
        yield (
            f"At this noise and with these rounds, the smallest increase that shows in {POWER * 100:.0f} of 100 "
            f"comparisons is: {', '.join(found)}."
        )
