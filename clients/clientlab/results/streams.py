"""Figures of a trial whose responses are streams, as the run document and the reports of shards hold them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clientlab.bounded_numbers import Count, NotNegative
from clientlab.results.part import MeasuredPart
from clientlab.results.times import Histogram, Quantiles


class Streams(MeasuredPart):
    """The events of all streams of a trial. Times are those at which the client handed over an event."""

    ranked_by: Annotated[
        Literal["cpu", "lag"], Field(description="what its arm is ranked by: CPU time of an event, or lag")
    ]
    events: Annotated[Count, Field(description="that arrived, those of failed streams included")]
    head_seconds: Annotated[
        Quantiles | None, Field(description="from the send to the head of the response; null: not reported")
    ] = None
    first_seconds: Annotated[Quantiles | None, Field(description="from the send to the first event")] = None
    gap_seconds: Annotated[Quantiles | None, Field(description="between two arrivals of a stream")] = None
    lag_seconds: Annotated[
        Quantiles | None,
        Field(description="from the write of an event to its arrival; null: no mark, or unlike clocks"),
    ] = None
    late_seconds: Annotated[
        Quantiles | None, Field(description="from the planned to the real write of an event by the lab's upstream")
    ] = None
    together: Annotated[
        NotNegative | None,
        Field(description="share of events that had been written when the one before arrived; null: as lag_seconds"),
    ] = None
    most_open: Annotated[Count, Field(description="the most streams open at a moment; over shards, no more than this")]
    kept: Annotated[
        Count | None, Field(description="successful streams that kept every limit of goodput; null: no limits")
    ] = None
    gap_histogram: Histogram | None = None
    lag_histogram: Histogram | None = None
