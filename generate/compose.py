"""The client services of compose.yaml: one container for each strategy whose library is in the image of clients."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clientlab.experiments.file import bundled, read_plan
from clientlab.strategies import EVERY_CLIENT, EXECUTORS, LISTED, Strategy
from clientlab.strategies.specs import EXTRA


def demo_services() -> str:
    """The strategies of the demo, which `docker compose up` starts."""
    return _services(_demo(), "")


def other_services() -> str:
    """All other strategies, which `docker compose --profile all up` starts."""
    demo = _demo()
    names = [name for name, strategy in LISTED.items() if _in_image(strategy) and name not in demo]
    return _services(names, ", profiles: [all]")


def _demo() -> list[str]:
    return list(dict.fromkeys(arm.strategy for arm in read_plan(bundled()["demo"]).arms))


def _in_image(strategy: Strategy) -> bool:
    spec = EVERY_CLIENT[strategy.client]
    return spec.extra == EXECUTORS[strategy.executor].extra == EXTRA and not spec.program


def _services(names: Iterable[str], more: str) -> str:
    return "".join(
        f'  client-{re.sub(r"[^a-z0-9-]", "-", name)}: {{<<: *client, command: [work, --strategy, "{name}"]{more}}}\n'
        for name in names
    )
