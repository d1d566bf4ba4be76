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
from clientlab.workload.recordings import choose_places, read_recorded_requests
from clientlab.workload.streams import HEADER
from clientlab.workload.values import draw_share
from clientlab.workload.workload import (
    NUMBER_FIELD,
    Body,
    Request,
    Workload,
    delay_of,
    encodes_each,
    spell_path,
    varies,
)

BLOCK = (
    1 << 16
)  # bytes of the block that an upload repeats, so that generating it costs nothing
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
    base, delay_whole = (
        base_url.rstrip("/"),
        None if workload.delay is None else delay_of(workload),
    )
    delay = None if delay_whole is None else lambda k: delay_whole(k) * share_of(k)

    def delayed(url: str, seconds: float) -> str:
        return f"{url}{'&' if '?' in url else '?'}delay={seconds:.6f}"

    if workload.replay is not None:
        recorded = read_recorded_requests(workload)
        place_of = choose_places(workload, recorded)
        made: dict[
            Request, Request
        ] = {}  # made when they are sent, because a log may hold many

        def recorded_request(k: int) -> Request:
            found = recorded.requests[place_of(k)]
            if (one := made.get(found)) is None:
                headers = _merge_headers(
                    workload, found.method, found.body, found.headers
                )
                one = made[found] = replace(
                    found, url=base + found.url, headers=headers
                )
            return (
                one
                if delay is None
                else Request(
                    one.method, delayed(one.url, delay(k)), one.headers, one.body
                )
            )

        return recorded_request

    body_of, method = _make_bodies(workload, awaited=awaited), workload.method
    headers = _merge_headers(workload, method, body_of(), {})
    base += spell_path(workload.path)
    stream = _stream_settings(workload)

    def request(k: int) -> Request:
        url = base.replace(NUMBER_FIELD, str(workload.number_of(k)))
        own = (
            headers
            if stream is None
            else {**headers, HEADER: stream(workload.number_of(k))}
        )
        return Request(
            method, url if delay is None else delayed(url, delay(k)), own, body_of()
        )

    if varies(workload):
        return request
    same = request(-1)  # not of the first wave
    return lambda k: same if share_of(k) == 1.0 else request(k)


def _stream_settings(workload: Workload) -> Callable[[int], str] | None:
    """Return a function from the number of a request to its header `HEADER`; None if
    the server is not the lab's.
    """
    first, every = workload.first, workload.every
    if first is None or every is None:
        return None
    settings = (
        f"format={workload.stream}&first={first}&every={every}&events={workload.events}"
    )
    settings += f"&{workload.stream_options}" if workload.stream_options else ""
    if not (first.form or every.form):
        return lambda _: settings
    return lambda number: (
        f"{settings}&seed={int(draw_share(workload.seed, number) * 2**52)}"
    )


def body_size(workload: Workload) -> int | None:
    """Return the bytes of the body of each request, or None for recorded requests,
    whose bodies differ.
    """
    return (
        None
        if workload.replay is not None
        else len(_make_bodies(workload, awaited=False)() or b"")
    )


def _make_bodies(workload: Workload, *, awaited: bool) -> Callable[[], Body | None]:
    body: Body | None = None
    if workload.body is not None:
        body = workload.body.encode() or None
    elif workload.body_base64 is not None:
        body = base64.b64decode(workload.body_base64) or None
    elif workload.upload_size is not None:
        upload = Upload(workload.upload_size, workload.seed)
        body = (
            b"".join(upload)
            if workload.upload == "whole"
            else AsyncUpload(upload)
            if awaited
            else upload
        )
    elif workload.payload_size is not None:
        draw = random.Random(workload.seed)  # noqa: S311 - a payload, not a secret
        document = {
            "data": "".join(
                draw.choices(
                    string.ascii_uppercase + string.digits, k=workload.payload_size
                )
            )
        }
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
    headers = dict(_PINNED_HEADERS)
    if workload.decode:
        headers["Accept-Encoding"] = "gzip"  # the only coding that all libraries decode
    if body is not None:
        # What HTTP assumes of a body without a type (RFC 9110, 8.3). The lab does not
        # guess from the content, and the libraries would send a form, a text, bytes or
        # no type.
        headers["Content-Type"] = "application/octet-stream"
    elif method not in {"GET", "HEAD"}:
        headers["Content-Length"] = (
            # Requests sends it with all other methods, and some libraries with none.
            "0"
        )
    if workload.upload_size is not None:
        headers["Content-Length"] = str(
            workload.upload_size
        )  # else, each library would choose its own framing
    if workload.payload_size is not None or (
        workload.stream is not None and workload.body is not None
    ):
        headers["Content-Type"] = "application/json"
    for more in (recorded, workload.headers):
        given = {name.lower() for name in more}
        headers = {
            name: value for name, value in headers.items() if name.lower() not in given
        } | more
    return {
        name: value.strip() for name, value in headers.items()
    }  # some libraries refuse blanks around a value
