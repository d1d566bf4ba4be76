"""Cautions about streams: events that the upstream wrote late, and lags that nobody can know."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.judging.cautions.trials import arms_of, finished, names_of
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

LATE_WRITES = 1e-3
"""Seconds. If more than one event in 100 is written later than this after its planned moment, gaps are the server's."""

_OF_ARRIVAL = ["gap_p50", "gap_p99", "first_p50", "first_p99", "goodput", "kept", "together"]


def late_events(run: Run) -> Iterator[Caution]:
    """Trials whose upstream wrote events later than planned."""
    late: dict[str, float] = {}
    for trial in finished(run):
        if (seconds := _late(trial)) > LATE_WRITES:
            late[trial.arm] = max(seconds, late.get(trial.arm, 0.0))
    if late:
        shown = ", ".join(f"{arm} ({units.time(seconds)})" for arm, seconds in sorted(late.items()))
        yield Caution(
            kind="late-events",
            arms=sorted(late),
            figures=_OF_ARRIVAL,
            text=f"the upstream wrote events late in trials of {shown}: 99th percentile of the error of its writes",
            advice="gaps and times to the first event hold this error, lags do not: lower -c, lengthen --every, or "
            "give the upstream more workers or a core of its own (--pin)",
        )


def _late(trial: Trial) -> float:
    if trial.streams is None or trial.streams.late_seconds is None:
        return 0.0
    return trial.streams.late_seconds.p99


def lag_unknown(run: Run) -> Iterator[Caution]:
    """Trials of streams whose events have marks, and whose lags are unknown."""
    streams = [trial for trial in finished(run) if trial.streams is not None]
    unknown = [t for t in streams if t.streams and t.streams.lag_seconds is None and t.streams.late_seconds is not None]
    if unknown:
        yield Caution(
            kind="lag-unknown",
            arms=arms_of(unknown),
            figures=["lag_p50", "lag_p99", "together"],
            text=f"the lag of events is unknown in trials of {names_of(unknown)}: the upstream is on another machine",
            advice="two machines have two clocks: for lags, measure with client and upstream on one machine",
        )
