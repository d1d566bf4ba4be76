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


def printed(
    tell, clock=lambda: 0.0, *, terminal: bool = False, width: int = 120
) -> str:
    """All that a terminal or a file got."""
    output = io.StringIO()
    console = Console(
        file=output, width=width, force_terminal=terminal, color_system=None
    )
    with ProgressLines(console, clock=clock) as progress:
        tell(progress)
    return output.getvalue()


def test_without_a_terminal_there_is_a_line_per_trial():
    assert printed(tell, width=20).splitlines() == [
        *BEGINNING,
        *(line for _, line in TRIALS),
    ]


def test_on_a_terminal_one_line_is_updated():
    text = printed(tell, terminal=True)
    assert "3/3" in text
    assert [line in text for _, line in TRIALS] == [False, False, True]
    for line in BEGINNING:
        assert line in text


def measure_two_rounds(observer, clock: Clock, begun: int = 4, **changes) -> None:
    """Two rounds of two arms; each trial takes 20 s.

    The last one that began is 5 s old.
    """
    pairs = [(name, number) for number in (1, 2) for name in ("urllib3", "pycurl")]
    trials = [a_trial(*pair, order=order) for order, pair in enumerate(pairs)]
    observer.run_started(
        a_run(*trials, **changes).updated(trials=[]),
        Path("results/a run"),
    )
    for trial in trials[:begun]:
        observer.trials_started([trial.planned], 4)
        clock.now += 5
        observer.progressed(7)
        if trial.planned.order < begun - 1:
            clock.now += 15
            observer.trial_ended(trial)


def test_after_the_first_round_the_time_left_is_shown():
    """At its own pace, whatever was estimated before: once in plain lines, and always
    on a terminal.
    """
    clock = Clock()
    lines = printed(
        lambda observer: measure_two_rounds(observer, clock), clock
    ).splitlines()
    assert [line for line in lines if "left" in line] == [
        "after 2 of 4 trials: about 40 s left"
    ]
    for begun, left in ((2, []), (3, ["about 35 s left"]), (4, ["about 15 s left"])):
        shown = printed(
            lambda bar, begun=begun: measure_two_rounds(bar, clock, begun),
            clock,
            terminal=True,
        )
        assert re.findall(r"\w+ \d+ s left", shown) == left


def test_a_run_with_a_budget_shows_how_long_it_takes_at_most():
    clock = Clock()
    shown = printed(
        lambda bar: measure_two_rounds(bar, clock, 2, budget=90.0), clock, terminal=True
    )
    assert "takes at most 92 s" in shown
    assert "at most 65 s left" in shown
