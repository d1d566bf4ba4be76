"""Cautions: reasons to doubt the numbers of a run, each with advice. Reports show them above the numbers.

A rule is a function from a run to the cautions that it gives rise to. A new rule is a function in the module of its
subject, and an entry of `_RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clientlab.judging.cautions import (
    bottlenecks,
    capacity,
    concurrency,
    noise,
    open_load,
    outlying,
    percentiles,
    plan,
    shards,
    system_limits,
    trials,
)
from clientlab.results.document import Caution, Run


def cautions_of(run: Run) -> list[Caution]:
    """All cautions of a run, the most serious first."""
    return [caution for rule in _RULES for caution in rule(run)]


_RULES: tuple[Callable[[Run], Iterator[Caution]], ...] = (
    plan.left_out,
    plan.unavailable,
    trials.failures,
    trials.errors,
    capacity.no_capacity,
    capacity.ended_early,
    capacity.failed_overloads,
    percentiles.percentiles_of_failures,
    open_load.behind_schedule,
    open_load.late_starts,
    shards.start_spread,
    concurrency.unlike_concurrency,
    plan.replaced,
    system_limits.system_limits,
    bottlenecks.server_bound,
    bottlenecks.machine_bound,
    bottlenecks.driver_bound,
    bottlenecks.shared_cores,
    trials.not_warm,
    trials.gil_on,
    bottlenecks.waits_for_connection,
    plan.resumed,
    plan.shortened,
    plan.changed,
    plan.workers,
    plan.time_budget,
    plan.few_rounds,
    trials.short_trials,
    trials.extended,
    concurrency.fewer_requests_than_concurrency,
    percentiles.few_requests,
    outlying.outlying_caution,
    noise.busy_machine,
    noise.noisy_trials,
    noise.wide_spread,
    trials.memory_unknown,
)
