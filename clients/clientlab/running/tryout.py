"""One request with each function of a user's file, before a run: a function that cannot work ends the run at once.

Each is tried in a process of its own, like a trial's, with a warm-up: what the function's module keeps is used by two
event loops then, as in a trial with cold connections.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from clientlab import strategies
from clientlab.errors import ERROR_OTHER, LabError
from clientlab.measuring.context import TrialContext
from clientlab.measuring.measurement import measure
from clientlab.measuring.trial_handle import OWN, Interpreter, TrialFailed
from clientlab.results.plan import Arm, Plan
from clientlab.running.testbed import Testbed
from clientlab.workload.workload import Workload

_SENT = 2
"""Requests of a try, that of the warm-up among them."""

_ALONE: dict[str, Any] = {
    "delay": None, "requests": 1, "duration": None, "rate": None, "stages": None, "arrivals": "uniform",
    "max_late": None, "concurrency": 1, "shards": 1, "connections": "cold", "warmup": 1,
}  # fmt: skip


def try_functions(plan: Plan, testbed: Testbed, interpreters: Mapping[str, Interpreter]) -> None:
    """Send two requests with each function of the plan, in each of its environments.

    Raises LabError for a function that returns no response, or raises what is no error of a connection.
    """
    tried = set[tuple[str, str | None]]()
    for arm in plan.arms:
        client = strategies.find(arm.strategy).client
        if strategies.client_spec(client).url_only and (client, arm.environment) not in tried:
            tried.add((client, arm.environment))
            python = OWN if arm.environment is None else interpreters[arm.environment]
            _try(arm, plan.workloads[arm.workload], testbed, python)


def _try(arm: Arm, given: Workload, testbed: Testbed, python: Interpreter) -> None:
    """Raises LabError."""
    strategy, where = strategies.find(arm.strategy), (arm.upstream, arm.route)
    workload = replace(given, **_ALONE)
    testbed.serve(arm.upstream)
    with tempfile.TemporaryDirectory() as folder:
        context = TrialContext(
            strategies.find(strategy.client), workload, testbed.base_url(*where), str(Path(folder) / "trial"),
            testbed.address(*where), testbed.ca_file(*where),
        )  # fmt: skip
        before = testbed.reading(*where)
        try:
            found = measure(context, interpreter=python)
        except TrialFailed as failure:
            raise LabError(f"strategy {arm.strategy!r}: {failure}") from failure
        served = testbed.reading(*where).since(before).upstream
    if (failed := found.samples.examples.get("tls")) and arm.route == "proxy-tls":
        raise LabError(
            f"strategy {arm.strategy!r}: a function is not given the CA of route proxy-tls ({failed}); take another "
            "route, or write a class"
        )
    idle = served is not None and served.requests is not None and served.requests < _SENT
    if served is not None and idle and not found.samples.examples:
        raise LabError(
            f"strategy {arm.strategy!r}: it was called {_SENT} times, and the upstream got {served.requests} requests: "
            "send one with each call, to the URL that it is given"
        )
    raised = [text for kind, text in found.samples.examples.items() if kind.startswith(ERROR_OTHER)]
    if raised:
        advice = "; what asyncio keeps belongs to one event loop, which a class opens and closes"
        loop = advice if "loop" in raised[0] else ""
        raise LabError(f"strategy {arm.strategy!r}: its first request raised {raised[0]}{loop}")
