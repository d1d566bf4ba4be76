"""The requests of a workload: a function from k to request k, made off the clock or recorded in a file.

A file of recorded requests is a HAR file (http://www.softwareishard.com/blog/har-12-spec/) or JSON Lines. A line is an
object with these keys, and no others:

    url or path    what to request; of a URL, only path and query count, since the target has the base address
    method         GET if it is left out
    headers        names and values; those that a client makes itself are ignored
    body           text, or a document, which is sent as JSON
    body_base64    a body that is not text
    weight         how often this request is drawn, relative to the others; without weights they are sent in order
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import random
import re
import string
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clientlab import __version__
from clientlab.errors import FieldError
from clientlab.workload.values import draw_share
from clientlab.workload.workload import (
    NUMBER_FIELD,
    Body,
    Request,
    Workload,
    check_request_line,
    delay_of,
    encodes_each,
    varies,
)

BLOCK = 1 << 16  # bytes of the block that an upload repeats, so that generating it costs nothing
_PINNED_HEADERS = {
    # The same for all clients: none negotiates compression, and none sends a longer name than another.
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": f"clientlab/{__version__}",
}
_KEYS = {"url", "path", "method", "headers", "body", "body_base64", "weight"}
_IGNORED_HEADERS = re.compile(
    ":.*|connection|content-length|expect|host|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade",
    re.IGNORECASE,
)
"""Headers that a client makes itself, or that are about one connection (RFC 9110, 7.6.1)."""
_STREAM = 1  # of `draw_share`: a request's delay does not depend on which request was drawn


class Upload:
    """`size` bytes, which the seed decides. Each iteration starts anew, so requests and threads may share an object."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._block = random.Random(seed).randbytes(BLOCK)  # noqa: S311 - a payload, not a secret

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, self._size, BLOCK):
            yield self._block[: self._size - start]

    def reader(self) -> Callable[[int], bytes]:
        """Return a read function for libcurl: at most `count` of the next bytes, and ``b""`` at the end."""
        at = 0

        def read(count: int) -> bytes:
            nonlocal at
            begin = at % BLOCK
            piece = self._block[begin : begin + min(count, self._size - at)]
            at += len(piece)
            return piece

        return read


class AsyncUpload:
    """An upload for asyncio. It is not iterable, because libraries treat every plain iterable as blocking."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload

    def __len__(self) -> int:
        return len(self._upload)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._upload:
            yield block


def requests_of(workload: Workload, base_url: str, *, awaited: bool = False) -> Callable[[int], Request]:
    """Return a function from k to request k of the workload at `base_url` (scheme, host and port).

    Equal requests are the same object, so that they cost nothing. `awaited`: uploads are iterated with `async for`.
    """
    base, delay = base_url.rstrip("/"), delay_of(workload)

    def delayed(url: str, seconds: float) -> str:
        return f"{url}{'&' if '?' in url else '?'}delay={seconds:.6f}"

    if workload.replay is not None:
        recorded = read_recorded_requests(workload.replay, workload.replay_sha256)
        made = [
            replace(one, url=base + one.url, headers=_merge_headers(workload, one.headers)) for one in recorded.requests
        ]
        ends = list(itertools.accumulate(recorded.weights))

        def recorded_request(k: int) -> Request:
            number = workload.number_of(k)
            place = number % len(made)
            if ends:
                place = min(bisect_right(ends, ends[-1] * draw_share(workload.seed, number, _STREAM)), len(made) - 1)
            one = made[place]
            return one if delay is None else Request(one.method, delayed(one.url, delay(k)), one.headers, one.body)

        return recorded_request

    body_of, headers, method = _make_bodies(workload, awaited=awaited), _merge_headers(workload, {}), workload.method
    base += workload.path

    def request(k: int) -> Request:
        url = base.replace(NUMBER_FIELD, str(workload.number_of(k)))
        return Request(method, url if delay is None else delayed(url, delay(k)), headers, body_of())

    if varies(workload):
        return request
    same = request(0)
    return lambda _: same


def body_size(workload: Workload) -> int | None:
    """Return the bytes of the body of each request, or None for recorded requests, whose bodies differ."""
    return None if workload.replay is not None else len(_make_bodies(workload, awaited=False)() or b"")


def _make_bodies(workload: Workload, *, awaited: bool) -> Callable[[], Body | None]:
    body: Body | None = None
    if workload.body is not None:
        body = workload.body.encode()
    elif workload.upload_size is not None:
        upload = Upload(workload.upload_size, workload.seed)
        body = b"".join(upload) if workload.upload == "whole" else AsyncUpload(upload) if awaited else upload
    elif workload.payload_size is not None:
        draw = random.Random(workload.seed)  # noqa: S311 - a payload, not a secret
        document = {"data": "".join(draw.choices(string.ascii_uppercase + string.digits, k=workload.payload_size))}
        if encodes_each(workload):
            return lambda: json.dumps(document).encode()
        body = json.dumps(document).encode()
    return lambda: body


def _merge_headers(workload: Workload, recorded: dict[str, str]) -> dict[str, str]:
    """Return the lab's own headers, a recorded request's, and the workload's. Later ones override earlier ones."""
    headers = dict(_PINNED_HEADERS)
    if workload.upload_size is not None:
        # Without a length, each library would choose its own framing.
        headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(workload.upload_size)}
    if workload.payload_size is not None:
        headers["Content-Type"] = "application/json"
    for more in (recorded, workload.headers):
        given = {name.lower() for name in more}
        headers = {name: value for name, value in headers.items() if name.lower() not in given} | more
    return headers


@dataclass(frozen=True)
class Recorded:
    """The requests of a file, whose `url` is path and query. `weights`: empty if they are sent in order.

    `digest`: SHA-256 of the file. `left_out`: number of entries that are not HTTP requests.
    """

    requests: list[Request]
    weights: list[float]
    digest: str
    left_out: int


def pin_recorded_requests(workload: Workload) -> Workload:
    """Return the workload with the digest of its recorded requests, so that trials fail if the file has changed."""
    if workload.replay is None:
        return workload
    return replace(workload, replay_sha256=read_recorded_requests(workload.replay, workload.replay_sha256).digest)


def read_recorded_requests(path: str, digest: str | None = None) -> Recorded:
    """Return the requests of a file. Raise FieldError if it cannot be read, or has another digest than `digest`."""
    try:
        content = Path(path).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if digest is not None and digest != found:
            raise ValueError("the file has changed since the run was planned; restore it, or measure anew")
        try:
            entries = json.loads(content)["log"]["entries"]
        except (ValueError, RecursionError, LookupError, TypeError):  # JSON Lines have an object on each line
            entries = None
        is_har = isinstance(entries, list)
        requests, weights, left_out = list[Request](), list[float](), 0
        for number, entry in enumerate(entries if is_har else content.splitlines(), 1):
            try:
                if is_har:
                    request, weight = _parse_har_entry(entry), None
                elif entry.strip():
                    request, weight = _parse_line(entry)
                else:
                    continue
            except (KeyError, TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
                place = f"{'entry' if is_har else 'line'} {number}"
                message = f"{error} is missing" if isinstance(error, KeyError) else error
                raise ValueError(f"{place}: {message}") from error
            left_out += request is None
            requests += [] if request is None else [request]
            weights += [] if weight is None else [weight]
        if not requests:
            raise ValueError("it contains no request")
        if weights and len(weights) < len(requests):
            raise ValueError("some requests have a weight and others do not")
    except (OSError, ValueError) as error:
        raise FieldError(["replay"], getattr(error, "strerror", None) or str(error), value=path) from error
    return Recorded(requests, weights, found, left_out)


def _parse_har_entry(entry: Any) -> Request | None:
    """Return the request of an entry, or None if it is not an HTTP request."""
    request = entry["request"]
    if not request["url"].startswith(("http://", "https://")):
        return None
    headers: dict[str, str] = {}
    for name, value in ((one["name"], one["value"]) for one in request["headers"]):
        if name.lower() != "accept-encoding":  # the cost of decompression differs between clients
            # HTTP/2 splits cookies over several headers (RFC 9113, 8.2.3; RFC 9110, 5.3).
            joint = "; " if name.lower() == "cookie" else ", "
            headers[name] = f"{headers[name]}{joint}{value}" if name in headers else value
    posted = request.get("postData") or {}
    if posted.get("params") and not posted.get("text"):
        raise ValueError("its body is recorded as parameters, without the text that was sent")
    body = posted["text"].encode() if posted.get("text") else None
    return _make_recorded(request["method"], _path_of(request["url"]), headers, body)


def _parse_line(line: bytes) -> tuple[Request, float | None]:
    """Return the request of a line of JSON Lines, and its weight."""
    document = json.loads(line)
    if not isinstance(document, dict):
        raise TypeError('write an object, like {"path": "/"}')
    if unknown := sorted(document.keys() - _KEYS):
        raise ValueError(f"unknown key {unknown[0]!r}; there are {', '.join(sorted(_KEYS))}")
    for one, other in (("url", "path"), ("body", "body_base64")):
        if one in document and other in document:
            raise ValueError(f"write either {one} or {other}")
    headers, body = dict(document.get("headers") or {}), document.get("body")
    if "body_base64" in document:
        body = base64.b64decode(document["body_base64"], validate=True)
    elif isinstance(body, str):
        body = body.encode()
    elif body is not None:
        body = json.dumps(body).encode()
        if "content-type" not in {name.lower() for name in headers}:
            headers["Content-Type"] = "application/json"
    path = _path_of(document["url"]) if "url" in document else document["path"]
    weight = document.get("weight")
    if weight is not None and (isinstance(weight, bool) or not 0 < weight < math.inf):
        raise ValueError(f"weight {weight!r}: write a number above 0")
    return _make_recorded(document.get("method", "GET"), path, headers, body), weight


def _path_of(url: str) -> str:
    """Return path and query of a URL. Errors do not quote the URL, because it may contain a password."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError("its url can't be read; write http:// or https:// and a host") from error
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError("url: write http:// or https:// and a host, or only a path")
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _make_recorded(method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Request:
    """Return a request without the headers that a client makes itself. Raise ValueError or TypeError."""
    if not all(isinstance(text, str) for text in (method, path, *headers, *headers.values())):
        raise TypeError("method, path, names and values of headers must be texts")
    kept = {name: value for name, value in headers.items() if not _IGNORED_HEADERS.fullmatch(name)}
    try:
        check_request_line(method, path, kept)
    except FieldError as error:
        raise ValueError(str(error)) from error
    return Request(method, path, kept, body)
