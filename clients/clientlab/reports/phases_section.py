"""The phases of each arm's requests, as its library reports them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

from clientlab import units
from clientlab.reports.charts.flame import Cell, FlameGraph
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.sections import Flames, Lines, Listing, Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.phases import PHASES, ArmPhases, PhaseName

_NAMES: dict[PhaseName, str] = {
    "pool": "wait for a connection", "dns": "DNS", "connect": "connect", "tls": "TLS", "first_byte": "first byte",
    "body": "body",
}  # fmt: skip
_ELSEWHERE = "elsewhere"
_TONES = dict(zip(_NAMES.values(), ("c0", "c1", "c2", "c3", "c4", "c5"), strict=True)) | {_ELSEWHERE: "c6"}
"""Classes of the page's style sheet."""

_NOTE = (
    "Each arm has one more trial behind the rounds, in which the lab records what its library reports. No figure above "
    "has it. –: the library does not report it. Cells: median (p99, n: how many requests had the phase, if not all). "
    "The wait for a connection ends when the request has one, or when a new one is begun. First byte: from the request "
    "being sent to the end of the response's headers; of libcurl, it begins before the request is sent. A connect of "
    "httpx, httpx2 and their kin holds the name resolution, and one of aiohttp the TLS handshake. Rate while looking: "
    "of the rounds' rate; it shows what recording costs, and how trials vary."
)
_PICTURE_NOTE = "A row is an arm, as wide as its mean latency. Elsewhere: what is in no phase that the library reports."
_LEAST_SHARE = 0.005


def phases(report: Report) -> Section[Part]:
    """The phases of a run; without content if it has none."""
    run = report.run
    found = [one for one in run.phases if one.reason is None]
    drawn = [one for one in found if "first_byte" in one.phases]
    table = DataTable(
        ("arm", *_NAMES.values(), "rate while looking"), [_row(run, one) for one in found], "Phases of a request",
        brief=(1, 3, 5, 6, 7),
    )  # fmt: skip
    parts: list[Part] = [
        Lines([_sentence(one) for one in found]),
        Listing("Arms without phases", [f"{one.arm}: {one.reason}" for one in run.phases if one.reason]),
        Flames(lambda: [_picture(drawn)] if drawn else [], [_PICTURE_NOTE]),
        Tables([table] if found else []),
    ]
    return Section(
        "phases", "Phases of a request", parts if run.phases else [], label="Phases", notes=[_NOTE], brief=True
    )


def _shares(one: ArmPhases) -> Iterator[tuple[str, float]]:
    """Each phase, and what is in none, as a share of the mean latency."""
    whole = one.latency_mean_seconds or 0.0
    seconds = {_NAMES[name]: phase.mean * phase.count / one.requests for name, phase in one.phases.items()}
    seconds[_ELSEWHERE] = max(0.0, whole - fsum(seconds.values()))
    total = fsum(seconds.values())
    for name in _TONES:
        if total and name in seconds:
            yield name, seconds[name] / total


def _sentence(one: ArmPhases) -> str:
    """What took most, in a line: ``aiohttp: first byte 96 %, body 2 %, elsewhere 2 %``."""
    if "first_byte" not in one.phases:
        return f"{one.arm}: reports no more than {', '.join(_NAMES[name] for name in one.phases)}"
    order = sorted(_shares(one), key=lambda found: (found[0] == _ELSEWHERE, -found[1]))
    return f"{one.arm}: {', '.join(f'{name} {100 * share:.0f} %' for name, share in order if share >= _LEAST_SHARE)}"


def _picture(found: Sequence[ArmPhases]) -> FlameGraph:
    """A row for each arm, as wide as its mean latency, divided into the phases."""
    longest = max(one.latency_mean_seconds or 0.0 for one in found)
    return FlameGraph(
        "Mean latency, by phase",
        [cell for row, one in enumerate(found) for cell in _cells(one, row, longest)],
        [(tone, name) for name, tone in _TONES.items()],
        f"Mean latency by phase; {'; '.join(map(_sentence, found))}",
    )


def _cells(one: ArmPhases, row: int, longest: float) -> Iterator[Cell]:
    mean, left, shares = one.latency_mean_seconds or 0.0, 0.0, list(_shares(one))
    widest = max((share for _, share in shares), default=0.0)
    for name, share in shares:
        text = f"{name} {units.time(share * mean)}"
        width = 100 * share * mean / longest if longest else 0.0
        yield Cell(
            left, width, row, f"{one.arm}: {text}" if share == widest else text, f"{one.arm}: {text}", _TONES[name]
        )
        left += width


def _row(run: Run, one: ArmPhases) -> tuple[str, ...]:
    rate = BY_KEY["throughput"].over_rounds(run.trials_of(one.arm))
    share = one.requests_per_second / rate if rate and one.requests_per_second is not None else None
    return (one.arm, *(_cell(one, name) for name in PHASES), units.share(share))


def _cell(one: ArmPhases, name: PhaseName) -> str:
    if (found := one.phases.get(name)) is None:
        return units.UNKNOWN
    if found.count == 1:
        return f"{units.time(found.p50)} (n=1)"
    some = f", n={found.count:,}" if found.count < one.requests else ""
    return f"{units.time(found.p50)} ({units.time(found.p99)}{some})"
