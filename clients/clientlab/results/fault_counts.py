"""Faults of a trial, by kind: how many requests asked for them, how many the servers made, and what the client met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from clientlab.bounded_numbers import Count, Seconds
from clientlab.results.part import MeasuredPart

MOST_FAULTS = 1000
"""Of a workload, and kinds of error in a trial."""

SUCCEEDED = "none"
"""The kind of error of a request that succeeded."""


class MetFault(MeasuredPart):
    """The requests that asked for one fault."""

    asked: Annotated[Count, Field(description="requests that asked the upstream for it")]
    met: Annotated[
        dict[str, Count],
        Field(description="kind of error of these requests to their count; none: succeeded", max_length=MOST_FAULTS),
    ]
    failed_seconds: Annotated[Seconds, Field(description="of the failed ones, summed: until the client noticed")]

    @property
    def failed(self) -> int:
        """How many of the requests failed."""
        return self.asked - self.met.get(SUCCEEDED, 0)

    @property
    def notice_seconds(self) -> float | None:
        """Mean time after which a request failed; None if none did."""
        return self.failed_seconds / self.failed if self.failed else None


class FaultCounts(MeasuredPart):
    """The faults of a trial."""

    by_fault: Annotated[dict[str, MetFault], Field(description="fault of the upstream", max_length=MOST_FAULTS)]
    beside: Annotated[
        dict[str, Count],
        Field(description="errors of the requests that asked for no fault, by kind", max_length=MOST_FAULTS),
    ]
    beside_seconds: Annotated[Seconds, Field(description="of these errors, summed: until the client noticed")] = 0.0


def added(parts: Sequence[FaultCounts | None]) -> FaultCounts | None:
    """The sums over the shards of a trial; None without faults."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    by_fault = {name: _sum(part.by_fault[name] for part in known if name in part.by_fault) for name in _names(known)}
    beside, seconds = _totals(part.beside for part in known), sum(part.beside_seconds for part in known)
    return FaultCounts(by_fault=by_fault, beside=beside, beside_seconds=seconds)


def _names(parts: Sequence[FaultCounts]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part.by_fault))


def _sum(parts: Iterable[MetFault]) -> MetFault:
    found = list(parts)
    return MetFault(
        asked=sum(part.asked for part in found),
        met=_totals(part.met for part in found),
        failed_seconds=sum(part.failed_seconds for part in found),
    )


def _totals(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(one) for one in counts), Counter[str]()))
