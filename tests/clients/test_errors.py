"""Kinds of error."""

from __future__ import annotations

import errno
import ssl

import pytest

from clientlab.errors import (
    KINDS,
    ClientError,
    find_exhaustion,
    kind_of,
    opened_nothing,
    status_kind,
)

TABLE = (
    (ConnectionRefusedError, "connect"),
    (TimeoutError, "timeout-pool", "pool"),
    (TimeoutError, "timeout"),
    (ConnectionError, "reset"),
)


class LibraryError(Exception):
    """The exception with which a library wraps others."""


def chained(outer: Exception, inner: Exception, *, explicit: bool) -> Exception:
    """Return `outer` as if it were raised from `inner`, or while handling `inner`."""
    outer.__context__ = inner
    outer.__cause__ = inner if explicit else None
    return outer


def around(inner: Exception) -> Exception:
    """Return an exception that stores another in an attribute, like urllib3's."""
    error = LibraryError("failed")
    error.reason = inner
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(), "connect"),
        (ConnectionResetError(), "reset"),  # a subclass of ConnectionError
        (TimeoutError("no connection of the pool"), "timeout-pool"),
        (TimeoutError("read"), "timeout"),
        (LibraryError(ConnectionRefusedError()), "connect"),
        (LibraryError("x", LibraryError(LibraryError(TimeoutError()))), "timeout"),
        (around(around(BrokenPipeError())), "reset"),
        (chained(LibraryError(), ConnectionResetError(), explicit=True), "reset"),
        (chained(LibraryError(), ConnectionResetError(), explicit=False), "reset"),
        (
            ExceptionGroup("both", [ValueError(), ConnectionResetError()]),
            "other:ExceptionGroup",
        ),
        # The first row wins, whichever exception of the chain it fits.
        (
            chained(ConnectionResetError(), ConnectionRefusedError(), explicit=True),
            "connect",
        ),
        (ValueError("bug"), "other:ValueError"),
        (LibraryError("failed"), "other:LibraryError"),
        (
            chained(
                ClientError("protocol", "cut short"),
                ConnectionResetError(),
                explicit=True,
            ),
            "protocol",
        ),
    ],
    ids=repr,
)
def test_the_kind_is_the_first_row_that_fits_the_error_or_a_wrapped_one(error, kind):
    assert kind_of(error, TABLE) == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError(), "connect"),
        (ssl.SSLEOFError(), "connect"),
        (TimeoutError(), "timeout-connect"),
        (ConnectionAbortedError(), "timeout-connect"),
        (ssl.SSLCertVerificationError(), "tls"),
    ],
    ids=repr,
)
def test_an_unfinished_handshake_differs_from_later_faults(error, kind):
    def do_handshake():
        raise error

    with pytest.raises(type(error)) as raised:
        do_handshake()
    assert (
        kind_of(around(raised.value), ((ssl.SSLError, "tls"), (OSError, "reset")))
        == kind
    )


def test_no_connection_was_begun_before_a_name_is_resolved():
    """So there is none to subtract."""

    def getaddrinfo():
        raise TimeoutError

    def connect_tcp(step):
        step()
        raise TimeoutError

    for step, is_counted in ((getaddrinfo, False), (list, True)):
        with pytest.raises(TimeoutError) as raised:
            connect_tcp(step)
        assert opened_nothing(raised.value, "timeout-call") == is_counted
        assert not opened_nothing(raised.value, "reset")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, None),
        (399, None),
        (400, "status-4xx"),
        (499, "status-4xx"),
        (500, "status-5xx"),
        (999, "status-5xx"),
        (1000, "protocol"),
    ],
)
def test_a_status_is_an_error_from_400_on(status, kind):
    assert status_kind(status) == kind
    assert kind is None or kind in KINDS


def test_a_machine_without_free_ports_is_not_the_servers_fault():
    """A leak of 25,000 connections takes all ports, so that no health check can
    connect.
    """
    exhausted = OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
    assert "client" in find_exhaustion(
        chained(ClientError("connect", "no"), exhausted, explicit=True)
    )
    assert find_exhaustion(OSError(errno.EMFILE, "Too many open files"))
    assert (
        find_exhaustion(ConnectionRefusedError(errno.ECONNREFUSED, "refused")) is None
    )
