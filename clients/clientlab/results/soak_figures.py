"""The figures of a long trial: what surely grew in it, per hour."""

from __future__ import annotations

from clientlab.results.figure_definition import LESS, Figure
from clientlab.results.soak import Growth, Soak
from clientlab.results.trial import Trial
from clientlab.units import Unit

_TEXT = (
    "trials of a minute and longer: the lower end of the 95 % interval of the growth of {} per hour; 0 where "
    "nothing grows"
)


def _figure(key: str, field: str, label: str, what: str, unit: Unit) -> Figure:
    """`field`: of `Soak`. A limit on the figure fails an honest client in 3 of 100 trials at most."""

    def of(trial: Trial) -> float | None:
        return None if trial.soak is None else _sure(trial.soak, field)

    suffix = {"bytes": "_bytes", "count": "", "seconds": "_seconds"}[unit]
    name = f"{key}{suffix}_per_hour"
    return Figure(key, name, label, _TEXT.format(what), unit, of, LESS, claimable=False)


def _sure(soak: Soak, field: str) -> float | None:
    found: Growth | None = getattr(soak, field)
    return None if found is None else found.sure_per_hour


SOAK_FIGURES: tuple[Figure, ...] = (
    _figure("memory_growth", "memory", "sure growth of memory per hour", "the client's memory", "bytes"),
    _figure("file_growth", "open_files", "sure growth of open files per hour", "open files and sockets", "count"),
    _figure("latency_growth", "latency", "sure growth of latency per hour", "the median latency", "seconds"),
)
