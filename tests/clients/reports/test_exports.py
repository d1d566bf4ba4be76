"""A run as CSV, Markdown, JUnit XML and a picture: whole, escaped, and readable by what
they are for.
"""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree as ET

import pytest

from clientlab.errors import LabError
from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_run, parse_threshold
from clientlab.reports import as_csv, as_html, as_junit, as_markdown, drawing
from clientlab.reports.sections import colours_of
from clientlab.results.document import ClaimResult
from clientlab.results.figures import FIGURES
from clientlab.results.server_counters import ServerCounters, ServerUse
from clients.documents import (
    a_failed_trial,
    a_run,
    a_trial,
    an_arm,
    quantiles,
    rounds,
)


def a_claim(name: str, verdict: str, **changes) -> ClaimResult:
    whole = {
        "text": f"{name} is so",
        "source": None,
        "kind": "less",
        "figure": "wall_seconds",
        "control": False,
        "published": None,
        "rounds": 3,
        "measured": "it took 2.00 times as long",
        "ratio": 2.0,
        "interval": (1.5, 2.6),
    }
    return ClaimResult(name=name, verdict=verdict, **whole | changes)


def test_csv_has_a_row_a_trial_with_every_figure_under_its_full_name():
    trial = a_trial(
        "urllib3",
        2,
        0.1 + 0.2,
        errors={"reset": 3, "tls": 1},
        busy={"client": 0.5},
        overhead_seconds=quantiles(0.25),
        servers=ServerCounters(upstream=ServerUse(cpu_seconds=0.7, requests=1000)),
    )
    failed = a_failed_trial("pycurl", 'it "broke", badly')
    first, second = csv.DictReader(io.StringIO(as_csv.render(a_run(trial, failed))))
    for row, row_trial in ((first, trial), (second, failed)):
        for figure in FIGURES:
            value = figure.of(row_trial)
            expected = "" if value is None else str(value)
            assert row[figure.name] == expected, figure.key
    assert first["arm"] == "urllib3"
    assert first["round"] == "2"
    assert first["errors"] == "4"
    assert json.loads(first["errors_by_kind"]) == {"reset": 3, "tls": 1}
    assert first["upstream_cpu_seconds"] == "0.7"
    assert first["proxy_cpu_seconds"] == ""
    assert first["client_busy_share"] == "0.5"
    assert second["status"] == "failed"
    assert second["reason"] == 'it "broke", badly'
    assert second["wall_seconds"] == ""


def junit(run, *limits: str) -> ET.Element:
    results = judge_run(run, [parse_threshold(text) for text in limits])
    return ET.fromstring(as_junit.render(run, results))  # noqa: S314 - written here


def cases(root: ET.Element) -> dict[str, str]:
    outcomes = {}
    for case in root.iter("testcase"):
        name = case.get("name")
        outcomes[name] = "passed"
        for part in case:
            if part.tag in {"failure", "error", "skipped"}:
                outcomes[name] = part.tag
    return outcomes


def test_junit_has_a_case_for_every_arm_claim_and_threshold():
    run = a_run(
        *rounds("urllib3"),
        *rounds("requests", 3.0, 3.0, 3.0),
        a_failed_trial("pycurl"),
    )
    claims = [
        a_claim("a", "supported"),
        a_claim("b", "contradicted"),
        a_claim("c", "inconclusive", settles="rounds"),
    ]
    root = junit(run.updated(claims=claims), "wall > 2s", "errors > 0")
    assert cases(root) == {
        "urllib3": "passed",
        "pycurl": "error",
        "requests": "passed",
        "a: a is so": "passed",
        "b: b is so": "failure",
        "c: c is so": "skipped",
        "wall > 2s (urllib3)": "passed",
        "wall > 2s (pycurl)": "failure",
        "wall > 2s (requests)": "failure",
        "errors > 0 (urllib3)": "passed",
        "errors > 0 (pycurl)": "failure",
        "errors > 0 (requests)": "passed",
    }
    assert root.get("tests") == "12"
    assert root.get("failures") == "4"
    assert root.get("errors") == "1"
    assert root.get("skipped") == "1"
    counts = {suite.get("name"): suite.get("tests") for suite in root}
    assert counts == {"run.arms": "3", "run.claims": "3", "run.thresholds": "6"}
    passed = {
        case.get("name"): case.findtext("system-out") for case in root.iter("testcase")
    }
    assert passed["urllib3"].startswith("wall 1.00 s, throughput 1,000, ")
    assert passed["a: a is so"] == "it took 2.00 times as long"
    assert passed["wall > 2s (urllib3)"].endswith("wall time 1.00 s (1.00 s to 1.00 s)")
    failure = root.find(".//testcase[@name='wall > 2s (requests)']/failure")
    assert failure.get("message").endswith("wall time 3.00 s (3.00 s to 3.00 s)")
    assert failure.text == failure.get("message")


def test_an_arm_without_all_its_trials_is_an_error():
    root = junit(a_run(*rounds("urllib3"), *rounds("pycurl", 1.0, 1.0)))
    assert cases(root) == {"urllib3": "passed", "pycurl": "error"}


def test_rounds_that_a_budget_leaves_out_are_not_missing():
    run = a_run(a_trial("urllib3"), rounds=3, budget=1.0)
    for ended, errors in (("budget", "0"), (None, "1")):
        suite = as_junit.render(run.updated(rounds_ended=ended), [])
        assert ET.fromstring(suite).get("errors") == errors  # noqa: S314 - written here


def test_junit_of_a_comparison_names_the_same_tests_for_each_build():
    def tests_of(*names: str) -> list[tuple[str | None, str | None]]:
        base, *others = [a_run(*rounds(), name=name) for name in names]
        cases = compared(base, *others).iter("testcase")
        return [(case.get("classname"), case.get("name")) for case in cases]

    found = tests_of("a", "b", "c")
    assert found == tests_of("a", "d", "e")
    assert len(set(found)) == len(found) > 0


def compared(*runs) -> ET.Element:
    base, *others = runs
    text = as_junit.render_comparison(compare(base, others), [])
    return ET.fromstring(text)  # noqa: S314 - written here


def test_junit_of_a_comparison_says_what_changed():
    slower = rounds("urllib3", 2.0, 2.0, 2.0)
    root = compared(a_run(*rounds()), a_run(*slower))
    said = root.find(".//testcase[@name='urllib3: wall']/system-out").text
    assert said.startswith("1.00 s -> 2.00 s: slower x 2.00")


@pytest.mark.parametrize(
    "render", [as_csv.render, as_html.render, as_markdown.render, junit]
)
def test_every_format_can_show_a_run_that_measured_nothing(render):
    assert len(render(a_run(a_failed_trial("urllib3", "interrupted")))) > 0


DRAWN = a_run(
    *rounds("urllib3", 1.0, 1.1, 0.9),
    *rounds("pycurl", 3.0, 3.3, 2.7, errors={"reset": 2}),
    *rounds("urllib3", 2.0, 2.0, 2.0, route="proxy", arm="urllib3 by proxy"),
)


def test_an_svg_holds_the_texts_and_is_the_same_each_time(tmp_path):
    for name in ("x.svg", "y.svg"):
        drawing.write(DRAWN, tmp_path / name)
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    ET.fromstring(text)  # noqa: S314 - written here
    for part in (
        "urllib3",
        "pycurl",
        "Which is fastest?",
        "1.00 s",
        "time for 1,000 requests",
    ):
        assert part in text
    assert (tmp_path / "y.svg").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "question", ["$x_1$ & <b>?", "50% \\frac{1}{2} of $10\ntwo lines, どちら 🚀?"]
)
def test_a_question_with_markup_is_drawn_as_valid_xml(question, tmp_path):
    path = tmp_path / "x.svg"
    drawing.write(a_run(a_trial(), question=question), path)
    ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - written here


def test_a_chart_of_nothing_is_refused(tmp_path):
    with pytest.raises(LabError, match=r"run .* has no finished trial to draw"):
        drawing.write(a_run(a_failed_trial("pycurl")), tmp_path / "x.png")


def test_environments_have_colours_of_their_own_and_settings_do_not():
    arms = [
        an_arm("urllib3", environment="old"),
        an_arm("urllib3", environment="new"),
        an_arm("urllib3?pool=8", environment="old"),
        an_arm("pycurl", environment="old"),
    ]
    old, new, small, other = colours_of(a_run(arms=arms)).values()
    assert old == small
    assert len({old, new, other}) == 3
