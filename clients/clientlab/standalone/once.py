"""One request with every strategy of an experiment: does it work? Nothing is stored, and nothing is ranked.

All checks before a run are made, and each request is a trial of its own with the checks of a trial.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from clientlab import own_folder
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.environments import opened
from clientlab.running.preflight import check_system
from clientlab.running.trial_runner import TrialRunner
from clientlab.running.tryout import try_functions
from clientlab.standalone.permission import check_permitted
from clientlab.standalone.planning import Say, plan_of
from clientlab.standalone.requests import NewRun, RunSettings
from clientlab.strategies import plugins
from clientlab.testbeds.opening import Servers
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class StrategyOutcome:
    """What one request with a strategy in an environment showed, in each place that the experiment calls.

    `trials`: of the places, up to the first that failed. `problem`: why it does not work; None: it works.
    """

    name: str
    trials: list[Trial]
    problem: str | None

    @property
    def found(self) -> str:
        """What was answered, in a phrase."""
        sizes = sorted({trial.bytes_received for trial in self.trials if trial.bytes_received is not None})
        shown = " to ".join(dict.fromkeys(f"{size:,}" for size in (*sizes[:1], *sizes[-1:])))
        places = list(dict.fromkeys(" ".join(trial.way) for trial in self.trials))
        count = len(self.trials)
        return ", ".join(
            filter(None, (f"{count} request{'' if count == 1 else 's'} answered", shown and f"{shown} bytes", *places))
        )


def outcomes_of(request: NewRun, settings: RunSettings, say: Say) -> Iterator[StrategyOutcome]:
    """The outcome of each strategy, as soon as it is known. Raises LabError where the experiment cannot begin."""
    plugins.admit([*settings.strategies, *settings.allowed])
    own_folder.sweep()
    with contextlib.ExitStack() as stack:
        servers = Servers.of(request.target, public=settings.public)
        plan = plan_of(request, servers.external, say)
        check_permitted(plan, request, settings.allowed_environments)
        servers.check(plan)
        placement = servers.placement(plan)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        check_system(plan, folder, servers.started(plan), say)
        environments = stack.enter_context(opened(plan))
        testbed, links, _ = servers.opened(plan, placement, folder / "logs", stack)
        try_functions(plan, testbed, environments.interpreters)
        runner = TrialRunner(testbed, interpreters=environments.interpreters, links=links, placement=placement)
        for name, arms in _by_strategy(plan).items():
            yield _outcome(name, arms, plan, runner, folder)
        for name, reason in plan.left_out.items():
            yield StrategyOutcome(name, [], reason)


def _by_strategy(plan: Plan) -> dict[str, list[Arm]]:
    """Strategy, with its environment → its arms that call unlike places, or send unlike requests."""
    found: dict[str, dict[tuple[object, ...], Arm]] = {}
    for arm in plan.arms:
        name = arm.strategy if arm.environment is None else f"{arm.strategy} in {arm.environment}"
        place = (arm.upstream, arm.route, arm.link, _alone(plan.workloads[arm.workload]))
        found.setdefault(name, {}).setdefault(tuple(map(repr, place)), arm)
    return {name: list(arms.values()) for name, arms in found.items()}


def _alone(workload: Workload) -> Workload:
    """The workload with one request of its kind, whatever its load."""
    return replace(
        workload, requests=1, duration=None, rate=None, stages=None, arrivals="uniform", max_late=None, concurrency=1,
        shards=1, connections="cold", warmup=0,
    )  # fmt: skip


def _outcome(name: str, arms: list[Arm], plan: Plan, runner: TrialRunner, folder: Path) -> StrategyOutcome:
    trials: list[Trial] = []
    for arm in arms:
        planned = PlannedTrial(
            arm=arm.name, strategy=arm.strategy, upstream=arm.upstream, route=arm.route, workload=arm.workload,
            round=1, order=len(trials), concurrency=1, environment=arm.environment, link=arm.link,
        )  # fmt: skip
        trial = runner(planned, _alone(plan.workloads[arm.workload]), folder, lambda _: None)
        trials.append(trial)
        if (problem := _problem_of(trial)) is not None:
            where = f" (arm {arm.name})" if arm.name != name else ""
            return StrategyOutcome(name, trials, f"{problem}{where}")
    return StrategyOutcome(name, trials, None)


def _problem_of(trial: Trial) -> str | None:
    """Why the request of a trial does not count as one that works; None if it does."""
    if trial.errors:
        kind = next(iter(trial.errors))
        return ": ".join(filter(None, (kind, trial.error_examples.get(kind))))
    if trial.status != "done":
        return trial.reason or trial.status
    served = trial.upstream_use.requests if trial.upstream_use else None
    if served is not None and served != trial.requests:
        return f"the upstream got {served:g} requests in place of 1"
    return None
