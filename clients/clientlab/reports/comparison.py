"""A comparison of runs: as sections, which every format shows, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from clientlab import units
from clientlab.judging.comparison import FEWEST_EARLIER, Change, Comparison
from clientlab.judging.ranking import shortfall
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.charts import changes
from clientlab.reports.contents import SIGNS
from clientlab.reports.headline import threshold_lines
from clientlab.reports.sections import Charts, DataTable, Lines, Part, Section, Tables
from clientlab.results.document import Run, failed_for_good
from clientlab.results.figures import BY_KEY
from clientlab.statistics.decisions import EQUAL_SHARE
from clientlab.statistics.ratios import FEWEST_ROUNDS
from clientlab.trial.result import format_time

_UNPAIRED = (
    "A ratio is how many times as much a typical round of one run has as one of the"
    " baseline. All intervals together hold the truth in 95 of 100 comparisons; those"
    " that thresholds judge do so by themselves."
)
_ONE_RUN = (
    "To see smaller changes, measure both in one run: clientlab run … --env base=…"
    " --env head=… (packages or Pythons) or --url base=… --url head=… (servers)."
)


def sections(
    comparison: Comparison, judged: Sequence[ThresholdResult]
) -> list[Section]:
    """Return the runs, what to know about them, the thresholds, and charts and a table
    of changes for each arm.
    """
    failed = any(one.outcome == "failed" for one in judged)
    lines = [
        f"{what}: {run.run} ({format_time(run.created)}, {run.surroundings.host},"
        f" {run.surroundings.python})"
        for what, run in (
            ("Baseline", comparison.base),
            *(("Against", one.run) for one in comparison.others),
        )
    ]
    limits = Lines(threshold_lines(judged), "Thresholds", alert=failed)
    parts: list[Part] = [
        Lines(lines),
        *(part for part in (*notices(comparison), limits) if part.items),
    ]
    parts.insert(1, Lines(_trust(comparison)))
    title = (
        f"{' and '.join(one.run.run for one in comparison.others)} against"
        f" {comparison.base.run}"
    )
    drawn = Charts(lambda: changes(comparison), small=True)
    return [
        Section(
            "answer", title, parts, label="Answer", sentences=[summary(comparison)]
        ),
        Section(
            "changes",
            "Changes",
            [drawn, Tables(tables(comparison)), Lines([_UNPAIRED], brief=False)],
        ),
    ]


def notices(comparison: Comparison) -> Iterator[Lines]:
    """Yield for each run what to know before you read its figures."""
    yield Lines(
        list(_incomplete(comparison.base)),
        f"the baseline {comparison.base.run}",
        alert=True,
    )
    for one in comparison.others:
        lines = [f"not alike: {line}" for line in one.unlike]
        for found in one.differences:
            ends = (
                textwrap.shorten(text or "none", 60, placeholder="…")
                for text in (found.before, found.after)
            )
            lines.append(f"{found.part}: {' -> '.join(ends)}")
        yield Lines([*lines, *_incomplete(one.run)], one.run.run, alert=True)


def _incomplete(run: Run) -> Iterator[str]:
    """Yield what the figures of a run leave out."""
    trials = len(run.trials)
    if failed := len(failed_for_good(run)):
        yield f"{failed} of {trials} trials failed: only their errors count"
    if faulty := sum(
        trial.status == "done" and bool(trial.figures.errors) for trial in run.trials
    ):
        yield (
            f"requests failed in {faulty} of {trials} trials: their totals"
            f" ({BY_KEY['wall'].label}, …) are left out, because they did less work;"
            " throughput counts successful requests"
        )
    for arm in run.experiment.arms:
        if why := shortfall(run.trials_of(arm.name)):
            yield f"{arm.name} is not compared: {why}"
    if run.status != "done":
        yield (
            f"the run is {run.status}: it has {trials} trials of"
            f" {run.experiment.rounds} rounds"
        )


def summary(comparison: Comparison) -> str:
    """Return how many figures changed, and what would show a smaller change."""
    known = _known_changes(comparison)
    verdicts = Counter(change.verdict for change in known)
    undecided = [change for change in known if change.verdict == "undecided"]
    unknown = sum(
        change.bounded or min(change.rounds) < FEWEST_ROUNDS for change in undecided
    )
    few = (
        f" ({unknown} without an interval, which needs 3 rounds of both runs and no"
        " lower bounds)"
        if unknown
        else ""
    )
    small = (
        f"{verdicts['small']} that differ by less than runs may, "
        if verdicts["small"]
        else ""
    )
    return (
        f"{len(known)} figures compared: {verdicts['better']} better,"
        f" {verdicts['worse']} worse, {verdicts['equal']} equal within {EQUAL_SHARE},"
        f" {small}{len(undecided)} undecided{few}."
    )


def _known_changes(comparison: Comparison) -> list[Change]:
    """Return the changes of all compared arms and runs, figure by figure, that have a
    value in either run.
    """
    arms = comparison.compared_arms()
    compared = [
        changes
        for one in comparison.others
        for arm, changes in one.changes.items()
        if arm in arms
    ]
    return [
        changes[of.key]
        for of in comparison.figures
        for changes in compared
        if is_known(changes[of.key])
    ]


def is_known(change: Change) -> bool:
    """Return whether either run has the figure."""
    return change.before is not None or change.after is not None


def _trust(comparison: Comparison) -> list[str]:
    """Return how much runs may differ, and how to measure without that."""
    known = _known_changes(comparison)
    floors = sorted({change.floor for change in known if change.floor})
    earlier = sorted({change.earlier for change in known if change.earlier})
    found = []
    if earlier:
        counts = " and ".join(map(str, earlier))
        found.append(
            f"The baseline is the mean of {counts} earlier runs of this plan on this"
            " machine, and changes are larger than the differences between these runs."
        )
    found += [
        f"Runs may differ by {units.share(floor)} as wholes (--floor), however many"
        f" rounds they have: only larger changes count. {FEWEST_EARLIER} earlier runs"
        " of this plan on this machine would tell."
        for floor in floors
    ]
    return [*found, _ONE_RUN]


def tables(comparison: Comparison) -> list[DataTable]:
    """Return a table for each arm, with three columns for each run beside
    the baseline.
    """
    names = (
        [one.run.run for one in comparison.others]
        if len(comparison.others) > 1
        else ["now"]
    )
    heads = [
        "figure",
        "baseline",
        *(head for name in names for head in (name, "change", "ratio (95 % together)")),
    ]
    texts = [place for place in range(3, len(heads)) if (place - 2) % 3]
    found = []
    for arm in comparison.compared_arms():
        rows = []
        for figure in comparison.figures:
            changes = [
                one.changes[arm][figure.key] if arm in one.changes else None
                for one in comparison.others
            ]
            if known := next(
                (change for change in changes if change and is_known(change)), None
            ):
                before = figure.text(known.before, at_least=known.bounds[0])
                rows.append(
                    [
                        figure.key,
                        before,
                        *(cell for change in changes for cell in change_cells(change)),
                    ]
                )
        found.append(DataTable(heads, rows, arm, texts=texts))
    return found


def change_cells(change: Change | None) -> tuple[str, str, str]:
    """Return the value, the verdict, and the ratio or the difference in percentage
    points.
    """
    if change is None or not is_known(change):
        return (units.UNKNOWN,) * 3
    found = change.difference
    if found is None:
        estimate = (
            units.UNKNOWN
            if change.ratio is None
            else f"x {units.ratio_of(change.ratio)}"
        )
    elif not (change.before or change.after or found.value):
        estimate = ""
    else:
        ends = " to ".join(units.signed(100 * end) for end in found.interval or ())
        estimate = (
            f"{units.signed(100 * found.value)} points{f' ({ends})' if ends else ''}"
        )
    after = change.figure.text(change.after, at_least=change.bounds[1])
    return after, f"{SIGNS.get(change.verdict, '')} {change.word}".strip(), estimate


def as_json(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Return one object, with every figure in seconds, bytes, counts and shares.

    `baseline`: name of the run. `confidence`: of each interval. `runs`: surroundings
    that differ, and changes by arm and figure. `thresholds`.
    """
    arms = comparison.compared_arms()
    runs = []
    for one in comparison.others:
        changes = {arm: one.changes[arm] for arm in one.changes if arm in arms}
        runs.append(
            {
                "run": one.run.run,
                "surroundings": [asdict(difference) for difference in one.differences],
                "unlike": one.unlike,
                "arms": {
                    arm: {key: _change(one) for key, one in of_arm.items()}
                    for arm, of_arm in changes.items()
                },
            }
        )
    limits = [
        {
            "threshold": result.threshold.text,
            "run": result.run,
            "arm": result.arm,
            "outcome": result.outcome,
            "reason": result.reason,
        }
        for result in judged
    ]
    whole = {
        "baseline": comparison.base.run,
        "confidence": comparison.confidence,
        "runs": runs,
        "thresholds": limits,
    }
    return json.dumps(whole, indent=1, allow_nan=False)


def _change(change: Change) -> dict[str, Any]:
    ratio, difference = change.ratio, change.difference
    return {
        "unit": change.figure.unit,
        "before": change.before,
        "after": change.after,
        "at_least": list(change.bounds),
        "ratio": ratio and ratio.value,
        "difference": difference and difference.value,
        "interval": found.interval if (found := ratio or difference) else None,
        "confidence": change.confidence,
        "rounds": list(change.rounds),
        "floor": change.floor,
        "earlier_runs": change.earlier,
        "verdict": change.word,
    }
