"""Trials that were ended early: their finished requests are in every report, marked, and in no figure."""

from __future__ import annotations

import csv
import io

from rich.console import Console

from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_run, parse_threshold
from clientlab.reports import as_csv, as_html, as_junit, as_markdown, as_terminal
from clientlab.reports.progress import PlainLines
from clientlab.reports.rows import groups_of
from clientlab.results.figures import FIGURES
from clients.documents import a_run, a_trial, quantiles
from clients.html_page import Page

REASON = "its process was ended by SIGKILL"
SOUND = tuple(a_trial("urllib3", number) for number in (1, 2, 3))
PARTIAL = a_trial(
    "urllib3", 4, 0.25, status="failed", reason=REASON, partial=True, requests=412, errors={"reset": 300},
    requests_per_second=448.0, latency_seconds=quantiles(at_least=["mean", "p95", "p99", "max"]), cpu_seconds=None,
    error_examples={"reset": "Connection reset by peer"}, verdict=None,
)  # fmt: skip
RUN = a_run(*SOUND, PARTIAL)
CELLS = ("412 of 1,000", "300 reset")


def test_a_partial_trial_stands_in_every_report_with_its_cause():
    console = Console(record=True, width=200, file=io.StringIO())
    console.print(as_terminal.render(RUN, whole=True), highlight=False)
    terminal, page = console.export_text(), Page(as_html.render(RUN))
    for text in (terminal, as_markdown.render(RUN), page.section("errors")):
        for cell in (*CELLS, REASON):
            assert cell in text
        assert "partial: 412 requests had finished" in text
    (line,) = (line for line in terminal.splitlines() if "412 of 1,000" in line)
    assert line.split()[:3] == ["urllib3", "(workload,", "aiohttp,"]
    row = list(csv.DictReader(io.StringIO(as_csv.render(RUN))))[-1]
    assert (row["status"], row["partial"], row["requests"]) == ("failed", "True", "412")
    output = io.StringIO()
    PlainLines(Console(file=output)).trial_ended(PARTIAL)
    assert output.getvalue().endswith(f"FAILED, {REASON}; partial: 412 requests had finished\n")


def test_a_partial_trial_counts_in_no_figure_and_no_judgement():
    """Not even in the share of errors, to which failed trials add otherwise; but its trial has failed."""
    for figure in FIGURES:
        assert figure.values(RUN.trials) == figure.values(SOUND)
    assert groups_of(RUN) == groups_of(a_run(*SOUND, rounds=4))
    changes = compare(a_run(*SOUND), [RUN]).others[0].changes["urllib3"]
    assert {change.word for change in changes.values()} <= {"equal", "undecided"}
    assert changes["errors"].after == 0
    judged = judge_run(RUN, [parse_threshold("errors > 0")], strict=False)
    assert [one.outcome for one in judged] == ["failed"]
    assert REASON in as_junit.render(RUN, [])
