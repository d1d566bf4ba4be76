"""A function of a URL as a client: `def fetch(url)` or `async def fetch(url)`. It imports no library.

The function returns a response that holds its status and its whole body, or these two as a tuple. Neither is left out:
without the status, an error page would count as success, and without the body nobody would know whether it was read.
"""

from __future__ import annotations

import inspect
import socket
import ssl
from collections.abc import Callable
from typing import Any, ClassVar

from clientlab.clients.client_interface import Budget, Opened, StatusAndBody
from clientlab.errors import ErrorTable, PluginError
from clientlab.workload.workload import Request, Workload

RETURN = "return your library's response, or its status and body, an int and bytes: 'return response.status, body'"

_STATUSES = range(100, 600)
_BODIES = (bytes, bytearray, memoryview)


class _OfFunction:
    """What both kinds have in common. The library behind the function is unknown, so are its exceptions."""

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
        """Its pool, its time limits and its CAs are the function's own. Python's audit events count connections."""

    @staticmethod
    def refuses(workload: Workload) -> tuple[str, str] | None:
        """The field of a workload that needs more than a URL, and the reason; None if there is none."""
        for applies, field in (
            (workload.method != "GET", "method"),
            (bool(workload.headers), "headers"),
            (workload.body is not None, "body"),
            (workload.payload_size is not None, "payload_size"),
            (workload.upload_size is not None, "upload_size"),
            (workload.replay is not None, "replay"),
            (workload.read == "chunks", "read"),
            (workload.elapsed, "elapsed"),
            (workload.timeout != Workload.timeout, "timeout"),
        ):
            if applies:
                return field, f"gets nothing else; write a class, or leave out `{field}`"
        return None


class FunctionClient(_OfFunction):
    """A blocking function."""

    def open(self) -> None:
        """Do nothing: what is kept from request to request belongs to the function's module."""

    def send(self, request: Request) -> StatusAndBody:
        return status_and_body(self.function(request.url))

    def close(self) -> None:
        """Do nothing: what the module keeps ends with the process."""


class AsyncFunctionClient(_OfFunction):
    """A function of asyncio."""

    async def open(self) -> None:
        """Do nothing, as above."""

    async def send(self, request: Request) -> StatusAndBody:
        return status_and_body(await self.function(request.url))

    async def close(self) -> None:
        """Do nothing, as above."""


def client_of_function(name: str, function: Callable[[str], Any]) -> type[FunctionClient | AsyncFunctionClient]:
    """A client class that calls the function. Raises PluginError for one that cannot be called with a URL alone."""
    try:
        inspect.signature(function).bind("http://127.0.0.1/")
    except TypeError as error:
        raise PluginError(
            f"{_place(name, function)} cannot be called with a URL alone ({error}); write 'def {name}(url)', or a class"
        ) from error
    except ValueError:  # a function in C without a signature
        pass
    awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    base = AsyncFunctionClient if awaited else FunctionClient
    described = inspect.getdoc(function) or f"the function {name}"
    fields = {"__doc__": described, "function": staticmethod(function), "policy": getattr(function, "policy", "pool")}
    return type(name, (base,), fields)


def status_and_body(returned: Any) -> StatusAndBody:
    """Status and whole body of what a function returned. Raises PluginError where it holds not both."""
    if isinstance(returned, tuple) and len(returned) == 2:
        status, body = returned
    else:
        status = getattr(returned, "status_code", None) or getattr(returned, "status", None)
        body = getattr(returned, "content", None)
        if not isinstance(body, _BODIES):  # urllib3
            body = getattr(returned, "data", None)
    if isinstance(status, int) and not isinstance(status, bool) and isinstance(body, _BODIES):
        if status not in _STATUSES:
            raise PluginError(f"the function returned the status {status}, which no server sends; {RETURN}")
        return status, body  # type: ignore[return-value]  # the recorder needs its length, and json.loads reads it
    raise PluginError(f"the function returned {_described(returned)}; {_advice(returned)}")


def _described(returned: Any) -> str:
    """What was returned, in a few words."""
    if returned is None:
        return "nothing"
    if isinstance(returned, tuple):
        return f"({', '.join(type(one).__name__ for one in returned)})"
    return f"an object of type {type(returned).__name__}"


def _advice(returned: Any) -> str:
    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that nobody awaited it
        return "write 'async def', and await it"
    return RETURN


def _place(name: str, function: Callable[[str], Any]) -> str:
    """The function with its file and line."""
    try:
        return f"{inspect.getsourcefile(function)}, line {inspect.getsourcelines(function)[1]}: function {name}"
    except (OSError, TypeError):  # the source is not available
        return f"function {name}"
