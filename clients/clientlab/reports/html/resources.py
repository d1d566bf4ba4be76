"""What the strategies cost besides time: CPU, memory, connections; small pictures beside each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from clientlab.reports import units
from clientlab.reports.html.entries import Entry, Way
from clientlab.reports.html.plot import Bar, Bars
from clientlab.reports.html.scale import Scale, even, logarithmic, shortened
from clientlab.reports.rows import above_idle
from clientlab.runs.document import Trial

_FAR = 50.0
"""From this ratio of the largest to the least on, dots on a logarithmic axis take the place of bars."""

_MEBIBYTE = 1 << 20  # ticks are round numbers of these


@dataclass(frozen=True)
class _Kind:
    title: str
    axis: str
    figure: Callable[[Trial], float | None]
    words: Callable[[float], str]


def _cpu(trial: Trial) -> float | None:
    return None if trial.cpu_seconds is None or not trial.requests else trial.cpu_seconds / trial.requests


def _mebibytes(trial: Trial) -> float | None:
    return None if trial.peak_rss_bytes is None else trial.peak_rss_bytes / _MEBIBYTE


def _memory(mebibytes: float) -> str:
    return units.memory(mebibytes * _MEBIBYTE)


def _count(value: float) -> str:
    return shortened(units.digits(value))


def _above_idle(trial: Trial) -> float | None:
    found = above_idle(trial)
    return None if found is None else found / _MEBIBYTE


_KINDS = (
    _Kind("CPU time", "CPU time for a request", _cpu, units.time),
    _Kind("Memory", "peak of memory", _mebibytes, _memory),
    _Kind("Connections", "connections opened in a trial", lambda t: t.connections_opened, _count),
)

_LARGE = _Kind("Memory above idle", "peak of memory less what it was before", _above_idle, _memory)
"""Where bodies are large enough to be seen in it."""


def charts(way: Way) -> list[Bars]:
    """Those of a way, of what its trials have figures of."""
    kinds = (*_KINDS, _LARGE) if way.group.large else _KINDS
    return [bars for kind in kinds if (bars := _chart(way, kind))]


def _chart(way: Way, kind: _Kind) -> Bars | None:
    found = [(entry, values) for entry in way.entries if (values := entry.figures(kind.figure))]
    if not found:
        return None
    positive = [value for _, values in found for value in values if value > 0]
    far = bool(positive) and max(positive) / min(positive) > _FAR
    scale = (logarithmic(positive) if far else None) or even(positive)
    return Bars(
        title=kind.title,
        rows=[_bar(entry, values, kind, scale) for entry, values in found],
        ticks=scale.ticks_across(kind.words),
        axis=f"{kind.axis}{' (logarithmic)' if scale.log else ''}",
    )


def _bar(entry: Entry, values: list[float], kind: _Kind, scale: Scale) -> Bar:
    middle = median(values)
    rounds = ", ".join(map(kind.words, values))
    return Bar(
        name=entry.name,
        look=entry.look,
        value=kind.words(middle),
        title=f"{entry.name}: median {kind.words(middle)} of {len(values)} rounds ({rounds})",
        length=None if scale.log else scale.place(middle),
        dots=[scale.place(value) for value in values],
        first=entry.row.fastest,
    )
