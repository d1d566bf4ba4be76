"""Which arms still have an open comparison: those that a run with a budget measures further."""

from __future__ import annotations

from clientlab.analysis.decisions import DECIDED_CONFIDENCE, decision_of
from clientlab.analysis.ratios import Ratio
from clientlab.judging.claim_verdicts import ClaimEvidence, arms_of_claim
from clientlab.judging.contrasts import contrasts, environment_pairs, link_pairs, route_contrasts
from clientlab.judging.ranking import arm_key, ranked
from clientlab.results.document import Run


def undecided_arms(run: Run, confidence: float = DECIDED_CONFIDENCE) -> set[str]:
    """Return the arms with a comparison that is neither slower nor equal, and those that they are compared with.

    These are comparisons with the fastest of a group, with the baseline, between environments, links and routes, and
    claims. `confidence`: of the intervals. A look at each round does little harm at 99.9 % (Haybittle 1971, Peto et
    al. 1976).
    """
    arms = run.experiment.arms
    names = {arm_key(arm): arm.name for arm in arms}
    found: set[str] = set()
    for group, rows in ranked(run, confidence).items():
        for row in rows:
            if _is_open(row.ratio) and not row.fastest:
                found |= {names[group, row.name], names[group, row.reference]}
            if _is_open(row.to_baseline) and run.experiment.baseline is not None:
                found |= {names[group, row.name], run.experiment.baseline}
    environments, links = (contrasts(run, pairs, confidence) for pairs in (environment_pairs(arms), link_pairs(arms)))
    for contrast in (*environments, *links, *route_contrasts(run, confidence)):
        if _is_open(contrast.time):
            found |= {contrast.arm.name, contrast.base.name}
    evidence = ClaimEvidence(run)
    for claim in run.experiment.claims:
        finding = evidence.finding(claim, confidence)
        if finding.verdict == "inconclusive" and finding.ratio is not None and not finding.negligible:
            found |= arms_of_claim(claim)
    return found


def _is_open(ratio: Ratio | None) -> bool:
    """Return whether rounds may decide it. Without a round in common, they did not so far."""
    return ratio is not None and decision_of(ratio).word == "undecided"
