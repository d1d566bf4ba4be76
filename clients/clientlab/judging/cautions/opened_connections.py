"""Cautions about connections that trials opened: inside the clock, between slices, and those on which p99 falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from statistics import median

from clientlab import strategies, units
from clientlab.errors import LabError
from clientlab.judging.cautions.trials import arms_of, by_arm, finished, mostly, names_of
from clientlab.judging.ranking import finished_by_group
from clientlab.results.document import Caution, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Slice, Trial
from clientlab.workload.load import is_warm

_P99 = BY_KEY["p99"]
_TIMES, _SECONDS = 1.25, 0.002
"""p99 falls on the opening of connections if it is so many times the later one, and so many seconds more."""

_FEW_OPENED = 0.05
"""Connections per request up to which opening them changes the rate by little."""

_FEWEST_SLICES = 10
"""With fewer slices after the connections were opened, the p99 of that time is unknown."""


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


def open_before(run: Run) -> Iterator[Caution]:
    """Arms whose connections were open before the clock, beside others that opened theirs inside it."""
    cold = [
        [trial for _, trial in trials if not is_warm(run.experiment.workloads[trial.workload])]
        for trials in finished_by_group(run).values()
    ]
    mixed = [group for group in cold if any(trial.connections_opened for trial in group)]
    before = [trial for group in mixed for trial in group if trial.connections_opened == 0]
    if before:
        yield Caution(
            kind="open-before",
            arms=arms_of(before),
            text=f"the connections of {names_of(before)} were open before the clock started, and others opened theirs "
            "inside it: what a client keeps at the top of a file outlives the warm-up",
            advice="compare all of them with --connections warm",
        )


def p99_of_opening(run: Run) -> Iterator[Caution]:
    """Arms whose p99 falls on the requests that opened connections: with it, that of the time after them."""
    found: dict[str, str] = {}
    for arm, trials in by_arm(run).items():
        later = [seconds for trial in trials if (seconds := _p99_after_opening(run, trial)) is not None]
        if 2 * len(later) > len(trials):
            found[arm] = f"{arm} {_P99.text(_P99.over_rounds(trials))} and {units.time(median(later))}"
    if found:
        yield Caution(
            kind="opening-connections",
            arms=sorted(found),
            figures=[_P99.key],
            text="p99 falls on the requests that opened connections; p99 of the whole trial and of the time after "
            f"them: {'; '.join(found[arm] for arm in sorted(found))}",
            advice="a service that runs has open connections: use --connections warm",
        )


def _p99_after_opening(run: Run, trial: Trial) -> float | None:
    """Seconds: about the p99 of the requests behind those that opened connections. None if p99 does not fall on these.

    Of the slices behind them, nine in ten have a lower p99: with few requests in a slice, that is close to their
    common p99, with many requests a little more.
    """
    opened, times = trial.connections_opened or 0, trial.latency_seconds
    if times is None or "p99" in times.at_least or not _may_fall_on_opening(run, trial, opened):
        return None
    ended = accumulate(one.requests for one in trial.over_time)
    first = next((index for index, count in enumerate(ended, start=1) if count >= opened), len(trial.over_time))
    before, behind = (_p99s(trial.over_time[part]) for part in (slice(first), slice(first, None)))
    if not before or len(behind) < _FEWEST_SLICES:
        return None
    later = behind[int(0.9 * len(behind))]
    falls = before[-1] >= times.p99 >= max(_TIMES * later, later + _SECONDS)
    return later if falls else None


def _p99s(slices: Sequence[Slice]) -> list[float]:
    """The known ones in rising order."""
    return sorted(one.p99 for one in slices if one.p99 is not None)


def _may_fall_on_opening(run: Run, trial: Trial, opened: int) -> bool:
    """Whether 1 % of the requests opened connections inside the clock that later ones used."""
    cold = not is_warm(run.experiment.workloads[trial.workload]) and trial.driver is None
    return cold and opened >= trial.requests / 100 and opened < trial.requests / 2 and _keeps_connections(trial)


def _should_be_warm(run: Run, trial: Trial) -> bool:
    """Whether the strategy keeps connections and the workload asks to open them before the measured time."""
    return is_warm(run.experiment.workloads[trial.workload]) and _keeps_connections(trial)


def _keeps_connections(trial: Trial) -> bool:
    try:
        return strategies.find(trial.strategy).policy != "per call"
    except LabError:  # the strategy is not installed here: unknown
        return False
