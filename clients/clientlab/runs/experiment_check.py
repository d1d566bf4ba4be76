"""Whether an experiment can be carried out: its strategies, workloads, arms and claims fit each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from clientlab import strategies
from clientlab.errors import LabError, PluginError
from clientlab.runs.claims_check import check_claims
from clientlab.runs.document import Arm
from clientlab.runs.expansion import BadExperiment, resolve
from clientlab.runs.experiment import Experiment
from clientlab.runs.toml_lines import Key
from clientlab.upstreams import MOST, UPSTREAMS
from clientlab.workload import Workload, check

TLS_ROUTES = frozenset({"proxy-tls"})


def check_experiment(experiment: Experiment, secure: Collection[str] = TLS_ROUTES) -> None:
    """Raises BadExperiment for an unknown strategy, a workload that can't be, or parts that do not fit.

    `secure`: the routes that have TLS.
    """
    check_structure(experiment)
    for arm, workload in experiment.expanded():
        key: Key = ("workloads", arm.group or arm.workload)
        try:
            check(workload)
            key = _key_of(experiment, arm)
            _check_strategy(arm, workload, secure)
        except (BadExperiment, PluginError):
            raise  # it names file and line itself
        except LabError as error:
            raise BadExperiment(key, str(error)) from error


def check_structure(experiment: Experiment) -> None:
    """Names that are missing or stand twice; nothing is loaded. Raises BadExperiment."""
    parts: dict[str, Sequence[str]] = {
        "strategies": experiment.strategies,
        "upstreams": experiment.upstreams,
        "routes": experiment.routes,
    }
    for part, names in parts.items():
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            one = {"strategies": "strategy", "upstreams": "upstream", "routes": "route"}[part]
            raise BadExperiment(
                (part,), f"{one} {twice!r} is asked for twice; name each once, and repeat it with --rounds"
            )
    for name, arm in experiment.named_arms.items():
        if arm.workload is not None and arm.workload not in experiment.workloads:
            known = ", ".join(experiment.workloads)
            raise BadExperiment(("arms", name, "workload"), f"no workload {arm.workload!r}; there are {known}")
    _check_workers(experiment.workers)
    _check_twice(experiment)
    if experiment.baseline is not None:
        resolve(experiment.baseline, experiment.arms(), ("baseline",))
    check_claims(experiment)


def _check_workers(workers: Mapping[str, int]) -> None:
    for upstream, count in workers.items():
        if upstream not in UPSTREAMS:
            raise BadExperiment(("workers", upstream), f"there is no such upstream; there are {', '.join(UPSTREAMS)}")
        if not 1 <= count <= MOST["workers"]:
            raise BadExperiment(("workers", upstream), f"{count} workers; write 1 to {MOST['workers']}")


def _check_twice(experiment: Experiment) -> None:
    """No two arms of one name, and none that measures what another does."""
    by_name: dict[str, Arm] = {}
    by_work: dict[str, Arm] = {}
    for arm, workload in experiment.expanded():
        if arm.name in by_name:
            raise BadExperiment(_key_of(experiment, arm), f"arm {arm.name!r} is there twice")
        work = repr((arm.strategy, workload, arm.upstream, arm.route))
        if work in by_work:
            raise BadExperiment(
                _key_of(experiment, arm),
                f"arms {by_work[work].name!r} and {arm.name!r} are the same; name one, and repeat it with rounds",
            )
        by_name[arm.name] = by_work[work] = arm


def _key_of(experiment: Experiment, arm: Arm) -> Key:
    """Where an arm stands in the file."""
    entry = (arm.label or "").partition("[")[0]
    return ("arms", entry) if entry in experiment.named_arms else ("strategies",)


def _check_strategy(arm: Arm, workload: Workload, secure: Collection[str]) -> None:
    strategy = strategies.find(arm.strategy)
    strategies.check_settings(strategy)
    strategies.check_abilities(strategy, workload)
    if strategies.executor_row(strategy.executor).counted and workload.requests is None:
        raise LabError(
            f"strategy {arm.strategy!r} starts all its requests at once and can't run for a duration; "
            "give it a number of requests with -n"
        )
    client = strategies.client_row(strategy.client)
    if client.program and arm.route in secure:
        raise LabError(f"strategy {arm.strategy!r}: {client.program} verifies no certificate; have it go without TLS")
    if arm.route not in secure and client.http == "2":
        raise LabError(
            f"strategy {arm.strategy!r} speaks HTTP/2, which needs TLS, and the route {arm.route} has none; "
            "give it a run with --route proxy-tls alone, or an https:// address with --url"
        )
    in_flight = strategy.in_flight(workload.concurrency, workload.requests)
    if "concurrency" in arm.axes and in_flight != workload.concurrency:
        raise LabError(
            f"concurrency is an axis, but strategy {arm.strategy!r} has {in_flight:,} in flight whatever is asked"
        )
