"""A comparison of runs: as sections, which every format shows, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from clientlab import units
from clientlab.judging.comparison import FEWEST_EARLIER, Change, Compared, Comparison
from clientlab.judging.ranking import shortfall
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.charts import changes
from clientlab.reports.contents import SIGNS
from clientlab.reports.headline import threshold_lines
from clientlab.reports.sections import Charts, DataTable, Lines, Section, Tables
from clientlab.results.document import Run, failed_for_good
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import format_time
from clientlab.statistics.decisions import EQUAL_SHARE
from clientlab.statistics.ratios import FEWEST_ROUNDS

_UNPAIRED = (
    "A ratio divides the figure in a typical round of the run by that in a typical"
    " round of the baseline. In 95 of 100 comparisons, every interval contains the true"
    " value. This holds separately for the figures that thresholds judge."
)
_ONE_RUN = (
    "To see smaller changes, measure both versions in one run: clientlab run … with"
    " --env base=… --env head=… to compare packages or Pythons, or with --url base=…"
    " --url head=… to compare servers."
)


def sections(
    comparison: Comparison, judged: Sequence[ThresholdResult]
) -> list[Section]:
    """Return the runs, what to know about them, the thresholds, and all changes."""
    base = comparison.base
    runs = [_run_line("Baseline", base)]
    runs += [_run_line("Against", compared.run) for compared in comparison.others]
    failed = any(result.outcome == "failed" for result in judged)
    limits = Lines(
        threshold_lines(judged),
        "Thresholds",
        alert=failed,
    )
    notes = [part for part in (*notices(comparison), limits) if part.items]
    names = " and ".join(compared.run.run for compared in comparison.others)
    answer = Section(
        "answer",
        f"{names} against {base.run}",
        [Lines(runs), Lines(_trust(comparison)), *notes],
        label="Answer",
        sentences=[summary(comparison)],
    )
    drawn = Charts(lambda: changes(comparison), small=True)
    table = Tables(tables(comparison))
    how_to_read = Lines([_UNPAIRED], brief=False)
    return [
        answer,
        Section(
            "changes",
            "Changes",
            [drawn, table, how_to_read],
        ),
    ]


def _run_line(role: str, run: Run) -> str:
    where = f"{run.surroundings.host}, {run.surroundings.python}"
    return f"{role}: {run.run} ({format_time(run.created)}, {where})"


def notices(comparison: Comparison) -> Iterator[Lines]:
    """Yield for each run what to know before you read its figures."""
    base = comparison.base
    yield Lines(
        list(_incomplete(base)),
        f"the baseline {base.run}",
        alert=True,
    )
    for compared in comparison.others:
        lines = [f"not alike: {line}" for line in compared.unlike]
        for difference in compared.differences:
            values = (difference.before, difference.after)
            before, after = (
                textwrap.shorten(value or "none", 60, placeholder="…")
                for value in values
            )
            lines.append(f"{difference.part}: {before} -> {after}")
        lines += _incomplete(compared.run)
        yield Lines(lines, compared.run.run, alert=True)


def _incomplete(run: Run) -> Iterator[str]:
    """Yield what the figures of a run leave out."""
    trials = len(run.trials)
    failed = len(failed_for_good(run))
    if failed:
        yield f"{failed} of {trials} trials failed: only their errors count"
    finished = [trial for trial in run.trials if trial.status == "done"]
    faulty = [trial for trial in finished if trial.figures.errors]
    if faulty:
        yield (
            f"requests failed in {len(faulty)} of {trials} trials: their totals"
            f" ({BY_KEY['wall'].label}, …) are left out, because they did less work;"
            " throughput counts successful requests"
        )
    for arm in run.experiment.arms:
        why = shortfall(run.trials_of(arm.name))
        if why:
            yield f"{arm.name} is not compared: {why}"
    if run.status != "done":
        yield (
            f"the run is {run.status}: it has {trials} trials of"
            f" {run.experiment.rounds} rounds"
        )


def summary(comparison: Comparison) -> str:
    """Return how many figures changed, and what would show a smaller change."""
    known = _known_changes(comparison)
    counts = Counter(change.verdict for change in known)
    undecided = [change for change in known if change.verdict == "undecided"]
    unknown = [
        change
        for change in undecided
        if change.bounded or min(change.rounds) < FEWEST_ROUNDS
    ]
    parts = [
        f"{counts['better']} better",
        f"{counts['worse']} worse",
        f"{counts['equal']} equal within {EQUAL_SHARE}",
        f"{len(undecided)} undecided",
    ]
    if counts["small"]:
        parts.insert(3, f"{counts['small']} that differ by less than runs may")
    if unknown:
        parts[-1] += (
            f" ({len(unknown)} without an interval, which needs 3 rounds of both runs"
            " and no lower bounds)"
        )
    return f"{len(known)} figures compared: {', '.join(parts)}."


def _known_changes(comparison: Comparison) -> list[Change]:
    """Return the known changes of all runs."""
    known = []
    for compared in comparison.others:
        known += [change for _, change in known_changes(comparison, compared)]
    return known


def known_changes(
    comparison: Comparison, compared: Compared
) -> Iterator[tuple[str, Change]]:
    """Yield the changes of a run that have a value in either run, with their arms."""
    for arm in comparison.compared_arms():
        for change in compared.changes.get(arm, {}).values():
            if is_known(change):
                yield arm, change


def is_known(change: Change) -> bool:
    """Return whether either run has the figure."""
    return change.before is not None or change.after is not None


def _trust(comparison: Comparison) -> list[str]:
    """Return how much runs may differ, and how to measure without that."""
    known = _known_changes(comparison)
    floors = sorted({change.floor for change in known if change.floor})
    earlier = sorted({change.earlier for change in known if change.earlier})
    lines = []
    if earlier:
        counts = " and ".join(map(str, earlier))
        lines.append(
            f"The baseline is the mean of {counts} earlier runs of this plan on this"
            " machine, and changes are larger than the differences between these runs."
        )
    lines += [
        f"Runs may differ by {units.share(floor)} as wholes (--floor), however many"
        f" rounds they have: only larger changes count. {FEWEST_EARLIER} earlier runs"
        " of this plan on this machine would tell."
        for floor in floors
    ]
    return [*lines, _ONE_RUN]


def tables(comparison: Comparison) -> list[DataTable]:
    """Return a table for each arm, with three columns for each run but the baseline."""
    names = [compared.run.run for compared in comparison.others]
    if len(names) == 1:
        names = ["now"]
    heads = ["figure", "baseline"]
    texts = []
    for name in names:
        heads += [name, "change", "ratio (95 % together)"]
        texts += [len(heads) - 2, len(heads) - 1]
    found = []
    for arm in comparison.compared_arms():
        by_run = [compared.changes.get(arm, {}) for compared in comparison.others]
        rows = []
        for figure in comparison.figures:
            changes = [of_run.get(figure.key) for of_run in by_run]
            known = [change for change in changes if change and is_known(change)]
            if known:
                before = figure.text(known[0].before, at_least=known[0].bounds[0])
                cells = chain.from_iterable(map(change_cells, changes))
                rows.append([figure.key, before, *cells])
        found.append(DataTable(heads, rows, arm, texts=texts))
    return found


def change_cells(change: Change | None) -> tuple[str, str, str]:
    """Return the value, the verdict, and the ratio or the difference in points."""
    if change is None or not is_known(change):
        return (units.UNKNOWN,) * 3
    difference = change.difference
    estimate = ""
    if change.ratio is not None:
        estimate = f"x {units.ratio_of(change.ratio)}"
    elif difference is None:
        estimate = units.UNKNOWN
    elif change.before or change.after or difference.value:
        estimate = f"{units.signed(100 * difference.value)} points"
        if difference.interval:
            low, high = (units.signed(100 * end) for end in difference.interval)
            estimate += f" ({low} to {high})"
    after = change.figure.text(change.after, at_least=change.bounds[1])
    return after, f"{SIGNS.get(change.verdict, '')} {change.word}".strip(), estimate


def as_json(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Return one object, with every figure in seconds, bytes, counts and shares.

    `baseline`: name of the run. `confidence`: of each interval. `runs`: surroundings
    that differ, and changes by arm and figure. `thresholds`.
    """
    arms = comparison.compared_arms()
    runs = []
    for compared in comparison.others:
        changes_by_arm = {
            arm: {key: _change(change) for key, change in changes.items()}
            for arm, changes in compared.changes.items()
            if arm in arms
        }
        runs.append(
            {
                "run": compared.run.run,
                "surroundings": list(map(asdict, compared.differences)),
                "unlike": compared.unlike,
                "arms": changes_by_arm,
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
    ratio = change.ratio
    difference = change.difference
    estimate = ratio or difference
    return {
        "unit": change.figure.unit,
        "before": change.before,
        "after": change.after,
        "at_least": list(change.bounds),
        "ratio": ratio.value if ratio else None,
        "difference": difference.value if difference else None,
        "interval": estimate.interval if estimate else None,
        "confidence": change.confidence,
        "rounds": list(change.rounds),
        "floor": change.floor,
        "earlier_runs": change.earlier,
        "verdict": change.word,
    }
