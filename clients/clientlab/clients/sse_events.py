"""A server-sent event that a library parsed: its data, unless the event is an error. It imports no library."""

from __future__ import annotations

from typing import Protocol

from clientlab.errors import Fault


class ParsedEvent(Protocol):
    """The parts of an event that its users read."""

    @property
    def event(self) -> str: ...

    @property
    def data(self) -> str: ...


def data_of(event: ParsedEvent) -> str:
    """The data of an event. Raises Fault for an event of type ``error``: its data alone would not show it."""
    if event.event == "error":
        raise Fault("event-error", event.data[:200])
    return event.data
