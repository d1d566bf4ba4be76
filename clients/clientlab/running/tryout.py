"""One request with each function of a user's file, before a run: a function that cannot work ends the run at once.

Each is tried in a process of its own, like a trial's, with a warm-up: what the function's module keeps is used by two
event loops then, as in a trial with cold connections.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from clientlab import strategies
from clientlab.errors import ERROR_OTHER, LabError
from clientlab.measuring.context import TrialContext
from clientlab.measuring.measurement import measure
from clientlab.measuring.trial_handle import OWN, Interpreter, TrialFailed
from clientlab.results.plan import Arm, Plan
from clientlab.running.testbed import Testbed
from clientlab.workload.workload import Workload


def try_functions(plan: Plan, testbed: Testbed, interpreters: Mapping[str, Interpreter]) -> None:
    """Send two requests with each function of the plan, in each of its environments.

    Raise LabError for a function that returns no response, or raises what is no error of a connection.
    """
    tried = set[tuple[str, str | None]]()
    for arm in plan.arms:
        client = strategies.find(arm.strategy).client
        if strategies.client_spec(client).url_only and (client, arm.environment) not in tried:
            tried.add((client, arm.environment))
            python = OWN if arm.environment is None else interpreters[arm.environment]
            _try(arm, plan.workloads[arm.workload], testbed, python)


def _try(arm: Arm, given: Workload, testbed: Testbed, python: Interpreter) -> None:
    where = arm.upstream, arm.route
    alone = replace(
        given, delay=None, requests=1, duration=None, rate=None, stages=None, arrivals="uniform", max_late=None,
        concurrency=1, shards=1, connections="cold", warmup=1,
    )  # fmt: skip
    testbed.serve(arm.upstream)
    with tempfile.TemporaryDirectory() as folder:
        context = TrialContext(
            strategies.find(strategies.find(arm.strategy).client), alone, testbed.base_url(*where),
            str(Path(folder) / "trial"), testbed.address(*where), testbed.ca_file(*where),
        )  # fmt: skip
        try:
            found = measure(context, interpreter=python)
        except TrialFailed as failure:
            raise LabError(f"strategy {arm.strategy!r}: {failure}") from failure
    raised = [text for kind, text in found.samples.examples.items() if kind == "tls" or kind.startswith(ERROR_OTHER)]
    if raised:
        advice = "; what asyncio keeps belongs to one event loop, which a class opens and closes"
        loop = advice if "loop" in raised[0] else ""
        raise LabError(f"strategy {arm.strategy!r}: its first request raised {raised[0]}{loop}")
