"""A run as it happens."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from clientlab.reports.progress import ProgressLines
from clients.documents import a_failed_trial, a_run, a_trial

TRIALS = (
    (
        a_trial("urllib3", order=0),
        "[1/3] round 1 aiohttp direct urllib3: 1.00 s, 1,000 requests/s",
    ),
    (
        a_trial("pycurl", 2, errors={"reset": 3, "connect": 1}, order=1),
        "[2/3] round 2 aiohttp direct pycurl: 1.00 s, 1,000 requests/s, 4 errors",
    ),
    (
        a_failed_trial("[b]x", "it [/b] broke", order=2),
        "[3/3] round 1 aiohttp direct [b]x: FAILED, it [/b] broke",
    ),
)
BEGINNING = ["Is [x] fast? -> results/a run", "Each trial: GET /, 1,000 requests."]


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def tell(observer) -> None:
    observer.run_started(a_run(question="Is [x] fast?"), Path("results/a run"))
    for trial, _ in TRIALS:
        observer.trials_started([trial.planned], 3)
        observer.progressed(None)
        observer.progressed(1234)
        observer.trial_ended(trial)


def printed(tell, clock=lambda: 0.0, **options) -> str:
    """All that a terminal or a file got."""
    output = io.StringIO()
    console = Console(file=output, color_system=None, **options)
    with ProgressLines(console, clock=clock) as progress:
        tell(progress)
    return output.getvalue()


def test_without_a_terminal_there_is_a_line_per_trial():
    lines = [line for _, line in TRIALS]
    assert printed(tell, width=20).splitlines() == BEGINNING + lines


def test_on_a_terminal_one_line_is_updated():
    text = printed(tell, force_terminal=True, width=120)
    assert "3/3" in text
    (_, first), (_, second), (_, failed) = TRIALS
    assert first not in text
    assert second not in text
    assert failed in text
    for line in BEGINNING:
        assert line in text


def two_rounds(begun: int = 4, *, terminal: bool = False, **changes) -> str:
    """What two rounds of two arms print; each trial takes 20 s.

    The last one that began is 5 s old.
    """
    clock = Clock()
    trials = [
        a_trial("urllib3", 1, order=0),
        a_trial("pycurl", 1, order=1),
        a_trial("urllib3", 2, order=2),
        a_trial("pycurl", 2, order=3),
    ]
    run = a_run(*trials, **changes).updated(trials=[])

    def measure(observer) -> None:
        observer.run_started(run, Path("results/a run"))
        for trial in trials[:begun]:
            observer.trials_started([trial.planned], 4)
            clock.now += 5
            observer.progressed(7)
            if trial.planned.order < begun - 1:
                clock.now += 15
                observer.trial_ended(trial)

    return printed(measure, clock, force_terminal=terminal, width=120)


def test_after_the_first_round_the_time_left_is_shown():
    """At its own pace, whatever was estimated before: once in plain lines, and always
    on a terminal.
    """
    lines = two_rounds().splitlines()
    (left,) = [line for line in lines if "left" in line]
    assert left == "after 2 of 4 trials: about 40 s left"
    for begun, left in ((2, []), (3, ["about 35 s left"]), (4, ["about 15 s left"])):
        shown = two_rounds(begun, terminal=True)
        assert re.findall(r"\w+ \d+ s left", shown) == left


def test_a_run_with_a_budget_shows_how_long_it_takes_at_most():
    shown = two_rounds(2, terminal=True, budget=90.0)
    assert "takes at most 92 s" in shown
    assert "at most 65 s left" in shown
