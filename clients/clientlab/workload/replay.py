"""Recorded requests: a file of JSON Lines, or a HAR file of a browser or a proxy, whose requests a workload sends.

A line of JSON Lines is an object with these keys, and no others:

    url or path    what to request; of a URL, path and query count, since the base address is that of the target
    method         GET if it is left out
    headers        names and values; those that a client makes itself are left out
    body           text, or a document, which is sent as JSON
    body_base64    a body that is no text
    weight         how often this request is drawn, beside the others; without weights they are sent in order

The HAR format is that of http://www.softwareishard.com/blog/har-12-spec/. Browsers accept compression, which the lab's
clients decode at unlike cost: ``Accept-Encoding`` is left out as well.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from clientlab.errors import FieldError
from clientlab.redaction import mask_text
from clientlab.workload.delays import share
from clientlab.workload.request_line import check_request_line

MOST_BYTES = 64 * 1024 * 1024
"""Of a file. Each process of a trial holds its requests in memory."""

_KEYS = {"url", "path", "method", "headers", "body", "body_base64", "weight"}
_OWN = {
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
"""Headers that a client makes itself, or that are about one connection (RFC 9110, 7.6.1)."""


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
        """Whether requests are drawn, and not sent in the order of the file."""
        return self.requests[0].weight is not None

    def place_of(self, seed: int) -> Callable[[int], int]:
        """A function from k to the place of request k in the file: nothing but the seed and k decides."""
        count = len(self.requests)
        if not self.weighted:
            return lambda number: number % count
        ends = list(itertools.accumulate(request.weight or 0.0 for request in self.requests))
        return lambda number: min(bisect_right(ends, ends[-1] * share(seed, number, _STREAM)), count - 1)


_STREAM = 1
"""Delays are drawn from stream 0: a request's delay does not depend on which request was drawn."""


def read(path: str, digest: str | None = None) -> Recorded:
    """The requests of a file. Raises FieldError where it cannot be read, or does not have that digest."""
    content = _content(path)
    found = hashlib.sha256(content).hexdigest()
    if digest is not None and digest != found:
        message = "the file is not the one that was planned with; restore it, or measure anew"
        raise FieldError(["replay"], message, value=path)
    try:
        entries = _har(content)
        requests = list(_of_lines(content) if entries is None else _of_har(entries))
    except _BadEntry as error:
        raise FieldError(["replay"], str(error), value=path) from error
    if not requests:
        raise FieldError(["replay"], "there is no request in it", value=path)
    if len({request.weight is None for request in requests}) > 1:
        raise FieldError(["replay"], "some requests have a weight and others have none", value=path)
    return Recorded(requests, found, 0 if entries is None else len(entries) - len(requests))


class _BadEntry(ValueError):
    """An entry that cannot be sent, with its place."""


def _content(path: str) -> bytes:
    try:
        file = Path(path)
        if not file.is_file():
            raise FieldError(["replay"], "there is no such file", value=path)
        if file.stat().st_size > MOST_BYTES:
            message = f"the file is larger than {MOST_BYTES >> 20} MiB; name a part of it"
            raise FieldError(["replay"], message, value=path)
        return file.read_bytes()
    except OSError as error:
        raise FieldError(["replay"], error.strerror or str(error), value=path) from error


def _har(content: bytes) -> list[Any] | None:
    """The entries of a HAR file. None for another file: JSON Lines have an object on each line."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    return entries if isinstance(entries, list) else None


def _of_har(entries: list[Any]) -> Iterator[RecordedRequest]:
    for number, entry in enumerate(entries, 1):
        try:
            request = entry["request"]
            parts = _split(request["url"])
            headers = _joined((one["name"], one["value"]) for one in request["headers"])
            posted = request.get("postData") or {}
            text = posted.get("text")
            if text is None and posted.get("params"):
                raise ValueError("its body is recorded as parameters, without the text that was sent")
            if parts.scheme in {"http", "https"}:
                kept = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
                yield _checked(request["method"], _path_of(request["url"]), kept, text and text.encode())
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise _BadEntry(f"entry {number}: {_reason(error)}") from error


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers of one name as one: HTTP/2 sends each cookie in a header of its own (RFC 9113, 8.2.3; RFC 9110, 5.3)."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return {name: ("; " if name.lower() == "cookie" else ", ").join(values) for name, values in found.items()}


def _of_lines(content: bytes) -> Iterator[RecordedRequest]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
            if not isinstance(document, dict):
                raise ValueError('write an object, as {"path": "/"}')  # noqa: TRY004 - one handler for a line
            yield _of_document(document)
        except (TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
            raise _BadEntry(f"line {number}: {_reason(error)}") from error


def _of_document(document: dict[str, Any]) -> RecordedRequest:
    if unknown := sorted(document.keys() - _KEYS):
        raise ValueError(f"there is no key {unknown[0]!r}; there are {', '.join(sorted(_KEYS))}")
    if len(document.keys() & {"url", "path"}) != 1:
        raise ValueError("write either url or path")
    if len(document.keys() & {"body", "body_base64"}) > 1:
        raise ValueError("write either body or body_base64")
    headers = dict(document.get("headers") or {})
    body = document.get("body")
    if body is not None and not isinstance(body, str):
        body = json.dumps(body)
        if "content-type" not in {name.lower() for name in headers}:
            headers["Content-Type"] = "application/json"
    encoded = body.encode() if body is not None else _decoded(document.get("body_base64"))
    path = document["path"] if "path" in document else _path_of(document["url"])
    return _checked(document.get("method", "GET"), path, headers, encoded, _weight(document.get("weight")))


def _decoded(text: str | None) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"body_base64: {error}") from error


def _weight(weight: Any) -> float | None:
    if weight is None:
        return None
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise ValueError(f"weight {weight!r}: write a number above 0")
    return float(weight)


def _path_of(url: str) -> str:
    parts = _split(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        shown = mask_text(url)
        raise ValueError(f"url {shown!r}: write http:// or https:// and a host, or a path alone")
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # its text may quote user and password
        raise ValueError("its url can't be read; write http:// or https:// and a host") from error


def _checked(
    method: str, path: str, headers: Mapping[str, str], body: bytes | None, weight: float | None = None
) -> RecordedRequest:
    """The request without the headers that a client makes itself. Raises ValueError, TypeError."""
    if not all(isinstance(text, str) for text in (method, path, *headers, *headers.values())):
        raise TypeError("method, path, names and values of headers are texts")
    kept = {name: value for name, value in headers.items() if name.lower() not in _OWN and not name.startswith(":")}
    try:
        check_request_line(method, path, kept)
    except FieldError as error:
        raise ValueError(str(error)) from error
    return RecordedRequest(method, path, kept, body, weight)


def _reason(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
