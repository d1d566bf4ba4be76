"""What Prometheus and its dashboards call an arm."""

from __future__ import annotations

import pytest

from clientlab.results.labels import ARM, legend, of_arm
from clientlab.workload.link import Link
from clients.documents import a_trial


@pytest.mark.parametrize(
    ("arm", "strategy", "called"),
    [
        ("aiohttp@workers", "aiohttp@workers", "aiohttp@workers"),
        ("aiohttp@workers (proxy)", "aiohttp@workers", "aiohttp@workers (proxy)"),
        ("aiohttp@workers (small, proxy)[concurrency=5]", "aiohttp@workers", None),
        ("requests-session@threads?pool=8", "requests-session@threads?pool=8", None),
        ("threads-100", "requests@threads?pool=100", "threads-100 · requests@threads"),
        ("pool[pool=5]", "requests-session@threads?pool=5", "pool[pool=5] · requests-session@threads"),
        ("aiohttp", "aiohttp@gather", "aiohttp · aiohttp@gather"),
        ("aiohttp-100", "aiohttp", "aiohttp-100 · aiohttp"),
    ],
)
def test_a_legend_ends_with_the_strategy(arm, strategy, called):
    """An arm that is named after it says it once."""
    assert legend(arm, strategy) == (called or arm)


def test_an_arms_labels_are_its_parts():
    """A value for each name, in their order."""
    trial = a_trial("aiohttp@workers", link=Link(0.035))
    found = dict(zip(ARM, of_arm("a-run", "demo", "tasks", trial), strict=True))
    assert found == {
        "run": "a-run",
        "experiment": "demo",
        "arm": "tasks",
        "legend": "tasks · aiohttp@workers",
        "strategy": "aiohttp@workers",
        "workload": trial.workload,
        "upstream": trial.upstream,
        "route": trial.route,
        "link": "35 ms",
    }
    assert of_arm("a-run", "demo", "tasks", a_trial())[-1] == ""
