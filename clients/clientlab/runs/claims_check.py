"""Whether the claims of an experiment can be judged: by a figure that tells something, and of arms that differ."""

from __future__ import annotations

from clientlab.runs.document import AskedClaim
from clientlab.runs.expansion import BadExperiment
from clientlab.runs.experiment import Experiment
from clientlab.workload import Workload


def check_claims(experiment: Experiment) -> None:
    """Raises BadExperiment for a claim that no run of the experiment can settle, or only by chance."""
    workloads = {arm.name: workload for arm, workload in experiment.expanded()}
    for claim in experiment.asked_claims():
        _check_arms(claim)
        _check_figure(claim, workloads)


def _check_arms(claim: AskedClaim) -> None:
    for one, other in (("a", "b"), ("c", "d")):
        name = getattr(claim, other)
        if name is not None and name == getattr(claim, one):
            raise BadExperiment(
                ("claims", claim.name, other), f"claim {claim.name!r} compares arm {name!r} with itself; name another"
            )
    if claim.kind == "narrower" and (claim.a, claim.b) == (claim.c, claim.d):
        raise BadExperiment(
            ("claims", claim.name, "d"), f"claim {claim.name!r} compares a pair of arms with itself; name another"
        )


def _check_figure(claim: AskedClaim, workloads: dict[str, Workload]) -> None:
    groups = [claim.arms] if claim.arms else [[claim.a, claim.b], [claim.c, claim.d]]
    for names in groups:
        asked = {name: workloads[name] for name in names if name is not None}
        for name, workload in asked.items():
            if wrong := _not_told(claim, name, workload):
                raise BadExperiment(("claims", claim.name, "figure"), f"claim {claim.name!r} compares {wrong}")
        counts = sorted({workload.requests or 0 for workload in asked.values()})
        if claim.figure == "wall_seconds" and len(counts) > 1:
            raise BadExperiment(
                ("claims", claim.name, "figure"),
                f"claim {claim.name!r} compares wall_seconds of {' and '.join(f'{count:,}' for count in counts)} "
                "requests; compare requests_per_second, or give the arms as many each",
            )


def _not_told(claim: AskedClaim, name: str, workload: Workload) -> str | None:
    """Why the figure tells nothing of an arm."""
    if claim.figure == "wall_seconds" and workload.duration is not None:
        return (
            f"wall_seconds, and arm {name!r} runs for a duration, whatever it does in it; compare requests_per_second, "
            "or give it a number of requests"
        )
    if claim.figure == "elapsed" and not workload.elapsed:
        return f"elapsed, which arm {name!r} does not keep; write elapsed = true in its workload"
    return None
