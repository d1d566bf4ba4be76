"""Faults on Flask: bytes written past the framework and its server, and connections that end as a fault says."""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

from flask import Response

from mockupstream.fault_scripts import script_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from mockupstream.contract import Reply
    from mockupstream.fault_scripts import FaultScript
    from mockupstream.ledger import Ledger

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s

_SHORT = 0.005
"""Seconds. poll(2) counts milliseconds, which is too coarse for a shorter pause."""


class Misbehaviour(Response):
    """The response to a request with a fault: it writes on the connection itself."""

    def __init__(self, reply: Reply, connection: socket.socket, ledger: Ledger) -> None:
        """`ledger`: holds the request as in flight until the response was written."""
        super().__init__(b"", reply.status)
        self._reply = reply
        self._connection = connection
        self._ledger = ledger

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Write, and end the connection. gunicorn stops at the OSError of a connection that has ended."""
        try:
            server = _server_response(start_response)
            method = environ["REQUEST_METHOD"]
            keeps = server is not None and not (server.must_close or server.req.should_close())
            script = script_of(self._reply, method, keeps=keeps)
            if script is not None:
                _write(self._connection, script)
            if server is None:
                raise SystemExit  # of the connection's thread: after any other error, werkzeug reads on
            if script is None or script.ending != "keep":
                raise ConnectionResetError(errno.ECONNRESET, "ended by a fault")
            start_response(self.status, [("Content-Length", "0")])
            server.headers_sent = True
            return []
        finally:
            self._ledger.end()


def _server_response(start_response: StartResponse) -> Any:
    """Gunicorn's response, which is told that its headers were sent; None under werkzeug, which closes connections."""
    return getattr(start_response, "__self__", None)


def _write(connection: socket.socket, script: FaultScript) -> None:
    """Write the pieces, and end the connection. Raises OSError where the client has left meanwhile."""
    due = time.monotonic()
    for piece in script.pieces:
        due += piece.pause
        _wait(connection, due)
        connection.sendall(piece.data)
    if script.ending == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    elif script.ending == "close":
        connection.shutdown(socket.SHUT_WR)
    if script.ending != "keep":
        connection.close()


def _wait(connection: socket.socket, moment: float) -> None:
    """Return at that moment. Raises ConnectionResetError as soon as the client has left."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    while (left := moment - time.monotonic()) > 0:
        if left <= _SHORT or not poll.poll(int(left * 1000)):
            time.sleep(max(0.0, min(moment - time.monotonic(), _SHORT)))
        elif connection.recv(1, socket.MSG_PEEK):
            time.sleep(max(0.0, moment - time.monotonic()))  # the next request has come, and waits
        else:
            raise ConnectionResetError(errno.ECONNRESET, "the client has left")
