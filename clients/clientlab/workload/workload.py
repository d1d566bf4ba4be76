"""The workload of a trial, its checks, and the requests that it consists of."""

from __future__ import annotations

import json
import math
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from clientlab import __version__
from clientlab.errors import FieldError
from clientlab.workload import delays
from clientlab.workload.uploads import AsyncUpload, Upload

NUMBER_FIELD = "{k}"
"""Placeholder in a path for the number of the request (``/todos/{k}``)."""

DEFAULT_REQUESTS = 1000
DEFAULT_CHUNK_SIZE = 65_536
MOST_REQUESTS = 1_000_000_000
"""In one trial. Their records take 32 GB of disk space."""

# Characters that a request line and a header may hold unquoted (RFC 9110, 5.6.2; RFC 3986). Libraries quote, refuse
# or send all others differently, so they would not do the same work.
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_PATH = re.compile(r"[^A-Za-z0-9/?:@!$&'()*+,;=%._~\[\]-]")
_HEADER_VALUE = re.compile(r"[ -~\t]*")

Body = bytes | Any
"""Bytes, or an `Upload` (an `AsyncUpload` for asyncio clients). The libraries share no type for uploads."""

_PINNED_HEADERS = {
    # Equal for all clients: none negotiates compression, and none sends a longer name than another.
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": f"clientlab/{__version__}",
}


@dataclass(slots=True, eq=False)
class Request:
    """One request as every client gets it. `url` is absolute; `body` is encoded."""

    method: str
    url: str
    headers: dict[str, str]
    body: Body | None


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload of the closed model: `concurrency` requests in flight until `requests` or `duration` is reached.

    Durations are in seconds. The body of a request is one of three: `body` as text; a JSON object whose field ``data``
    has `payload_size` random letters and digits; or `upload_size` random bytes, which are in memory (``whole``) or made
    while they are sent (``stream``). The seed decides the random content. With `read` ``chunks``, the client reads at
    most `chunk_size` bytes of a response at a time and keeps none. `elapsed` also records the library's own time.
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
    """A function from k to the delay in seconds that request k asks of the upstream; None without a delay."""
    if workload.delay is None:
        return None
    delay = delays.parse(workload.delay)
    return lambda number: delay.of(workload.seed, number)


def requests_of(workload: Workload, base_url: str, *, awaited: bool = False) -> Callable[[int], Request]:
    """A function from k to request k of the workload at `base_url` (scheme, host and port).

    If all requests are alike, it returns one object, so that building costs nothing. `awaited`: for an asyncio client,
    which iterates streamed uploads with `async for`.
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
    """Whether requests of the workload differ, or each one is encoded anew."""
    drawn = workload.delay is not None and delays.parse(workload.delay).constant is None
    return NUMBER_FIELD in workload.path or drawn or encodes_each(workload)


def encodes_each(workload: Workload) -> bool:
    """Whether the body is encoded for each request, inside the timed span."""
    return workload.encode == "each" and workload.payload_size is not None


def payload(workload: Workload) -> dict[str, str]:
    """The JSON object of `payload_size`: upper-case letters and digits, which the seed decides."""
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
        # Without a length, each library would choose its own framing.
        headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(workload.upload_size)}
    if workload.payload_size is not None:
        headers["Content-Type"] = "application/json"
    given = {name.lower() for name in workload.headers}
    return {n: v for n, v in headers.items() if n.lower() not in given} | workload.headers


def check(workload: Workload) -> None:
    """Raises FieldError for a workload that cannot be measured."""
    _check_amount(workload)
    _check_range(workload, "concurrency", 1, "requests in flight")
    _check_range(workload, "warmup", 0, "requests before the measured ones")
    if not 0 < workload.timeout < math.inf:
        raise FieldError(["timeout"], "write more than 0 seconds", value=f"{workload.timeout:g}")
    _check_body(workload)
    _check_reading(workload)
    _check_request_line(workload)
    if workload.delay is not None:
        try:
            delays.parse(workload.delay)
        except ValueError as error:
            raise FieldError(["delay"], str(error)) from error


def _check_range(workload: Workload, field: str, least: int, meaning: str, most: int | None = None) -> None:
    value = getattr(workload, field)
    if value is not None and not least <= value <= (value if most is None else most):
        limits = f"{least} or more" if most is None else f"{least} to {most:,}"
        raise FieldError([field], f"{meaning}; write {limits}", value=value)


def _check_amount(workload: Workload) -> None:
    if workload.requests is not None and workload.duration is not None:
        raise FieldError(
            ["requests"], "a trial ends after a number of requests or after a duration; leave out one of them",
            also=["duration"],
        )  # fmt: skip
    _check_range(workload, "requests", 1, "requests in all", MOST_REQUESTS)
    if workload.duration is not None and not 0 < workload.duration < math.inf:
        raise FieldError(["duration"], "write more than 0 seconds", value=f"{workload.duration:g}")


def _check_body(workload: Workload) -> None:
    bodies = ("body", "payload_size", "upload_size")
    first, *others = [field for field in bodies if getattr(workload, field) is not None] or [""]
    if others:
        raise FieldError([first], "a request has one body; leave out all but one", also=others)
    _check_range(workload, "payload_size", 0, "characters")
    _check_range(workload, "upload_size", 1, "bytes")
    if workload.upload == "stream" and workload.upload_size is None:
        raise FieldError(
            ["upload"], "there is nothing to send; set the number of bytes with `upload_size`", value="stream"
        )


def _check_reading(workload: Workload) -> None:
    _check_range(workload, "chunk_size", 1, "bytes")
    if workload.read == "chunks":
        for field in ("parse", "elapsed"):
            if getattr(workload, field):
                message = f"`{field}` needs a body that is read whole; leave out one of them"
                raise FieldError([field], message, also=["read"])


def _check_request_line(workload: Workload) -> None:
    path = workload.path
    if not _TOKEN.fullmatch(workload.method):
        raise FieldError(["method"], "write one word, as POST", value=repr(workload.method))
    if not path.startswith("/"):
        raise FieldError(["path"], "write it from the root, as /todos/1", value=repr(path))
    if found := _NOT_IN_PATH.search(path.replace(NUMBER_FIELD, "")):
        raise FieldError(["path"], f"{found[0]!r} cannot stand in a URL; write it percent-encoded", value=repr(path))
    for name, value in workload.headers.items():
        if not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            line = repr(f"{name}: {value}")
            raise FieldError(["headers"], "write name and value in ASCII, on one line", value=line)
