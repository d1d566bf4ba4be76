"""Cautions about percentiles: those that fall on failed requests, and those of too few requests."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.analysis.latencies import QUANTILES
from clientlab.judging.cautions.trials import arms_of, by_arm, finished, names_of
from clientlab.results.document import Caution, Run
from clientlab.results.figures import BY_KEY, FIGURES
from clientlab.results.trial import Trial

OF_LATENCY = [figure.key for figure in FIGURES if figure.bounded and figure.unit == "seconds"]
"""Keys of the figures that failed requests, and waits for a connection, take part in."""

_PERCENTILES = tuple(BY_KEY[key] for key in QUANTILES)
_FEWEST_BEYOND = 10
"""Requests of a trial beyond its 99th percentile.

With 10, the percentile of a draw of exponential delays has a standard deviation of 7 % and a bias of -1 %; with 1, of
17 % and -9 % (order statistics of 20,000 and 100,000 draws).
"""


def percentiles_of_failures(run: Run) -> Iterator[Caution]:
    """Percentiles that fall on failed requests, by arm: the least of them, over the rounds."""
    found = {name: text for name, trials in by_arm(run).items() if (text := _bound_of(trials))}
    if found:
        yield Caution(
            kind="percentiles-of-failures",
            arms=sorted(found),
            figures=OF_LATENCY,
            text=f"percentiles fall on failed requests: {'; '.join(f'{arm}, {found[arm]}' for arm in sorted(found))}",
            advice="a failed request would have taken at least as long as it did: "
            'read "≥" as "not known, and no less", and mend the errors before you compare',
        )


def _bound_of(trials: list[Trial]) -> str | None:
    """``3 % failed, p99 ≥ 300 ms``: the lowest percentile that is only a lower bound. None without one."""
    bounded = next((figure for figure in _PERCENTILES if figure.has_bounds(trials)), None)
    if bounded is None:
        return None
    worst = [trial for trial in trials if bounded.has_bounds([trial])]
    failed = sum(sum(trial.errors.values()) for trial in worst) / sum(trial.requests for trial in worst)
    where = "" if len(worst) == len(trials) else f" in {len(worst)} of {len(trials)} rounds"
    shown = bounded.text(bounded.over_rounds(worst), at_least=True)
    return f"{units.share(failed)} failed{where}, {bounded.key} {shown}"


def few_requests(run: Run) -> Iterator[Caution]:
    """Trials whose p99 rests on a handful of requests."""
    few = [trial for trial in finished(run) if trial.requests // 100 < _FEWEST_BEYOND and trial.latency_seconds]
    if few:
        fewest = min(trial.requests for trial in few)
        yield Caution(
            kind="few-requests",
            arms=arms_of(few),
            figures=["p99"],
            text=f"trials of {names_of(few)} made few requests ({fewest:,} at the least), so their p99 rests on "
            f"{max(1, fewest // 100)} of them",
            advice=f"send at least {100 * _FEWEST_BEYOND:,} requests (-n) before you compare p99",
        )
