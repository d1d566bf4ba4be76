"""How the trials of a run were divided, a line for each arm, for every report."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from clientlab import units
from clientlab.judging.cautions.doubted import by_arm
from clientlab.judging.cautions.shards import spread_of
from clientlab.results.document import Run
from clientlab.results.trial import Trial


def lines(run: Run) -> list[str]:
    """A sentence for each arm whose trials were divided; empty for a run without shards."""
    return [_line(arm, trials) for arm, trials in by_arm(run).items() if trials[0].by_shard]


def _line(arm: str, trials: Sequence[Trial]) -> str:
    shards = trials[-1].by_shard
    rates = [shard.requests_per_second for trial in trials for shard in trial.by_shard]
    hosts = len({shard.host for shard in shards})
    where = "" if hosts == 1 else f" on {hosts} hosts"
    spread = units.time(median(map(spread_of, trials)))
    rate = f"{units.rate(min(rates))} to {units.rate(max(rates))} requests/s"
    return f"{arm}: {len(shards)} shards{where}, each with {rate}; the last began {spread} after the first (median)."
