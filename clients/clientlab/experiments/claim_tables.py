"""The claims of an experiment: arms by their full names, a figure that the arms have, and arms that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clientlab.errors import FieldError
from clientlab.experiments.expansion import resolve, sweep_of
from clientlab.experiments.experiment import ClaimTable
from clientlab.results.figures import of_claim
from clientlab.results.plan import Arm, Claim
from clientlab.workload.link import Link
from clientlab.workload.load import is_open
from clientlab.workload.workload import Workload

_WRITTEN = {"elapsed": "elapsed = true in its workload", "delay": 'delay = "100ms" in its workload, or rtt'}
"""How a workload gets what a figure needs."""

_PER_REQUEST = {"wall": "seconds_per_request", "elapsed": "mean", "cpu_total": "cpu_seconds_per_request"}
"""Figure of a whole trial → the figure of one request, in the same direction."""


def planned_claims(
    tables: Mapping[str, ClaimTable], arms: Sequence[Arm], workloads: Mapping[str, Workload]
) -> list[Claim]:
    """The claims of a plan.

    Raises FieldError for a claim that names a missing arm, or that no run can settle except by chance.
    """
    by_arm = {arm.name: workloads[arm.workload] for arm in arms}
    links = {arm.name: arm.link for arm in arms}
    claims = [_planned(name, table, arms, by_arm) for name, table in tables.items()]
    for claim in claims:
        _check_arms(claim)
        _check_figure(claim, by_arm, links)
    return claims


def _planned(name: str, table: ClaimTable, arms: Sequence[Arm], workloads: Mapping[str, Workload]) -> Claim:
    named = {key: getattr(table, key) for key in "abcd"}
    found = {key: arm and resolve(arm, arms, ("claims", name, key)) for key, arm in named.items()}
    sweep = sweep_of(table.sweep, arms, ("claims", name, "sweep")) if table.sweep else []
    requests = workloads[found["a"] or sweep[0]].requests
    number = "as many" if requests is None else f"{requests:,}"
    text = table.text.replace("{requests}", number)
    shared = table.model_dump(exclude={*"abcd", "sweep", "text"})
    return Claim.model_validate({"name": name, "text": text, "arms": sweep, **found, **shared})


def _check_arms(claim: Claim) -> None:
    for one, other in (("a", "b"), ("c", "d")):
        name = getattr(claim, other)
        if name is not None and name == getattr(claim, one):
            raise FieldError(
                ("claims", claim.name, other), f"claim {claim.name!r} compares arm {name!r} with itself; name another"
            )
    if claim.kind == "narrower" and (claim.a, claim.b) == (claim.c, claim.d):
        raise FieldError(
            ("claims", claim.name, "d"), f"claim {claim.name!r} compares a pair of arms with itself; name another"
        )


def _check_figure(claim: Claim, workloads: Mapping[str, Workload], links: Mapping[str, Link | None]) -> None:
    groups = [claim.arms] if claim.arms else [[claim.a, claim.b], [claim.c, claim.d]]
    for names in groups:
        compared = {name: workloads[name] for name in names if name is not None}
        for name, workload in compared.items():
            if wrong := _missing(claim, name, workload, links[name]):
                raise FieldError(("claims", claim.name, "figure"), f"claim {claim.name!r} compares {wrong}")
        counts = sorted({workload.requests or 0 for workload in compared.values()})
        if of_claim(claim.figure).total and len(counts) > 1:
            raise FieldError(
                ("claims", claim.name, "figure"),
                f"claim {claim.name!r} compares {claim.figure} of {' and '.join(f'{count:,}' for count in counts)} "
                "requests; compare a figure per request or per second, or give the arms as many each",
            )


def _missing(claim: Claim, name: str, workload: Workload, link: Link | None) -> str | None:
    """Why the arm's figure means nothing; None where the figure can be compared."""
    figure = of_claim(claim.figure)
    if figure.scheduled and is_open(workload):
        return (
            f"{claim.figure}, and the schedule of arm {name!r} decides it, whatever the arm's strategy does; "
            "compare p99 or achieved_rate"
        )
    if figure.total and workload.duration is not None:
        return (
            f"{claim.figure}, and arm {name!r} runs for a duration, whatever it does in it; "
            f'write figure = "{_PER_REQUEST[figure.key]}", or give the arm a number of requests'
        )
    if figure.needs and not figure.is_known(workload, link):
        return f"{claim.figure}, which arm {name!r} does not keep; write {_WRITTEN[figure.needs]}"
    return None
