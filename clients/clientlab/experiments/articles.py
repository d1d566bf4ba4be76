"""Which published articles measured a strategy: read from the bundled experiments that reproduce them."""

from __future__ import annotations

from clientlab.experiments.file import bundled, read_plan


def articles() -> dict[str, list[str]]:
    """Strategy without settings → the bundled experiments with a published source that have it in an arm.

    Control arms do not count: the lab added them.
    """
    found: dict[str, list[str]] = {}
    for name, path in bundled().items():
        plan = read_plan(path)
        if not plan.source:
            continue
        for strategy in {arm.strategy.partition("?")[0] for arm in plan.arms if not arm.control}:
            found.setdefault(strategy, []).append(name)
    return found
