"""Conformance: rules for every strategy, checked by a server of foreign code."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clientlab.conformance.checking import (
    FIX,
    NO_TIME_LIMIT,
    Cause,
    CheckResult,
    causes_of,
)
from clientlab.conformance.fault_checks import (
    check_certificates,
    check_refused,
    check_server_faults,
    check_unanswered,
)
from clientlab.conformance.load_checks import (
    check_duration,
    check_same_work,
    check_stop,
)
from clientlab.conformance.stream_checks import check_streams
from clientlab.observing.process_handle import TrialFailed
from clientlab.strategies import (
    Strategy,
    client_spec,
    executor_spec,
    retry_of,
    without_retries,
)

__all__ = ["CheckResult", "causes_of", "conform"]

_Scenario = Callable[[Strategy], Iterator[CheckResult]]
_SCENARIOS = (
    check_same_work,
    check_server_faults,
    check_certificates,
    check_refused,
    check_unanswered,
    check_duration,
    check_stop,
    check_streams,
)
# Their servers fail, which is what the retries of a strategy are for. Streams cannot be
# retried around a client.
_WITHOUT_RETRIES = {
    check_server_faults,
    check_certificates,
    check_refused,
    check_unanswered,
    check_streams,
}
# Functions get no CA and no time limit.
_NOT_FOR_FUNCTIONS = {check_certificates, check_unanswered, check_streams}
_LIMITED = {
    "time limit kept",
    "no answer",
    "silence in the headers",
    "silence in the body",
}
_COUNTS = {
    "connections counted",
    "connections over TLS counted",
    "refused connection not opened",
}


def conform(strategy: Strategy) -> Iterator[CheckResult]:
    """Yield the result of every check of a strategy, which takes up to a minute.

    Retries that the strategy asks for are left out where the server fails, so a request
    that is sent again there is a fault of the client.
    """
    client = client_spec(strategy.client)
    skipped: set[object] = set()
    unchecked: dict[str, str] = {}
    if client.url_only:
        skipped |= _NOT_FOR_FUNCTIONS
        unchecked |= dict.fromkeys(_LIMITED, "a function sets its own time limits")
    if client.quirks.uncounted:
        unchecked |= dict.fromkeys(
            _COUNTS, "its library hides its connections, so the lab counts none"
        )
    if executor_spec(strategy.executor).needs_count:
        skipped.add(check_duration)
    if retry_of(strategy) is not None:
        yield CheckResult(
            "retries", unchecked="faults are checked without the retries asked for"
        )
    for scenario in _SCENARIOS:
        if scenario in skipped:
            continue
        checked = strategy
        if scenario in _WITHOUT_RETRIES:
            checked = without_retries(strategy)
        try:
            for result in scenario(checked):
                reason = unchecked.get(result.check)
                yield CheckResult(result.check, unchecked=reason) if reason else result
        except TrialFailed as failure:
            yield _judge_failed(scenario, failure)


def _judge_failed(scenario: _Scenario, failure: TrialFailed) -> CheckResult:
    # Its message may end with a semicolon and a fix.
    text, _, fix = " ".join(str(failure).split()).partition("; ")
    cause = Cause(4, text, fix or FIX)
    if scenario is check_same_work:
        cause = cause._replace(stage=1)
    elif scenario is check_unanswered:
        cause = NO_TIME_LIMIT
    check = scenario.__name__.removeprefix("check_").replace("_", " ")
    return CheckResult(check, f"the trial failed: {failure}", cause)
