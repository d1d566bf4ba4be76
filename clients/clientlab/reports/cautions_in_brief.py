"""The cautions of a run in a line, and all of one kind together."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.judging.cautions import MINOR
from clientlab.reports.sections import Alert
from clientlab.results.document import Caution, Run

PHRASES = {
    "behind-schedule": "behind the schedule",
    "changed": "changed on the command line",
    "errors": "requests failed",
    "failed-trials": "trials failed",
    "few-requests": "p99 rests on few requests",
    "few-rounds": "too few rounds for intervals",
    "fewer-requests-than-concurrency": "fewer requests than c",
    "gil-on": "the GIL was on",
    "late-starts": "requests began late",
    "left-out": "strategies were left out",
    "link-bound": "the link was the bottleneck",
    "machine": "all cores were full",
    "noisy-trials": "other programs disturbed trials",
    "not-warm": "connections were not warm",
    "overloaded": "overloaded",
    "overlong": "trials took longer than asked",
    "percentiles-of-failures": "percentiles fall on failed requests",
    "proxy-bound": "the proxy was the bottleneck",
    "quick": "the quick form",
    "replaced-strategy": "a strategy was replaced",
    "resumed": "resumed in other surroundings",
    "short-trials": "short trials",
    "start-up": "mostly the start of a pool",
    "time-budget": "the time budget ended the rounds",
    "unaccounted": "unexplained latency",
    "unavailable-arms": "arms were not available",
    "unverified": "requests of your own code were not checked",
    "upstream-threads": "the upstream's threads were full",
    "upstream-bound": "the upstream was the bottleneck",
    "waits-for-connection": "waits for a free connection (*)",
}
"""Kind of a caution → what it says, in a few words."""


def alerts_of(run: Run) -> list[Alert]:
    """The cautions by kind, in their order."""
    found: dict[str, list[Caution]] = {}
    for one in run.cautions:
        found.setdefault(one.kind, []).append(one)
    return [
        Alert(_phrase(kind), [(one.text, one.advice) for one in cautions], minor=kind in MINOR)
        for kind, cautions in found.items()
    ]


def in_brief(alerts: Sequence[Alert]) -> str:
    """The line that sums up the alerts that are not minor; empty without any."""
    titles = dict.fromkeys(alert.title for alert in alerts if not alert.minor)
    return f"Cautions: {', '.join(titles)}." if titles else ""


def _phrase(kind: str) -> str:
    """Files of later versions have kinds that this one does not know."""
    return PHRASES.get(kind, kind.replace("-", " "))
