"""The lines on ceilings: in the terminal, in Markdown and on the page."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from clientlab.judging.cautions import cautions_of
from clientlab.reports import as_html, as_markdown, as_terminal
from clientlab.reports.figure_tables import ceiling_lines
from clientlab.results.document import Ceiling
from clients.documents import a_run, a_trial

WRK = Ceiling(
    upstream="aiohttp", route="direct", arms=["urllib3", "pycurl"], http="1.1", generator="wrk", version="4.1.0",
    connections=32, without_delay=True, seconds=2.0, requests=20_000, requests_per_second=10_000.0,
    verdict="upstream-bound",
)  # fmt: skip


def a_run_with(*found):
    trials = [
        a_trial(name, number, busy={"client": 0.9, "ceiling": share}, verdict="upstream-bound")
        for name, shares in (("urllib3", (0.30, 0.38, 0.41)), ("pycurl", (0.90, 0.93, 0.95)))
        for number, share in enumerate(shares, 1)
    ]
    return a_run(*trials).model_copy(update={"ceilings": list(found)})


@pytest.mark.parametrize(
    ("changes", "rate", "how", "closest"),
    [
        ({}, "10,000", "without the delay, the upstream's CPU was full", "pycurl came closest, with 93 %"),
        (
            {"verdict": "client-bound", "without_delay": False, "failed": 3, "arms": ["urllib3"]},
            "≥ 10,000",
            "3 failed, the generator's CPU was full",
            "urllib3 came closest, with 38 %",
        ),
    ],
)
def test_a_line_states_the_rate_how_it_was_measured_and_who_came_closest(changes, rate, how, closest):
    """A generator that was full itself gives a lower bound."""
    run = a_run_with(WRK.model_copy(update=changes))
    assert ceiling_lines(run) == [
        f"Ceiling of aiohttp · direct: {rate} requests/s (wrk 4.1.0, c=32, 2.00 s, {how}). {closest}."
    ]


def test_a_ceiling_that_could_not_be_measured_has_its_reason():
    """It is unknown, and not 0."""
    run = a_run_with(WRK.model_copy(update={"requests_per_second": None, "reason": "wrk ended with code 1: refused"}))
    assert ceiling_lines(run) == [
        "Ceiling of aiohttp · direct: unknown, because it could not be measured: wrk ended with code 1: refused."
    ]


def test_every_report_has_the_line_and_the_caution_has_the_share():
    """And a run without ceilings has neither."""
    run = a_run_with(WRK)
    console = Console(file=io.StringIO(), width=400)
    console.print(as_terminal.render(run))
    for text in (console.file.getvalue(), as_markdown.render(run).replace("\\", ""), as_html.render(run)):
        assert "10,000 requests/s (wrk 4.1.0" in text
    (caution,) = [one for one in cautions_of(run) if one.kind == "upstream-bound"]
    assert caution.text == "the upstream was the bottleneck for pycurl, urllib3, at 30 % to 95 % of its ceiling"
    assert ceiling_lines(a_run_with()) == []
