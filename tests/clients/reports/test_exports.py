"""A run as CSV, Markdown and JUnit XML: whole, escaped, and readable by what they are for."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree as ET

import pytest

from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_run, parse_threshold
from clientlab.reports import as_csv, as_html, as_junit, as_markdown
from clientlab.results.document import ClaimResult
from clientlab.results.figures import FIGURES
from clientlab.results.server_counters import ServerUse
from clients.documents import a_failed_trial, a_run, a_trial, quantiles


def a_claim(name: str, verdict: str, **changes) -> ClaimResult:
    whole = {"text": f"{name} is so", "source": None, "kind": "less", "figure": "wall_seconds", "control": False,
             "published": None, "rounds": 3, "measured": "it took 2.00 times as long", "ratio": 2.0,
             "interval": (1.5, 2.6)}  # fmt: skip
    return ClaimResult(name=name, verdict=verdict, **(whole | changes))


def rows(run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv.render(run))))


def test_csv_has_a_row_a_trial_with_every_figure_under_its_full_name():
    """Seconds and bytes as the run document has them, to the last digit; an unknown figure is an empty cell."""
    trial = a_trial(
        "urllib3", 2, 0.1 + 0.2, errors={"reset": 3, "tls": 1}, busy={"client": 0.5}, overhead_seconds=quantiles(0.25),
        upstream_use=ServerUse(cpu_seconds=0.7, requests=1000),
    )  # fmt: skip
    failed = a_failed_trial("pycurl", 'it "broke", badly')
    first, second = rows(a_run(trial, failed))
    for row, of in ((first, trial), (second, failed)):
        for figure in FIGURES:
            assert row[figure.name] == ("" if (value := figure.of(of)) is None else str(value)), figure.key
    assert (first["arm"], first["round"]) == ("urllib3", "2")
    assert (first["errors"], json.loads(first["errors_by_kind"])) == ("4", {"reset": 3, "tls": 1})
    assert (first["upstream_cpu_seconds"], first["proxy_cpu_seconds"], first["client_busy_share"]) == ("0.7", "", "0.5")
    assert (second["status"], second["reason"], second["wall_seconds"]) == ("failed", 'it "broke", badly', "")


def junit(run, *limits: str) -> ET.Element:
    return ET.fromstring(as_junit.render(run, judge_run(run, [parse_threshold(text) for text in limits])))  # noqa: S314


def cases(root: ET.Element) -> dict[str, str]:
    return {case.get("name"): next((part.tag for part in case), "passed") for case in root.iter("testcase")}


def test_junit_has_a_case_for_every_arm_claim_and_threshold():
    """Contradicted claims and thresholds beyond fail, failed trials are errors, inconclusive claims are skipped."""
    walls = {"urllib3": 1.0, "requests": 3.0}
    rounds = [a_trial(name, number, wall) for name, wall in walls.items() for number in (1, 2, 3)]
    run = a_run(*rounds, a_failed_trial("pycurl"))
    claims = [a_claim("a", "supported"), a_claim("b", "contradicted"), a_claim("c", "inconclusive", settles="rounds")]
    root = junit(run.model_copy(update={"claims": claims}), "wall > 2s", "errors > 0")
    assert cases(root) == {
        "urllib3": "passed", "pycurl": "error", "requests": "passed",
        "a: a is so": "passed", "b: b is so": "failure", "c: c is so": "skipped",
        "wall > 2s (urllib3)": "passed", "wall > 2s (pycurl)": "failure", "wall > 2s (requests)": "failure",
        "errors > 0 (urllib3)": "passed", "errors > 0 (pycurl)": "failure", "errors > 0 (requests)": "passed",
    }  # fmt: skip
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "12", "failures": "4", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [(suite.get("name"), int(suite.get("tests"))) for suite in root] == [
        ("run.arms", 3), ("run.claims", 3), ("run.thresholds", 6),
    ]  # fmt: skip
    failure = root.find(".//testcase[@name='wall > 2s (requests)']/failure")
    assert failure.get("message").endswith("wall time 3.00 s (3.00 s to 3.00 s)")
    assert failure.text == failure.get("message")


def test_junit_of_a_comparison_names_the_same_tests_for_each_build():
    """Jenkins and GitLab know a test by its class and name, which must not hold the id of a run."""

    def tests_of(*names: str) -> list[tuple[str | None, str | None]]:
        base, *others = (a_run(a_trial(), a_trial(number=2), name=name) for name in names)
        root = ET.fromstring(as_junit.render_comparison(compare(base, others), []))  # noqa: S314
        return [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]

    found = tests_of("a", "b", "c")
    assert found == tests_of("a", "d", "e")
    assert len(set(found)) == len(found) > 0


def test_junit_tells_of_trials_that_are_missing():
    run = a_run(a_trial("urllib3"), a_trial("urllib3", 2), a_trial("pycurl"))
    assert cases(junit(run)) == {"urllib3": "passed", "pycurl": "error"}


@pytest.mark.parametrize("render", [as_csv.render, as_html.render, as_markdown.render, junit])
def test_every_format_can_tell_of_a_run_that_measured_nothing(render):
    assert len(render(a_run(a_failed_trial("urllib3", "interrupted")))) > 0
