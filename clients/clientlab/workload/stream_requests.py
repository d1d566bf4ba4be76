"""The requests of a workload whose responses are streams, how long a stream takes, and checks of its settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from urllib.parse import urlencode

from clientlab.errors import FieldError
from clientlab.workload.delays import Delay
from clientlab.workload.streams import (
    API_PATHS,
    DEFAULT_EVENTS,
    DEFAULT_EVERY,
    MOST_EVENTS,
    MOST_EVENTS_OF_TRIAL,
    PLAIN_PATH,
    SETTINGS_HEADER,
    StreamFormat,
)
from clientlab.workload.workload import Body, Request, Workload

_PROMPT = "Count."
_MOST_TOKENS = 1024  # Anthropic's API wants a limit

_BODIES: dict[StreamFormat, dict[str, object]] = {
    "openai-chat": {"model": "mock", "messages": [{"role": "user", "content": _PROMPT}], "stream": True},
    "openai-responses": {"model": "mock", "input": _PROMPT, "stream": True},
    "anthropic": {
        "model": "mock",
        "max_tokens": _MOST_TOKENS,
        "messages": [{"role": "user", "content": _PROMPT}],
        "stream": True,
    },
}
"""Format → what its SDK sends for a short prompt, without a body of the user's own."""

_NO_DELAY = Delay("", (0.0,))
_USUAL_GAP = Delay("", (DEFAULT_EVERY,))
_SHORT_EVENTS, _SHORT_GAP = 10, Delay("", (0.001,))
_SAMPLE = 100
_DRAWN_BY_SERVER = 0x9E3779B97F4A7C15
"""An odd number: the seeds of neighbouring requests lie far apart."""
_MOST_SEED = 10**15 - 1
"""Of a stream: the upstream reads seeds of up to 18 digits."""


def events_of(workload: Workload) -> int:
    """Events that a stream has, or of a foreign server the most that are read."""
    if workload.events is not None:
        return workload.events
    return MOST_EVENTS if workload.foreign else DEFAULT_EVENTS


def events_read(workload: Workload) -> int:
    """Events of a stream that the client reads at most."""
    return events_of(workload) if workload.stop_after is None else min(workload.stop_after, events_of(workload))


def warming_up(workload: Workload) -> Workload:
    """The workload of a warm-up: connections and code are warm after a short stream, however long the measured ones."""
    if workload.stream is None or workload.foreign:
        return workload
    return replace(
        workload, first=None, every=_SHORT_GAP, events=min(_SHORT_EVENTS, events_of(workload)), end="apart", delay=None,
        stop_after=None,
    )  # fmt: skip


def stream_seconds(workload: Workload) -> float:
    """Mean seconds that the upstream takes for a stream by its settings; 0 without a stream, and of a foreign server.

    The draws of a distribution are the upstream's own, so their mean is that of draws like them.
    """
    if workload.stream is None or workload.foreign:
        return 0.0
    gaps = events_read(workload) - 1
    end = _delay_of_end(workload.end) if workload.stop_after is None else _NO_DELAY
    return mean_of(workload.first or _NO_DELAY) + gaps * mean_of(workload.every or _USUAL_GAP) + mean_of(end)


def mean_of(delay: Delay) -> float:
    """Mean seconds of a delay, estimated from a hundred of its quantiles."""
    if delay.constant is not None:
        return delay.constant
    return sum(delay.quantile((place + 0.5) / _SAMPLE) for place in range(_SAMPLE)) / _SAMPLE


def longest_silence(workload: Workload) -> float:
    """Seconds without an event that the settings of a stream foresee, of a distribution its 99.9th percentile."""
    if workload.stream is None or workload.foreign:
        return 0.0
    waits = (workload.first or _NO_DELAY, workload.every or _USUAL_GAP, _delay_of_end(workload.end))
    return max(one.quantile(0.999) if one.constant is None else one.constant for one in waits)


def stream_requests_of(
    workload: Workload, base_url: str, headers: dict[str, str], body: Body | None
) -> Callable[[int], Request]:
    """A function from k to request k. `headers`, `body`: of the workload; without a body, that of the format's SDK.

    The settings of a stream stand in the query, and for the API of an SDK in a header, because SDKs own the URL.
    """
    stream = workload.stream
    if stream is None:
        raise ValueError("a workload without a stream")
    given = _BODIES.get(stream)
    if body is None and given is not None:
        body = json.dumps(given, separators=(",", ":")).encode()  # as the SDKs write it
        headers = {"Content-Type": "application/json", **headers}
    method = "POST" if body is not None and workload.method == "GET" else workload.method
    base = base_url.rstrip("/")
    if workload.foreign:
        same = Request(method, base + workload.path, headers, body, stream)
        return lambda _: same
    settings_of, path = _settings_of(workload, stream), API_PATHS.get(stream)

    def made(settings: str) -> Request:
        if path is None:
            return Request(method, f"{base}{PLAIN_PATH}?{settings}", headers, body, stream)
        return Request(method, base + path, {**headers, SETTINGS_HEADER: settings}, body, stream)

    short = made(_settings_of(warming_up(workload), stream)(0))
    if drawn_by_seed(workload):
        return lambda k: made(settings_of(k)) if k >= 0 else short
    same = made(settings_of(0))
    return lambda k: same if k >= 0 else short


def drawn_by_seed(workload: Workload) -> bool:
    """Whether the upstream draws when events are written, so that each request has a seed."""
    return any(one is not None and one.constant is None for one in (workload.first, workload.every, workload.delay))


def _settings_of(workload: Workload, stream: StreamFormat) -> Callable[[int], str]:
    """A function from k to the settings of stream k, as a query string."""
    fixed: dict[str, object] = {} if stream in API_PATHS else {"format": stream}
    fixed |= {
        "first": workload.first or _NO_DELAY,
        "every": workload.every or _USUAL_GAP,
        "events": events_of(workload),
        "size": workload.event_size,
        "end": workload.end,
    }
    if workload.pings:
        fixed["pings"] = workload.pings
    delay = None if workload.delay is None else workload.delay.at(workload.seed)
    text = urlencode(fixed, safe=":,")
    if not drawn_by_seed(workload):
        return lambda _: text if delay is None else f"{text}&delay={delay(0):.6f}"

    def settings_of(k: int) -> str:
        number = workload.number_of(k)
        seed = (workload.seed + number * _DRAWN_BY_SERVER) % _MOST_SEED
        waits = "" if delay is None else f"&delay={delay(number):.6f}"
        return f"{text}&seed={seed}{waits}"

    return settings_of


def check_stream(workload: Workload) -> None:
    """Raises FieldError for settings of a stream that cannot be, and for those without a stream."""
    if workload.stream is None:
        plain = {one.name: one.default for one in fields(Workload)}
        for name in (*_OF_LAB, "events", "stop_after", "goodput", "rank"):
            if getattr(workload, name) != plain[name]:
                raise FieldError(
                    [name], "only a stream has it; set `stream`, or leave it out", value=_text(workload, name)
                )
        return
    _check_parts(workload)
    _check_times(workload)
    _check_count(workload)


_OF_LAB = ("first", "every", "event_size", "pings", "end")
"""Settings that only the lab's upstream follows."""

_NOT_OF_STREAMS = ("replay", "parse", "elapsed", "upload_size", "payload_size")


def _check_parts(workload: Workload) -> None:
    """Raises FieldError for fields that do not go together."""
    for name in _NOT_OF_STREAMS:
        if getattr(workload, name) not in (None, False):
            raise FieldError([name], "they exclude each other; leave out one of them", also=["stream"])
    if workload.read == "chunks":
        raise FieldError(["read"], "a stream is read event by event; leave it out", also=["stream"])
    if not workload.foreign:
        if workload.path != "/":
            message = (
                f"the lab's upstream streams at {_path_of(workload.stream)}; leave it out, or name a server by `url`"
            )
            raise FieldError(["path"], message, also=["stream"])
        return
    plain = {one.name: one.default for one in fields(Workload)}
    for name in (*_OF_LAB, "delay"):
        if getattr(workload, name) != plain[name]:
            raise FieldError(
                [name],
                "only the lab's own upstreams follow it; leave it out",
                value=_text(workload, name),
                also=["url"],
            )
    lags = [name for name, _ in (workload.goodput.each if workload.goodput else ()) if name.startswith("lag")]
    if workload.rank == "lag" or lags:
        message = "a foreign server does not mark when it wrote an event, so its lag is unknown"
        raise FieldError(["goodput" if lags else "rank"], message, also=["url"])


def _check_times(workload: Workload) -> None:
    if workload.every is not None and workload.every.constant == 0:
        raise FieldError(["every"], "a gap above 0 keeps events apart; write 1ms or more", value="0")
    try:
        _delay_of_end(workload.end)
    except ValueError as error:
        raise FieldError(["end"], "write with, apart, length, or a time as 5ms", value=repr(workload.end)) from error
    if (silence := longest_silence(workload)) >= workload.timeout:
        message = f"the stream is silent for {silence:g} s, and `timeout` ends each wait after {workload.timeout:g} s"
        raise FieldError(["timeout"], f"{message}; write a longer one", value=f"{workload.timeout:g} s")


def _check_count(workload: Workload) -> None:
    """Raises FieldError for more events than a trial may hold. Nobody knows those of a load for a duration."""
    events = events_read(workload)
    if workload.stop_after is not None and not workload.foreign and workload.stop_after > events_of(workload):
        message = f"a stream has {events_of(workload):,} events; write no more"
        raise FieldError(["stop_after"], message, value=f"{workload.stop_after:,}", also=["events"])
    if workload.requests is None or workload.foreign:
        return
    if (count := workload.requests * events) > MOST_EVENTS_OF_TRIAL:
        message = (
            f"{workload.requests:,} streams of {events:,} events have {count:,}; a trial holds {MOST_EVENTS_OF_TRIAL:,}"
        )
        raise FieldError(["events"], f"{message}; write fewer", value=f"{events:,}", also=["requests"])


def _delay_of_end(end: str) -> Delay:
    """How long the end of a body comes after the last event. Raises ValueError."""
    return _NO_DELAY if end in ("with", "apart", "length") else Delay.parse(end)


def _path_of(stream: StreamFormat | None) -> str:
    return PLAIN_PATH if stream is None else API_PATHS.get(stream, PLAIN_PATH)


def _text(workload: Workload, name: str) -> str:
    return str(getattr(workload, name))
