"""Kinds of error with one name for all clients, and errors shown to users.

Each client has a table from the exceptions of its library to these kinds. No other code
knows those exceptions.
"""

from __future__ import annotations

import errno
import re
import socket
import traceback
from collections.abc import Container, Iterator, Mapping, Sequence

KINDS = (
    "connect",  # no connection: refused, unreachable, name not found
    "timeout-connect",
    "timeout-read",
    "timeout-pool",  # no pooled connection became free in time
    "timeout",  # the library does not tell which one
    "timeout-call",  # of the whole call
    "reset",  # the peer closed or reset the connection before the whole response
    "protocol",  # truncated or malformed response
    "status-2xx",  # this one and the next only if the workload expects other statuses
    "status-3xx",
    "status-4xx",
    "status-5xx",
    "tls",
    "event-error",  # a stream with an event that is an error
    "events-missing",  # a stream with fewer or more events than asked for
    # In an open load: not sent, because it was too far behind its planned start.
    "dropped",
)
DROPPED = KINDS[-1]
# The label value for all other kinds, whose names are not a small closed set.
ERROR_OTHER = "other"
# Kinds after which no connection was opened.
CONNECT_KINDS = frozenset({"connect", "timeout-connect"})

NO_DESCRIPTOR = "other:EMFILE"  # a limit of the process, not a fault of the network
_NO_DESCRIPTOR = {errno.EMFILE: NO_DESCRIPTOR, errno.ENFILE: "other:ENFILE"}
_EXHAUSTED = {errno.EADDRNOTAVAIL, *_NO_DESCRIPTOR}
# Functions of sockets and event loops.
_HANDSHAKES = frozenset({"do_handshake", "start_tls"})
# Functions of event loops and of httpcore that open connections.
_CONNECTS = _HANDSHAKES | {"connect_tcp", "create_connection", "sock_connect"}

ErrorTable = Sequence[
    tuple[type[BaseException], str] | tuple[type[BaseException], str, str]
]
"""Exception classes and their kinds, the most specific first.

A third item must be part of the exception's text.
"""


class ClientError(Exception):
    """An error of a kind for which the client's library has no class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def kind_of(error: BaseException, table: ErrorTable) -> str:
    """Return the kind of an exception.

    It is that of the first row of `table` that fits the exception or one that it wraps.
    If no row fits, return ``other:TypeName``. If the process has no file descriptor
    left, return ``other:EMFILE``.
    """
    chain = list(_walk_chain(error))
    for link in chain:
        if isinstance(link, OSError) and link.errno in _NO_DESCRIPTOR:
            return _NO_DESCRIPTOR[link.errno]
    if isinstance(error, ClientError):
        return error.kind
    if kind := _kind_of_handshake(chain):
        return kind
    for cls, kind, *substrings in table:
        for link in chain:
            if isinstance(link, cls) and all(part in str(link) for part in substrings):
                return kind
    return f"other:{type(error).__name__}"


def opened_nothing(error: BaseException, kind: str) -> bool:
    """Return whether a counted attempt to connect opened no connection.

    Without address or socket, none was counted.
    """
    if kind not in {*CONNECT_KINDS, *_NO_DESCRIPTOR.values()}:
        return kind.startswith("timeout") and _was_connecting(error)
    return not any(
        isinstance(link, socket.gaierror)
        or (isinstance(link, OSError) and link.errno in _NO_DESCRIPTOR)
        for link in _walk_chain(error)
    )


def _was_connecting(error: BaseException) -> bool:
    """Return whether a call was cancelled while it connected to a known address."""
    functions = set[str]()
    for link in _walk_chain(error):
        functions |= _find_functions(link)
    return not functions.isdisjoint(_CONNECTS) and "getaddrinfo" not in functions


def find_exhaustion(error: BaseException) -> str | None:
    """Return that this machine cannot open another connection, if the error says so.

    It is not the server's fault.
    """
    for link in _walk_chain(error):
        if isinstance(link, OSError) and link.errno in _EXHAUSTED:
            return (
                f"this machine can open no further connection ({link.strerror}):"
                " the client keeps or leaves too many"
            )
    return None


def _kind_of_handshake(chain: Sequence[BaseException]) -> str | None:
    """Return the kind of a TLS handshake that the peer did not finish.

    Return None for any other error. Libraries wrap it like an error while reading, but
    its traceback contains a handshake function.
    """
    shaking = [
        link for link in chain if not _HANDSHAKES.isdisjoint(_find_functions(link))
    ]
    if not shaking:
        return None
    import ssl  # noqa: PLC0415 - gevent must patch it before it is imported

    # asyncio raises ConnectionAbortedError if a handshake takes too long.
    late = (TimeoutError, ConnectionAbortedError)
    if any(isinstance(link, late) for link in shaking):
        return "timeout-connect"
    left = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)
    if any(isinstance(link, left) for link in shaking):
        return "connect"
    return None


def _find_functions(error: BaseException) -> set[str]:
    """Return the names of the functions in the traceback of an exception."""
    frames = traceback.walk_tb(error.__traceback__)
    return {frame.f_code.co_name for frame, _ in frames}


def _walk_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and all exceptions that it wraps.

    Libraries use `args`, `reason` or `__cause__`.
    """
    waiting = [error]
    seen = set[int]()
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        reason = getattr(link, "reason", None)
        for inner in (*link.args, reason, link.__cause__, link.__context__):
            if isinstance(inner, BaseException):
                waiting.append(inner)  # noqa: PERF401


def status_kind(status: int, expected: Container[int] | None = None) -> str | None:
    """Return the kind of a status that is an error, or None for a success.

    `expected`: the statuses that are successes; None: those below 400, because
    redirects are not followed.
    """
    is_expected = status < 400 if expected is None else status in expected
    if is_expected:
        return None
    if 200 <= status <= 999:  # RFC 9110, 15
        return f"status-{min(status // 100, 5)}xx"
    return "protocol"


FieldKey = Sequence[str | int]
"""The path of a field in a document: names of keys, and indices of list items."""


class LabError(Exception):
    """An error that the user can cause: one line with what, where and what to do.

    `exit_code` as in docs/cli.md.
    """

    exit_code = 2


class FieldError(LabError):
    """A field has a value that cannot be used.

    The message names fields in backticks, which `render` can replace.

    `key`: path of the field, for example ``("workloads", "search", "requests")``.
    `also`: other fields at the same place that take part in the conflict. `value`: the
    value as text, if the message needs it.
    """

    def __init__(
        self,
        key: FieldKey,
        message: str,
        *,
        value: object = "",
        also: Sequence[str] = (),
    ) -> None:
        self.key = tuple(key)
        self.message = message
        self.value = value
        self.also = tuple(also)
        super().__init__(self.render({}))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, without the path."""
        return (*map(str, self.key[-1:]), *self.also)

    def within(self, *place: str | int) -> FieldError:
        """Return the same error for a field below `place`."""
        return FieldError(
            (*place, *self.key), self.message, value=self.value, also=self.also
        )

    def render(self, names: Mapping[str, str]) -> str:
        """Return the error in one line.

        `names`: field → the name to show in its place.
        """
        is_known = names.keys() >= set(self.fields)
        path = [".".join(map(str, self.key)), *self.also]
        if is_known:
            path = [names[field] for field in self.fields]
        head = " and ".join(path)
        if self.value != "":
            head += f" {self.value}" if is_known else f": {self.value}"
        text = re.sub(
            r"`(\w+)`", lambda name: names.get(name[1], name[1]), self.message
        )
        return f"{head}: {text}" if head else text


class PluginError(LabError):
    """An error in a plug-in's code. A second line may hold the plug-in's own error."""


class UnavailableStrategy(LabError):
    """A strategy cannot be measured on this machine.

    `reason`: what is missing, and how to install it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"strategy {name!r} is unavailable: {reason}")
        self.reason = reason


class IncompleteRun(LabError):
    """A run began and could not be finished. The finished trials are saved."""

    exit_code = 3


class ServerLost(IncompleteRun):
    """A server of the testbed has ended or does not answer.

    The lab measures the affected trial once more.
    """
