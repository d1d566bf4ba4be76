"""Recorded requests: a file of JSON Lines, or a HAR file of a browser or a proxy, whose requests a workload sends.

A line of JSON Lines is an object with these keys, and no others:

    url or path    what to request; of a URL, path and query count, since the base address is that of the target
    method         GET if it is left out
    headers        names and values; those that a client makes itself are left out
    body           text, or a document, which is sent as JSON
    body_base64    a body that is no text
    weight         how often this request is drawn, beside the others; without weights they are sent in order

The HAR format is that of http://www.softwareishard.com/blog/har-12-spec/. Browsers accept compression, whose decoding
costs each client something else: ``Accept-Encoding`` is left out as well.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clientlab.errors import FieldError
from clientlab.workload.delays import share
from clientlab.workload.request_line import check_request_line

_KEYS = {"url", "path", "method", "headers", "body", "body_base64", "weight"}
_OWN = {
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
"""Headers that a client makes itself, or that are about one connection (RFC 9110, 7.6.1)."""
_STREAM = 1
"""Delays are drawn from stream 0: a request's delay does not depend on which request was drawn."""


@dataclass(frozen=True)
class RecordedRequest:
    """A request of the file. `path`: with its query. `weight`: None to be sent in its turn."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    weight: float | None = None


@dataclass(frozen=True)
class Recorded:
    """The requests of a file. `digest`: SHA-256 of the file. `left_out`: entries that are no HTTP requests."""

    requests: list[RecordedRequest]
    digest: str
    left_out: int = 0

    @property
    def weighted(self) -> bool:
        """Whether requests are drawn, instead of sent in the order of the file."""
        return self.requests[0].weight is not None

    def place_of(self, seed: int) -> Callable[[int], int]:
        """Return a function from k to the place of request k in the file: only the seed and k decide."""
        count = len(self.requests)
        if not self.weighted:
            return lambda number: number % count
        ends = list(itertools.accumulate(request.weight or 0.0 for request in self.requests))
        return lambda number: min(bisect_right(ends, ends[-1] * share(seed, number, _STREAM)), count - 1)


def read(path: str, digest: str | None = None) -> Recorded:
    """Return the requests of a file. Raises FieldError if it cannot be read, or does not have that digest."""
    try:
        content = Path(path).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if digest is not None and digest != found:
            raise ValueError("the file is not the one that was planned with; restore it, or measure anew")
        entries = _entries_of_har(content)
        requests = list(_of_lines(content) if entries is None else _of_har(entries))
        if not requests:
            raise ValueError("there is no request in it")
        if len({request.weight is None for request in requests}) > 1:
            raise ValueError("some requests have a weight and others have none")
    except OSError as error:
        raise FieldError(["replay"], error.strerror or str(error), value=path) from error
    except ValueError as error:
        raise FieldError(["replay"], str(error), value=path) from error
    return Recorded(requests, found, 0 if entries is None else len(entries) - len(requests))


def _entries_of_har(content: bytes) -> list[Any] | None:
    """Return the entries of a HAR file, or None for another file: JSON Lines have an object on each line."""
    try:
        entries = json.loads(content)["log"]["entries"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    return entries if isinstance(entries, list) else None


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
    """Turn any fault of an entry into a ValueError with its place."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{place}: it has no {error}") from error
    except (TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(f"{place}: {error}") from error


def _of_har(entries: list[Any]) -> Iterator[RecordedRequest]:
    for number, entry in enumerate(entries, 1):
        with _naming(f"entry {number}"):
            request = entry["request"]
            if not request["url"].startswith(("http://", "https://")):
                continue
            headers: dict[str, str] = {}
            for name, value in ((one["name"], one["value"]) for one in request["headers"]):
                if name.lower() != "accept-encoding":
                    # HTTP/2 sends each cookie in a header of its own (RFC 9113, 8.2.3; RFC 9110, 5.3).
                    joint = "; " if name.lower() == "cookie" else ", "
                    headers[name] = f"{headers[name]}{joint}{value}" if name in headers else value
            posted = request.get("postData") or {}
            if posted.get("params") and not posted.get("text"):
                raise ValueError("its body is recorded as parameters, without the text that was sent")
            body = posted["text"].encode() if posted.get("text") else None
            found = _checked(request["method"], _path_of(request["url"]), headers, body, None)
        yield found


def _of_lines(content: bytes) -> Iterator[RecordedRequest]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            with _naming(f"line {number}"):
                found = _of_document(json.loads(line))
            yield found


def _of_document(document: Any) -> RecordedRequest:
    if not isinstance(document, dict):
        raise TypeError('write an object, as {"path": "/"}')
    if unknown := sorted(document.keys() - _KEYS):
        raise ValueError(f"there is no key {unknown[0]!r}; there are {', '.join(sorted(_KEYS))}")
    if len(document.keys() & {"url", "path"}) != 1:
        raise ValueError("write either url or path")
    if len(document.keys() & {"body", "body_base64"}) > 1:
        raise ValueError("write either body or body_base64")
    headers, body = dict(document.get("headers") or {}), document.get("body")
    if "body_base64" in document:
        body = base64.b64decode(document["body_base64"], validate=True)
    elif isinstance(body, str):
        body = body.encode()
    elif body is not None:
        body = json.dumps(body).encode()
        if "content-type" not in {name.lower() for name in headers}:
            headers["Content-Type"] = "application/json"
    path = document["path"] if "path" in document else _path_of(document["url"])
    weight = document.get("weight")
    if weight is not None and (isinstance(weight, bool) or not 0 < weight < math.inf):
        raise ValueError(f"weight {weight!r}: write a number above 0")
    return _checked(document.get("method", "GET"), path, headers, body, weight)


def _path_of(url: str) -> str:
    """Return path and query of a URL. Errors do not quote it: it may hold a password."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError("its url can't be read; write http:// or https:// and a host") from error
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError("url: write http:// or https:// and a host, or a path alone")
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _checked(
    method: str, path: str, headers: Mapping[str, str], body: bytes | None, weight: float | None
) -> RecordedRequest:
    """Return the request without the headers that a client makes itself. Raises ValueError, TypeError."""
    if not all(isinstance(text, str) for text in (method, path, *headers, *headers.values())):
        raise TypeError("method, path, names and values of headers are texts")
    kept = {name: value for name, value in headers.items() if name.lower() not in _OWN and not name.startswith(":")}
    try:
        check_request_line(method, path, kept)
    except FieldError as error:
        raise ValueError(str(error)) from error
    return RecordedRequest(method, path, kept, body, weight)
