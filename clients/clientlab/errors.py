"""Kinds of error: the same upstream fault has the same name for every client.

Each client keeps a table from its library's exceptions to these kinds and translates at its border;
nothing beyond the client knows a library's exceptions.
"""

from __future__ import annotations

import errno
import socket
import traceback
from collections.abc import Collection, Iterator, Sequence

KINDS = (
    "connect",  # no connection: refused, unreachable, name not found
    "timeout-connect",
    "timeout-read",
    "timeout-pool",  # no connection of the pool came free in time
    "timeout",  # the library does not tell which
    "reset",  # the peer closed or reset before a whole answer
    "protocol",  # truncated or malformed answer
    "status-4xx",
    "status-5xx",
    "tls",
)

ERROR_OTHER = "other"
"""Where a kind is a label: all that are of no listed kind, whose names are not a small closed set."""

CONNECT_KINDS = frozenset({"connect", "timeout-connect"})
"""Kinds after which no connection was opened."""

_NO_DESCRIPTOR = {number: f"{ERROR_OTHER}:{errno.errorcode[number]}" for number in (errno.EMFILE, errno.ENFILE)}
NO_DESCRIPTOR = _NO_DESCRIPTOR[errno.EMFILE]
"""The process may open no more files: a limit of its own, and no fault of the network."""

ErrorTable = Sequence[tuple[type[BaseException], str] | tuple[type[BaseException], str, str]]
"""Exception classes and their kind, the most telling first.

A third word must be part of the exception's text, for a library that has one class for several faults.
"""


_HANDSHAKES = frozenset({"do_handshake", "start_tls"})
"""Of sockets, and of event loops."""


class Fault(Exception):
    """An error whose kind the client itself found out, where its library has no class a kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def kind_of(error: BaseException, table: ErrorTable) -> str:
    """Kind of an exception: the first row of `table` that fits it or anything that it wraps.

    Without one: ``other:TypeName``, so that a mistake in the code never hides as a network error. Where the
    process ran out of descriptors: ``other:EMFILE``, whatever the library makes of it.
    """
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, OSError) and link.errno in _NO_DESCRIPTOR:
            return _NO_DESCRIPTOR[link.errno]
    if isinstance(error, Fault):
        return error.kind
    if kind := _kind_of_handshake(chain):
        return kind
    for cls, kind, *words in table:
        if any(isinstance(link, cls) and all(word in str(link) for word in words) for link in chain):
            return kind
    return f"other:{type(error).__name__}"


def unopened(error: BaseException, kind: str) -> bool:
    """Whether an attempt to connect that was begun, and so was counted, has opened nothing.

    Not so where Python itself could not find the name or make the socket: nothing was begun then. Libraries that
    connect out of its sight have no such exception, and report every attempt.
    """
    if kind not in {*CONNECT_KINDS, *_NO_DESCRIPTOR.values()}:
        return False
    return not any(
        isinstance(link, socket.gaierror) or (isinstance(link, OSError) and link.errno in _NO_DESCRIPTOR)
        for link in _chain(error)
    )


def _kind_of_handshake(chain: Sequence[BaseException]) -> str | None:
    """Kind of a TLS handshake that the peer did not finish; None of every other error, nonsense from it included.

    Libraries wrap it as they wrap faults of reading. The standard library's functions in the traceback of what they
    wrap tell it from those, whichever library called them.
    """
    shaking = [link for link in chain if _passed_through(_HANDSHAKES, link)]
    if not shaking:
        return None
    import ssl  # noqa: PLC0415 - gevent patches it, and has to come first

    late = (TimeoutError, ConnectionAbortedError)  # asyncio's limit raises the latter
    if any(isinstance(link, late) for link in shaking):
        return "timeout-connect"
    left = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)
    return "connect" if any(isinstance(link, left) for link in shaking) else None


def _passed_through(functions: Collection[str], error: BaseException) -> bool:
    return any(frame.f_code.co_name in functions for frame, _ in traceback.walk_tb(error.__traceback__))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and all that it wraps: libraries use `args`, `reason` and `__cause__` in turn."""
    waiting, seen = [error], set[int]()
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        wrapped = [*link.args, getattr(link, "reason", None), link.__cause__, link.__context__]
        waiting.extend(inner for inner in wrapped if isinstance(inner, BaseException))


def status_kind(status: int) -> str | None:
    """Kind of a status that is an error (4xx, 5xx); None for all others: redirects are not followed."""
    if status < 400:
        return None
    return "status-4xx" if status < 500 else "status-5xx"


class LabError(Exception):
    """What, where and what to do, in one line for the user. `exit_code` as README has them."""

    exit_code = 2


class PluginError(LabError):
    """What is wrong with code that is not the lab's: a second line may hold its own error."""


class IncompleteRun(LabError):
    """A run that had begun could not be finished; what was done is saved."""

    exit_code = 3
