"""Kinds of error: one fault of the upstream has one name for every client.

Each client has a table from the exceptions of its library to these kinds. No other code knows those exceptions.
"""

from __future__ import annotations

import errno
import re
import socket
import traceback
from collections.abc import Iterator, Mapping, Sequence

KINDS = (
    "connect",  # no connection: refused, unreachable, name not found
    "timeout-connect",
    "timeout-read",
    "timeout-pool",  # no pooled connection became free in time
    "timeout",  # the library does not tell which one
    "reset",  # the peer closed or reset the connection before the whole response
    "protocol",  # truncated or malformed response
    "status-4xx",
    "status-5xx",
    "tls",
    "dropped",  # of an open load: not sent, because it was too far behind its planned start
)
DROPPED = KINDS[-1]

ERROR_OTHER = "other"
"""The label value for every kind not listed: their names are not a small closed set."""

CONNECT_KINDS = frozenset({"connect", "timeout-connect"})
"""Kinds after which no connection was opened."""

_NO_DESCRIPTOR = {number: f"{ERROR_OTHER}:{errno.errorcode[number]}" for number in (errno.EMFILE, errno.ENFILE)}
NO_DESCRIPTOR = _NO_DESCRIPTOR[errno.EMFILE]
"""The process has no file descriptor left: a limit of the process, no fault of the network."""

ErrorTable = Sequence[tuple[type[BaseException], str] | tuple[type[BaseException], str, str]]
"""Exception classes and their kinds, the most specific first.

A third item must be part of the exception's text, for a library with one class for several faults.
"""

_HANDSHAKES = frozenset({"do_handshake", "start_tls"})
"""Functions of sockets and event loops that do the TLS handshake."""


class Fault(Exception):
    """An error whose kind the client determined itself, because its library has no class for it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def kind_of(error: BaseException, table: ErrorTable) -> str:
    """Return the kind of an exception: the first row of `table` that fits it or an exception that it wraps.

    Without such a row: ``other:TypeName``, so that a programming error never looks like a network error. If the
    process has no file descriptor left: ``other:EMFILE``, whatever exception the library raises.
    """
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, OSError) and link.errno in _NO_DESCRIPTOR:
            return _NO_DESCRIPTOR[link.errno]
    if isinstance(error, Fault):
        return error.kind
    if kind := _kind_of_handshake(chain):
        return kind
    for cls, kind, *substrings in table:
        if any(isinstance(link, cls) and all(part in str(link) for part in substrings) for link in chain):
            return kind
    return f"other:{type(error).__name__}"


def unopened(error: BaseException, kind: str) -> bool:
    """Whether an attempt to connect was counted, but opened no connection.

    False if Python could not resolve the name or make the socket: then no attempt was counted. Libraries that do not
    use Python's sockets have no such exception, and report every attempt.
    """
    if kind not in {*CONNECT_KINDS, *_NO_DESCRIPTOR.values()}:
        return False
    return not any(
        isinstance(link, socket.gaierror) or (isinstance(link, OSError) and link.errno in _NO_DESCRIPTOR)
        for link in _chain(error)
    )


def _kind_of_handshake(chain: Sequence[BaseException]) -> str | None:
    """Return the kind of a TLS handshake that the peer did not finish; None for every other error.

    Libraries wrap it like an error while reading. The standard library's handshake functions in the traceback
    distinguish the two, whichever library called them.
    """
    shaking = [
        link
        for link in chain
        if any(frame.f_code.co_name in _HANDSHAKES for frame, _ in traceback.walk_tb(link.__traceback__))
    ]
    if not shaking:
        return None
    import ssl  # noqa: PLC0415 - gevent patches it, and has to come first

    late = (TimeoutError, ConnectionAbortedError)  # asyncio's time limit raises the latter
    if any(isinstance(link, late) for link in shaking):
        return "timeout-connect"
    left = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)
    return "connect" if any(isinstance(link, left) for link in shaking) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and all exceptions that it wraps: libraries use `args`, `reason` or `__cause__`."""
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
    """Return the kind of an error status (4xx, 5xx); None for all others, since redirects are not followed.

    A status has three digits (RFC 9110, 15): one with more is a malformed response.
    """
    if status < 400:
        return None
    if status > 999:
        return "protocol"
    return "status-4xx" if status < 500 else "status-5xx"


FieldKey = Sequence[str | int]
"""Path of a field in a document: names of keys, and indices of list items."""


class LabError(Exception):
    """An error that the user can cause: one line with what, where and what to do. `exit_code` as in docs/cli.md."""

    exit_code = 2


class FieldError(LabError):
    """A field has a value that cannot be used.

    `key`: path of the field, for example ``("workloads", "search", "requests")``. `also`: other fields at the same
    place that take part in the conflict. `value`: the value as text, where the message needs it. The message names
    fields in backticks; `render` can replace them, for example by the options of the command line.
    """

    def __init__(self, key: FieldKey, message: str, *, value: object = "", also: Sequence[str] = ()) -> None:
        self.key = tuple(key)
        self.message = message
        self.value = value
        self.also = tuple(also)
        super().__init__(self.render({}))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, without the path."""
        return (*(str(part) for part in self.key[-1:]), *self.also)

    def within(self, *place: str | int) -> FieldError:
        """Return the same error of a field below `place`."""
        return FieldError((*place, *self.key), self.message, value=self.value, also=self.also)

    def render(self, names: Mapping[str, str]) -> str:
        """Return the error in one line. `names`: field → the name to show in its place."""
        if all(field in names for field in self.fields):
            head = " and ".join(names[field] for field in self.fields) + (f" {self.value}" if self.value != "" else "")
        else:
            head = " and ".join([".".join(map(str, self.key)), *self.also])
            head += f": {self.value}" if self.value != "" else ""
        text = re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[1]), self.message)
        return f"{head}: {text}" if head else text


class PluginError(LabError):
    """An error in a plug-in's code. A second line may hold the plug-in's own error."""


class UnavailableStrategy(LabError):
    """A strategy cannot be measured on this machine. `reason`: what is missing, and how to install it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"strategy {name!r} is unavailable: {reason}")
        self.reason = reason


class IncompleteRun(LabError):
    """A run began and could not be finished. The finished trials are saved."""

    exit_code = 3


class ServerLost(IncompleteRun):
    """A server of the testbed has ended, or does not answer. The trial that needs it is measured once more."""
