"""A comparison of runs: as sections, which every format shows, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE
from clientlab.analysis.ratios import FEWEST_ROUNDS, POWER
from clientlab.judging.changes import Change
from clientlab.judging.comparison import Comparison
from clientlab.judging.ranking import shortfall
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import headline
from clientlab.reports.as_markdown import document as markdown_document
from clientlab.reports.as_terminal import document as terminal_document
from clientlab.reports.claims_section import SIGNS
from clientlab.reports.data_table import DataTable
from clientlab.reports.sections import Lines, Listing, Part, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.trial import shown_time

_UNPAIRED = (
    "A ratio is how many times as much a typical round of one run has as one of the baseline. All intervals together "
    "hold the truth in 95 of 100 comparisons; those that thresholds judge do so by themselves."
)


def sections(comparison: Comparison, judged: Sequence[ThresholdResult]) -> list[Section]:
    """Return the runs, what to know about them, the thresholds, and a table of changes for each arm."""
    failed = any(one.outcome == "failed" for one in judged)
    lines = [
        f"{what}: {run.run} ({shown_time(run.created)}, {run.surroundings.host}, {run.surroundings.python})"
        for what, run in (("Baseline", comparison.base), *(("Against", one.run) for one in comparison.others))
    ]
    limits = Listing("Thresholds", headline.lines(judged), alert=failed)
    parts: list[Part] = [Lines(lines), *(part for part in (*notices(comparison), limits) if part.items)]
    title = f"{' and '.join(one.run.run for one in comparison.others)} against {comparison.base.run}"
    return [
        Section("answer", title, parts, label="Answer", sentences=[summary(comparison)]),
        Section("changes", "Changes", [Tables(tables(comparison))], notes=list(notes(comparison))),
    ]


def as_text(comparison: Comparison, judged: Sequence[ThresholdResult]) -> RenderableType:
    """Return the comparison for a rich console."""
    return terminal_document(sections(comparison, judged))


def as_markdown(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Return the comparison for a pull request or the summary of a build."""
    return markdown_document(sections(comparison, judged))


def tables(comparison: Comparison) -> list[DataTable]:
    """Return a table for each arm, with three columns for each run beside the baseline."""
    names = [one.run.run for one in comparison.others] if len(comparison.others) > 1 else ["now"]
    heads = ["figure", "baseline", *(head for name in names for head in (name, "change", "ratio (95 % together)"))]
    found = []
    for arm in comparison.compared_arms():
        rows = []
        for figure in comparison.figures:
            changes = [one.changes[arm][figure.key] if arm in one.changes else None for one in comparison.others]
            known = next(change for change in changes if change)
            before = figure.text(known.before, at_least=known.bounds[0])
            rows.append([figure.key, before, *(cell for change in changes for cell in cells(change))])
        texts = [place for place in range(3, len(heads)) if (place - 2) % 3]
        found.append(DataTable(heads, rows, arm, texts=texts))
    return found


def cells(change: Change | None) -> tuple[str, str, str]:
    """Return the value, the verdict, and the ratio or the difference in percentage points."""
    if change is None:
        return (units.UNKNOWN,) * 3
    found = change.difference
    if found is None:
        estimate = units.UNKNOWN if change.ratio is None else f"x {units.ratio_of(change.ratio)}"
    elif not (change.before or change.after or found.value):
        estimate = ""
    else:
        ends = " to ".join(units.signed(100 * end) for end in found.interval or ())
        estimate = f"{units.signed(100 * found.value)} points{f' ({ends})' if ends else ''}"
    after = change.figure.text(change.after, at_least=change.bounds[1])
    return after, f"{SIGNS.get(change.verdict, '')} {change.word}".strip(), estimate


def as_json(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Return one object, with every figure in seconds, bytes, counts and shares.

    `baseline`: name of the run. `confidence`: of each interval. `runs`: surroundings that differ, and changes by arm
    and figure. `thresholds`.
    """
    runs = [
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
    ]
    document = {
        "baseline": comparison.base.run,
        "confidence": comparison.confidence,
        "runs": runs,
        "thresholds": [
            {"threshold": one.threshold.text, "run": one.run, "arm": one.arm, "outcome": one.outcome} for one in judged
        ],
    }
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


def notices(comparison: Comparison) -> Iterator[Listing]:
    """Yield lines for each run with something to know before its figures are read."""
    yield Listing(f"the baseline {comparison.base.run}", list(_incomplete(comparison.base)), alert=True)
    for one in comparison.others:
        lines = [f"not alike: {line}" for line in one.unlike]
        for found in one.differences:
            ends = (textwrap.shorten(text or "none", 60, placeholder="…") for text in (found.before, found.after))
            lines.append(f"{found.part}: {' -> '.join(ends)}")
        yield Listing(one.run.run, [*lines, *_incomplete(one.run)], alert=True)


def _incomplete(run: Run) -> Iterator[str]:
    """Yield what the figures of a run leave out."""
    trials = len(run.trials)
    if failed := sum(trial.status != "done" for trial in run.trials):
        yield f"{failed} of {trials} trials failed: only their errors count"
    if faulty := sum(trial.status == "done" and bool(trial.errors) for trial in run.trials):
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
    """Return how many figures changed."""
    known = [change for _, change in _changes(comparison) if change.before is not None or change.after is not None]
    verdicts = Counter(change.verdict for change in known)
    undecided = [change for change in known if change.verdict == "undecided"]
    unknown = sum(change.bounded or min(change.rounds) < FEWEST_ROUNDS for change in undecided)
    few = f" ({unknown} without an interval, which needs 3 rounds of both runs and no lower bounds)" if unknown else ""
    return (
        f"{len(known)} figures compared: {verdicts['better']} better, {verdicts['worse']} worse, {verdicts['equal']} "
        f"equal within {EQUAL_SHARE}, {len(undecided)} undecided{few}."
    )


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what a ratio is, and the smallest changes that this comparison could have seen."""
    yield _UNPAIRED
    largest: dict[str, float] = {}
    for figure, change in _changes(comparison):
        largest[figure.key] = max(largest.get(figure.key, 1.0), change.detectable or 1.0)
    found = [f"{key} {units.share(ratio - 1)}" for key, ratio in largest.items() if round(ratio, 6) > 1]
    if found:
        yield f"The smallest increase that shows in {POWER * 100:.0f} of 100 comparisons here: {', '.join(found)}."


def _changes(comparison: Comparison) -> Iterator[tuple[Figure, Change]]:
    """Yield the changes of all compared arms and runs, figure by figure."""
    arms = comparison.compared_arms()
    for figure in comparison.figures:
        for one in comparison.others:
            yield from ((figure, changes[figure.key]) for arm, changes in one.changes.items() if arm in arms)
