"""The scenario of a hostile server: whatever it sends, the error has a kind, and no malformed answer is a success."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from clientlab.conformance.endless import LIMIT, TRIAL_ENDED
from clientlab.conformance.evidence import Evidence, serve, speaks_http2
from clientlab.conformance.hostile_answers import ANSWERS, SOUND_FRAMES, HostileAnswer
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import Last, Seen, ServerAnswer, ok
from clientlab.measuring.limits import LimitReached
from clientlab.strategies import Strategy, client_spec
from clientlab.workload.workload import Workload

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
    return f"its kind is {' or '.join(sorted(kinds))}, and it is recorded as {kind} ({example})"


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
    "hostile server", _do, _CHECKS, frozenset({"client"}), lambda strategy: not speaks_http2(strategy), _kind
)
