"""Cautions about divided trials: shards that did not begin together."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.judging.cautions.doubted import arms_of, finished, names_of
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

_SPREAD = 0.05
"""Seconds between the first and the last start. Until then, the early shards had the servers for themselves."""


def start_spread(run: Run) -> Iterator[Caution]:
    """Trials whose shards began too far apart."""
    apart = [trial for trial in finished(run) if spread_of(trial) > _SPREAD]
    if apart:
        worst = max(apart, key=spread_of)
        longest = units.time(spread_of(worst))
        yield Caution(
            kind="start-spread",
            arms=arms_of(apart),
            text=f"shards of {names_of(apart)} began apart: at most by {longest}",
            advice="their load was not there at once: give the workers CPUs of their own, or make the trials longer",
        )


def spread_of(trial: Trial) -> float:
    """Seconds from the start of the first shard to that of the last; 0 for a trial that is not divided."""
    return max((shard.began_seconds for shard in trial.by_shard), default=0.0)
