"""Long trials: what grew in them, per hour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clientlab import units
from clientlab.reports.charts.shapes import DataTable, Tone
from clientlab.reports.failures import arm_of
from clientlab.reports.sections import Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.soak import Growth, Soak

GROWS, SHRINKS, STEADY, LITTLE = "grows", "shrinks", "no growth found", "grew little, or stopped"
_TONES: dict[str, Tone] = {GROWS: "bad", STEADY: "good"}
_HEADS = ("arm", "round", "what", "growth per hour", "95 % interval", "level", "result")
_NOTES = (
    "growth per hour: over the last three quarters of a trial; its interval allows for dependent readings.",
    "memory: of the client's processes, without the sample log. open files: sockets included. latency: the median.",
)


@dataclass(frozen=True)
class _Level:
    """A level that may grow. `show`: its values as text."""

    name: str
    of: Callable[[Soak], Growth | None]
    show: Callable[[float], str]


_LEVELS = (
    _Level("memory", lambda soak: soak.memory, units.memory),
    _Level("open files", lambda soak: soak.open_files, units.count),
    _Level("latency", lambda soak: soak.latency, units.time),
)


_VERBS = {"memory": "grows", "open files": "grow", "latency": "grows"}


def soak(report: Report) -> Section[Part]:
    """Growth of memory, open files and latency. In runs without long trials, nothing."""
    rows = list(_rows(report.run))
    table = DataTable(
        _HEADS, rows, "Growth in long trials", keys=3, texts=(4, 6), brief=(6, 3, 4, 5), tone_of=_tone
    )  # fmt: skip
    tables = Tables([table] if rows else [])
    notes = _NOTES if rows else ()
    return Section("soak", "What grows", [tables], brief=True, sentences=_sentences(report.run), notes=notes)


def word_of(growth: Growth) -> str:
    """Whether the interval bears out a growth, or the contrary; a growth that ended, or is a trifle, is no leak."""
    if growth.grows:
        return GROWS
    return LITTLE if growth.low > 0 else SHRINKS if growth.high < 0 else STEADY


def _growths(run: Run) -> Iterator[tuple[str, int, _Level, Growth]]:
    """Arm, round, level and growth of each finished trial that is long enough."""
    for trial in run.trials:
        if trial.soak is not None and trial.status == "done":
            for level in _LEVELS:
                if (growth := level.of(trial.soak)) is not None:
                    yield arm_of(trial), trial.round, level, growth


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    for arm, number, level, growth in _growths(run):
        ends = f"{_signed(level, growth.low)} to {_signed(level, growth.high)}"
        grown = _signed(level, growth.per_hour)
        yield arm, str(number), level.name, grown, ends, level.show(growth.level), word_of(growth)


def _sentences(run: Run) -> list[str]:
    """What surely grows, by arm."""
    found: dict[tuple[str, str], list[tuple[_Level, Growth]]] = {}
    for arm, _, level, growth in _growths(run):
        found.setdefault((arm, level.name), []).append((level, growth))
    return [
        f"{arm}: {name} {_VERBS[name]} by at least {level.show(growth.low)} per hour{_of_rounds(grown, each)}."
        for (arm, name), each in found.items()
        if (grown := [one for one in each if one[1].grows])
        for level, growth in [min(grown, key=lambda one: one[1].low)]
    ]


def _of_rounds(grown: list[tuple[_Level, Growth]], each: list[tuple[_Level, Growth]]) -> str:
    return f" in {len(grown)} of {len(each)} rounds" if len(each) > 1 else ""


def _signed(level: _Level, value: float) -> str:
    return f"{'' if value < 0 else '+'}{level.show(value)}"


def _tone(cell: str) -> Tone:
    return _TONES.get(cell, "")
