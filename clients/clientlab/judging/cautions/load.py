"""Cautions about the load: requests in flight, open loads, and connections that should have been warm."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import strategies, units
from clientlab.errors import LabError
from clientlab.judging.backlog import growth_in
from clientlab.judging.cautions.trials import arms_of, by_arm, finished, mostly, names_of
from clientlab.results.document import Caution, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial
from clientlab.workload.load import expected_requests, is_warm


def fewer_requests_than_concurrency(run: Run) -> Iterator[Caution]:
    """Trials that never had as many requests in flight as they were to have."""
    starved = [trial for trial in finished(run) if _planned_requests(run, trial) < trial.concurrency]
    if starved:
        yield Caution(
            kind="fewer-requests-than-concurrency",
            arms=arms_of(starved),
            text=f"trials of {names_of(starved)} had fewer requests than their concurrency",
            advice="the concurrency was never reached: raise -n or lower -c",
        )


def _planned_requests(run: Run, trial: Trial) -> int:
    """Requests of a trial; where each round draws how many arrive, the mean."""
    workload = run.experiment.workloads[trial.workload]
    return (expected_requests(workload) if workload.arrivals == "poisson" else None) or trial.requests


_MUCH = 1.2
_LEAST_SECONDS = 0.001
"""Both latencies differ much from this ratio and from this difference on. A timer alone is some 0.1 ms late."""

_REASONS = {
    True: "all places were taken, and requests waited for a free one before they were sent",
    False: "the strategy itself sent them late, although places were free (its threads, event loop or CPU were busy)",
}
"""Whether all places were taken at times → why requests were sent late."""

_FROM_PLAN, _FROM_SEND = BY_KEY["p99"], BY_KEY["sent_p99"]


def behind_schedule(run: Run) -> Iterator[Caution]:
    """Trials that did not send at the planned rate, or in which requests piled up inside the client."""
    behind = [trial for trial in finished(run) if trial.verdict == "behind-schedule"]
    kept = [(trial.open_load, trial.arm) for trial in behind if trial.open_load is not None]
    if kept:
        worst, arm = min(kept, key=lambda one: one[0].achieved_per_second / one[0].planned_per_second)
        sent = f"{units.rate(worst.achieved_per_second)} of {units.rate(worst.planned_per_second)} requests/s"
        dropped = f", and dropped {worst.dropped:,} requests" if worst.dropped else ""
        dropped += f", with {worst.in_flight_at_end:,} in flight at the end" if worst.in_flight_at_end else ""
        yield Caution(
            kind="behind-schedule",
            arms=arms_of(behind),
            text=f"{names_of(behind)} fell behind the schedule: at worst, {arm} sent {sent}{dropped}",
            advice="these trials show an overload and not that rate: lower --rate, or raise -c where connections lack",
        )


def overloaded(run: Run) -> Iterator[Caution]:
    """Trials that sent at the planned rate, to servers that did not answer at that rate: the backlog grew."""
    found = [trial for trial in finished(run) if trial.verdict == "overloaded"]
    if found:
        grown = [(growth.per_second, trial.arm, growth) for trial in found if (growth := growth_in(trial)) is not None]
        known = [(rate, arm, growth) for rate, arm, growth in grown if rate is not None]
        worst = ""
        if known:
            rate, arm, growth = max(known, key=lambda one: one[0])
            worst = (
                f": at worst, that of {arm} grew by {units.rate(rate)} requests per second, and "
                f"{units.rate(growth.answered_per_second)} requests/s were answered"
            )
        yield Caution(
            kind="overloaded",
            arms=arms_of(found),
            text=f"the backlog of {names_of(found)} grew while requests were sent on schedule{worst}",
            advice="latencies of these trials grow with their length, and show no rate that can be held: lower --rate, "
            "or search for the highest one with --find-max",
        )


def late_starts(run: Run) -> Iterator[Caution]:
    """Arms whose latency from the planned start is much more than that from the real start; why, in a sentence."""
    found: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for arm, trials in by_arm(run).items():
        planned, sent = _FROM_PLAN.over_rounds(trials), _FROM_SEND.over_rounds(trials)
        if planned is not None and sent is not None and planned >= max(_MUCH * sent, sent + _LEAST_SECONDS):
            shown = _FROM_PLAN.text(planned, at_least=_FROM_PLAN.is_bound(trials))
            found[_was_full(trials)][arm] = f"{arm} {shown} and {_FROM_SEND.text(sent)}"
    for full, reason in _REASONS.items():
        if arms := found[full]:
            yield Caution(
                kind="late-starts",
                arms=sorted(arms),
                figures=[_FROM_SEND.key, "sent_p50"],
                text=f"p99 from the planned start is much longer than from the real start, because {reason}: "
                f"{'; '.join(arms[arm] for arm in sorted(arms))}",
                advice="a user waits from the planned start on; a latency from the real start leaves that wait out",
            )


def _was_full(trials: list[Trial]) -> bool:
    """Whether most trials had as many requests in flight as they could."""
    full = [trial for trial in trials if trial.open_load and trial.open_load.most_in_flight >= trial.concurrency]
    return 2 * len(full) > len(trials)


_FEW_OPENED = 0.05
"""Connections per request up to which opening them changes the rate by little."""


def not_warm(run: Run) -> Iterator[Caution]:
    """Connections that were opened inside the clock, although they should have been warm."""
    opened = mostly(
        [trial for trial in finished(run) if _should_be_warm(run, trial)],
        lambda trial: (trial.connections_opened or 0) > _FEW_OPENED * trial.requests,
    )
    if opened:
        yield Caution(
            kind="not-warm",
            arms=arms_of(opened),
            text=f"connections should have been warm, but {names_of(opened)} opened up to "
            f"{max(trial.connections_opened or 0 for trial in opened)} of them in the measured time",
            advice="their time includes connecting: raise the experiment's `warmup`, or use --connections cold for all",
        )


def _should_be_warm(run: Run, trial: Trial) -> bool:
    """Whether the strategy keeps connections and the workload asks to open them before the measured time."""
    if not is_warm(run.experiment.workloads[trial.workload]):
        return False
    try:
        return strategies.find(trial.strategy).policy != "per call"
    except LabError:  # the strategy is not installed here: unknown
        return False
