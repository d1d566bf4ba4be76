"""A run as JUnit XML: arms, claims and thresholds are test cases.

GitLab, Jenkins and GitHub Actions read it. Elements and attributes follow Jenkins'
schema (jenkinsci/xunit-plugin, junit-10.xsd): testsuites > testsuite > testcase >
failure, error or skipped. The name of a case does not depend on its outcome, so that CI
recognises the test in the next build.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from clientlab.judging.comparison import Change, Comparison
from clientlab.judging.ranking import shortfall, unlike_arms
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.change_contents import change_cells, known_changes
from clientlab.reports.contents import claim_doubts, reason_of
from clientlab.reports.headline import threshold_sentence
from clientlab.results.document import Run, failed_for_good
from clientlab.results.figures import COMPARED

_OUTCOMES = {
    "supported": None,
    "contradicted": "failure",
    "inconclusive": "skipped",
    "held": None,
    "failed": "failure",
    "not sure": "skipped",
}
"""Verdicts of claims and outcomes of thresholds → elements of JUnit."""


class _Case(NamedTuple):
    name: str
    outcome: str | None = None
    text: str = ""
    seconds: float = 0.0


def render(run: Run, judged: Sequence[ThresholdResult]) -> str:
    """Return suites of arms, claims (a failure if contradicted) and thresholds.

    An arm is an error if a trial failed for good, and skipped if it was not available
    or is not ranked.
    """
    name = run.experiment.name
    return _document(
        [
            _suite(f"{name}.arms", _arms(run), run),
            _suite(f"{name}.claims", _claims(run), run),
            _suite(f"{name}.thresholds", _thresholds(judged), run),
        ]
    )


def render_comparison(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Return suites of changes and of thresholds for each run but the baseline.

    Undecided changes are skipped. The names of suites have the experiment and the run's
    position, because a run has another id in each build.
    """
    suites = []
    for position, compared in enumerate(comparison.others, 1):
        run = compared.run
        name = run.experiment.name
        if position > 1:
            name += f"-{position}"
        known = known_changes(comparison, compared)
        cases = [_change(arm, change) for arm, change in known]
        thresholds = _thresholds(result for result in judged if result.run == run.run)
        suites += [
            _suite(f"{name}.changes", cases, run),
            _suite(f"{name}.thresholds", thresholds, run),
        ]
    return _document(suites)


def _change(arm: str, change: Change) -> _Case:
    before = change.figure.text(change.before)
    after, _, estimate = change_cells(change)
    return _Case(
        f"{arm}: {change.figure.key}",
        "skipped" if change.verdict == "undecided" else None,
        f"{before} -> {after}: {change.word} {estimate}",
    )


def _arms(run: Run) -> Iterator[_Case]:
    unlike = unlike_arms(run)
    for arm in run.experiment.arms:
        trials = run.trials_of(arm.name)
        rounds = len({trial.planned.round for trial in trials})
        failed = failed_for_good(run, arm.name)
        why = shortfall(trials) or unlike.get(arm.name)
        outcome = None
        if failed:
            outcome = "error"
            text = (
                f"{len(failed)} of {rounds} trials failed; the first:"
                f" {reason_of(failed[0])}"
            )
        elif rounds < run.rounds:
            outcome = "error"
            text = f"{run.rounds - rounds} of {run.rounds} trials are missing"
        elif why:
            outcome = "skipped"
            text = f"not ranked: {why}"
        else:
            text = ", ".join(
                f"{figure.key} {figure.text(figure.over_rounds(trials))}"
                for figure in COMPARED
                if figure.values(trials)
            )
        seconds = sum(trial.wall_seconds for trial in trials)
        yield _Case(arm.name, outcome, text, seconds)
    for name, reason in run.experiment.unavailable_arms.items():
        yield _Case(name, "skipped", reason)


def _claims(run: Run) -> Iterator[_Case]:
    for claim in run.claims:
        outcome = _OUTCOMES[claim.verdict]
        text = claim.measured + claim_doubts(claim)
        if outcome == "skipped":
            text += f"; {claim.settles or 'inconclusive'}"
        yield _Case(f"{claim.name}: {claim.text}", outcome, text)


def _thresholds(judged: Iterable[ThresholdResult]) -> Iterator[_Case]:
    for result in judged:
        name = f"{result.threshold.text} ({result.arm})"
        yield _Case(name, _OUTCOMES[result.outcome], threshold_sentence(result))


def _suite(name: str, found: Iterable[_Case], run: Run) -> ET.Element:
    cases = list(found)
    suite = ET.Element(
        "testsuite",
        name=name,
        timestamp=run.created,
        hostname=run.surroundings.host,
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        test = ET.SubElement(
            suite,
            "testcase",
            name=case.name,
            classname=f"clientlab.{name}",
            time=f"{case.seconds:.3f}",
        )
        if case.outcome is not None:
            ET.SubElement(test, case.outcome, message=case.text).text = case.text
        elif case.text:
            ET.SubElement(test, "system-out").text = case.text
    return suite


def _document(suites: Iterable[ET.Element]) -> str:
    """Return the document of the suites that have cases, with their sums."""
    root = ET.Element("testsuites", name="clientlab")
    root.extend(suite for suite in suites if len(suite))
    counted = {
        "tests": "testcase",
        "failures": "failure",
        "errors": "error",
        "skipped": "skipped",
    }
    for element in (root, *root):
        for count, tag in counted.items():
            element.set(count, str(len(list(element.iter(tag)))))
    ET.indent(root)
    declaration = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{declaration}\n{ET.tostring(root, encoding='unicode')}\n"
