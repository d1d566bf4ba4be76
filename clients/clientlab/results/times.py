"""Times of many requests or events: their quantiles, and their histogram."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clientlab.analysis.histogram import checked_histogram
from clientlab.bounded_numbers import Seconds
from clientlab.results.part import MeasuredPart


class Quantiles(MeasuredPart):
    """Seconds over all requests of a trial. A failed request ranks after every successful one (`analysis.summary`)."""

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p95: Seconds
    p99: Seconds
    p999: Annotated[Seconds | None, Field(description="seconds; unknown with fewer than 1,000 requests")] = None
    max: Seconds
    at_least: Annotated[
        list[Literal["mean", "p50", "p90", "p95", "p99", "p999", "max"]],
        Field(max_length=7, description="those that are lower bounds, because they fall on failed requests"),
    ]


def quantile_of(of: Quantiles | None, name: str) -> float | None:
    """The quantile of that name in seconds; None if it is unknown."""
    return None if of is None else getattr(of, name)


class Histogram(MeasuredPart):
    """Latencies as an HDR histogram (V2, compressed, base64), of 1 to 3.6e12 units, three significant digits."""

    unit_seconds: Annotated[float, Field(ge=1e-12, le=1)] = 1e-9
    encoded: Annotated[str, AfterValidator(checked_histogram)]
