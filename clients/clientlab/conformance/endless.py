"""The scenario of answers without an end: the request or the trial ends at a stated limit, and not later.

Each answer is a trial of its own. All of them run at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Self

from clientlab.conformance.evidence import measure, speaks_http2
from clientlab.conformance.hostile_answers import ENDLESS
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import PATIENCE, counting_server
from clientlab.errors import ERROR_OTHER
from clientlab.measuring.limits import LimitReached
from clientlab.strategies import Strategy
from clientlab.workload.workload import Workload

TIMEOUT, LIMIT = 1.0, 2.0
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
            requests=1, concurrency=1, warmup=0, timeout=TIMEOUT, request_limit=LIMIT, memory_limit=MEMORY
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
    return Scenario(name, all_modes, checks, frozenset({"library kind"}), fits, _kind)


def _has_a_kind(mode: str, found: Mapping[str, EndlessOutcome]) -> str:
    kind = found[mode].kind
    if kind == "none":
        return "an answer without an end is a success"
    return f"its kind is unknown: {kind}" if kind.startswith(ERROR_OTHER) else ""


def _in_time(found: Mapping[str, EndlessOutcome]) -> str:
    for mode, ended in found.items():
        if ended.seconds is None or ended.seconds > LIMIT + SLACK:
            how = "not at all" if ended.seconds is None else f"after {ended.seconds:.1f} s"
            return f"a request may take {LIMIT:g} s; {mode!r} was let go {how}"
    return ""


def _kind(found: Mapping[str, EndlessOutcome], check: str) -> str | None:
    return found[check].kind if check in found else None


def _ended(strategy: Strategy, mode: str) -> EndlessOutcome:
    with counting_server(lambda _: ENDLESS[mode]) as server:
        return EndlessOutcome.of(strategy, server.url, server.let_go)


WITHOUT_END = ended_scenario(
    "answers without an end", tuple(ENDLESS), _ended, lambda strategy: not speaks_http2(strategy)
)
