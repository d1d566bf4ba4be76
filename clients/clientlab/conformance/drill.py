"""A drill: one trial of a strategy, and the checks that what it left behind is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from clientlab.measuring.trial import TrialFailed
from clientlab.strategies import Strategy

E = TypeVar("E")

Check = Callable[[E], str]
"""What is broken, in one sentence; an empty one where nothing is."""


@dataclass(frozen=True)
class Result:
    """What a check found.

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
    """This machine can't be brought to do what a drill is about; why, in one sentence."""


@dataclass(frozen=True)
class Drill(Generic[E]):
    """One trial and its checks by name: a trial's process costs more than all its checks.

    `fits`: whether it can be asked of a strategy. `kind`: of a check that provokes a fault, the kind found.
    """

    name: str
    do: Callable[[Strategy], E]
    checks: Mapping[str, Check[E]]
    fits: Callable[[Strategy], bool] = _all_strategies
    kind: Callable[[E, str], str | None] = _no_kind

    def judge(self, strategy: Strategy) -> list[Result]:
        """A result for each check. A trial that fails breaks them all; nothing is broken where it can't be."""
        try:
            found = self.do(strategy)
        except CannotProvoke as reason:
            return [Result(strategy.name, name, unchecked=str(reason)) for name in self.checks]
        except TrialFailed as failure:
            return [Result(strategy.name, name, f"the trial failed: {failure}") for name in self.checks]
        return [
            Result(strategy.name, name, check(found), self.kind(found, name)) for name, check in self.checks.items()
        ]
