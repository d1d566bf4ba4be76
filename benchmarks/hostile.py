"""Every installed client against a hostile server: kinds of error, and seconds beyond the limit of a request."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.figures import BenchmarkRow
from clientlab.conformance import CheckResult, scenarios_of
from clientlab.strategies import CLIENTS, STRATEGIES, unavailable

SCENARIOS = frozenset(
    {"hostile server", "hostile server over HTTP/2", "hostile TLS handshake", "answers without an end",
     "answers without an end over HTTP/2"}
)  # fmt: skip
AT_ONCE = 2
"""Scenarios at once. Those without an end are up to seven trials by themselves."""


def rows() -> Iterator[BenchmarkRow]:
    """Modes by clients, and how many checks are broken: unknown kinds, malformed successes, limits exceeded."""
    clients = [name for name in CLIENTS if scenarios_of(STRATEGIES[name]) and not unavailable(STRATEGIES[name])]
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pairs = [
            (name, pool.submit(scenario.judge, STRATEGIES[name]))
            for name in clients
            for scenario in scenarios_of(STRATEGIES[name])
            if scenario.name in SCENARIOS
        ]
        found = [(name, result) for name, judged in pairs for result in judged.result()]
    seconds = time.perf_counter() - began
    modes = {result.check for _, result in found if result.kind is not None}
    _print_kinds(found)
    broken = [(name, result) for name, result in found if not result.passed]
    for name, result in broken:
        print(f"hostile: {name}, {result.check}: {result.broken}", file=sys.stderr)
    about = f"{len(modes)} hostile modes, {len(clients)} clients, {len(found):,} checks"
    yield BenchmarkRow(f"{about}: broken", len(broken), len(broken), len(broken), "one pass", "<= 0", not broken, "")
    yield BenchmarkRow(f"{about}: time", seconds, seconds, seconds, "one pass", "", met=True, unit="s")


def _print_kinds(found: list[tuple[str, CheckResult]]) -> None:
    """Each mode with how many clients recorded which kind."""
    kinds: dict[str, Counter[str]] = {}
    for _, result in found:
        if result.kind is not None:
            kinds.setdefault(result.check, Counter())[result.kind] += 1
    for mode, counts in kinds.items():
        print(f"{mode}: {', '.join(f'{kind} {count}' for kind, count in counts.most_common())}", file=sys.stderr)
