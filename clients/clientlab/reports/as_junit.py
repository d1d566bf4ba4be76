"""A run as JUnit XML, for GitLab, Jenkins and GitHub Actions: arms, claims and thresholds are test cases.

Elements and attributes follow Jenkins' schema (jenkinsci/xunit-plugin, junit-10.xsd): testsuites > testsuite >
testcase > failure, error or skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

from clientlab.judging.comparison import Compared, Comparison
from clientlab.judging.ranking import shortfall
from clientlab.judging.thresholds import ThresholdOutcome, ThresholdResult
from clientlab.reports.claims_section import doubts
from clientlab.reports.comparison import cells
from clientlab.reports.failures import reason_of
from clientlab.reports.headline import sentence
from clientlab.results.document import Run, failed_for_good

# Not allowed in XML, not even as a reference (XML 1.0, section 2.2, Char).
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_Outcome = Literal["failure", "error", "skipped"]
_OF_THRESHOLD: dict[ThresholdOutcome, _Outcome | None] = {"held": None, "failed": "failure", "not sure": "skipped"}


@dataclass(frozen=True)
class _Case:
    """A test case. Its name says what was looked at and not what was found, so that CI knows it from run to run.

    `text`: of the outcome; without one, it is the output of a test that passed.
    """

    name: str
    outcome: _Outcome | None = None
    text: str = ""
    seconds: float = 0.0


def render(run: Run, judged: Sequence[ThresholdResult]) -> str:
    """Three suites: arms, claims (a failure if contradicted) and thresholds.

    An arm is an error if a trial failed for good, and skipped if the machine could not run it.
    """
    root = ET.Element("testsuites", name="clientlab")
    suites = {"arms": _arms(run), "claims": _claims(run), "thresholds": _thresholds(judged)}
    for name, cases in suites.items():
        _suite(root, _legal(f"{run.experiment.name}.{name}"), list(cases), run)
    return _document(root)


def render_comparison(comparison: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """Two suites for each run beside the baseline: its changes, skipped if undecided, and its thresholds.

    Their names hold the experiment and the run's position instead of its id: CI then recognises a test in each build.
    """
    root = ET.Element("testsuites", name="clientlab")
    for position, one in enumerate(comparison.others, 1):
        compared = one.run.experiment.name if position == 1 else f"{one.run.experiment.name}-{position}"
        suites = {
            "changes": _changes(one, comparison.compared_arms()),
            "thresholds": _thresholds(each for each in judged if each.run == one.run.run),
        }
        for name, cases in suites.items():
            _suite(root, _legal(f"{compared}.{name}"), list(cases), one.run)
    return _document(root)


def _document(root: ET.Element) -> str:
    """The text of the document, with the sums of its suites."""
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _arms(run: Run) -> Iterator[_Case]:
    for arm in run.experiment.arms:
        trials = run.trials_of(arm.name)
        seconds = sum(trial.wall_seconds or 0.0 for trial in trials)
        failed = failed_for_good(run, arm.name)
        rounds = len({trial.round for trial in trials})
        missing = run.experiment.rounds - rounds
        if failed:
            text = f"{len(failed)} of {rounds} trials failed; the first: {reason_of(failed[0])}"
            yield _Case(arm.name, "error", text, seconds)
        elif missing > 0:
            yield _Case(arm.name, "error", f"{missing} of {run.experiment.rounds} trials are missing", seconds)
        elif why := shortfall(trials):
            yield _Case(arm.name, "skipped", f"not ranked: {why}", seconds)
        else:
            yield _Case(arm.name, seconds=seconds)
    for name, reason in run.experiment.unavailable_arms.items():
        yield _Case(name, "skipped", reason)


def _changes(one: Compared, arms: Sequence[str]) -> Iterator[_Case]:
    for arm in filter(one.changes.__contains__, arms):
        for key, change in one.changes[arm].items():
            found = f"{change.word} {cells(change)[2]}"
            yield _Case(f"{arm}: {key}", "skipped" if change.verdict == "undecided" else None, found)


def _claims(run: Run) -> Iterator[_Case]:
    for claim in run.claims:
        name = f"{claim.name}: {claim.text}"
        if claim.verdict == "contradicted":
            yield _Case(name, "failure", claim.measured + doubts(claim))
        elif claim.verdict == "inconclusive":
            yield _Case(name, "skipped", f"{claim.measured}{doubts(claim)}; {claim.settles or 'inconclusive'}")
        else:
            yield _Case(name)


def _thresholds(judged: Iterable[ThresholdResult]) -> Iterator[_Case]:
    for one in judged:
        outcome = _OF_THRESHOLD[one.outcome]
        yield _Case(f"{one.threshold.text} ({one.arm})", outcome, "" if outcome is None else sentence(one))


def _suite(root: ET.Element, name: str, cases: list[_Case], run: Run) -> None:
    if not cases:
        return
    suite = ET.SubElement(root, "testsuite", name=name, tests=str(len(cases)), timestamp=_legal(run.created))
    for count, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(case.outcome == outcome for case in cases)))
    suite.set("time", f"{sum(case.seconds for case in cases):.3f}")
    suite.set("hostname", _legal(run.surroundings.host))
    for case in cases:
        found = ET.SubElement(
            suite, "testcase", name=_legal(case.name), classname=f"clientlab.{name}", time=f"{case.seconds:.3f}"
        )
        if case.outcome is not None:
            ET.SubElement(found, case.outcome, message=_legal(case.text)).text = _legal(case.text)
        elif case.text:
            ET.SubElement(found, "system-out").text = _legal(case.text)


def _legal(text: str) -> str:
    return _NO_CHARACTER.sub("�", text)
