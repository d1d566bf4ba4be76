"""The numbers of run documents and of shard reports: types with bounds, so that computations with them stay finite.

Anybody can write a run file. Each number of it has one of these types, so that a file with another number is refused
when it is read. A test compares the types with the JSON Schema of run files.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

MOST = 1e12
"""Limit of seconds and of requests per second. A larger figure was not measured, and no chart could draw it."""

LEAST = 1e-30
"""The least number above 0. No measurement is closer to 0. Quotients of numbers between both limits are finite."""

LEAST_RATE = 1e-6
"""Requests per second: one in eleven days."""

MOST_WHOLE = 2**63 - 1
"""Limit of a whole number: that of the kernel's counters."""


def _not_tiny(value: float) -> float:
    if 0 < abs(value) < LEAST:
        raise ValueError(f"Input should be 0, or at least {LEAST:g} away from it")
    return value


Signed = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False), AfterValidator(_not_tiny)]
NotNegative = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False), AfterValidator(_not_tiny)]
Positive = Annotated[float, Field(ge=LEAST, le=MOST, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=LEAST_RATE, le=MOST, allow_inf_nan=False)]
Seconds = Annotated[Signed, Field(description="seconds")]

Estimated = Annotated[float, Field(ge=0)]
"""A ratio, or an end of its interval. The interval of few rounds that differ widely may end at infinity."""

Count = Annotated[int, Field(ge=0, le=MOST_WHOLE)]
Whole = Annotated[int, Field(ge=-MOST_WHOLE - 1, le=MOST_WHOLE)]
