"""A scenario: one trial of a strategy, and the checks of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from clientlab.measuring.trial_handle import TrialFailed
from clientlab.strategies import Strategy

E = TypeVar("E")

Check = Callable[[E], str]
"""What is broken, in one sentence; empty if nothing is."""


Part = Literal["strategy", "client", "executor"]
"""The parts of a strategy that a scenario's outcome can depend on."""


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    `broken`: what the strategy breaks, in one sentence; empty where it keeps to it. `kind`: of a check
    that provokes a fault, the kind of error that the strategy makes of it. `unchecked`: why this machine
    can't check it.
    """

    strategy: str
    check: str
    broken: str = ""
    kind: str | None = None
    unchecked: str = ""

    @property
    def passed(self) -> bool:
        return not self.broken


def _all_strategies(_strategy: Strategy) -> bool:
    return True


def _no_kind(_found: object, _check: str) -> str | None:
    return None


class CannotProvoke(Exception):
    """This machine cannot provoke what a scenario needs. The message gives the reason in one sentence."""


@dataclass(frozen=True)
class Scenario(Generic[E]):
    """One trial and its checks by name: a trial's process costs more than all its checks.

    `depends_on`: the parts of a strategy that decide the outcome. A scenario of client and executor depends
    on each by itself; one that depends on the pair of them depends on the strategy. `fits`: whether a strategy can do
    the scenario. `kind`: of a check that provokes a fault, the kind found.
    """

    name: str
    do: Callable[[Strategy], E]
    checks: Mapping[str, Check[E]]
    depends_on: frozenset[Part]
    fits: Callable[[Strategy], bool] = _all_strategies
    kind: Callable[[E, str], str | None] = _no_kind

    def judge(self, strategy: Strategy) -> list[CheckResult]:
        """A result for each check. A trial that fails breaks all checks; one that cannot be provoked checks none."""
        try:
            found = self.do(strategy)
        except CannotProvoke as reason:
            return [CheckResult(strategy.name, name, unchecked=str(reason)) for name in self.checks]
        except TrialFailed as failure:
            return [CheckResult(strategy.name, name, f"the trial failed: {failure}") for name in self.checks]
        return [
            CheckResult(strategy.name, name, check(found), self.kind(found, name))
            for name, check in self.checks.items()
        ]
