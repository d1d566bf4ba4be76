"""The plan of the incidents, by a seed: the process, the signal, and the event of the run after which it is sent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from signal import SIGKILL, SIGSTOP, Signals
from typing import Literal

ROUNDS = 3
"""Trials of each incident's run: one arm."""


@dataclass(frozen=True)
class Strike:
    """A process and a signal. `reason`: pattern of what the trial that it ends is said to have failed or been lost by.

    Without a reason, no trial may fail or be lost. `certain`: the trial in which it comes has to end by it. `within`:
    seconds in which the lab has to notice. `continued`: SIGCONT follows. `errors`: requests may fail, with the trial
    done.
    """

    victim: str
    number: Signals
    reason: str = ""
    certain: bool = True
    within: float = 4.0
    continued: bool = False
    errors: bool = False
    in_lab: bool = False

    @property
    def pooled(self) -> bool:
        """Whether the strategy has a pool of processes."""
        return self.victim in {"pool child", "trial with a pool"}


_FROZEN = r"(stopped|frozen)"


def _of_server(victim: str, number: Signals, reason: str) -> Strike:
    """Where no trial goes on, its server is started again before the next one, and none is lost."""
    return Strike(victim, number, reason, certain=False, within=8.0)


STRIKES = (
    Strike("main", SIGKILL),
    Strike("main", SIGSTOP, continued=True),
    Strike("trial", SIGKILL, r"its process .*SIGKILL"),
    Strike("trial", SIGSTOP, rf"its process .*{_FROZEN}", within=8.0),
    Strike("trial with a pool", SIGKILL, r"its process .*SIGKILL"),
    Strike("trial with a pool", SIGSTOP, rf"its process .*{_FROZEN}", within=8.0),
    Strike("pool child", SIGKILL, r"process .*(SIGKILL|terminated abruptly)"),
    Strike("pool child", SIGSTOP, rf"process .*{_FROZEN}", within=12.0),
    _of_server("upstream master", SIGKILL, r"(aiohttp|flask) was ended by SIGKILL"),
    _of_server("upstream master", SIGSTOP, r"(aiohttp|flask) is frozen"),
    Strike("upstream worker", SIGKILL, errors=True),
    _of_server("upstream worker", SIGSTOP, r"(aiohttp|flask) is frozen"),
    _of_server("proxy", SIGKILL, r"proxy was ended by SIGKILL"),
    _of_server("proxy", SIGSTOP, r"proxy is frozen"),
    Strike("worker", SIGKILL, r"was not heard of for", certain=False, within=20.0, in_lab=True),
    Strike("worker", SIGSTOP, r"was not heard of for", certain=False, within=20.0, in_lab=True),
    Strike("job", SIGKILL, r"the process of its job was ended by SIGKILL", within=20.0, in_lab=True),
    Strike("job", SIGSTOP, r"the process of its job was stopped|was not heard of for", within=20.0, in_lab=True),
    Strike("lab", SIGKILL, in_lab=True),
    Strike("lab", SIGSTOP, continued=True, in_lab=True),
)


@dataclass(frozen=True)
class Moment:
    """`later` seconds after an event of the run.

    folder: the run has a folder, and no file yet. begun: the process of the trial is starting. share: that share of
    the trial's requests has finished. saved: the trial is in the journal. `trial` counts from 0.
    """

    event: Literal["folder", "begun", "share", "saved"]
    trial: int
    share: float
    later: float

    def __str__(self) -> str:
        after = f"{1e3 * self.later:.0f} ms after "
        if self.event == "folder":
            return f"{after}the run's folder was made"
        if self.event == "begun":
            return f"{after}the process of trial {self.trial + 1} was started"
        if self.event == "saved":
            return f"{after}trial {self.trial + 1} was saved"
        return f"at {self.share:.0%} of trial {self.trial + 1}"


@dataclass(frozen=True)
class Incident:
    """One strike in one run. `pick` chooses among equal processes. `pause`: seconds until SIGCONT."""

    number: int
    strike: Strike
    moment: Moment
    upstream: str
    route: str
    pick: int
    pause: float

    def __str__(self) -> str:
        strike = self.strike
        return f"{self.number} {strike.victim}, {strike.number.name}, {self.moment}, {self.upstream} {self.route}"


def incidents(seed: int, count: int) -> list[Incident]:
    """So many incidents, drawn by the seed: all strikes once in a shuffled order, then again in another one."""
    draw = random.Random(seed)  # noqa: S311 - a plan, not a secret
    return list(islice(_drawn(draw), count))


def _drawn(draw: random.Random) -> Iterator[Incident]:
    number = 0
    while True:
        for strike in draw.sample(STRIKES, len(STRIKES)):
            number += 1
            yield _incident(number, strike, draw)


def _incident(number: int, strike: Strike, draw: random.Random) -> Incident:
    """Everything is drawn, needed or not, so that a new strike changes no other incident's draws."""
    proxied = draw.choice(("proxy", "proxy-tls"))
    route = proxied if strike.victim == "proxy" or draw.random() < 0.3 else "direct"
    return Incident(
        number,
        strike,
        _moment(strike, draw),
        draw.choice(("aiohttp", "flask")),
        "direct" if strike.in_lab else route,
        draw.randrange(100),
        draw.uniform(1.0, 5.0),
    )


def _moment(strike: Strike, draw: random.Random) -> Moment:
    """In a trial; of processes that outlive a trial, also around one."""
    trial, share, later, kind = draw.randrange(ROUNDS), draw.uniform(0.05, 0.7), draw.random(), draw.random()
    if strike.victim in {"pool child", "job"} or kind < 0.5:
        return Moment("share", trial, share, 0.0)
    if strike.victim.startswith("trial"):
        return Moment("begun", trial, 0.0, 0.3 * later) if kind < 0.8 else Moment("share", trial, share, 0.0)
    if strike.victim == "main" and kind < 0.7:
        return Moment("folder", 0, 0.0, 0.6 * later)
    if kind < 0.8 and (trial < ROUNDS - 1 or strike.victim == "main"):  # after the last one, the run ends
        return Moment("saved", trial, 1.0, 0.1 * later)
    return Moment("begun", trial, 0.0, 0.3 * later)
