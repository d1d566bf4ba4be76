"""A scenario: one trial of a strategy, and the checks of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from clientlab.measuring.trial_handle import TrialFailed
from clientlab.strategies import Strategy, client_spec

E = TypeVar("E")

Check = Callable[[E], str]
"""What is broken, in one sentence; empty if nothing is."""


ITS_KIND = "its kind is "
"""The beginning of the message of a check that found an error of another kind."""

TRIAL_FAILED = "the trial failed: "
"""The beginning of the message of a check whose trial failed."""


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    `broken`: what the strategy breaks, in one sentence; empty where it keeps to it. `kind`: of a check
    that provokes a fault, the kind of error that the strategy makes of it. `unchecked`: why it cannot be
    checked on this machine, or of this client.
    """

    strategy: str
    check: str
    broken: str = ""
    kind: str | None = None
    unchecked: str = ""

    @property
    def passed(self) -> bool:
        return not self.broken

    @property
    def another_kind(self) -> bool:
        """Whether only the kind of the error is wrong. A fault that is recorded as a success is worse than that."""
        return self.broken.startswith(ITS_KIND) and self.kind != "none"


def _all_strategies(_strategy: Strategy) -> bool:
    return True


def _no_kind(_found: object, _check: str) -> str | None:
    return None


_LIMITED = frozenset({"time limit kept", "no answer", "silence in the headers", "silence in the body"})
"""Checks whose outcome follows from the lab's time limit."""

_COUNTS = frozenset({"connections counted", "connections over TLS counted", "refused connection not opened"})
"""Checks of the lab's count of connections."""


def _unchecked(strategy: Strategy, check: str) -> str:
    """Why a check says nothing about a strategy; empty if it does."""
    if check in _LIMITED and client_spec(strategy.client).url_only:
        return "the time limits of a function are its own"
    hidden = check in _COUNTS and client_spec(strategy.client).quirks.uncounted
    return "its library hides its connections, so the lab counts none" if hidden else ""


class CannotProvoke(Exception):
    """This machine cannot provoke what a scenario needs. The message gives the reason in one sentence."""


@dataclass(frozen=True)
class Scenario(Generic[E]):
    """One trial and its checks by name: a trial's process costs more than all its checks.

    `fits`: whether a strategy can do the scenario. `kind`: of a check that provokes a fault, the kind found.
    """

    name: str
    do: Callable[[Strategy], E]
    checks: Mapping[str, Check[E]]
    fits: Callable[[Strategy], bool] = _all_strategies
    kind: Callable[[E, str], str | None] = _no_kind

    def judge(self, strategy: Strategy) -> list[CheckResult]:
        """A result for each check. A trial that fails breaks all checks; one that cannot be provoked checks none."""
        try:
            found = self.do(strategy)
        except CannotProvoke as reason:
            return [CheckResult(strategy.name, name, unchecked=str(reason)) for name in self.checks]
        except TrialFailed as failure:
            return [CheckResult(strategy.name, name, f"{TRIAL_FAILED}{failure}") for name in self.checks]
        return [
            CheckResult(strategy.name, name, unchecked=why)
            if (why := _unchecked(strategy, name))
            else CheckResult(strategy.name, name, check(found), self.kind(found, name))
            for name, check in self.checks.items()
        ]
