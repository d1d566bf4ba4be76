"""Which arms still have an open comparison: whom a run with a budget measures further."""

from __future__ import annotations

from clientlab.analysis.decisions import decision_of
from clientlab.analysis.precision import DECIDED_CONFIDENCE
from clientlab.analysis.ratios import Ratio
from clientlab.judging.claim_verdicts import finding_of
from clientlab.judging.contrasts import (
    ClaimEvidence,
    arms_of_claim,
    contrasts,
    environment_pairs,
    link_pairs,
    route_contrasts,
)
from clientlab.judging.ranking import group_of, ranked
from clientlab.results.document import Run


def undecided_arms(run: Run, confidence: float = DECIDED_CONFIDENCE) -> set[str]:
    """The arms with a comparison that is neither slower nor equal, and those that they are compared with.

    These are comparisons with the fastest of a group, with the baseline, between environments, links and routes, and
    claims. `confidence`: of the intervals. A look at each round does little harm at 99.9 %: Haybittle (1971), Peto et
    al. (1976).
    """
    return _of_groups(run, confidence) | _of_contrasts(run, confidence) | _of_claims(run, confidence)


def _of_groups(run: Run, confidence: float) -> set[str]:
    arms = {(group_of(arm), arm.label or arm.strategy): arm.name for arm in run.experiment.arms}
    found: set[str] = set()
    for group, rows in ranked(run, confidence).items():
        for row in rows:
            if _is_open(row.ratio) and not row.fastest:
                found |= {arms[group, row.name], arms[group, row.reference]}
            if _is_open(row.to_baseline) and run.experiment.baseline is not None:
                found |= {arms[group, row.name], run.experiment.baseline}
    return found


def _of_contrasts(run: Run, confidence: float) -> set[str]:
    arms = run.experiment.arms
    found = [contrasts(run, pairs, confidence) for pairs in (environment_pairs(arms), link_pairs(arms))]
    found.append(route_contrasts(run, confidence))
    return {arm.name for each in found for one in each if _is_open(one.time) for arm in (one.arm, one.base)}


def _of_claims(run: Run, confidence: float) -> set[str]:
    evidence = ClaimEvidence(run)
    return {
        arm
        for claim in run.experiment.claims
        if (finding := finding_of(evidence, claim, confidence)).verdict == "inconclusive"
        and finding.ratio is not None
        and not finding.negligible
        for arm in arms_of_claim(claim)
    }


def _is_open(ratio: Ratio | None) -> bool:
    """Whether rounds may decide it. Without a round in common, they did not so far."""
    return ratio is not None and decision_of(ratio).word == "undecided"
