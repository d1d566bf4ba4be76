"""The call of an SDK that sends a request of the lab: base URL, and arguments of the method. It imports no library.

An SDK joins the path to its base URL, encodes the JSON body, and adds headers of its own. A repeated request is taken
apart only once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

from clientlab.errors import Fault
from clientlab.workload.workload import Request

Sdk = TypeVar("Sdk")


class SdkCall(NamedTuple):
    """`path` is the rest of the URL behind the base URL of `sdk`. `arguments`: the body's fields, and the query."""

    sdk: Any
    path: str
    arguments: dict[str, Any]


class Calls(Generic[Sdk]):
    """Makes an SDK client for the base URL of the first request, and each request's call.

    `paths`: the paths that the SDK's methods append to the base URL. `make` makes the SDK's client for a base URL.
    """

    def __init__(self, paths: tuple[str, ...], make: Callable[[str], Sdk]) -> None:
        self._paths = paths
        self._make = make
        self._last: tuple[str, Any, SdkCall] | None = None

    def call(self, request: Request) -> SdkCall:
        """The call that sends the request. Raises Fault for a request that no method of the SDK sends."""
        last = self._last
        if last is not None and last[0] == request.url and last[1] is request.body:
            return last[2]
        path = next((path for path in self._paths if urlsplit(request.url).path.endswith(path)), None)
        if path is None or not isinstance(request.body, bytes):
            raise Fault(
                "protocol", f"the SDK sends JSON to {' or '.join(self._paths)}, and this request is another one"
            )
        before, _, query = request.url.partition("?")
        base = before.removesuffix(path)
        sdk = last[2].sdk if last is not None and last[0].startswith(f"{base}/") else self._make(base)
        arguments: dict[str, Any] = json.loads(request.body)
        if query:
            arguments["extra_query"] = parse_qs(query)
        call = SdkCall(sdk, path, arguments)
        self._last = request.url, request.body, call
        return call
