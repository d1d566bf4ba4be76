"""A run as it happens."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from clientlab.reports.progress import LiveBar, PlainLines
from clients.documents import a_failed_trial, a_run, a_trial

TRIALS = (
    (a_trial("urllib3", order=0), "[1/3] round 1 aiohttp direct urllib3: 1.00 s, 1,000 requests/s"),
    (a_trial("pycurl", 2, errors={"reset": 3, "connect": 1}, order=1),
     "[2/3] round 2 aiohttp direct pycurl: 1.00 s, 1,000 requests/s, 4 errors"),
    (a_failed_trial("[b]x", "it [/b] broke", order=2), "[3/3] round 1 aiohttp direct [b]x: FAILED, it [/b] broke"),
)  # fmt: skip


def tell(observer) -> None:
    """Three trials, from their start to their end."""
    observer.run_started(a_run(question="Is [x] fast?"), Path("results/a run"))
    for trial, _ in TRIALS:
        observer.trials_started([trial], 3)
        observer.progressed(1234)
        observer.trial_ended(trial)


def test_without_a_terminal_there_is_a_line_a_trial():
    """Whole, however long, and nothing in between."""
    output = io.StringIO()
    tell(PlainLines(Console(file=output, width=20)))
    assert output.getvalue().splitlines() == ["Is [x] fast? -> results/a run", *(line for _, line in TRIALS)]


def test_on_a_terminal_the_lines_stay_and_the_bar_goes():
    """What ran is told, markup or not; and the bar shows how far it is."""
    output = io.StringIO()
    with LiveBar(Console(file=output, width=200, force_terminal=True, color_system=None)) as bar:
        tell(bar)
    text = output.getvalue()
    for _, line in TRIALS:
        assert line in text
    assert "Is [x] fast? -> results/a run" in text
    assert "3/3" in text
