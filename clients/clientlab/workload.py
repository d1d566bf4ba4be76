"""What is asked, and how much: the workload, and the requests that it is made of."""

from __future__ import annotations

import json
import math
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from clientlab import __version__, delays
from clientlab.errors import LabError
from clientlab.uploads import AsyncUpload, Upload

NUMBER_FIELD = "{k}"
"""Where this stands in a path, the number of the request is put (``/todos/{k}``)."""

DEFAULT_REQUESTS = 1000
DEFAULT_CHUNK_SIZE = 65_536
MOST_REQUESTS = 1_000_000_000
"""Of one trial: their records take 32 GB of disk."""

# What a request line and a header may hold as it is (RFC 9110, 5.6.2; RFC 3986): libraries quote, refuse
# or send the rest each in its own way, and would not do the same work.
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_PATH = re.compile(r"[^A-Za-z0-9/?:@!$&'()*+,;=%._~\[\]-]")
_HEADER_VALUE = re.compile(r"[ -~\t]*")

Body = bytes | Any
"""Bytes, or an `Upload` (for clients of asyncio: an `AsyncUpload`), of which libraries have no type in common."""

_PINNED_HEADERS = {
    # Equal for all: no client negotiates compression or names itself with more bytes than another.
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": f"clientlab/{__version__}",
}


@dataclass(slots=True, eq=False)
class Request:
    """One request as every client gets it. `url` is whole; `body` is ready to be sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: Body | None


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload of the closed model: `concurrency` in flight until `requests` or `duration` is done.

    Lengths of time in seconds. `payload_size` asks for a JSON object with one field ``data`` of that
    many random upper-case letters and digits (seeded); `body` is sent as it is; `upload_size` asks for so many
    seeded bytes, held in memory ``whole`` or made while they are sent (``stream``). With `read` ``chunks`` no
    more than `chunk_size` bytes of an answer are asked for at a time, and none is kept. `elapsed` asks for the
    library's own measure of each request.
    """

    path: str = "/"
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    payload_size: int | None = None
    encode: Literal["once", "each"] = "once"
    parse: bool = False
    upload_size: int | None = None
    upload: Literal["whole", "stream"] = "whole"
    read: Literal["whole", "chunks"] = "whole"
    chunk_size: int = DEFAULT_CHUNK_SIZE
    elapsed: bool = False
    delay: str | None = None
    requests: int | None = None
    duration: float | None = None
    concurrency: int | None = None
    timeout: float = 30.0
    connections: Literal["cold", "warm"] = "cold"
    warmup: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        if self.requests is None and self.duration is None:
            object.__setattr__(self, "requests", DEFAULT_REQUESTS)


def delay_of(workload: Workload) -> Callable[[int], float] | None:
    """Seconds that the upstream is asked to wait on request k; None when none is asked for."""
    if workload.delay is None:
        return None
    delay = delays.parse(workload.delay)
    return lambda number: delay.of(workload.seed, number)


def requests_of(workload: Workload, base_url: str, *, awaited: bool = False) -> Callable[[int], Request]:
    """A function from k to request k of the workload at `base_url` (scheme, host and port).

    Where all requests are alike it hands out one object, so that building costs nothing. `awaited`: for a
    client of asyncio, whose streamed uploads are iterated by `async for`.
    """
    url_of = _urls_of(workload, base_url)
    body_of = _bodies_of(workload, awaited=awaited)
    headers = _headers_of(workload)
    method = workload.method
    if not varies(workload):
        same = Request(method, url_of(0), headers, body_of())
        return lambda _: same
    return lambda number: Request(method, url_of(number), headers, body_of())


def varies(workload: Workload) -> bool:
    """Whether one request of the workload differs from the next, or is encoded anew."""
    drawn = workload.delay is not None and delays.parse(workload.delay).constant is None
    return NUMBER_FIELD in workload.path or drawn or encodes_each(workload)


def encodes_each(workload: Workload) -> bool:
    """Whether the body is encoded for each request, inside the clock."""
    return workload.encode == "each" and workload.payload_size is not None


def payload(workload: Workload) -> dict[str, str]:
    """The JSON object of `payload_size`: random upper-case letters and digits, the same for a seed."""
    letters = string.ascii_uppercase + string.digits
    draw = random.Random(workload.seed)  # noqa: S311 - a payload, not a secret
    return {"data": "".join(draw.choices(letters, k=workload.payload_size or 0))}


def _urls_of(workload: Workload, base_url: str) -> Callable[[int], str]:
    base = base_url.rstrip("/") + workload.path
    joint = "&" if "?" in workload.path else "?"
    delay = delay_of(workload)

    def url_of(number: int) -> str:
        url = base.replace(NUMBER_FIELD, str(number))
        return url if delay is None else f"{url}{joint}delay={delay(number):.6f}"

    return url_of


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


def _headers_of(workload: Workload) -> dict[str, str]:
    headers = dict(_PINNED_HEADERS)
    if workload.upload_size is not None:
        # Without a length, each library would choose a framing of its own.
        headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(workload.upload_size)}
    if workload.payload_size is not None:
        headers["Content-Type"] = "application/json"
    given = {name.lower() for name in workload.headers}
    return {n: v for n, v in headers.items() if n.lower() not in given} | workload.headers


def check(workload: Workload) -> None:
    """Raises LabError for a workload that can't be done, with the option's name."""
    _check_amount(workload)
    if workload.concurrency is not None and workload.concurrency < 1:
        raise LabError(f"-c {workload.concurrency}: requests in flight; write 1 or more")
    if workload.warmup < 0:
        raise LabError(f"--warmup {workload.warmup}: requests before the measured ones; write 0 or more")
    if not 0 < workload.timeout < math.inf:
        raise LabError(f"--timeout {workload.timeout:g}: seconds to wait; write more than 0")
    _check_bodies(workload)
    _check_reading(workload)
    _check_words(workload)
    if workload.delay is not None:
        try:
            delays.parse(workload.delay)
        except ValueError as error:
            raise LabError(f"--delay: {error}") from error


def _check_bodies(workload: Workload) -> None:
    bodies = {
        "--body": workload.body,
        "--payload-size": workload.payload_size,
        "--upload-size": workload.upload_size,
    }
    given = [option for option, value in bodies.items() if value is not None]
    if len(given) > 1:
        raise LabError(f"{' and '.join(given)}: a request has one body; leave out one of them")
    if workload.payload_size is not None and workload.payload_size < 0:
        raise LabError(f"--payload-size {workload.payload_size}: characters; write 0 or more")
    if workload.upload_size is not None and workload.upload_size < 1:
        raise LabError(f"--upload-size {workload.upload_size}: bytes; write 1 or more")
    if workload.upload == "stream" and workload.upload_size is None:
        raise LabError("--upload stream: there is nothing to send; write how many bytes with --upload-size")


def _check_reading(workload: Workload) -> None:
    if workload.chunk_size < 1:
        raise LabError(f"--chunk-size {workload.chunk_size}: bytes; write 1 or more")
    if workload.read == "chunks":
        for option, asked in (("--parse", workload.parse), ("--elapsed", workload.elapsed)):
            if asked:
                raise LabError(f"{option} and --read chunks: {option} is of a body read whole; leave out one of them")


def _check_words(workload: Workload) -> None:
    if not _TOKEN.fullmatch(workload.method):
        raise LabError(f"--method {workload.method!r}: write one word, as POST")
    if not workload.path.startswith("/"):
        raise LabError(f"--path {workload.path!r}: write it from the root, as /todos/1")
    if found := _NOT_IN_PATH.search(workload.path.replace(NUMBER_FIELD, "")):
        raise LabError(f"path {workload.path!r}: {found[0]!r} can't stand in a URL as it is; write it percent-encoded")
    for name, value in workload.headers.items():
        if not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise LabError(f"--header {f'{name}: {value}'!r}: write name and value in ASCII, on one line")


def _check_amount(workload: Workload) -> None:
    if workload.requests is not None and workload.duration is not None:
        raise LabError("-n and -d: a workload ends after a number of requests or a duration; leave out one of them")
    if workload.requests is not None and not 1 <= workload.requests <= MOST_REQUESTS:
        raise LabError(f"-n {workload.requests}: requests in all; write 1 or more, up to {MOST_REQUESTS:,}")
    if workload.duration is not None and not 0 < workload.duration < math.inf:
        raise LabError(f"-d {workload.duration:g}: seconds; write more than 0")
