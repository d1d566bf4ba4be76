"""The ceilings of a run's servers, a line for each, and which arm came closest to it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from clientlab import units
from clientlab.results.ceiling import Ceiling, ceiling_of
from clientlab.results.document import Run

_ITSELF = "client-bound"
_LIMITS = {"upstream-bound": "the upstream's CPU was full", "proxy-bound": "the proxy's CPU was full"}


def lines(run: Run) -> list[str]:
    """A sentence for each ceiling; empty for a run without them."""
    return [_line(run, one) for one in run.ceilings]


def _line(run: Run, ceiling: Ceiling) -> str:
    where = f"Ceiling of {' · '.join(_names(run, ceiling))}"
    if ceiling.requests_per_second is None:
        return f"{where}: unknown, because it could not be measured: {ceiling.reason}."
    rate = units.of_unit(ceiling.requests_per_second, "per-second", at_least=ceiling.verdict == _ITSELF)
    return f"{where}: {rate} requests/s ({_how(ceiling)}).{_closest(run, ceiling)}"


def _names(run: Run, ceiling: Ceiling) -> Iterator[str]:
    """Upstream and route, with the workloads and the version of HTTP where other ceilings have others."""
    same_place = [one for one in run.ceilings if (one.upstream, one.route) == (ceiling.upstream, ceiling.route)]
    if len(same_place) > 1:
        yield ", ".join(dict.fromkeys(arm.workload for arm in run.experiment.arms if arm.name in ceiling.arms))
    yield from (ceiling.upstream, ceiling.route)
    if len({one.http for one in run.ceilings}) > 1:
        yield f"HTTP/{ceiling.http}"


def _how(ceiling: Ceiling) -> str:
    """How it was measured, and what limited it."""
    generator = " ".join(filter(None, (ceiling.generator, ceiling.version)))
    parts = [generator, f"c={ceiling.connections}", units.time(ceiling.seconds)]
    parts += ["without the delay"] if ceiling.without_delay else []
    parts += [f"{ceiling.failed:,} failed"] if ceiling.failed else []
    limit = "the generator's CPU was full" if ceiling.verdict == _ITSELF else _LIMITS.get(ceiling.verdict or "")
    return ", ".join([*parts, *([limit] if limit else [])])


def _closest(run: Run, ceiling: Ceiling) -> str:
    """The arm with the largest median share of the ceiling; empty if no trial has one."""
    shares: dict[str, list[float]] = {}
    for trial in run.trials:
        if trial.status == "done" and "ceiling" in trial.busy and ceiling_of(trial, run.ceilings) == ceiling:
            shares.setdefault(trial.arm, []).append(trial.busy["ceiling"])
    if not shares:
        return ""
    name = max(shares, key=lambda one: median(shares[one]))
    return f" {name} came closest, with {100 * median(shares[name]):.0f} %."
