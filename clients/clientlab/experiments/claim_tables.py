"""The claims of an experiment: arms by their full names, a figure that the arms have, and arms that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clientlab.errors import FieldError
from clientlab.experiments.expansion import resolve, sweep_of
from clientlab.experiments.experiment import ClaimTable
from clientlab.results.figures import of_claim
from clientlab.results.plan import Arm, Claim
from clientlab.workload.load import is_open
from clientlab.workload.workload import Workload

_WRITTEN = {"elapsed": "elapsed = true in its workload", "delay": 'delay = "100ms" in its workload, or rtt'}
"""How a workload gets what a figure needs."""

_PER_REQUEST = {"wall": "seconds_per_request", "elapsed": "mean", "cpu_total": "cpu_seconds_per_request"}
"""Figure of a whole trial → the figure of one request, in the same direction."""


def planned_claims(
    tables: Mapping[str, ClaimTable], arms: Sequence[Arm], workloads: Mapping[str, Workload]
) -> list[Claim]:
    """Return the claims of a plan.

    Raises FieldError for a claim that names a missing arm, or that no run can settle except by chance.
    """
    by_name = {arm.name: arm for arm in arms}
    claims = []
    for name, table in tables.items():
        named = {key: getattr(table, key) for key in "abcd"}
        found = {key: arm and resolve(arm, arms, ("claims", name, key)) for key, arm in named.items()}
        sweep = sweep_of(table.sweep, arms, ("claims", name, "sweep")) if table.sweep else []
        requests = workloads[by_name[found["a"] or sweep[0]].workload].requests
        text = table.text.replace("{requests}", "as many" if requests is None else f"{requests:,}")
        shared = table.model_dump(exclude={*"abcd", "sweep", "text"})
        claim = Claim.model_validate({"name": name, "text": text, "arms": sweep, **found, **shared})
        for one, other in (("a", "b"), ("c", "d")):
            if found[other] is not None and found[one] == found[other]:
                message = f"claim {name!r} compares arm {found[one]!r} with itself; name another"
                raise FieldError(["claims", name, other], message)
        if claim.kind == "narrower" and (claim.a, claim.b) == (claim.c, claim.d):
            message = f"claim {name!r} compares a pair of arms with itself; name another"
            raise FieldError(["claims", name, "d"], message)
        for group in [sweep] if sweep else [[claim.a, claim.b], [claim.c, claim.d]]:
            compared = [by_name[arm] for arm in group if arm is not None]
            if wrong := _meaningless(claim, compared, workloads):
                raise FieldError(["claims", name, "figure"], f"claim {name!r} compares {claim.figure}{wrong}")
        claims.append(claim)
    return claims


def _meaningless(claim: Claim, arms: Sequence[Arm], workloads: Mapping[str, Workload]) -> str | None:
    """Return why the figure of a claim cannot be compared between these arms; None if it can."""
    figure = of_claim(claim.figure)
    for arm in arms:
        workload = workloads[arm.workload]
        if figure.scheduled and is_open(workload):
            return f", which the schedule of arm {arm.name!r} decides; compare p99 or achieved_rate"
        if figure.total and workload.duration is not None:
            return (
                f", and arm {arm.name!r} runs for a duration, whatever it does in it; write figure = "
                f'"{_PER_REQUEST[figure.key]}", or give the arm a number of requests'
            )
        if figure.needs and not figure.is_known(workload, arm.link):
            return f", which arm {arm.name!r} does not keep; write {_WRITTEN[figure.needs]}"
    counts = sorted({workloads[arm.workload].requests or 0 for arm in arms})
    if figure.total and len(counts) > 1:
        numbers = " and ".join(f"{count:,}" for count in counts)
        return f" of {numbers} requests; compare a figure per request or per second, or give the arms as many each"
    return None
