"""Requests that a file records: its format, which its content shows, and the requests
that are left out.

A HAR file (http://www.softwareishard.com/blog/har-12-spec/), the lab's own JSON Lines
(docs/workloads.md has the keys), JSON targets of vegeta, or an access log of one of
these programs, also as `docker compose logs` prints it:

- nginx and Apache: combined or common
- Caddy: JSON
- Traefik: common or JSON (https://doc.traefik.io/traefik/observability/access-logs/)
- Envoy: its default text, that of Istio, or JSON with the keys of Envoy Gateway or
  Istio
  (https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage)
- AWS ALB
  (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html)

Equal requests of a log become one, whose weight is their number. A log holds no bodies.
Of the headers that Caddy logs, only `Accept` is kept: Caddy hides credentials, and the
others describe a browser.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import itertools
import json
import math
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from clientlab.errors import FieldError
from clientlab.workload.parts import Replay
from clientlab.workload.refusals import check_request_line, spell_path
from clientlab.workload.values import draw_share
from clientlab.workload.workload import Request, Workload

_LOGS = "Caddy (JSON), Traefik, Envoy, AWS ALB, nginx and Apache (combined, common)"
_SUPPORTED = f"HAR, JSON Lines, vegeta's JSON targets, and access logs of {_LOGS}"
_SCRIPT = re.compile(rb"\bk6/http\b|\b(?:from|import) locust\b|schema\.getpostman\.com")
_NOT_HTTP = "that are not HTTP requests"
_KEYS = {"url", "path", "method", "headers", "body", "body_base64", "weight"}
_VEGETA_KEYS = {"url", "method", "header", "body"}
_FORM = "application/x-www-form-urlencoded"
_IGNORED_HEADERS = re.compile(
    ":.*|connection|content-length|expect|host|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade",
    re.IGNORECASE,
)
"""Headers that a client makes itself, or that are about one connection (RFC 9110,
7.6.1).
"""
_COMPOSE_PREFIX = re.compile(rb"[\w.-]+ +\| (?:\d{4}-\d\d-\d\dT\S+ )?")
"""What `docker compose logs` writes before a line: the service, and its time with
``-t``.
"""
_QUOTED = r'"(?P<line>(?:[^"\\]|\\.)*)"'
_LOG_LINES = (
    re.compile(  # nginx, Apache, and Traefik's common log
        rf"\S+ [^\[]*\[(?P<time>[^\]]+)\] {_QUOTED} (?P<status>\d{{3}}|-)"
        r" (?:\d+|-)(?=\s|$)"
    ),
    # Envoy: the host is the fourth of five texts in quotes, also in Istio's format.
    re.compile(
        rf"\[(?P<time>[^\]]+)\] {_QUOTED} (?P<status>\d+|-) "
        r'(?:.*?(?: "[^"]*"){3} "(?P<host>[^"]*)" "[^"]*")?'
    ),
    # AWS ALB: the first time is the end of the request, the last one its start.
    re.compile(
        r"(?:https?|h2|grpcs|wss?) (?:\S+ ){7}(?P<status>\d{3}|-) (?:\S+ ){3}"
        rf'{_QUOTED} .*? (?P<time>\d{{4}}-\d\d-\d\dT[\d:.]+Z) "'
    ),
)
_REQUEST_LINE = re.compile(r"(\S+) (\S+) HTTP/\d(?:\.\d)?")
_LOG_TIME = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})")
_Parse = Callable[
    [Any], "_Entry | str"
]  # returns the request of an entry, or why it is left out
_STREAM = (
    1  # of `draw_share`: a request's delay does not depend on which request was drawn
)


class _LogKeys(NamedTuple):
    """Keys of an access log in JSON. `start`: the time at which the request began."""

    method: str
    path: str
    host: str
    start: str


_JSON_LOGS = (
    _LogKeys("RequestMethod", "RequestPath", "RequestAddr", "StartUTC"),  # Traefik
    _LogKeys(
        "method", "x-envoy-origin-path", ":authority", "start_time"
    ),  # Envoy Gateway
    _LogKeys("method", "path", "authority", "start_time"),  # Istio
)


@dataclass(frozen=True)
class Recorded:
    """The requests of a file that are sent."""

    requests: list[Request]  # their `url` is path and query
    weights: list[float]  # empty if they are sent in order
    times: Sequence[
        float
    ]  # starts in seconds after the first, ascending; empty without `replay_times`
    digest: str  # SHA-256 of the file
    left_out: str  # how many entries are not sent, and why; empty if all are


_known: dict[Replay, Recorded] = {}  # with the digests of their files


def pin_recorded_requests(workload: Workload) -> Workload:
    """Return the workload with the digest of its recorded requests, so that trials fail
    if the file has changed.

    With `replay_times`, it also gets their number. Raise FieldError if they cannot be
    read, or if fields conflict.
    """
    replay, load = workload.replay, workload.load
    if replay is None:
        return workload
    if replay.max_gap is not None and not replay.times:
        message = (
            "only recorded times have gaps; set `replay_times` too, or leave it out"
        )
        raise FieldError(["max_gap"], message)
    recorded = _open(replay)
    if replay.times:
        count = len(recorded.requests)
        if load.duration is not None or load.requests not in {None, count}:
            field = "requests" if load.duration is None else "duration"
            raise FieldError(
                [field],
                "the recorded times decide it; leave it out",
                also=["replay_times"],
            )
        load = replace(load, requests=count)
    replay = replace(replay, sha256=recorded.digest)
    return replace(workload, replay=replay, load=load)


def read_recorded_requests(replay: Replay) -> Recorded:
    """Return recorded requests, whose file a process reads once. Raise FieldError."""
    return _known.get(replay) or _open(replay)


def _open(replay: Replay) -> Recorded:
    try:
        content = Path(replay.file).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if replay.sha256 not in {None, digest}:
            raise ValueError(
                "the file has changed since the run was planned; restore it, or measure"
                " anew"
            )
        pinned = replace(replay, sha256=digest)
        if pinned not in _known:
            _known[pinned] = _read(content, digest, replay)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FieldError(["replay"], reason, value=replay.file) from error
    return _known[pinned]


def choose_places(workload: Workload, recorded: Recorded) -> Callable[[int], int]:
    """Return a function from k to the place of request k among the recorded
    requests.
    """
    number_of, seed, count = workload.number_of, workload.seed, len(recorded.requests)
    if not recorded.weights:
        return lambda k: number_of(k) % count
    ends = list(itertools.accumulate(recorded.weights))
    return lambda k: min(
        bisect_right(ends, ends[-1] * draw_share(seed, number_of(k), _STREAM)),
        count - 1,
    )


class _Entry(NamedTuple):
    """A request of a file.

    `time`: as the file has it, `lasted` seconds after the start: Caddy logs at the end.
    """

    request: Request
    host: str | None = None
    weight: float | None = None
    time: Any = None
    lasted: Any = 0.0


def _read(content: bytes, digest: str, replay: Replay) -> Recorded:
    timed = replay.times
    parse, entries = _recognise(content)
    is_log = parse in {_parse_json_log_line, _parse_log_line}
    if timed and not is_log and parse is not _parse_har_entry:
        raise FieldError(
            ["replay_times"],
            "a file in this format holds no times; leave it out",
            also=["replay"],
        )
    left_out = Counter[str]()
    found = list(
        _parse_entries(parse, entries, left_out, skip_bad=replay.skip_bad, timed=timed)
    )
    hosts = Counter(
        one.host for _, one in found if one.host or is_log
    )  # a log without hosts may have lines of a proxy
    if len(hosts) > 1:
        main = max(hosts, key=hosts.__getitem__)
        left_out[f"for other hosts than {main or 'its own'}"] = (
            hosts.total() - hosts[main]
        )
        found = [
            (moment, one)
            for moment, one in found
            if one.host == main or (one.host is None and not is_log)
        ]
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    if not found:
        raise ValueError(
            "it contains no request that can be"
            f" sent{reasons and f'; left out: {reasons}'}"
        )
    found.sort(key=lambda pair: pair[0])  # without times, all moments are equal
    requests = [one.request for _, one in found]
    weights = [one.weight for _, one in found if one.weight is not None]
    if weights and len(weights) < len(requests):
        raise ValueError("some requests have a weight and others do not")
    if is_log:
        counts = Counter(requests)  # equal requests of a log are the same object
        if not timed and len(counts) < len(requests):
            requests, weights = list(counts), list(map(float, counts.values()))
    times: Sequence[float] = ()
    if timed:
        times = _start_times([moment for moment, _ in found], replay.max_gap)
    return Recorded(requests, weights, times, digest, reasons)


def _recognise(content: bytes) -> tuple[_Parse, Iterable[Any]]:
    """Return the parser of a file, and its entries.

    Raise ValueError for a format that is not supported.
    """
    with contextlib.suppress(ValueError, RecursionError, LookupError, TypeError):
        if isinstance(entries := json.loads(content)["log"]["entries"], list):
            return _parse_har_entry, entries
    keys, lines = set[str](), _lines_of(content)
    first_lines = itertools.islice(filter(bytes.strip, _lines_of(content)), 1000)
    for line in first_lines:  # some may be other messages
        if _match_log_line(line):
            return _parse_log_line, lines
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(document := json.loads(line), dict):
                if _find_log_keys(document) or isinstance(
                    document.get("request"), dict
                ):
                    return _parse_json_log_line, lines
                keys |= document.keys()
    if "header" in keys and keys <= _VEGETA_KEYS:
        return _parse_target, lines
    if keys & {"path", "url"}:
        return _parse_line, lines
    if _SCRIPT.search(content, 0, 1 << 16):
        advice = "run it behind a recording proxy and export a HAR"
        raise ValueError(
            f"files of k6, Locust and Postman record no requests; {advice}. Supported"
            f" are {_SUPPORTED}"
        )
    if content.strip() and not re.match(
        rb'\s*\{[ \t]*"', content
    ):  # errors of JSON Lines name the line
        raise ValueError(f"its format is unknown. Supported are {_SUPPORTED}")
    return _parse_line, lines


def _lines_of(content: bytes) -> Iterator[bytes]:
    """Yield the lines of a file, without the prefix of `docker compose logs`."""
    for line in io.BytesIO(content):
        prefix = _COMPOSE_PREFIX.match(line)
        yield line[prefix.end() :] if prefix else line


def _parse_entries(
    parse: _Parse,
    entries: Iterable[Any],
    left_out: Counter[str],
    *,
    skip_bad: bool,
    timed: bool,
) -> Iterator[tuple[float, _Entry]]:
    """Yield the entries with their Unix times, and count those that are left out.

    Raise ValueError with the place.
    """
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, bytes) and not entry.strip():
            continue
        try:
            one = parse(entry)
            moment = _start_of(one) if timed and isinstance(one, _Entry) else 0.0
        except (
            KeyError,
            TypeError,
            AttributeError,
            ValueError,
            RecursionError,
            OverflowError,
        ) as error:
            if not skip_bad:
                message = (
                    f"{error} is missing" if isinstance(error, KeyError) else error
                )
                place = f"{'line' if isinstance(entry, bytes) else 'entry'} {number}"
                raise ValueError(
                    f"{place}: {message}; fix it, or leave such entries out with"
                    " `skip_bad`"
                ) from error
            one = "that cannot be read"
        if isinstance(one, str):
            left_out[one] += 1
        else:
            yield moment, one


def _start_times(moments: Sequence[float], max_gap: float | None) -> Sequence[float]:
    """Return seconds after the first moment.

    Moments in whole seconds are spread evenly over each second.

    Gaps that are longer than `max_gap` are shortened to it.
    """
    starts = [moment - moments[0] for moment in moments]
    if all(map(float.is_integer, moments)):
        starts = [
            second + k / count
            for second, count in Counter(starts).items()
            for k in range(count)
        ]
    if starts[-1] <= 0:
        raise ValueError(
            "all its requests have the same time, which makes no schedule; leave out"
            " `replay_times`"
        )
    if max_gap is not None:
        gaps = (
            min(later - earlier, max_gap)
            for earlier, later in itertools.pairwise(starts)
        )
        starts = list(itertools.accumulate(gaps, initial=0.0))
    return array("d", starts)


def _start_of(entry: _Entry) -> float:
    """Return the Unix time at which the request began."""
    if not isinstance(entry.lasted, int | float) or not 0 <= entry.lasted < 1e6:
        raise ValueError(
            "write its duration in seconds (Caddy: duration_format seconds)"
        )
    return _unix_seconds(entry.time) - entry.lasted


@lru_cache(maxsize=1)  # many lines of a log have the time of the line before
def _unix_seconds(time: Any) -> float:
    """Return the Unix time of ISO 8601, of the text of an access log, or of a number
    (s, ms, µs or ns).
    """
    from datetime import datetime  # noqa: PLC0415 - few trials need it

    if isinstance(time, str):
        if found := _LOG_TIME.fullmatch(time):
            day, month, year, clock, zone = found.groups()
            number = "JanFebMarAprMayJunJulAugSepOctNovDec".find(month) // 3 + 1
            time = f"{year}-{number:02}-{day}T{clock}{zone}"
        return datetime.fromisoformat(time).timestamp()
    if not isinstance(time, int | float) or not math.isfinite(time):
        raise ValueError("its time is missing, or neither a number nor a text")
    while time > 1e11:  # so many seconds end in the year 5138
        time /= 1000
    return float(time)


def _parse_har_entry(entry: Any) -> _Entry | str:
    request = entry["request"]
    if not request["url"].startswith(("http://", "https://")):
        return _NOT_HTTP
    pairs = ((one["name"], one["value"]) for one in request["headers"])
    # The cost of decompression differs between clients.
    headers = _join_headers(
        (name, value) for name, value in pairs if name.lower() != "accept-encoding"
    )
    posted = request.get("postData") or {}
    text = posted.get("text")
    if posted.get("params") and not text:
        if not str(posted.get("mimeType")).startswith(_FORM):
            raise ValueError(
                "its body is recorded as parameters, without the text that was sent"
            )
        text = urlencode(
            [(one["name"], one.get("value") or "") for one in posted["params"]]
        )
        headers = _with_type(headers, _FORM)
    host, path = _split_url(request["url"])
    made = _make_recorded(
        request["method"], path, headers, text.encode() if text else None
    )
    return _Entry(made, host, time=entry.get("startedDateTime"))


def _parse_line(line: bytes) -> _Entry:
    document = _load_object(line, _KEYS)
    for one, other in (("url", "path"), ("body", "body_base64")):
        if one in document and other in document:
            raise ValueError(f"write either {one} or {other}")
    headers, body = dict(document.get("headers") or {}), document.get("body")
    if "body_base64" in document:
        body = base64.b64decode(document["body_base64"], validate=True)
    elif isinstance(body, str):
        is_base64 = len(body) % 4 == 0 and re.fullmatch("[A-Za-z0-9+/]+={0,2}", body)
        if is_base64 and document.keys() == {"url", "method", "body"}:
            advice = 'write body_base64, or add "headers": {} if it is text'
            raise ValueError(f"its body may be a text, or vegeta's base64; {advice}")
        body = body.encode()
    elif body is not None:
        body, headers = (
            json.dumps(body).encode(),
            _with_type(headers, "application/json"),
        )
    host, path = (
        _split_url(document["url"]) if "url" in document else (None, document["path"])
    )
    weight = document.get("weight")
    if weight is not None and (isinstance(weight, bool) or not 0 < weight < math.inf):
        raise ValueError(f"weight {weight!r}: write a number above 0")
    return _Entry(
        _make_recorded(document.get("method", "GET"), path, headers, body), host, weight
    )


def _parse_target(line: bytes) -> _Entry:
    document = _load_object(line, _VEGETA_KEYS)
    host, path = _split_url(document["url"])
    headers = _join_headers(
        (name, one)
        for name, values in (document.get("header") or {}).items()
        for one in values
    )
    body = (
        base64.b64decode(document["body"], validate=True)
        if document.get("body")
        else None
    )
    return _Entry(_make_recorded(document["method"], path, headers, body), host)


def _parse_json_log_line(line: bytes) -> _Entry | str:
    document = _load_object(line)
    if keys := _find_log_keys(document):
        host = document.get(keys.host)
        start = document[keys.start]
        return _make_logged(
            document[keys.method], document[keys.path], {}, host, time=start
        )
    request, logger, lasted = (
        document.get("request"),
        document.get("logger", ""),
        document.get("duration"),
    )
    if not isinstance(request, dict) or not f"{logger}.".startswith(
        ("http.log.access.", ".")
    ):
        return _NOT_HTTP
    accepted = (request.get("headers") or {}).get("Accept") or []
    headers = _join_headers(("Accept", value) for value in accepted)
    time = {"time": document.get("ts"), "lasted": 0.0 if lasted is None else lasted}
    return _make_logged(
        request["method"], request["uri"], headers, request["host"], **time
    )


def _find_log_keys(document: dict[str, Any]) -> _LogKeys | None:
    """Return the keys of the log that an object is from.

    None: Caddy's, or no access.
    """
    for keys in _JSON_LOGS:
        if document.keys() >= {keys.method, keys.path, keys.start}:
            return keys
    return None


def _match_log_line(line: bytes) -> re.Match[str] | None:
    text = line.decode("latin-1")
    return next(filter(None, (pattern.match(text) for pattern in _LOG_LINES)), None)


def _parse_log_line(line: bytes) -> _Entry | str:
    found = _match_log_line(line)
    if found is None:
        raise ValueError("it is not a line of an access log")
    if found["status"] == "-":
        return "without a status"
    parts = _REQUEST_LINE.fullmatch(found["line"])
    if parts is None:  # "-" for a timeout, or bytes of TLS
        return _NOT_HTTP
    host = found.groupdict().get("host")
    return _make_logged(parts[1], parts[2], {}, host, time=found["time"])


def _make_logged(
    method: str,
    target: str | None,
    headers: dict[str, str],
    host: str | None,
    **time: Any,
) -> _Entry | str:
    if target is None or target == "*":  # a TCP connection, or OPTIONS about the server
        return _NOT_HTTP
    if method not in {"GET", "HEAD", "OPTIONS"}:
        return (
            "with other methods than GET, HEAD and OPTIONS, whose bodies a log does not"
            " hold"
        )
    if target.startswith(("http://", "https://")):
        host, target = _split_url(target)
    if host:
        host = re.sub(":(?:80|443)$", "", host.lower())
    return _Entry(
        _make_logged_request(method, target, headers.get("Accept")), host, **time
    )


@cache  # bounded by the size of the file
def _make_logged_request(method: str, target: str, accept: str | None) -> Request:
    return _make_recorded(
        method, target, {} if accept is None else {"Accept": accept}, None
    )


def _load_object(line: bytes, known: set[str] | None = None) -> dict[str, Any]:
    """Return the JSON object of a line, which has only `known` keys.

    Raise ValueError or TypeError.
    """
    document = None
    with contextlib.suppress(ValueError):
        document = json.loads(line)
    if not isinstance(document, dict):
        raise TypeError("it is not a JSON object")
    if known is not None and (unknown := sorted(document.keys() - known)):
        raise ValueError(
            f"unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}"
        )
    return document


def _join_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in pairs:
        # HTTP/2 splits cookies over several headers (RFC 9113, 8.2.3; RFC 9110, 5.3).
        joint = "; " if name.lower() == "cookie" else ", "
        headers[name] = f"{headers[name]}{joint}{value}" if name in headers else value
    return headers


def _with_type(headers: Mapping[str, str], kind: str) -> dict[str, str]:
    return {
        **headers,
        **(
            {}
            if "content-type" in {name.lower() for name in headers}
            else {"Content-Type": kind}
        ),
    }


def _split_url(url: str) -> tuple[str, str]:
    """Return the host of a URL, and its path and query.

    Errors do not quote the URL: it may contain a password.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(
            "its url can't be read; write http:// or https:// and a host"
        ) from error
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError("url: write http:// or https:// and a host, or only a path")
    return parts.netloc.rpartition("@")[2].lower(), (parts.path or "/") + (
        f"?{parts.query}" if parts.query else ""
    )


def _make_recorded(
    method: str, path: str, headers: Mapping[str, str], body: bytes | None
) -> Request:
    """Return a request without the headers that a client makes itself.

    Raise ValueError or TypeError.
    """
    if not all(
        isinstance(text, str) for text in (method, path, *headers, *headers.values())
    ):
        raise TypeError("method, path, names and values of headers must be texts")
    kept = {
        name: value
        for name, value in headers.items()
        if not _IGNORED_HEADERS.fullmatch(name)
    }
    try:
        check_request_line(method, path, kept)
    except FieldError as error:  # its value is not shown, because it may be a secret
        raise ValueError(f"{error.key[0]}: {error.message}") from error
    return Request(method, spell_path(path), kept, body or None)
