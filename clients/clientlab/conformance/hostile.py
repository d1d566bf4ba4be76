"""The scenarios of a hostile server over HTTP/1.1: whatever it sends, the error has a kind, and every answer an end.

`NOT_ANSWERS` are no answers by RFC 9112: to take one for a success is an error. Others are answers that a client may
refuse or forgive. Each has an end; those without one are in `ENDLESS`.

Each answer is a trial of its own. All of them run at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from clientlab.conformance.evidence import Evidence, measure, serve, speaks_http2
from clientlab.conformance.scenario import ITS_KIND, Check, Scenario
from clientlab.conformance.server import PATIENCE, Endless, Last, Reset, Seen, ServerAnswer, counting_server, ok
from clientlab.errors import ERROR_OTHER
from clientlab.measuring.limits import LimitReached
from clientlab.strategies import Strategy, client_spec
from clientlab.workload.workload import Workload

BROKEN = frozenset({"protocol", "reset"})
MALFORMED = frozenset({"protocol"})
FORGIVEN = frozenset({"protocol", "reset", "none"})

_NO_SUCCESS = MALFORMED | {"status-5xx"}

_BODY = b'{"ok": true}'
_END = b"\r\n" + _BODY
_STATUS = b"HTTP/1.1 200 OK\r\n"
_LENGTH = b"Content-Length: %d\r\n" % len(_BODY)
_CLOSE = b"Connection: close\r\n"
_CHUNKED = _STATUS + b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNKS = b"\r\n5\r\nabcde\r\n0\r\n\r\n"
_GZIP = b"\x1f\x8b\x08\0\0\0"
_AWAY = b"HTTP/1.1 302 Found\r\nLocation: ?again\r\nContent-Length: 0\r\n\r\n"
_MIB = b"x" * (1 << 20)


@dataclass(frozen=True)
class HostileAnswer:
    """One answer, and the kinds of error that are permitted; ``none`` for a success.

    `greets`: it is sent on a new connection, before any request.
    """

    name: str
    answer: bytes | None
    kinds: frozenset[str]
    greets: bool = False


def _with(*lines: bytes, body: bytes = _BODY) -> Last:
    """An answer 200 with these header lines, after which the server closes the connection."""
    return Last(_STATUS + _CLOSE + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body)


def _lengths(*values: bytes) -> Last:
    return _with(*(b"Content-Length: " + value for value in values))


NOT_ANSWERS = (
    HostileAnswer("closes at accept", Last(), frozenset({"reset"}), greets=True),
    HostileAnswer("resets at accept", Reset(), BROKEN | {"connect"}, greets=True),
    HostileAnswer("reset after the headers", Reset(ok()[: -len(_BODY)]), BROKEN),
    HostileAnswer("half a status line", Last(b"HTTP/1.1 2"), BROKEN),
    HostileAnswer("a status of five digits", Last(b"HTTP/1.1 99999 OK\r\n" + _CLOSE + _LENGTH + _END), _NO_SUCCESS),
    HostileAnswer("a status that is no number", Last(b"HTTP/1.1 abc OK\r\n" + _LENGTH + _END), MALFORMED),
    HostileAnswer("bytes before the response", Last(b"\x00\x01garbage\r\n" + ok()), MALFORMED),
    HostileAnswer("a TLS record", Last(b"\x15\x03\x03\x00\x02\x02\x28"), BROKEN),
    HostileAnswer("negative Content-Length", _lengths(b"-5"), MALFORMED),
    HostileAnswer("Content-Length of letters", _lengths(b"abc"), MALFORMED),
    HostileAnswer("Content-Length of 2^62", _lengths(b"%d" % 2**62), BROKEN),
    HostileAnswer("Content-Length of 30 digits", _lengths(b"9" * 30), BROKEN),
    HostileAnswer("Content-Length of 10,000 digits", _lengths(b"9" * 10_000), BROKEN),
    HostileAnswer("negative chunk size", Last(_CHUNKED + b"-5\r\nabcde\r\n0\r\n\r\n"), MALFORMED),
    HostileAnswer("chunk size of 30 digits", Last(_CHUNKED + b"f" * 30 + b"\r\nabcde\r\n0\r\n\r\n"), BROKEN),
    HostileAnswer("no last chunk", Last(_CHUNKED + b"5\r\nabcde\r\n"), BROKEN),
)
MAY_BE_FORGIVEN = (
    HostileAnswer("half a header", Last(_STATUS + b"Content-Le"), FORGIVEN),
    HostileAnswer("two Content-Lengths", _lengths(b"5", b"%d" % len(_BODY)), FORGIVEN),
    HostileAnswer("Content-Length beside chunks", Last(_CHUNKED[:-2] + _CLOSE + _LENGTH + _CHUNKS), FORGIVEN),
    HostileAnswer("a header of 1 MiB", _with(b"X-Long: " + _MIB, _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("10,000 headers", _with(*(b"X-%d: y" % n for n in range(10_000)), _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("header without a colon", _with(b"no colon", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("NUL in a header", _with(b"X-Nul: a\x00b", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("no gzip", _with(b"Content-Encoding: gzip", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("half a gzip", _with(b"Content-Encoding: gzip", b"Content-Length: 6", body=_GZIP), FORGIVEN),
    HostileAnswer("unknown transfer coding", _with(b"Transfer-Encoding: banana", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("switching protocols unasked", Last(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), FORGIVEN),
    HostileAnswer("early hints, then nothing", Last(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), FORGIVEN),
    HostileAnswer("redirect to itself", _AWAY, FORGIVEN),
    HostileAnswer("two responses in one", ok() + ok(status="500 Unasked"), FORGIVEN),
)  # fmt: skip
ANSWERS = (*NOT_ANSWERS, *MAY_BE_FORGIVEN)
SOUND_FRAMES = frozenset({"no gzip", "half a gzip"})
"""Answers whose content is malformed, and not their frame: a client finds nothing wrong with their connection."""


ENDLESS = {
    "a body without an end": Endless(_STATUS + b"\r\n", _MIB),
    "chunks without an end": Endless(_CHUNKED, b"100000\r\n" + _MIB + b"\r\n"),
    "a body byte by byte": Endless(_STATUS + b"Content-Length: 1000000\r\n\r\n", b"x", 0.25),
    "headers byte by byte": Endless(_STATUS + b"X-Slow: ", b"x", 0.25),
    "headers without an end": Endless(_STATUS, b"X-More: yes\r\n" * 100, 0.01),
    "a header without an end": Endless(_STATUS + b"X-Long: ", b"x" * 1000, 0.01),
    "100 Continue without an end": Endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.01),
}


ENDLESS_TIMEOUT, LIMIT = 1.0, 2.0
"""Seconds of each wait for bytes, and of the whole request."""

SLACK = 2.0
MEMORY = 512 << 20
"""Bytes: some ten times what the largest client holds without an answer."""

TRIAL_ENDED = "the trial's limit"
_LOOK = 0.01


@dataclass(frozen=True)
class EndlessOutcome:
    """How a request ended: the kind of its error, and the seconds until the client closed the connection.

    `seconds` is None if no request came, or if the client did not close for as long as the server waits.
    """

    kind: str
    seconds: float | None

    @classmethod
    def of(cls, strategy: Strategy, url: str, let_go: Mapping[str, float], ca_file: str | None = None) -> Self:
        """One trial with one request to a server without an end. `let_go`: the server's notes, by target."""
        workload = Workload(
            requests=1, concurrency=1, warmup=0, timeout=ENDLESS_TIMEOUT, request_limit=LIMIT, memory_limit=MEMORY
        )
        try:
            kind = measure(strategy, workload, url, ca_file=ca_file).kind(0)
        except LimitReached:
            kind = TRIAL_ENDED
        until = time.monotonic() + PATIENCE
        while not let_go and time.monotonic() < until:
            time.sleep(_LOOK)  # the server notices it a moment later
        return cls(kind, next(iter(let_go.values()), None))


def ended_scenario(
    name: str, modes: Sequence[str], do: Callable[[Strategy, str], EndlessOutcome], fits: Callable[[Strategy], bool]
) -> Scenario[Mapping[str, EndlessOutcome]]:
    """The scenario of these modes, with a check of each."""

    def one_mode_of(strategy: Strategy, mode: str) -> EndlessOutcome:
        found = do(strategy, mode)
        # On a machine that is very busy, the limit may be reached before the request is sent.
        return do(strategy, mode) if found.seconds is None else found

    def all_modes(strategy: Strategy) -> Mapping[str, EndlessOutcome]:
        with ThreadPoolExecutor(len(modes)) as pool:
            return dict(zip(modes, pool.map(partial(one_mode_of, strategy), modes), strict=True))

    checks: dict[str, Check[Mapping[str, EndlessOutcome]]] = {
        **{mode: partial(_has_a_kind, mode) for mode in modes},
        f"{name}: limit kept": _in_time,
    }
    return Scenario(name, all_modes, checks, fits, _kind_of_endless)


def _has_a_kind(mode: str, found: Mapping[str, EndlessOutcome]) -> str:
    kind = found[mode].kind
    if kind == "none":
        return "an answer without an end is a success"
    return f"{ITS_KIND}unknown: {kind}" if kind.startswith(ERROR_OTHER) else ""


def _in_time(found: Mapping[str, EndlessOutcome]) -> str:
    for mode, ended in found.items():
        if ended.seconds is None or ended.seconds > LIMIT + SLACK:
            how = "not at all" if ended.seconds is None else f"after {ended.seconds:.1f} s"
            return f"a request may take {LIMIT:g} s; {mode!r} was let go {how}"
    return ""


def _kind_of_endless(found: Mapping[str, EndlessOutcome], check: str) -> str | None:
    return found[check].kind if check in found else None


def _ended(strategy: Strategy, mode: str) -> EndlessOutcome:
    with counting_server(lambda _: ENDLESS[mode]) as server:
        return EndlessOutcome.of(strategy, server.url, server.let_go)


WITHOUT_END = ended_scenario(
    "answers without an end", tuple(ENDLESS), _ended, lambda strategy: not speaks_http2(strategy)
)


TIMEOUT = 3.0
"""Seconds. No answer is silent, so the limit ends nothing but a request on a machine that is very busy."""

_AGAIN = "?again"


class _HostileServer:
    """Request 2k gets hostile answer k, and each other request a good answer with a length of its own.

    A greeting goes to the first connection after the good answer before it: no request names it.
    """

    def __init__(self, left_out: Collection[str]) -> None:
        self._left_out = left_out
        self._next = self._hostile(0)

    def greeting(self) -> bytes | None:
        """What the next connection gets before its request; None: nothing."""
        hostile, self._next = self._next, None
        return hostile.answer if hostile is not None and hostile.greets else None

    def answer(self, seen: Seen) -> ServerAnswer:
        number = _number(seen.target)
        self._next = self._hostile(number + 1)
        if (hostile := self._hostile(number)) is not None:
            return hostile.answer
        good = ok(bytes(number + 1))
        if self._next is None or not self._next.greets:
            return good
        return Last(good.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))

    def _hostile(self, number: int) -> HostileAnswer | None:
        """The hostile answer to a request; None if it gets a good one."""
        at, good = divmod(number, 2)
        if good or not 0 <= at < len(ANSWERS) or ANSWERS[at].name in self._left_out:
            return None
        return ANSWERS[at]


def _number(target: str) -> int:
    digits = target.removeprefix("/").removesuffix(_AGAIN)
    return int(digits) if digits.isdigit() else -1


def _do(strategy: Strategy) -> Evidence:
    """One trial with all answers, and a second one if a machine that is busy made a time-out of any.

    Answers behind which the library hangs have a trial each.
    """
    found = _trial(strategy)
    found = _trial(strategy) if any(kind.startswith("timeout") for kind in found.kinds.values()) else found
    hanging = client_spec(strategy.client).quirks.hangs_after
    apart = {2 * at: _apart(strategy, one) for at, one in enumerate(ANSWERS) if one.name in hanging}
    return replace(found, kinds=found.kinds | apart)


def _trial(strategy: Strategy) -> Evidence:
    workload = Workload(path="/{k}", requests=2 * len(ANSWERS), concurrency=1, warmup=0, timeout=TIMEOUT)
    server = _HostileServer(client_spec(strategy.client).quirks.hangs_after)
    return serve(strategy, workload, server.answer, greeting=server.greeting)


def _apart(strategy: Strategy, hostile: HostileAnswer) -> str:
    """The kind of error of a request, or of the trial: a good request follows."""
    workload = Workload(path="/{k}", requests=2, concurrency=1, warmup=0, timeout=1.0, request_limit=LIMIT)
    try:
        found = serve(strategy, workload, lambda seen: ok() if seen.target == "/1" else hostile.answer)
    except LimitReached:
        return TRIAL_ENDED
    return found.kind(0)


def permitted(number: int, kinds: Collection[str], found: Evidence) -> str:
    """Empty if request `number` was recorded with one of the kinds, else what was recorded. ``none``: no error."""
    if number not in found.samples.numbers:
        return "it was not recorded"
    kind = found.kind(number)
    if kind in kinds:
        return ""
    example = found.samples.examples.get(kind, "no error")
    return f"{ITS_KIND}{' or '.join(sorted(kinds))}, and it is recorded as {kind} ({example})"


def _made_of(at: int, found: Evidence) -> str:
    """Empty if the client made of hostile answer `at` what it may."""
    name, quirks = ANSWERS[at].name, client_spec(found.strategy.client).quirks
    own = {kind for answer, kind in quirks.fault_kinds if answer == name}
    return permitted(2 * at, ANSWERS[at].kinds | own | ({TRIAL_ENDED} if name in quirks.hangs_after else set()), found)


def _goes_on(found: Evidence) -> str:
    """Empty if every good answer arrived at the request that it belongs to."""
    sizes = dict(zip(found.samples.numbers.tolist(), found.samples.records["bytes"].tolist(), strict=True))
    for at, hostile in enumerate(ANSWERS):
        number = 2 * at + 1
        got = found.kind(number) if found.kind(number) != "none" else f"an answer of {sizes.get(number)} bytes"
        # The server may have closed a connection on which the client had found nothing wrong.
        nothing_wrong = found.kind(number - 1) == "none" or hostile.name in SOUND_FRAMES
        closed = found.kind(number) == "reset" and nothing_wrong
        if sizes.get(number) != number + 1 and not closed and hostile.name not in _confuses(found):
            return f"the request after {hostile.name!r} is to get {number + 1} bytes, and got {got}"
    return ""


def _confuses(found: Evidence) -> tuple[str, ...]:
    return client_spec(found.strategy.client).quirks.confused_after


def _not_followed(found: Evidence) -> str:
    followed = any(seen.target.endswith(_AGAIN) for seen in found.server.seen)
    return "a redirect to itself was followed" if followed else ""


def _kind(found: Evidence, check: str) -> str | None:
    return next((found.kind(2 * at) for at, hostile in enumerate(ANSWERS) if hostile.name == check), None)


_CHECKS: dict[str, Check[Evidence]] = {
    **{hostile.name: partial(_made_of, at) for at, hostile in enumerate(ANSWERS)},
    "goes on after a hostile answer": _goes_on,
    "redirect to itself not followed": _not_followed,
}

HOSTILE = Scenario(
    "hostile server", _do, _CHECKS, lambda strategy: not speaks_http2(strategy), _kind,
    malformed=True,
)  # fmt: skip
