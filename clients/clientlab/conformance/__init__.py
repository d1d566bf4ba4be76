"""Conformance: the rules for every strategy, checked by a server that shares no code with the lab."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.conformance.faults import certificates, refused, server_faults, unanswered
from clientlab.conformance.load import duration, same_work, stop
from clientlab.conformance.results import FIX, NO_TIME_LIMIT, Cause, CheckResult, causes_of
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.strategies import Strategy, client_spec, executor_spec

__all__ = ["CheckResult", "causes_of", "conform"]

_SCENARIOS = (same_work, server_faults, certificates, refused, unanswered, duration, stop)
_NOT_FOR_FUNCTIONS = {certificates, unanswered}
"""A function gets a URL only: no CA and no time limit of the lab's."""

_LIMITED = {"time limit kept", "no answer", "silence in the headers", "silence in the body"}
_COUNTS = {"connections counted", "connections over TLS counted", "refused connection not opened"}


def conform(strategy: Strategy) -> Iterator[CheckResult]:
    """Yield the result of every check of a strategy, which takes about 15 seconds."""
    client, needs_count = client_spec(strategy.client), executor_spec(strategy.executor).needs_count
    unchecked: dict[str, str] = {}
    if client.url_only:
        unchecked |= dict.fromkeys(_LIMITED, "the time limits of a function are its own")
    if client.quirks.uncounted:
        unchecked |= dict.fromkeys(_COUNTS, "its library hides its connections, so the lab counts none")
    for scenario in _SCENARIOS:
        if (client.url_only and scenario in _NOT_FOR_FUNCTIONS) or (needs_count and scenario is duration):
            continue
        try:
            for result in scenario(strategy):
                reason = unchecked.get(result.check)
                yield CheckResult(result.check, unchecked=reason) if reason else result
        except TrialFailed as failure:  # some say after a semicolon what to do
            text, _, fix = " ".join(str(failure).split()).partition("; ")
            cause = Cause(1 if scenario is same_work else 4, text, fix or FIX)
            name = scenario.__name__.replace("_", " ")
            yield CheckResult(name, f"the trial failed: {failure}", NO_TIME_LIMIT if scenario is unanswered else cause)
