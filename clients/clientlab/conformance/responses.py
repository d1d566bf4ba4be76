"""The answers of the counting server in the scenarios of equal budgets: each request gets its own body."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from clientlab.conformance.server import Seen, ServerAnswer, ok

_CHUNKED_EVERY = 10
_MOMENT = 0.03
_PATIENCE = 5.0


class Gate:
    """Holds the first requests until `width` are in flight, and a moment longer to notice one too many.

    All later ones go through. It opens by itself where so many never come.
    """

    def __init__(self, width: int) -> None:
        self._missing = width
        self._lock = threading.Lock()
        self._open = threading.Event()

    def wait(self) -> None:
        """Enter, and return when all have entered."""
        if self._open.is_set():
            return
        with self._lock:
            self._missing -= 1
            last = self._missing == 0
        if last:
            time.sleep(_MOMENT)
        else:
            self._open.wait(_PATIENCE)
        self._open.set()


def content(number: int) -> bytes:
    """The body for request `number`. Each has its own length, so that a swapped answer is noticed."""
    return json.dumps({"number": number, "rest": "x" * (37 * number % 3000)}).encode()


def items(gate: Gate, hold: float) -> Callable[[Seen], ServerAnswer]:
    """Answers to `/item/NUMBER?x=1`. The first request is the warm-up, and is not held."""
    warm = threading.Event()

    def answer(seen: Seen) -> ServerAnswer:
        if not warm.is_set():
            warm.set()
        else:
            gate.wait()
            time.sleep(hold)
        number = int(seen.target.removeprefix("/item/").partition("?")[0])
        body = content(number)
        if seen.method == "HEAD":
            return ok(body)[: -len(body)]
        return ok(body) if number % _CHUNKED_EVERY else _chunked(body)

    return answer


def _chunked(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [body[at : at + 500] for at in range(0, len(body), 500)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
