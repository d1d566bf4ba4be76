"""The requests of a workload: a function from k to request k, with its body, made off the clock."""

from __future__ import annotations

import json
import random
import string
from collections.abc import AsyncIterator, Callable, Iterator

from clientlab import __version__
from clientlab.workload import replay
from clientlab.workload.workload import NUMBER_FIELD, Body, Request, Workload, delay_of, encodes_each, varies

BLOCK = 1 << 16
"""Bytes per block. The same block is sent again and again, so that generating it costs nothing."""


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
        """A read function for libcurl: it returns at most `count` of the next bytes, and ``b""`` at the end."""
        at = 0

        def read(count: int) -> bytes:
            nonlocal at
            begin = at % BLOCK
            piece = self._block[begin : begin + min(count, self._size - at)]
            at += len(piece)
            return piece

        return read


class AsyncUpload:
    """An upload for asyncio. It is a type of its own, because libraries treat every plain iterable as blocking."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload

    def __len__(self) -> int:
        return len(self._upload)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._upload:
            yield block


_PINNED_HEADERS = {
    # Equal for all clients: none negotiates compression, and none sends a longer name than another.
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": f"clientlab/{__version__}",
}


def requests_of(workload: Workload, base_url: str, *, awaited: bool = False) -> Callable[[int], Request]:
    """A function from k to request k of the workload at `base_url` (scheme, host and port).

    If all requests are alike, it returns one object, so that building costs nothing. `awaited`: for an asyncio client,
    which iterates streamed uploads with `async for`.
    """
    if workload.replay is not None:
        return _recorded_requests_of(workload, replay.read(workload.replay, workload.replay_sha256), base_url)
    url_of = _urls_of(workload, base_url)
    body_of = _bodies_of(workload, awaited=awaited)
    headers = _headers_of(workload)
    method = workload.method
    if not varies(workload):
        same = Request(method, url_of(0), headers, body_of())
        return lambda _: same
    return lambda number: Request(method, url_of(number), headers, body_of())


def body_size(workload: Workload) -> int | None:
    """Bytes of the body of each request; None for recorded requests, whose bodies differ."""
    if workload.replay is not None:
        return None
    body = _bodies_of(workload, awaited=False)()
    return 0 if body is None else len(body)


def payload(workload: Workload) -> dict[str, str]:
    """The JSON object of `payload_size`: upper-case letters and digits, which the seed decides."""
    letters = string.ascii_uppercase + string.digits
    draw = random.Random(workload.seed)  # noqa: S311 - a payload, not a secret
    return {"data": "".join(draw.choices(letters, k=workload.payload_size or 0))}


def _urls_of(workload: Workload, base_url: str) -> Callable[[int], str]:
    base = base_url.rstrip("/") + workload.path
    delay = delay_of(workload)

    def url_of(k: int) -> str:
        url = base.replace(NUMBER_FIELD, str(workload.number_of(k)))
        return url if delay is None else _delayed(url, delay(k))

    return url_of


def _delayed(url: str, delay: float) -> str:
    return f"{url}{'&' if '?' in url else '?'}delay={delay:.6f}"


def _recorded_requests_of(workload: Workload, recorded: replay.Recorded, base_url: str) -> Callable[[int], Request]:
    """All requests are made now: one object for each of the file's, except where each has a delay of its own."""
    base, place_of, delay = base_url.rstrip("/"), recorded.place_of(workload.seed), delay_of(workload)
    made = [
        Request(one.method, base + one.path, _headers_of(workload, one.headers), one.body) for one in recorded.requests
    ]
    if delay is None:
        return lambda k: made[place_of(workload.number_of(k))]

    def request_of(k: int) -> Request:
        request = made[place_of(workload.number_of(k))]
        return Request(request.method, _delayed(request.url, delay(k)), request.headers, request.body)

    return request_of


def _bodies_of(workload: Workload, *, awaited: bool) -> Callable[[], Body | None]:
    if workload.body is not None:
        given = workload.body.encode()
        return lambda: given
    if workload.upload_size is not None:
        sent = _upload(workload, Upload(workload.upload_size, workload.seed), awaited=awaited)
        return lambda: sent
    if workload.payload_size is None:
        return lambda: None
    document = payload(workload)
    if encodes_each(workload):
        return lambda: json.dumps(document).encode()
    encoded = json.dumps(document).encode()
    return lambda: encoded


def _upload(workload: Workload, upload: Upload, *, awaited: bool) -> Body:
    if workload.upload == "whole":
        return b"".join(upload)
    return AsyncUpload(upload) if awaited else upload


def _headers_of(workload: Workload, recorded: dict[str, str] | None = None) -> dict[str, str]:
    """The lab's own headers, those of a recorded request, and those that the workload names: the later ones win."""
    headers = dict(_PINNED_HEADERS)
    if workload.upload_size is not None:
        # Without a length, each library would choose its own framing.
        headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(workload.upload_size)}
    if workload.payload_size is not None:
        headers["Content-Type"] = "application/json"
    for more in (recorded or {}, workload.headers):
        given = {name.lower() for name in more}
        headers = {name: value for name, value in headers.items() if name.lower() not in given} | more
    return headers
