"""What `clientlab run` was asked for, and the plan for it: the values of the request
replace those of an experiment.

An error in a value of the request is a FieldError with the name of the field, and one
in a file names the file too.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

from clientlab import plugins, strategies, units
from clientlab.errors import FieldError, LabError
from clientlab.experiments import plan_checks
from clientlab.experiments.experiment import ClaimTable, Experiment, WorkloadTable
from clientlab.experiments.file import bundled, path_of, read_experiment
from clientlab.experiments.plan_checks import Say
from clientlab.experiments.planning import make_plan
from clientlab.results.plan import (
    OWN_UPSTREAM,
    Arm,
    EnvironmentSpec,
    Plan,
    RunSettings,
    Target,
)
from clientlab.running.schedule import estimate_round_seconds, estimate_seconds
from clientlab.testbeds.compose import link_of_stack
from clientlab.testbeds.external import ExternalServers
from clientlab.text import mask_headers, mask_text
from clientlab.validation import validate
from clientlab.workload.load import longest_pause
from clientlab.workload.parts import Replay
from clientlab.workload.recordings import read_recorded_requests
from clientlab.workload.values import LINK_PARTS, Stages, write_link_part
from clientlab.workload.workload import (
    FIELDS,
    NOT_MEASURED,
    Workload,
    change,
    flatten,
    value_of,
)

# Rounds of a cold run without `rounds`: its trials are short, and vary more than
# others.
_COLD_ROUNDS = 10
_REQUIREMENT = re.compile(r"[\w.-]+ *(\[[^]]*\])? *([=<>~!]=|[<>@])|[a-z+]+://")
"""How a requirement with a version, or an address, begins."""
_HOUR = 3600.0
_MOST_HOURS = 24.0  # of a run at recorded times whose gaps have no limit
_OF_OWN_UPSTREAMS = (
    "upstreams",
    "routes",
    "delay",
    "faults",
    "path",
    "first",
    "every",
    "events",
    "stream_options",
)
"""Options that only the lab's own upstreams have."""

_LENGTHS = {"duration", "requests"}


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What `clientlab run` was asked for.

    An empty field was not given and replaces nothing.

    An option has the name of the field that it fills: a field of this class, of
    `RunSettings` or of a workload.
    """

    command: str = "clientlab run"
    """For the run file."""

    experiment: str | None = None
    """Name of a bundled experiment, or path of a file."""

    quick: bool = False
    strategies: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()

    environments: Mapping[str, str] = field(default_factory=dict)
    """Name → environment (see `read_environment`)."""

    rtt: tuple[float, ...] = ()
    """Seconds; several values are an axis."""

    bandwidth: tuple[float, ...] = ()
    """Bits per second; several values are an axis."""

    url: Mapping[str, str] = field(default_factory=dict)
    """Name → URL of the user's own servers; one may have no name."""

    ca_file: Path | None = None

    cluster: str | None = None
    """Address of a Dask scheduler."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """The given fields of `RunSettings`."""

    workload: Mapping[str, Any] = field(default_factory=dict)
    """The given fields of workloads, by name."""

    name: str | None = None
    """Of the run."""

    resume: str | None = None
    """Name of the run to continue."""

    folder: Path = Path("results")
    keep_samples: bool = False
    fail_on: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any], command: str) -> RunRequest:
        """Return the request of options, by name.

        None, False and empty values were not given, but 0 was.
        """
        given = {
            name: value
            for name, value in options.items()
            if value not in (None, (), {}) and value is not False
        }
        if isinstance(given.get("rate"), Stages):
            given["stages"] = given.pop("rate")
        if isinstance(given.get("body"), bytes):
            given["body_base64"] = base64.b64encode(given.pop("body")).decode()
        settings = {
            name: given.pop(name) for name in RunSettings.model_fields if name in given
        }
        workload = {name: given.pop(name) for name in FIELDS if name in given}
        own = {name: given[name] for name in cls.__annotations__ if name in given}
        return cls(command=command, settings=settings, workload=workload, **own)

    @property
    def given(self) -> list[str]:
        """The names of all options that were given."""
        own = [
            name
            for name, value in vars(self).items()
            if value and name not in {"command", "settings", "workload"}
        ]
        return [*own, *self.settings, *self.workload]

    @property
    def link(self) -> dict[str, float | list[float]]:
        """The given parts of a link: one value, or an axis."""
        given = {"rtt": self.rtt, "bandwidth": self.bandwidth}
        return {
            part: values[0] if len(values) == 1 else list(values)
            for part, values in given.items()
            if values
        }

    def find_target(self, base: Experiment) -> Target:
        """Return what is measured: the user's own servers or the lab's upstreams.

        `base`: the experiment, whose servers are measured if no URL was given. Raise
        FieldError for a conflict.
        """
        urls = self.url or base.servers
        if not urls:
            if self.ca_file is not None:
                message = (
                    "the lab's own routes bring their CA; leave it out, or add `url`"
                )
                raise FieldError(["ca_file"], message)
            return Target(testbed="local" if self.cluster is None else "compose")
        for name in _OF_OWN_UPSTREAMS:
            if name in self.given:
                key = "url" if self.url else "servers"
                advice = "write it into the URL" if name == "path" else "leave it out"
                message = f"only the lab's own upstreams have `{name}`; {advice}"
                raise FieldError([key], message, also=[name])
        return Target(
            testbed="external",
            url=urls.get(""),
            servers={name: url for name, url in urls.items() if name},
            ca_file=None if self.ca_file is None else str(self.ca_file.absolute()),
        )


def read_base(request: RunRequest) -> Experiment:
    """Return the experiment of a request before its values replace those of the file.

    Raise LabError.
    """
    if request.experiment is None:
        return _experiment_of_strategies(request)
    return read_experiment(path_of(request.experiment), quick=request.quick)


@contextlib.contextmanager
def naming_file(request: RunRequest) -> Iterator[None]:
    """Name the experiment's file in an error about a field that was not given."""
    try:
        yield
    except FieldError as error:
        if request.experiment and not set(request.given).intersection(error.fields):
            raise LabError(f"{path_of(request.experiment)}: {error}") from error
        raise


def plan_run(
    request: RunRequest, base: Experiment, external: ExternalServers | None, say: Say
) -> Plan:
    """Return the checked plan of a request. `base`: see `read_base`. Raise LabError."""

    def is_secure(arm: Arm) -> bool:
        if external is None:
            return arm.route == "proxy-tls"
        return external[arm.target[0]].secure

    file = path_of(request.experiment) if request.experiment else None
    _admit(base, request)
    with naming_file(request):
        base, changed = _fit_links(base, request)
        if external is None:
            experiment = override(base, request)
            plan_checks.check_upstreams(experiment)
        else:
            experiment = _override_for_own_servers(base, request, external)
        changed += _describe_changes(base, experiment)
        faults: Mapping[str, LabError] = {}
        # A strategy that the file's claims or its baseline may name cannot be left out.
        if request.strategies or not (experiment.claims or experiment.baseline):
            faults = plan_checks.plugin_faults(experiment.strategies, say)
        replaced = {
            name: substitute
            for name, substitute in experiment.instead.items()
            if strategies.unavailable(strategies.find(name))
        }
        left_out = {
            name: str(fault).replace("\n", ": ") for name, fault in faults.items()
        }
        plan = make_plan(
            experiment,
            command=request.command,
            changed=changed if file else [],
            replaced=replaced,
            left_out=left_out,
        )
        if file in bundled().values() and not request.strategies:
            plan = plan_checks.part_for_this_machine(plan)
        if external is not None:
            plan = _fit_workloads(plan, external)
        is_own = external is not None
        plan_checks.check_plan(plan, experiment, is_secure, own_servers=is_own)
        plan_checks.check_concurrency(plan, request.workload.get("concurrency"), say)
        _check_length(plan)
    for fault in faults.values():
        say(fault)
    _say_what_is_left_out(plan, say)
    return plan


def _admit(base: Experiment, request: RunRequest) -> None:
    """Admit the code that the request and its experiment name."""
    names = [*request.strategies, *base.strategies]
    names += [arm.strategy for arm in base.arms.values()]
    plugins.admit([*names, *base.instead, *base.instead.values()])


def _say_what_is_left_out(plan: Plan, say: Say) -> None:
    replays = dict.fromkeys(workload.replay for workload in plan.workloads.values())
    for replay in filter(None, replays):
        left_out = read_recorded_requests(replay).left_out
        if left_out:
            say(f"{replay.file}: left out: {left_out}")
    if plan.unavailable_arms:
        say(f"left out: {plan.unavailable_among(plan.unavailable_arms)}")


def _check_length(plan: Plan) -> None:
    """Raise FieldError if a run would take too long.

    It does if not even one round ends within the budget, or if recorded times without
    `max_gap` make it longer than a day.
    """
    needed = estimate_round_seconds(plan)
    if plan.budget is not None and plan.budget < needed:
        raise FieldError(
            ["budget"],
            f"one round of {len(plan.arms)} arms takes about {units.time(needed)};"
            f" write at least {ceil(needed)}s",
            value=units.time(plan.budget),
        )
    hours = estimate_seconds(plan) / _HOUR
    if hours <= _MOST_HOURS:
        return
    for workload in plan.workloads.values():
        replay = workload.replay
        if replay is not None and replay.times and replay.max_gap is None:
            gap = longest_pause(workload) / _HOUR
            message = (
                f"the run would take {hours:,.0f} h, with {gap:,.0f} h between two"
                " requests; shorten its gaps with `max_gap`"
            )
            raise FieldError(["replay_times"], message)


def _experiment_of_strategies(request: RunRequest) -> Experiment:
    if request.quick:
        message = (
            "only an experiment has a short form; name one, or reduce the work with"
            " `requests`"
        )
        raise FieldError(["quick"], message)
    if not request.strategies:
        raise LabError(
            "nothing to measure: name an experiment ('clientlab run demo') or"
            " strategies with -t"
        )
    is_cold = request.workload.get("cold")
    question = "Which of these strategies is fastest here?"
    versions = [
        names for names in (request.environments, request.url) if len(names) == 2
    ]
    if "find_max" in request.settings:
        question = (
            "How many requests per second does each of these strategies hold here?"
        )
    elif versions:
        first, second = versions[0]
        question = f"Is {second} slower than {first}?"
    elif is_cold:
        question = "Which of these strategies has its first response soonest?"
    elif request.workload.get("stream"):
        question = "Which of these strategies takes the least CPU time per event?"
    return Experiment(
        name="run",
        question=question,
        strategies=list(request.strategies),
        rounds=_COLD_ROUNDS if is_cold else RunSettings().rounds,
        workloads={"workload": WorkloadTable(first=Workload())},
    )


def _fit_links(base: Experiment, request: RunRequest) -> tuple[Experiment, list[str]]:
    """Return the experiment for one link, and what that changed.

    The link is that of the request or of the Compose stack. Control arms behind their
    own links are left out, and so are the claims about them.
    """
    is_compose = request.find_target(base).testbed == "compose"
    if not request.link and not is_compose:
        return base, []
    base, changed = _leave_out_linked_controls(base)
    tables = (*base.workloads.values(), *base.arms.values())
    has_link = request.link or any(table.link_parts for table in tables)
    link = link_of_stack(os.environ) if is_compose and not has_link else None
    if link:
        parts = {part: getattr(link, part) for part in LINK_PARTS}
        workloads = {
            name: table.model_copy(update=parts)
            for name, table in base.workloads.items()
        }
        base = base.changed(workloads=workloads)
        changed.append(f"link: none → {link}")
    return base, changed


def _leave_out_linked_controls(base: Experiment) -> tuple[Experiment, list[str]]:
    """Return the experiment without control arms behind links, and what that changed.

    They stay if the experiment has no other arms.
    """
    behind_link = [
        name for name, arm in base.arms.items() if arm.control and arm.link_parts
    ]
    arms = {name: arm for name, arm in base.arms.items() if name not in behind_link}
    if not behind_link or not (arms or base.strategies):
        return base, []
    claims = {
        name: claim
        for name, claim in base.claims.items()
        if set(behind_link).isdisjoint(_tables_of(claim))
    }
    changed = f"without the arms behind a link: {', '.join(behind_link)}"
    return base.changed(arms=arms, claims=claims), [changed]


def _tables_of(claim: ClaimTable) -> Iterator[str]:
    """Yield the names of the tables of arms that a claim names."""
    for arm in (claim.a, claim.b, claim.c, claim.d, claim.sweep):
        if arm is not None:
            name, _, _ = arm.partition("[")
            table, _, _ = name.partition(" (")
            yield table


def _override_for_own_servers(
    base: Experiment, request: RunRequest, external: ExternalServers
) -> Experiment:
    key = "servers"
    advice = "leave it out"
    if request.url:
        key = "url"
        advice = "name strategies with -t"
    for name, table in base.workloads.items():
        for part in ("delay", "faults"):
            if getattr(table.first, part) is not None:
                message = (
                    f"workload {name!r} has `{part}`, which only the lab's own"
                    f" upstreams carry out; {advice}"
                )
                value = f"with experiment {base.name!r}"
                raise FieldError([key], message, value=value)
    workload = dict(request.workload)
    is_recorded = "replay" in workload or any(
        table.first.replay is not None for table in base.workloads.values()
    )
    paths = [server.path for server in external.values() if server.path != "/"]
    if paths and is_recorded:
        message = "recorded requests have their own paths; name only scheme and host"
        raise FieldError([key], message, value=f"with {paths[0]}")
    for name, table in base.workloads.items():
        if paths and "path" in table.axes:
            message = f"path is an axis of workload {name!r}; name only scheme and host"
            raise FieldError([key], message)
    upstream = OWN_UPSTREAM
    if "" in request.url:
        ((upstream, server),) = external.items()
        if not is_recorded:
            workload["path"] = server.path
    request = replace(
        request, upstreams=(upstream,), routes=("direct",), workload=workload
    )
    return override(base, request)


def _fit_workloads(plan: Plan, external: ExternalServers) -> Plan:
    """Return the plan with workloads that fit the servers of its arms.

    Arms of different servers share a workload if the same fits all of them. See
    `ExternalTarget.fit`.
    """
    linked = bool(plan.links)
    kinds = {
        (server.path, server.name if linked else None) for server in external.values()
    }
    arms = []
    workloads = {}
    for arm in plan.arms:
        name = arm.workload if len(kinds) == 1 else f"{arm.workload} at {arm.server}"
        server = external[arm.target[0]]
        workloads[name] = server.fit(plan.workloads[arm.workload], linked=linked)
        arms.append(arm.model_copy(update={"workload": name}))
    return plan.updated(arms=arms, workloads=workloads)


def read_environment(text: str) -> EnvironmentSpec:
    """Return the environment that a text of the command line names.

    It is a virtual environment or a Python if `text` is a path. Otherwise uv builds it:
    from a folder of sources, a requirement with a version, or an address.
    """
    path = Path(text).expanduser().absolute()
    if (path / "pyproject.toml").is_file():
        return EnvironmentSpec(requirements=[str(path)])
    if _REQUIREMENT.match(text) and not path.exists():
        return EnvironmentSpec(requirements=[text])
    return EnvironmentSpec(folder=str(path))


def override(base: Experiment, request: RunRequest) -> Experiment:
    """Return the experiment with the values of the request.

    Raise FieldError for one that contradicts it.
    """
    names_arms = base.claims or base.baseline
    if base.strategies and not names_arms:  # nothing would miss the replaced arms
        arms = {} if request.strategies else base.arms
        if request.routes:
            arms = {
                name: arm
                for name, arm in arms.items()
                if arm.route is None or arm.route in request.routes
            }
        base = base.model_copy(update={"arms": arms})
    changes: dict[str, Any] = dict(request.settings)
    for name in ("strategies", "upstreams", "routes"):
        names = getattr(request, name)
        if names:
            changes[name] = list(names)
    if request.strategies:
        changes["instead"] = {}  # these strategies and no others
    if request.url:
        changes["servers"] = {name: url for name, url in request.url.items() if name}
    environments = {
        name: read_environment(text) for name, text in request.environments.items()
    }
    if environments:
        changes["environments"] = environments
    # Each of these decides when the run ends, except the budget of a precision, which
    # limits its time.
    is_limited = base.precision is not None and "rounds" not in changes
    if changes.keys() & {"rounds", "budget", "precision"} and not is_limited:
        changes = {"budget": None, "precision": None} | changes
    workload = _workload_changes(base, request)
    _check_conflicts(base, request, {*changes, *workload, *request.link})
    workloads = {}
    for name, table in base.workloads.items():
        first = change(table.first, **workload)
        workloads[name] = table.model_copy(update={"first": first, **request.link})
    changes["workloads"] = workloads
    return validate(lambda values: base.changed(**values), changes)


def _workload_changes(base: Experiment, request: RunRequest) -> dict[str, Any]:
    """Return the fields of the workload that are replaced.

    A number of requests and a duration replace each other, and so do a rate and stages.
    Recorded requests are sent once each, unless a number of requests is given or they
    are drawn by weight. Their times replace all of these.
    """
    changes = dict(request.workload)
    is_search = "find_max" in request.settings
    if changes.keys() & {"rate", "stages"}:
        changes = {"rate": None, "stages": None} | changes
    if changes.get("cold") and not changes.keys() & {*_LENGTHS, "replay_times"}:
        changes["requests"] = 1
    is_stream = request.experiment is None and "stream" in changes
    if is_stream and not changes.keys() & _LENGTHS:
        changes["requests"] = None  # the default of streams
    if changes.get("replay_times"):
        changes = dict.fromkeys(("requests", "duration", "rate", "stages")) | changes
    elif "replay" in changes and "duration" not in changes and not is_search:
        workloads = [table.first for table in base.workloads.values()]
        skips_bad = any(value_of(workload, "skip_bad") for workload in workloads)
        skips_bad = changes.get("skip_bad", skips_bad)
        replay = Replay(file=changes["replay"], skip_bad=skips_bad)
        recorded = read_recorded_requests(replay)
        if not recorded.weights:
            changes.setdefault("requests", len(recorded.requests))
    if is_search:
        changes.setdefault("duration", 5.0)  # of each trial of the search, in seconds
    if "duration" in changes:
        changes.setdefault("requests", None)
    elif "requests" in changes:
        changes["duration"] = None
    return changes


def _check_conflicts(
    base: Experiment, request: RunRequest, changed: Collection[str]
) -> None:
    """Raise FieldError for a changed field that the experiment varies.

    It is an axis of a workload, or single arms set it themselves.
    """
    for name, table in base.workloads.items():
        parts = table.link_parts
        axes = list(table.axes)
        axes += [part for part, value in parts.items() if isinstance(value, list)]
        for axis in axes:
            if axis in changed:
                message = f"{axis} is an axis of workload {name!r}; change it in a file"
                raise FieldError([axis], message)
    with_experiment = f"with experiment {base.name!r}"
    if request.strategies and base.arms:
        message = "it names its arms; leave out `strategies`, or change it in a file"
        raise FieldError(["strategies"], message, value=with_experiment)
    several = [
        name
        for name in ("rtt", "bandwidth", "environments", "url")
        if len(getattr(request, name)) > 1
    ]
    if several and (base.claims or base.baseline):
        message = (
            "its claims and its baseline name single arms; name one value, or"
            " strategies with `strategies`"
        )
        raise FieldError([several[0]], message, value=with_experiment)
    for name, arm in base.arms.items():
        own = {
            "upstreams": arm.upstream,
            "concurrency": arm.concurrency,
            **arm.link_parts,
            "environments": arm.environment,
            "routes": None if arm.route in request.routes else arm.route,
        }
        for key, value in own.items():
            if value and key in changed:
                message = f"arm {name!r} sets its own value; change it in a file"
                raise FieldError([key], message)


def _describe_changes(base: Experiment, changed: Experiment) -> list[str]:
    """Return a line for each value that was replaced.

    Values that decide when the run ends and what it draws are left out.
    """
    pairs = zip(_list_values(base), _list_values(changed), strict=True)
    lines = []
    for (name, before), (_, after) in pairs:
        if before != after:
            lines.append(f"{name}: {_show(before)} → {_show(after)}")
    return list(dict.fromkeys(lines))


def _list_values(experiment: Experiment) -> Iterator[tuple[str, object]]:
    for name in ("strategies", "upstreams", "routes"):
        yield name, ", ".join(getattr(experiment, name))
    servers = [f"{name}={mask_text(url)}" for name, url in experiment.servers.items()]
    yield "servers", ", ".join(servers) or None
    yield "find_max", experiment.find_max
    for table in experiment.workloads.values():
        for part in LINK_PARTS:
            value = table.link_parts.get(part, [])
            points = value if isinstance(value, list) else [value]
            texts = [write_link_part(part, point) for point in points]
            yield part, ", ".join(texts) or None
        for name, value in flatten(table.first).items():
            if name not in {"seed", *NOT_MEASURED}:
                yield name, value


def _show(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        value = mask_headers(value)
    return mask_text(str(value))
