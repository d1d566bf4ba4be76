"""How long each phase of an arm's requests took, as its library reports them, in a trial of its own."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from clientlab.bounded_numbers import Count, NotNegative
from clientlab.results.part import MeasuredPart

PhaseName = Literal["pool", "dns", "connect", "tls", "first_byte", "body"]
PHASES: tuple[PhaseName, ...] = ("pool", "dns", "connect", "tls", "first_byte", "body")


class PhaseTimes(MeasuredPart):
    """Seconds of a phase, over the requests that had it."""

    count: Count
    mean: Annotated[NotNegative, Field(description="seconds")]
    least: Annotated[NotNegative, Field(description="seconds")]
    p50: Annotated[NotNegative, Field(description="seconds")]
    p99: Annotated[NotNegative, Field(description="seconds")]


class ArmPhases(MeasuredPart):
    """The phases of an arm's requests; those that its library does not report are missing."""

    arm: str
    requests: Count = 0
    requests_per_second: Annotated[NotNegative | None, Field(description="while the phases were recorded")] = None
    latency_mean_seconds: Annotated[NotNegative | None, Field(description="in that trial")] = None
    phases: Annotated[dict[PhaseName, PhaseTimes], Field(max_length=len(PHASES))] = {}
    reason: Annotated[str | None, Field(description="why none is known")] = None

    @model_validator(mode="after")
    def _has_phases_or_a_reason(self) -> Self:
        if (self.reason is None) != bool(self.phases):
            raise ValueError("an arm has either phases, or the reason why none is known")
        if self.phases and not self.requests:
            raise ValueError("an arm with phases has requests")
        return self
