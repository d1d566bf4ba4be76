"""The cancelled requests of a trial, and what they left of the client."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clientlab.bounded_numbers import Count, Seconds
from clientlab.results.fault_counts import MOST_FAULTS, SUCCEEDED
from clientlab.results.part import MeasuredPart


class Probe(MeasuredPart):
    """As many requests at once as may be in flight, each with the same delay."""

    at_once: Annotated[Count, Field(description="requests that had a slot of the pool at the same time")]
    answered: Annotated[Count, Field(description="requests that were answered in time")]
    seconds: Annotated[
        Seconds | None,
        Field(
            description="until the last was answered, without the delays that the slots of the first probe make; "
            "null: not all were"
        ),
    ]
    gave_up_seconds: Annotated[
        Seconds | None,
        Field(description="until the lab gave up the others, without these delays; null: all were answered"),
    ] = None
    sockets: Annotated[Count | None, Field(description="of the client to the target, behind it; null: unknown")]
    threads: Annotated[Count | None, Field(description="of the client; null: unknown")]
    tasks: Annotated[Count, Field(description="of asyncio that have not ended, behind it")]


class Cancelled(MeasuredPart):
    """The requests that their caller gave up: they count in no other figure of the trial."""

    asked: Annotated[Count, Field(description="requests that were to be cancelled")]
    by_timeout: Annotated[Count, Field(description="requests that a time limit of the caller ended")]
    by_task: Annotated[Count, Field(description="requests whose task was cancelled")]
    ended: Annotated[
        dict[str, Count],
        Field(
            description="those of them that ended otherwise, by kind of error; none: answered before their moment came",
            max_length=MOST_FAULTS,
        ),
    ]
    seconds: Annotated[Seconds, Field(description="of the cancelled ones, summed: until their caller went on")]
    before: Annotated[Probe | None, Field(description="the probe before the measured part; null: there was none")] = (
        None
    )
    after: Annotated[Probe | None, Field(description="the probe behind it")] = None
    held_before: Annotated[Count | None, Field(description="requests in the upstream, before; null: unknown")] = None
    held_after: Annotated[
        Count | None, Field(description="requests in the upstream behind the second probe; null: unknown")
    ] = None

    @property
    def count(self) -> int:
        """The cancelled requests."""
        return self.by_timeout + self.by_task

    @property
    def answered(self) -> int:
        """Those that were answered before they could be cancelled."""
        return self.ended.get(SUCCEEDED, 0)

    def left(self, what: str) -> int | None:
        """How much more of it the second probe has than the first: `sockets`, `threads` or `tasks`; None: unknown."""
        before, after = (None if one is None else getattr(one, what) for one in (self.before, self.after))
        return None if before is None or after is None else max(0, after - before)

    @property
    def slots_lost(self) -> int | None:
        """Slots of the pool that the first probe found, and the second did not; None: the first was not answered."""
        if self.before is None or self.after is None or self.before.seconds is None:
            return None
        return max(0, self.before.at_once - self.after.at_once)

    @property
    def held(self) -> int | None:
        """Requests that the upstream still holds, although nobody waits for them."""
        if self.held_before is None or self.held_after is None:
            return None
        return max(0, self.held_after - self.held_before)
