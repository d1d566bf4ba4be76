"""A run as JUnit XML, for GitLab, Jenkins and GitHub Actions: arms, claims and
thresholds are test cases.

Elements and attributes follow Jenkins' schema (jenkinsci/xunit-plugin, junit-10.xsd):
testsuites > testsuite > testcase > failure, error or skipped. The name of a case does
not depend on its outcome, so that CI recognises the test in the next build.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from clientlab.judging.comparison import Comparison
from clientlab.judging.ranking import shortfall, unlike_arms
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.comparison import change_cells, is_known
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
    suites = {
        "arms": _arms(run),
        "claims": _claims(run),
        "thresholds": _thresholds(judged),
    }
    return _document(
        [
            _suite(f"{run.experiment.name}.{name}", cases, run)
            for name, cases in suites.items()
        ]
    )


def render_comparison(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Return two suites for each run beside the baseline: its changes, skipped if
    undecided, and its thresholds.

    Their names have the experiment and the run's position, because a run has another id
    in each build.
    """
    suites = []
    for position, one in enumerate(comparison.others, 1):
        name = one.run.experiment.name + (f"-{position}" if position > 1 else "")
        changes = []
        for arm in filter(one.changes.__contains__, comparison.compared_arms()):
            for key, change in one.changes[arm].items():
                outcome = "skipped" if change.verdict == "undecided" else None
                after, _, estimate = change_cells(change)
                text = (
                    f"{change.figure.text(change.before)} -> {after}: {change.word}"
                    f" {estimate}"
                )
                changes += (
                    [_Case(f"{arm}: {key}", outcome, text)] if is_known(change) else []
                )
        thresholds = _thresholds(each for each in judged if each.run == one.run.run)
        suites += [
            _suite(f"{name}.changes", changes, one.run),
            _suite(f"{name}.thresholds", thresholds, one.run),
        ]
    return _document(suites)


def _arms(run: Run) -> Iterator[_Case]:
    unlike = unlike_arms(run)
    for arm in run.experiment.arms:
        trials, planned = run.trials_of(arm.name), run.rounds
        rounds = len({trial.planned.round for trial in trials})
        known = [figure for figure in COMPARED if figure.values(trials)]
        outcome, text = (
            None,
            ", ".join(
                f"{figure.key} {figure.text(figure.over_rounds(trials))}"
                for figure in known
            ),
        )
        if failed := failed_for_good(run, arm.name):
            outcome, text = (
                "error",
                (
                    f"{len(failed)} of {rounds} trials failed; the first:"
                    f" {reason_of(failed[0])}"
                ),
            )
        elif rounds < planned:
            outcome, text = (
                "error",
                f"{planned - rounds} of {planned} trials are missing",
            )
        elif why := shortfall(trials) or unlike.get(arm.name):
            outcome, text = "skipped", f"not ranked: {why}"
        yield _Case(
            arm.name,
            outcome,
            text,
            sum(trial.figures.wall_seconds or 0.0 for trial in trials),
        )
    for name, reason in run.experiment.unavailable_arms.items():
        yield _Case(name, "skipped", reason)


def _claims(run: Run) -> Iterator[_Case]:
    for claim in run.claims:
        outcome = _OUTCOMES[claim.verdict]
        settles = f"; {claim.settles or 'inconclusive'}" if outcome == "skipped" else ""
        yield _Case(
            f"{claim.name}: {claim.text}",
            outcome,
            f"{claim.measured}{claim_doubts(claim)}{settles}",
        )


def _thresholds(judged: Iterable[ThresholdResult]) -> Iterator[_Case]:
    for one in judged:
        outcome = _OUTCOMES[one.outcome]
        yield _Case(
            f"{one.threshold.text} ({one.arm})", outcome, threshold_sentence(one)
        )


def _suite(name: str, found: Iterable[_Case], run: Run) -> ET.Element:
    cases = list(found)
    whole = f"{sum(case.seconds for case in cases):.3f}"
    suite = ET.Element(
        "testsuite",
        name=name,
        timestamp=run.created,
        hostname=run.surroundings.host,
        time=whole,
    )
    for case in cases:
        seconds = f"{case.seconds:.3f}"
        test = ET.SubElement(
            suite,
            "testcase",
            name=case.name,
            classname=f"clientlab.{name}",
            time=seconds,
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
    for element in (root, *root):
        for count, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            element.set(count, str(len(list(element.iter(tag)))))
    ET.indent(root)
    return (
        '<?xml version="1.0"'
        f' encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'
    )
