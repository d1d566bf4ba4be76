"""Cautions: reasons to doubt the numbers of a run, each with advice. Reports show them above the numbers.

A rule is a function from a run to the cautions that it gives rise to. A new rule is a function in the module of its
subject, and an entry of `_RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clientlab.judging.cautions import (
    altered_plan,
    bottlenecks,
    load,
    noise,
    percentiles,
    trials,
)
from clientlab.results.document import Caution, Run


def cautions_of(run: Run) -> list[Caution]:
    """All cautions of a run, the most serious first."""
    return [caution for rule in _RULES for caution in rule(run)]


_RULES: tuple[Callable[[Run], Iterator[Caution]], ...] = (
    altered_plan.left_out,
    altered_plan.unavailable,
    trials.failures,
    trials.errors,
    trials.unverified,
    percentiles.percentiles_of_failures,
    trials.overlong,
    load.behind_schedule,
    load.overloaded,
    load.late_starts,
    altered_plan.replaced,
    bottlenecks.server_bound,
    bottlenecks.machine_bound,
    bottlenecks.unaccounted,
    bottlenecks.start_up,
    load.not_warm,
    trials.gil_on,
    bottlenecks.waits_for_connection,
    altered_plan.resumed,
    altered_plan.shortened,
    altered_plan.changed,
    altered_plan.time_budget,
    altered_plan.few_rounds,
    trials.short_trials,
    load.fewer_requests_than_concurrency,
    percentiles.few_requests,
    noise.noisy_trials,
)


REORDERING = frozenset(
    {
        "errors",
        "failed-trials",
        "overlong",
        "behind-schedule",
        "overloaded",
        "fewer-requests-than-concurrency",
        "upstream-bound",
        "proxy-bound",
        "link-bound",
        "upstream-threads",
        "machine",
        "unaccounted",
        "start-up",
        "not-warm",
        "gil-on",
    }
)
"""Kinds that mark their arms: without what they name, the arms might be in another order.

Noise is not among them: it meets all arms of a round, and the intervals of ratios hold what it does.
"""

MINOR = frozenset({"few-requests"})
"""Kinds that change no decision about what a short report shows; the whole report has them."""
