"""The requests of a workload: a function from k to request k, made off the clock or
recorded in a file.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

from clientlab import __version__
from clientlab.workload.parts import Replay
from clientlab.workload.recordings import choose_places, read_recorded_requests
from clientlab.workload.refusals import spell_path
from clientlab.workload.streams import HEADER
from clientlab.workload.values import draw_share
from clientlab.workload.workload import (
    NUMBER_FIELD,
    Body,
    Request,
    Workload,
    delay_of,
    encodes_each,
    varies,
)

NUMBER_HEADER = "X-Request-Number"
"""Of a request that tells its number (mockupstream.trace)."""

# Bytes of the block that an upload repeats, so that generating it costs nothing.
BLOCK = 1 << 16
_PINNED_HEADERS = {
    # The same for all clients: none negotiates compression by itself, and none sends a
    # longer name than another.
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": f"clientlab/{__version__}",
}


class Upload:
    """`size` bytes, which the seed decides.

    Each iteration starts anew, so requests and threads may share an object.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._block = random.Random(seed).randbytes(BLOCK)  # noqa: S311 - a payload, not a secret

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, self._size, BLOCK):
            yield self._block[: self._size - start]

    def reader(self) -> Callable[[int], bytes]:
        """Return a read function for libcurl: at most `count` of the next bytes, and
        ``b""`` at the end.
        """
        at = 0

        def read(count: int) -> bytes:
            nonlocal at
            begin = at % BLOCK
            piece = self._block[begin : begin + min(count, self._size - at)]
            at += len(piece)
            return piece

        return read


class AsyncUpload:
    """An upload for asyncio.

    It is not iterable, because libraries treat every plain iterable as blocking.
    """

    def __init__(self, upload: Upload) -> None:
        self._upload = upload

    def __len__(self) -> int:
        return len(self._upload)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._upload:
            yield block


def _whole_delay(_number: int) -> float:
    return 1.0


def requests_of(
    workload: Workload,
    base_url: str,
    *,
    awaited: bool = False,
    share_of: Callable[[int], float] = _whole_delay,
) -> Callable[[int], Request]:
    """Return a function from k to request k of the workload at `base_url` (scheme, host
    and port).

    Equal requests are the same object, so that they cost nothing. `awaited`: uploads
    are iterated with `async for`. `share_of`: from k to the share of its delay that it
    asks for.
    """
    base = base_url.rstrip("/")
    delay = _delay_asked(workload, share_of)
    if workload.replay is not None:
        return _recorded_requests(workload, workload.replay, base, delay)
    template = workload.request
    body_of = _make_bodies(workload, awaited=awaited)
    headers = _merge_headers(workload, template.method, body_of(), {})
    url = base + spell_path(template.path)
    stream = _stream_settings(workload)

    def request(k: int) -> Request:
        number = workload.number_of(k)
        own_url = url.replace(NUMBER_FIELD, str(number))
        if delay is not None:
            own_url = _with_query(own_url, f"delay={delay(k):.6f}")
        own_headers = headers
        if stream is not None:
            own_headers = {**headers, HEADER: stream(number)}
        elif workload.faults is not None:
            own_url = _with_query(own_url, f"call={number}")
        return Request(template.method, own_url, own_headers, body_of())

    if varies(workload):
        return request
    same = request(-1)  # not of the first wave
    return lambda k: same if share_of(k) == 1.0 else request(k)


def with_numbers(
    request: Callable[[int], Request], *, in_url: bool
) -> Callable[[int], Request]:
    """Return a function from k to request k that tells the upstream its number.

    `in_url`: in the query, for a client that gets nothing but a URL. The upstream logs
    no number below 0, which the warm-up has.
    """

    def numbered(k: int) -> Request:
        made = request(k)
        if not in_url:
            headers = {**made.headers, NUMBER_HEADER: str(k)}
            return replace(made, headers=headers)
        path, mark, query = made.url.partition("?")
        url = f"{path}?request-number={k}"
        return replace(made, url=f"{url}&{query}" if mark else url)

    return numbered


def _delay_asked(
    workload: Workload, share_of: Callable[[int], float]
) -> Callable[[int], float] | None:
    """Return a function from k to the delay that its URL asks for, or None."""
    if workload.delay is None:
        return None
    whole = delay_of(workload)
    if whole is None:
        return None
    return lambda k: whole(k) * share_of(k)


def _with_query(url: str, parameter: str) -> str:
    mark = "&" if "?" in url else "?"
    return f"{url}{mark}{parameter}"


def _recorded_requests(
    workload: Workload,
    replay: Replay,
    base: str,
    delay: Callable[[int], float] | None,
) -> Callable[[int], Request]:
    recorded = read_recorded_requests(replay)
    place_of = choose_places(workload, recorded)
    # Made when they are sent, because a log may hold many.
    made: dict[Request, Request] = {}

    def request(k: int) -> Request:
        found = recorded.requests[place_of(k)]
        one = made.get(found)
        if one is None:
            headers = _merge_headers(workload, found.method, found.body, found.headers)
            one = replace(found, url=base + found.url, headers=headers)
            made[found] = one
        if delay is None and workload.faults is None:
            return one
        url = one.url
        if delay is not None:
            url = _with_query(url, f"delay={delay(k):.6f}")
        if workload.faults is not None:
            url = _with_query(url, f"call={workload.number_of(k)}")
        return replace(one, url=url)

    return request


def _stream_settings(workload: Workload) -> Callable[[int], str] | None:
    """Return a function from the number of a request to its header `HEADER`; None if
    the server is not the lab's.
    """
    stream = workload.stream
    if stream is None or stream.first is None or stream.every is None:
        return None
    settings = (
        f"format={stream.format}&first={stream.first}&every={stream.every}"
        f"&events={stream.events}"
    )
    if stream.options:
        settings += f"&{stream.options}"
    is_drawn = stream.first.form or stream.every.form

    def settings_of(number: int) -> str:
        own = settings
        if is_drawn:
            own += f"&seed={int(draw_share(workload.seed, number) * 2**52)}"
        if workload.faults is not None:
            own += f"&call={number}"
        return own

    return settings_of


def body_size(workload: Workload) -> int | None:
    """Return the bytes of the body of each request, or None for recorded requests,
    whose bodies differ.
    """
    if workload.replay is not None:
        return None
    return len(_make_bodies(workload, awaited=False)() or b"")


def _make_bodies(workload: Workload, *, awaited: bool) -> Callable[[], Body | None]:
    request = workload.request
    body: Body | None = None
    if request.body is not None:
        body = request.body.encode() or None
    elif request.body_base64 is not None:
        body = base64.b64decode(request.body_base64) or None
    elif request.upload_size is not None:
        body = Upload(request.upload_size, workload.seed)
        if request.upload == "whole":
            body = b"".join(body)
        elif awaited:
            body = AsyncUpload(body)
    elif request.payload_size is not None:
        draw = random.Random(workload.seed)  # noqa: S311 - a payload, not a secret
        letters = string.ascii_uppercase + string.digits
        document = {"data": "".join(draw.choices(letters, k=request.payload_size))}
        if encodes_each(workload):
            return lambda: json.dumps(document).encode()
        body = json.dumps(document).encode()
    return lambda: body


def _merge_headers(
    workload: Workload, method: str, body: Body | None, recorded: dict[str, str]
) -> dict[str, str]:
    """Return the lab's own headers, a recorded request's, and the workload's.

    Later ones override earlier ones.
    """
    request = workload.request
    headers = dict(_PINNED_HEADERS)
    if workload.reading.decode:
        headers["Accept-Encoding"] = "gzip"  # the only coding that all libraries decode
    if body is not None:
        # What HTTP assumes of a body without a type (RFC 9110, 8.3). The lab does not
        # guess from the content, and the libraries would send a form, a text, bytes or
        # no type.
        headers["Content-Type"] = "application/octet-stream"
    elif method not in {"GET", "HEAD"}:
        # Requests sends it with all other methods, and some libraries with none.
        headers["Content-Length"] = "0"
    if request.upload_size is not None:
        # Else, each library would choose its own framing.
        headers["Content-Length"] = str(request.upload_size)
    calls_api = workload.stream is not None and request.body is not None
    if request.payload_size is not None or calls_api:
        headers["Content-Type"] = "application/json"
    for more in (recorded, request.headers):
        given = {name.lower() for name in more}
        kept = {
            name: text for name, text in headers.items() if name.lower() not in given
        }
        headers = kept | more
    # Some libraries refuse blanks around a value.
    return {name: value.strip() for name, value in headers.items()}
