"""What follows from the trials of a run: its claim results, its cautions, and the arms that need further rounds."""

from __future__ import annotations

from pathlib import Path

from clientlab.judging.cautions import cautions_of
from clientlab.judging.claims import ClaimEvidence, arms_of_claim, judge_claims
from clientlab.judging.ranking import arm_key, contrasts, link_pairs, rank_arms, route_contrasts, version_contrasts
from clientlab.results.document import Run
from clientlab.results.store import is_held, read_run
from clientlab.statistics.decisions import DECIDED_CONFIDENCE, decide
from clientlab.statistics.ratios import Ratio


def with_judgement(run: Run) -> Run:
    """Return the run with the claim results and cautions that follow from its present trials."""
    cautions = cautions_of(run)
    return run.model_copy(update={"claims": judge_claims(run, cautions), "cautions": cautions})


def read_judged(path: Path) -> Run:
    """Read a run file, and judge the run unless it has ended: then the file holds its judgement. Raise LabError.

    A run that is not finished, and that no process measures, is interrupted.
    """
    run = read_run(path)
    if run.status == "running" and not is_held(path.parent):
        run = run.model_copy(update={"status": "interrupted"})
    is_judged = run.status in ("done", "incomplete") and (run.claims or not run.experiment.claims)
    return run if is_judged else with_judgement(run)


def undecided_arms(run: Run, confidence: float = DECIDED_CONFIDENCE) -> set[str]:
    """Return the arms of comparisons that further rounds may decide: a run with a budget measures only these further.

    The comparisons are those with the fastest of a group, with the baseline, and between environments, servers, links
    and routes, and those of claims. `confidence`: of their intervals. A look after each round does little harm at
    99.9 % (Haybittle 1971, Peto et al. 1976).
    """
    baseline, names = run.experiment.baseline, {arm_key(arm): arm.name for arm in run.experiment.arms}
    compared: list[tuple[Ratio | None, str, str]] = []  # a ratio, and the arms that it compares
    for group, standings in rank_arms(run, confidence).items():
        for one in standings:
            name = names[group, one.name]
            if not one.fastest:
                compared.append((one.ratio, name, names[group, one.reference]))
            if baseline is not None:
                compared.append((one.to_baseline, name, baseline))
    links, routes = contrasts(run, link_pairs(run.experiment.arms), confidence), route_contrasts(run, confidence)
    for found in (*version_contrasts(run, confidence).values(), links, routes):
        compared += [(one.time, one.arm.name, one.base.name) for one in found]
    undecided = {
        name for ratio, *pair in compared if ratio is not None and decide(ratio).word == "undecided" for name in pair
    }
    evidence = ClaimEvidence(run)
    for claim in run.experiment.claims:
        finding = evidence.finding(claim, confidence)
        if finding.verdict == "inconclusive" and finding.ratio is not None and not finding.negligible:
            undecided |= arms_of_claim(claim)
    return undecided
