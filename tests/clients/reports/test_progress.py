"""A run as it happens."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
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
BEGINNING = ["Is [x] fast? -> results/a run", "Each trial: GET /, 1,000 requests."]


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def tell(observer) -> None:
    observer.run_started(a_run(question="Is [x] fast?"), Path("results/a run"))
    for trial, _ in TRIALS:
        observer.trials_started([trial], 3)
        observer.progressed(None)
        observer.progressed(1234)
        observer.trial_ended(trial)


def plain(tell: Callable[[PlainLines], None], clock: Callable[[], float] = lambda: 0.0, width: int = 200) -> list[str]:
    output = io.StringIO()
    tell(PlainLines(Console(file=output, width=width), clock))
    return output.getvalue().splitlines()


def on_a_terminal(tell: Callable[[LiveBar], None], clock: Callable[[], float] = lambda: 0.0) -> str:
    """All that a terminal of 120 columns got."""
    output = io.StringIO()
    with LiveBar(Console(file=output, width=120, force_terminal=True, color_system=None), clock) as bar:
        tell(bar)
    return output.getvalue()


def test_without_a_terminal_there_is_a_line_a_trial():
    assert plain(tell, width=20) == [*BEGINNING, *(line for _, line in TRIALS)]


def test_on_a_terminal_one_line_is_updated():
    """Only the beginning, and trials that failed, leave lines of their own, markup or not."""
    text = on_a_terminal(tell)
    assert "3/3" in text
    assert [line in text for _, line in TRIALS] == [False, False, True]
    assert all(line in text for line in BEGINNING)


def measure_two_rounds(observer, clock: Clock, begun: int = 4, **changes) -> None:
    """Two rounds of two arms, whose trials take 20 s each. The last that has begun is 5 s old."""
    pairs = [(name, number) for number in (1, 2) for name in ("urllib3", "pycurl")]
    trials = [a_trial(*pair, order=order) for order, pair in enumerate(pairs)]
    observer.run_started(a_run(*trials, **changes).model_copy(update={"trials": []}), Path("results/a run"))
    for trial in trials[:begun]:
        observer.trials_started([trial], 4)
        clock.now += 5
        observer.progressed(7)
        if trial.order < begun - 1:
            clock.now += 15
            observer.trial_ended(trial)


def test_the_first_round_tells_how_long_the_rest_takes():
    """At its own pace, whatever was estimated before: once in plain lines, and always on a terminal."""
    clock = Clock()
    lines = plain(lambda observer: measure_two_rounds(observer, clock), clock)
    assert [line for line in lines if "left" in line] == ["after 2 of 4 trials: about 40 s left"]
    for begun, left in ((2, []), (3, ["about 35 s left"]), (4, ["about 15 s left"])):
        shown = on_a_terminal(lambda bar, begun=begun: measure_two_rounds(bar, clock, begun), clock)
        assert re.findall(r"\w+ \d+ s left", shown) == left


def test_a_run_with_a_budget_tells_how_long_it_takes_at_most():
    clock = Clock()
    shown = on_a_terminal(lambda bar: measure_two_rounds(bar, clock, 2, budget=90.0), clock)
    assert "takes at most 92 s" in shown
    assert "at most 65 s left" in shown
