"""The worker class with which gunicorn serves Flask with threads, and the time limits of its sockets."""

from __future__ import annotations

import logging
import socket
import struct
from typing import TYPE_CHECKING, Any

from gunicorn.workers.gthread import ThreadWorker

if TYPE_CHECKING:
    from collections.abc import Iterable

_SILENT_SECONDS = 60
"""The kernel keeps a connection without a byte to itself for about so long (tcp(7), TCP_DEFER_ACCEPT)."""


class UpstreamThreadWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn is not typed
    """gunicorn's gthread, whose main thread does not wait for clients that sent no sound request.

    gthread closes connections in its main thread, and waits there for up to 2 s until the client has closed its side.
    Meanwhile the whole worker accepts and serves nothing. After a request that was not sound, the thread that read it
    waits instead. Sound requests take gthread's own way.
    """

    def handle(self, conn: Any) -> object:
        """Serve one request, in a thread. Returns whether the connection goes on, as gthread's does."""
        goes_on = super().handle(conn)
        if goes_on is False and conn.sock.fileno() < 0:  # a fault has closed it
            conn.close = _closed
        elif goes_on is False and not _sound(conn):
            # A close with unread bytes would reset the connection, and the client could lose the answer.
            conn.close(graceful=_unread(conn.sock))
            conn.close = _closed
        return goes_on


def _sound(conn: Any) -> bool:
    """Whether the head of the last request, and its body as far as it was read, were well-formed and in time."""
    message = getattr(conn.parser, "mesg", None)
    return message is not None and not getattr(message.body, "failed", False)


def _unread(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:  # nothing has arrived, or the client is gone
        return False


def _closed(*, graceful: bool = False) -> None:
    """Do nothing: the connection is closed."""


def limit_reading(listeners: Iterable[socket.socket], seconds: int, backlog: int) -> None:
    """Limit each wait for bytes of a request, and keep silent connections, `backlog` at most, away from the threads.

    Linux hands both options of a listening socket to the connections that it accepts. A read that is too late raises
    BlockingIOError, which gunicorn logs with a traceback: such lines are left out.
    """
    for listener in listeners:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT_SECONDS)
        listener.listen(backlog)  # gunicorn keeps the backlog of a socket that it inherits
    logging.getLogger("gunicorn.error").addFilter(_not_late)


def _not_late(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))
