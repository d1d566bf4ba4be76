"""Faults: how many were asked for and made, and what each arm met; of an axis of faults, a matrix of words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from clientlab import units
from clientlab.reports.charts.shapes import DataTable, Tone
from clientlab.reports.failures import arm_of
from clientlab.reports.sections import Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.fault_counts import SUCCEEDED, FaultCounts, MetFault, added
from clientlab.results.trial import Trial
from clientlab.workload.fault_kinds import KINDS

AXIS = "faults"
_HEADS = ("arm", "fault", "asked", "made", "met", "noticed after", "used again", "lost beside")
HANGS, UNNOTICED, SENT_AGAIN, OK = "hangs", "unnoticed", "sent again", "ok"
PATTERNS: tuple[tuple[str, Tone], ...] = (
    ("lost beside", "bad"),
    (f"^(?:{HANGS}|{UNNOTICED})", "bad"),
    ("failed", "open"),
    (f"^(?:timeout|{SENT_AGAIN})", "open"),
    ("^[A-Za-z]", "good"),
)
"""Of a cell: regular expressions, of which the first that is found decides its colour here and in dashboards."""
_NOTES = (
    "asked: requests for which the fault was drawn, the same ones in all arms of a round. A link's hit connections.",
    "made: by the upstream or the link. If they are more, a library or the proxy has sent requests again.",
    "noticed after: mean time of those that failed. used again: share of them whose connection was used again.",
    "lost beside: failed requests for which no fault was drawn.",
)


@dataclass(frozen=True)
class ArmFault:
    """One fault of one arm, over all rounds. `made`: None if nobody counted. `used_again`: a share; None: unknown."""

    arm: str
    fault: str
    met: MetFault
    made: int | None
    used_again: float | None
    beside: int
    hangs: bool
    of_link: bool = False

    @property
    def word(self) -> str:
        """What the caller sees most often: ok, the kind of the error, or what is worse than an error."""
        if self.hangs:
            return HANGS
        if not self.met.met:
            return OK if self.of_link and self.made else units.UNKNOWN
        kind = max(self.met.met, key=self.met.met.__getitem__)
        if kind != SUCCEEDED:
            return kind
        if not KINDS[self.fault.partition("=")[0]].spoils:
            return OK
        return SENT_AGAIN if (self.made or 0) > self.met.asked else UNNOTICED

    @property
    def cell(self) -> str:
        """The word, the time until the failed requests ended, and the requests lost beside them."""
        return self._joined(units.time(self.met.notice_seconds) if self.met.failed else "")

    @property
    def short(self) -> str:
        """The same without the time, for a picture."""
        return self._joined("")

    def _joined(self, noticed: str) -> str:
        """Where most requests succeeded and some failed, the word alone would hide these."""
        word, failed = self.word, self.met.failed
        if failed and not self.hangs and self.met.met.get(SUCCEEDED, 0) >= failed:
            word = f"{failed:,} of {self.met.asked:,} failed"
        beside = f"{self.beside:,} lost beside" if self.beside else ""
        return " · ".join(part for part in (word, noticed, beside) if part)


def matrix(report: Report) -> Section[Part]:
    """Of an axis of faults, what each arm meets with each of them."""
    tables = list(matrices(report.run))
    return Section("fault-matrix", "What the caller meets", [Tables(tables)], label="Faults by client", brief=True)


def answers_of_axis(run: Run) -> list[str] | None:
    """What the clients meet, in place of who is the fastest: times with unlike faults do not compare.

    None without an axis of faults.
    """
    axes = {arm.name: arm.sweep or arm.strategy for arm in run.experiment.arms if AXIS in arm.axes}
    found = [one for one in arm_faults(run) if one.arm in axes]
    kinds = list(dict.fromkeys(one.fault for one in found))
    if len(kinds) <= 1 or len(axes) < len(run.experiment.arms):
        return None
    clients = list(dict.fromkeys(axes[one.arm] for one in found))
    worst = (
        ("Hung", "no client hung", [one for one in found if one.hangs]),
        ("Unnoticed", "no fault passed unnoticed", [one for one in found if one.word == UNNOTICED]),
        ("Sent again", "no request was sent again", [one for one in found if one.word == SENT_AGAIN]),
        ("Lost requests beside", "no other request was lost", [one for one in found if one.beside]),
    )
    none = "; ".join(absent for _, absent, pairs in worst if not pairs)
    known = [f"{what}: {_by_fault(axes, pairs)}." for what, _, pairs in worst if pairs]
    return [f"{len(clients)} clients met {len(kinds)} faults{none and f': {none}'}.", *known]


def _by_fault(axes: dict[str, str], pairs: Sequence[ArmFault]) -> str:
    """The faults with their clients, in words."""
    clients: dict[str, list[str]] = {}
    for one in pairs:
        clients.setdefault(one.fault, []).append(axes[one.arm])
    return "; ".join(f"{fault} with {', '.join(names)}" for fault, names in clients.items())


def faults(report: Report) -> Section[Part]:
    """What was asked for, made and met. Without faults, nothing."""
    found = list(arm_faults(report.run))
    rows = [_row(one) for one in found]
    table = DataTable(_HEADS, rows, "Faults by arm", keys=2, texts=(4,), brief=(4, 5, 2, 3, 7))
    return Section("faults", "Faults", [Tables([table] if rows else [])], brief=True, notes=_NOTES if rows else ())


def arm_faults(run: Run) -> Iterator[ArmFault]:
    """Each fault of each arm, in the order of the arms."""
    trials: dict[str, list[Trial]] = {arm.name: [] for arm in run.experiment.arms}
    for trial in run.trials:
        if trial.faults is not None and (trial.status == "done" or trial.hangs):
            trials.setdefault(trial.arm, []).append(trial)
    for own in filter(None, trials.values()):
        arm, counts = arm_of(own[0]), added([trial.faults for trial in own])
        assert counts is not None  # noqa: S101 - each of them has counts
        yield from _of_link(arm, own, counts)
        for fault, met in counts.by_fault.items():
            alone = len(counts.by_fault) == 1
            yield ArmFault(
                arm, fault, met, _made(own, fault, list(counts.by_fault)), _used_again(own, met) if alone else None,
                sum(counts.beside.values()), any(trial.hangs for trial in own),
            )  # fmt: skip


def _of_link(arm: str, trials: Sequence[Trial], counts: FaultCounts) -> Iterator[ArmFault]:
    """The faults of an arm's link. They hit connections, so all errors beside those of the upstream are theirs."""
    link = trials[0].link
    made = link.faults.each if link is not None and link.faults is not None else ()
    for fault in made:
        uses = [trial.link_use.faults for trial in trials if trial.link_use is not None and trial.link_use.faults]
        lost = MetFault(asked=sum(counts.beside.values()), met=counts.beside, failed_seconds=counts.beside_seconds)
        number = sum(one.get(fault.kind.name, 0) for one in uses)
        hangs = any(trial.hangs for trial in trials)
        yield ArmFault(arm, fault.text, lost, number, None, 0, hangs, of_link=True)


def _made(trials: Sequence[Trial], fault: str, others: Sequence[str]) -> int | None:
    """How many of that kind the upstream made; None if it counted none, or several faults of the kind at once."""
    kind = fault.partition("=")[0]
    uses = [trial.upstream_use for trial in trials]
    alone = sum(one.partition("=")[0] == kind for one in others) == 1
    if not alone or any(use is None or use.faults is None for use in uses):
        return None
    return sum((use.faults or {}).get(kind, 0) for use in uses if use is not None)


def _used_again(trials: Sequence[Trial], met: MetFault) -> float | None:
    """The share of these requests that cost no connection: all beyond one for each request in flight."""
    opened = [trial.connections_opened for trial in trials]
    known = [count for count in opened if count is not None]
    if len(known) < len(opened) or not met.asked:
        return None
    further = sum(max(0, count - trial.concurrency) for count, trial in zip(known, trials, strict=True))
    return max(0.0, 1 - further / met.asked)


def _row(one: ArmFault) -> tuple[str, ...]:
    met = Counter(one.met.met).most_common()
    return (
        one.arm,
        one.fault,
        units.UNKNOWN if one.of_link else f"{one.met.asked:,}",
        units.UNKNOWN if one.made is None else f"{one.made:,}",
        HANGS if one.hangs else ", ".join(f"{count:,} {OK if kind == SUCCEEDED else kind}" for kind, count in met),
        units.time(one.met.notice_seconds),
        units.UNKNOWN if one.used_again is None else f"{100 * one.used_again:.0f} %",
        f"{one.beside:,}",
    )


def matrices(run: Run, cell: Callable[[ArmFault], str] = attrgetter("cell")) -> Iterator[DataTable]:
    """Of each group whose axis is faults: a row for each arm without its fault, a column for each fault."""
    found = list(arm_faults(run))
    axes = {arm.name: arm for arm in run.experiment.arms if AXIS in arm.axes}
    for group in dict.fromkeys(arm.group for arm in axes.values()):
        cells: dict[str, dict[str, str]] = {}
        for one in found:
            arm = axes.get(one.arm)
            if arm is not None and arm.group == group:
                cells.setdefault(arm.sweep or arm.strategy, {})[one.fault] = cell(one)
        names = list(dict.fromkeys(fault for row in cells.values() for fault in row))
        rows = [(name, *(row.get(fault, units.UNKNOWN) for fault in names)) for name, row in cells.items()]
        if len(names) > 1:
            title = f"What the caller meets: {group}"
            columns = tuple(range(1, len(names) + 1))
            yield DataTable(("arm", *names), rows, title, texts=columns, tone_of=tone_of)


def tone_of(cell: str) -> Tone:
    """Good: the caller has its answer, or an error at once. Open: a time limit, or another try, was needed."""
    return next((tone for pattern, tone in PATTERNS if re.search(pattern, cell)), "")
