"""The page on failures: a table and a picture for each experiment on what clients do when something misbehaves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from clientlab import settings, units
from clientlab.reports import cancel_section, fault_section
from clientlab.reports.as_markdown import data_table
from clientlab.reports.charts import picture
from clientlab.reports.charts.shapes import DataTable, Tone
from clientlab.reports.rows import Row, groups_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial
from findings.contest import listed
from findings.statements import UnsureSentence

FAILURES = ("faults", "idle", "idle-5", "cancel", "resilience", "defaults")
"""The experiments of the page. They have pictures of words: most of what they compare is no time."""

_SERVED_WELL, _SERVED_MOST = 0.99, 0.9
"""Shares of served requests from which a cell counts as good, and as open."""


def table_of(run: Run) -> DataTable:
    """The picture of an experiment of this page, as a table."""
    return _TABLES[run.experiment.name](run)


def write_picture(run: Run, path: Path) -> None:
    """Draw that table. Raises LabError."""
    picture.save_table(run.experiment.question, table_of(run), path, run.run)


def words_table(run: Run) -> str:
    """That table in Markdown."""
    return data_table(table_of(run))


def _of_faults(run: Run) -> DataTable:
    """A row for each client, a column for each fault."""
    (found,) = fault_section.matrices(run, attrgetter("short"))
    return replace(found, headings=[head.partition("=")[0] for head in found.headings])


def lost_beside(run: Run) -> str:
    """The clients that lost requests which had no fault, with how many in all rounds, for a sentence."""
    lost: dict[str, int] = {}
    strategies = {arm.name: arm.strategy for arm in run.experiment.arms}
    for one in fault_section.arm_faults(run):
        lost[strategies[one.arm]] = lost.get(strategies[one.arm], 0) + one.beside
    return _listed(f"{name} ({count})" for name, count in lost.items() if count)


def hanging(run: Run) -> str:
    """The clients that hang, for a sentence."""
    strategies = {arm.name: arm.strategy for arm in run.experiment.arms}
    return _listed(dict.fromkeys(strategies[trial.arm].partition("@")[0] for trial in run.trials if trial.hangs))


def losing_slots(run: Run) -> str:
    """The clients that lost slots of their pool, with the most of a round, for a sentence."""
    arms = {arm.name: arm.sweep or arm.strategy for arm in run.experiment.arms}
    most: dict[str, tuple[int, int]] = {}
    for trial in run.trials:
        if trial.cancelled is not None and trial.cancelled.before is not None and trial.cancelled.slots_lost:
            lost = trial.cancelled.slots_lost, trial.cancelled.before.at_once
            most[arms[trial.arm]] = max(most.get(arms[trial.arm], lost), lost)
    return _listed(f"{name} ({lost} of {slots})" for name, (lost, slots) in most.items())


def idle_answer(run: Run) -> str:
    """After which pauses requests failed, and of which client fewest and most, in a sentence."""
    found: dict[float, Counter[str]] = {}
    sent: Counter[float] = Counter()
    for arm in run.experiment.arms:
        own = [trial for trial in run.trials if trial.arm == arm.name]
        pause = _pause(run, own[0])
        found.setdefault(pause, Counter())[_client(own[0])] += _failed(own)
        sent[pause] += sum(trial.requests for trial in own)
    none = [f"{pause:.3g} s" for pause, lost in found.items() if not lost.total()]
    parts = [f"after {_listed(none)}, none failed"] if none else []
    for pause, lost in found.items():
        if lost.total():
            (most, many), *_, (least, few) = lost.most_common()
            each = f"of {sent[pause] // len(lost)} requests of a client"
            parts.append(f"after {pause:.3g} s, {few} ({least}) to {many} ({most}) {each} failed")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _of_idle(run: Run) -> DataTable:
    """A row for each client, a column for each method and pause: how many requests failed."""
    cells: dict[str, dict[str, str]] = {}
    for arm in run.experiment.arms:
        own = [trial for trial in run.trials if trial.arm == arm.name]
        lost, sent = _failed(own), sum(trial.requests for trial in own)
        column = f"{run.experiment.workloads[arm.workload].method}, {_pause(run, own[0]):.3g} s"
        cells.setdefault(_client(own[0]), {})[column] = f"{lost} of {sent}"
    return _pivoted("client", cells, lambda cell: "good" if cell.startswith("0 ") else "bad")


def _failed(trials: Iterable[Trial]) -> int:
    return sum(sum(trial.errors.values()) for trial in trials)


def _pause(run: Run, trial: Trial) -> float:
    """Seconds between two requests of a process: each sends every n-th of the workload's rate."""
    workload = run.experiment.workloads[trial.workload]
    return workload.shards / (workload.rate or math.nan)


def _client(trial: Trial) -> str:
    """The strategy's name, and that it keeps its library's own limits where it does."""
    name, own = settings.split(trial.strategy)
    return f"{name} (defaults)" if own.get("library_defaults") else name


def _of_cancel(run: Run) -> DataTable:
    """A row for each client, with and without a small pool; a column for each share of cancelled requests."""
    cells: dict[str, dict[str, str]] = {}
    for arm in run.experiment.arms:
        own = [trial for trial in run.trials if trial.arm == arm.name and trial.cancelled is not None]
        if own:
            share = str(arm.axes[cancel_section.AXIS]).partition("@")[0]
            cells.setdefault(arm.sweep or arm.strategy, {})[f"{share} given up"] = _left(own)
    return _pivoted("client", cells, _tone_of_left)


def _left(trials: Sequence[Trial]) -> str:
    """The worst of the rounds."""
    if any(trial.hangs for trial in trials):
        return "hangs"
    found = [trial.cancelled for trial in trials if trial.cancelled is not None]
    lost = max(one.slots_lost or 0 for one in found)
    slots = min(one.before.at_once for one in found if one.before is not None)
    recovery = max(BY_KEY["recovery"].of(trial) or 0.0 for trial in trials)
    return f"{f'{lost} of {slots} slots lost' if lost else 'no slot lost'}, {units.time(recovery)} to recover"


def _tone_of_left(cell: str) -> Tone:
    return "good" if cell.startswith("no slot") else "bad"


def _of_resilience(run: Run) -> DataTable:
    """A row for each policy, a column for each situation: served share, load for each request, load after an outage."""
    cells: dict[str, dict[str, str]] = {}
    for row in (row for group in groups_of(run) for row in group.rows):
        limited = row.name.startswith(_LIMITED)
        situation = "rate limit" if limited else row.trials[0].workload
        cells.setdefault(row.name.removeprefix(_LIMITED), {})[situation] = _served(row)
    order = ["none", *(name for name in cells if name != "none")]
    return _pivoted("policy", {name: cells[name] for name in order}, _tone_of_served)


_LIMITED = "limited-"


def _served(row: Row) -> str:
    after = row.figures["after_outage"]
    shown = [units.share(row.figures["served_share"]), f"load {row.text(BY_KEY['amplification'])}"]
    return ", ".join(shown if after is None else [*shown, f"{units.digits(after, 3)} after"])


def _tone_of_served(cell: str) -> Tone:
    try:
        served = float(cell.split(maxsplit=1)[0]) / 100
    except ValueError:
        return ""
    return "good" if served >= _SERVED_WELL else "open" if served >= _SERVED_MOST else "bad"


_AS_WRITTEN = "-as-written"


def _of_defaults(run: Run) -> DataTable:
    """A row for each library, with the lab's limits and as written; a column for each situation."""
    rows = {row.trials[0].arm: row for group in groups_of(run) for row in group.rows}
    faults = {one.arm: one for one in fault_section.arm_faults(run)}
    cells: dict[str, dict[str, str]] = {}
    for arm in run.experiment.arms:
        situation, _, library = arm.name.removesuffix(_AS_WRITTEN).partition("-")
        name = f"{library}, as written" if arm.name.endswith(_AS_WRITTEN) else library
        own = [trial for trial in run.trials if trial.arm == arm.name]
        cells.setdefault(name, {})[situation] = _of_default(situation, own, rows.get(arm.name), faults.get(arm.name))
    return _pivoted("client", dict(sorted(cells.items())), _tone_of_default)


def _of_default(situation: str, trials: Sequence[Trial], row: Row | None, fault: fault_section.ArmFault | None) -> str:
    """What differs in that situation: a time, connections, requests at the server, or failed ones."""
    if any(trial.hangs for trial in trials):
        return "hangs"
    if situation == "stall" and fault is not None:
        return f"fails after {units.time(fault.met.notice_seconds)}"
    if situation == "reset" and fault is not None:
        return f"{units.count(fault.made)} sent for {fault.met.asked}"
    if situation == "idle":
        return f"{_failed(trials)} of {sum(trial.requests for trial in trials)} failed"
    if row is None:
        return units.UNKNOWN
    time = units.time(row.figures["wall"])
    return f"{units.count(row.figures['connections'])} connections, {time}" if situation == "crowd" else time


def _tone_of_default(cell: str) -> Tone:
    if cell.endswith("failed"):
        return "good" if cell.startswith("0 ") else "bad"
    return "bad" if cell == "hangs" else "good" if cell.startswith("fails") else ""


def _pivoted(key: str, cells: dict[str, dict[str, str]], tone_of: Callable[[str], Tone]) -> DataTable:
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    rows = [(name, *(row.get(column, units.UNKNOWN) for column in columns)) for name, row in cells.items()]
    return DataTable((key, *columns), rows, texts=range(1, len(columns) + 1), tone_of=tone_of)


def _listed(parts: Iterable[str]) -> str:
    """Raises UnsureSentence where a sentence has nothing left to name: its run has shown none of what it states."""
    names = list(parts)
    if not names:
        raise UnsureSentence(
            "page on failures: a sentence names what failed, and its run has none; change the sentence"
        )
    return listed(names)


_TABLES: dict[str, Callable[[Run], DataTable]] = {
    "faults": _of_faults,
    "idle": _of_idle,
    "idle-5": _of_idle,
    "cancel": _of_cancel,
    "resilience": _of_resilience,
    "defaults": _of_defaults,
}
