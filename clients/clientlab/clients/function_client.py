"""A function of a URL as a client: `def fetch(url)` or `async def fetch(url)`. It imports no HTTP library.

The function returns a response that holds its status and its whole body, or these two as a tuple. Both are required:
without the status, an error page would count as success; without the body, nobody would know whether it was read.
"""

from __future__ import annotations

import inspect
import socket
import ssl
from typing import Any, ClassVar

from clientlab.clients.client_interface import Budget, NothingKept, Opened, StatusAndBody
from clientlab.errors import ErrorTable, PluginError
from clientlab.workload.workload import Request, Workload

_BODIES = (bytes, bytearray, memoryview)
_NOT_SENT = ("method", "headers", "body", "payload_size", "upload_size", "replay", "read", "elapsed", "timeout")
"""Fields of a workload that need more than a URL."""


class _OfFunction:
    """What both kinds have in common. The library behind the function is unknown, and so are its exceptions."""

    url_only: ClassVar[bool] = True
    program: ClassVar[str] = "a function of a URL"
    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (socket.gaierror, "connect"),
        (ConnectionRefusedError, "connect"),
        (ConnectionError, "reset"),
        (TimeoutError, "timeout"),
    )
    function: ClassVar[Any]

    def __init__(self, budget: Budget, opened: Opened) -> None:
        """Ignore the budget: pool, time limits and CAs are the function's own."""

    @staticmethod
    def refuses(workload: Workload) -> tuple[str, str] | None:
        """Return the first field of a workload that the function would not send, and the reason, or None."""
        plain = Workload()
        field = next((name for name in _NOT_SENT if getattr(workload, name) != getattr(plain, name)), None)
        return None if field is None else (field, f"gets nothing else; write a class, or leave out `{field}`")


class FunctionClient(NothingKept, _OfFunction):
    """A blocking function. What it keeps belongs to its module, and ends with the process."""

    def send(self, request: Request) -> StatusAndBody:
        return status_and_body(self.function(request.url))


class AsyncFunctionClient(_OfFunction):
    """An asyncio function."""

    async def open(self) -> None:
        """Do nothing, as above."""

    async def send(self, request: Request) -> StatusAndBody:
        return status_and_body(await self.function(request.url))

    async def close(self) -> None:
        """Do nothing, as above."""


def status_and_body(returned: Any) -> StatusAndBody:
    """Return status and whole body of what a function returned. Raises PluginError if one is missing."""
    if isinstance(returned, tuple) and len(returned) == 2:
        status, body = returned
    else:
        status = getattr(returned, "status_code", None) or getattr(returned, "status", None)
        body = getattr(returned, "content", None)
        if not isinstance(body, _BODIES):  # urllib3
            body = getattr(returned, "data", None)
    if isinstance(status, int) and 100 <= status < 600 and isinstance(body, _BODIES):
        return status, body  # type: ignore[return-value]  # the recorder needs its length, and json.loads reads it
    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that nobody awaited it
        raise PluginError("the function returned a coroutine; write 'async def', and await it")
    types = [type(one).__name__ for one in returned] if isinstance(returned, tuple) else [type(returned).__name__]
    raise PluginError(
        f"the function returned {', '.join(types)}; return your library's response, or its status and body, an int and "
        "bytes: 'return response.status, body'"
    )
