"""Carry out a requested run, new or continued: plan and check it, open what it needs,
and measure its trials.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import click
from rich.console import Console

from clientlab import plugins, strategies, units
from clientlab.analysis.kept_samples import are_kept
from clientlab.cli.options import echo, say
from clientlab.cli.output import LabConsole
from clientlab.cluster.remote_trials import ClusterMeasurement
from clientlab.cluster.workers import DaskCluster, check_portable, connect
from clientlab.errors import FieldError, IncompleteRun, LabError, PluginError
from clientlab.experiments.request import (
    RunRequest,
    naming_file,
    plan_run,
    read_base,
    read_environment,
)
from clientlab.judging.thresholds import Threshold, check_limits
from clientlab.reports.headline import load_lines
from clientlab.reports.progress import ProgressLines
from clientlab.results.document import Run, Surroundings
from clientlab.results.plan import EnvironmentSpec, Plan, Target
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.results.trial import Placement
from clientlab.running.environments import Environments, open_environments
from clientlab.running.execute import create_run, execute, name_run, resume_run
from clientlab.running.explaining import TRACE, explain
from clientlab.running.schedule import estimate_seconds, estimate_seconds_left
from clientlab.running.trial_runner import TrialRunner, check_disk, try_functions
from clientlab.testbeds import Servers
from clientlab.text import MASK, make_printable, mask_text
from clientlab.workload.recordings import pin_recorded_requests
from clientlab.workload.refusals import check_request_line
from clientlab.workload.workload import NUMBER_FIELD, Workload, change


def measure_run(request: RunRequest, limits: Sequence[Threshold]) -> Run:
    """Measure a run and return it with its verdicts.

    Each trial is saved when it ends. Raise LabError.

    `limits`: the thresholds by which the run will be judged.
    """
    store = Store(request.folder)
    with contextlib.ExitStack() as stack:
        if request.resume is None:
            job = _plan_new(request, store)
        else:
            job = _plan_rest(request, store, stack)
        plan, servers = job.plan, job.servers
        with naming_file(request):
            answer = servers.check(plan)
        cluster = _connect(request, job, stack)
        check_limits(list(limits), plan)
        placement = servers.placement(plan)
        _confirm_long_run(plan, job.estimate_seconds(answer))
        environments = stack.enter_context(open_environments(plan))
        if job.stored is None:
            check_disk(plan, store.claim(job.name))
            stack.enter_context(store.hold(job.name))
        console: Console = LabConsole(stderr=True)
        runner = None
        if cluster is not None:
            _wait_for_turn(cluster, console, stack)
            where = cluster.read_surroundings()
        else:
            folder = store.folder / job.name
            keeps = are_kept(folder, wanted=request.keep_samples)
            runner, where = _open_runner(
                job, environments, placement, folder, stack, keeps=keeps
            )
        run = job.begin(where)
        observer = stack.enter_context(ProgressLines(console, answer))
        stack.enter_context(_naming_next_command(job.name, request.folder))
        if runner is None:
            if plan.explain:
                say("nothing is explained, because trials on workers are not looked at")
            measure = ClusterMeasurement(cast("DaskCluster", cluster), run)
            return execute(run, measure, store, observer)
        run = execute(run, runner, store, observer, by_turns=runner.by_turns)
        if plan.explain:
            run = explain(run, runner, store.folder / run.run, say)
            store.save(run)
        return run


@dataclass(frozen=True)
class _Job:
    """A run to measure, or to go on with."""

    name: str
    plan: Plan
    servers: Servers

    stored: Run | None = None
    """The run to go on with."""

    def estimate_seconds(self, answer: float) -> float:
        """Return how long it takes.

        `answer`: seconds that the servers take to answer.
        """
        if self.stored is None:
            return estimate_seconds(self.plan, answer)
        return estimate_seconds_left(self.stored, answer)

    def begin(self, where: Surroundings) -> Run:
        if self.stored is None:
            return create_run(self.name, self.plan, self.servers.target, where)
        secret = self.plan.masked().secret_workloads
        plan = self.stored.experiment.updated(secret_workloads=secret)
        run = resume_run(self.stored.updated(experiment=plan), where)
        for line in run.resumed[-1].differences:
            say(f"since the run began: {line}")
        return run


def _plan_new(request: RunRequest, store: Store) -> _Job:
    name = request.name and store.new_name(request.name)
    base = read_base(request)
    with naming_file(request):
        servers = Servers.of(request.find_target(base), _permits_public)
    plan = plan_run(request, base, servers.external, say)
    return _Job(name or name_run(plan), plan, servers)


def _plan_rest(request: RunRequest, store: Store, stack: contextlib.ExitStack) -> _Job:
    """Return the run to go on with, which the stack holds."""
    name = store.inside(request.resume or "")
    stack.enter_context(store.hold(name))
    stored = store.read(name)
    target, plan = _plan_resumed(stored, request)
    return _Job(name, plan, Servers.of(target, _permits_public), stored)


def _connect(
    request: RunRequest, job: _Job, stack: contextlib.ExitStack
) -> DaskCluster | None:
    if request.cluster is None:
        return None
    target = job.servers.target
    check_portable(job.plan, target, keep_samples=request.keep_samples)
    return stack.enter_context(connect(request.cluster, job.plan, target))


def _wait_for_turn(
    cluster: DaskCluster, console: Console, stack: contextlib.ExitStack
) -> None:
    line = "the lab is measuring another run; this one begins after it"
    announce = cache(lambda: console.print(line))
    stack.enter_context(cluster.reserve(announce))


def _open_runner(
    job: _Job,
    environments: Environments,
    placement: Placement | None,
    folder: Path,
    stack: contextlib.ExitStack,
    *,
    keeps: bool,
) -> tuple[TrialRunner, Surroundings]:
    """Start the servers, and return what measures on this machine, and where that is.

    `keeps`: whether samples are kept.
    """
    plan = job.plan
    if placement is not None:
        say(f"pinned: {placement}")
    trace = None
    if plan.explain and job.servers.external is None:
        trace = folder / TRACE
        trace.mkdir(parents=True, exist_ok=True)
    testbed, links, programs = job.servers.open(
        plan, placement, folder / "logs", stack, trace
    )
    try_functions(plan, testbed, environments.interpreters)
    runner = TrialRunner(
        testbed,
        keeps,
        interpreters=environments.interpreters,
        links=links,
        placement=placement,
    )
    # Read while the servers run, since the surroundings include the load of the
    # machine.
    own = [arm.strategy for arm in plan.arms if arm.environment is None]
    programs |= programs_of(arm.strategy for arm in plan.arms)
    where = surroundings(distributions_of(own), programs, environments.held, placement)
    return runner, where


@contextlib.contextmanager
def _naming_next_command(name: str, folder: Path) -> Iterator[None]:
    """Add the command that goes on with a run to the error that ends it."""
    try:
        yield
    except IncompleteRun as error:
        words = ["clientlab", "run", "--resume", name]
        if folder != Path("results"):
            words += ["--out", str(folder)]
        raise IncompleteRun(f"{error}; go on with: {shlex.join(words)}") from error


def _confirm_long_run(plan: Plan, seconds: float) -> None:
    """Ask before a run of more than half an hour if somebody can answer.

    Raise LabError for a no.
    """
    if seconds <= 1800 or not _is_at_terminal():
        return
    for line in load_lines(plan):
        echo(line, err=True)
    if not click.confirm(
        f"The run takes about {units.minutes(seconds)}. Measure it?", err=True
    ):
        raise LabError(
            "nothing was measured; reduce the work with -n, -d, --delay or --rounds, or"
            " answer y"
        )


def _permits_public(addresses: Sequence[str]) -> bool:
    """Return whether load may go to these addresses of the internet.

    Ask at a terminal.
    """
    if os.environ.get("CLIENTLAB_PUBLIC") == "1":
        return True
    question = (
        f"Load would go to {', '.join(addresses)} on the internet. Does the server's"
        " owner permit it?"
    )
    return _is_at_terminal() and click.confirm(make_printable(question), err=True)


def _is_at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


_GIVEN_AGAIN = {
    "resume",
    "strategies",
    "environments",
    "folder",
    "cluster",
    "keep_samples",
    "fail_on",
    "headers",
    "url",
    "path",
}
"""Options beside `resume`: code and secrets, which the file of a run does not hold,
and those that change no figure.
"""


def _plan_resumed(run: Run, request: RunRequest) -> tuple[Target, Plan]:
    """Return the target of a stored run, and its plan with what its file lacks: code,
    header values and environments.

    Raise FieldError if it cannot go on, or if the request lacks any of these or would
    change the run.
    """
    plan = run.experiment
    for name in request.given:
        if name not in _GIVEN_AGAIN:
            raise FieldError(
                ["resume"], f"the run goes on as it was planned; leave `{name}` out"
            )
    if run.status == "done" or run.target is None:
        reason = "its file does not say what it measured"
        if run.target is not None:
            reason = "the run is complete"
        message = f"{reason}; measure another with {plan.command!r}"
        raise FieldError(["resume"], message, value=run.run)
    _check_same_cluster(run, run.target, request)
    for workload in plan.workloads.values():
        # Raises FieldError if the recorded requests have changed.
        pin_recorded_requests(workload)
    _admit_again(run, request)
    changes = {
        "workloads": _with_secrets(run, request),
        "environments": _with_folders(run, request),
    }
    return _with_urls(run.target, request), plan.updated(**changes)


def _check_same_cluster(run: Run, target: Target, request: RunRequest) -> None:
    if request.cluster is not None and target.testbed == "local":
        message = (
            "the run was measured on this machine; leave it out, also as a variable"
        )
        raise FieldError(["cluster"], message, value=request.cluster)
    if request.cluster is None and target.testbed == "compose":
        raise FieldError(
            ["resume"],
            "the run was measured on a cluster; add `cluster` ADDRESS",
            value=run.run,
        )


def _admit_again(run: Run, request: RunRequest) -> None:
    """Admit the code of the request, and check that all strategies can be found."""
    names = dict.fromkeys(arm.strategy for arm in run.experiment.arms)
    for name in request.strategies:
        if name not in names:
            message = "the run has no such strategy; leave it out"
            raise FieldError(["strategies"], message, value=name)
    plugins.admit(request.strategies)
    for name in names:
        try:
            strategies.find(name)
        except PluginError:
            raise
        except LabError as error:
            raise FieldError(["resume"], str(error), value=run.run) from error


def _with_urls(target: Target, request: RunRequest) -> Target:
    """Return the target with the URLs that the file of the run does not hold."""
    urls, masked = dict(request.url), target.urls
    if {name: mask_text(url) for name, url in urls.items()} not in ({}, masked):
        raise FieldError(
            ["url"],
            f"the run measures {', '.join(masked.values())}; write the same URLs",
        )
    if hidden := [url for url in masked.values() if MASK in url and not urls]:
        raise FieldError(
            ["resume"], f"its file does not hold the whole URL {hidden[0]}; add `url`"
        )
    return target.updated(url=urls.pop("", target.url), servers=urls or target.servers)


def _with_secrets(run: Run, request: RunRequest) -> dict[str, Workload]:
    """Return the workloads with the values of headers and paths that the file of the
    run does not hold.
    """
    asked_path = request.workload.get("path", "/")
    paths = [asked_path]
    paths += [
        urlsplit(url)._replace(scheme="", netloc="").geturl()
        for url in request.url.values()
    ]
    path_of = {mask_text(path): path for path in paths}
    headers = request.workload.get("headers", {})
    given = {name.lower(): value for name, value in headers.items()}
    masked, workloads = set[str](), {}
    for key, workload in run.experiment.workloads.items():
        one = workload.request
        hidden = [name for name, value in one.headers.items() if value == MASK]
        whole = dict(one.headers)
        for name in hidden:
            if name.lower() not in given:
                message = (
                    f"its file does not hold the value of header {name!r}; add"
                    f" `headers` '{name}: VALUE'"
                )
                raise FieldError(["resume"], message, value=run.run)
            whole[name] = given[name.lower()]
            masked.add(name.lower())
        path = path_of.get(one.path) if MASK in one.path else one.path
        if path is None:
            message = (
                f"its file does not hold the whole path {one.path!r}; add `path` or"
                " `url`"
            )
            raise FieldError(["resume"], message, value=run.run)
        check_request_line(one.method, path.replace(NUMBER_FIELD, ""), whole)
        workloads[key] = change(workload, headers=whole, path=path)
    as_planned = "the run goes on as it was planned; leave it out"
    known = {workload.request.path for workload in workloads.values()}
    if asked_path not in {"/", *known}:
        raise FieldError(["path"], as_planned)
    for name in headers:
        if name.lower() not in masked:
            raise FieldError(["headers"], as_planned, value=repr(name))
    return workloads


def _with_folders(run: Run, request: RunRequest) -> dict[str, EnvironmentSpec]:
    environments = run.experiment.environments
    held = run.surroundings.environments or {}
    found = {}
    if unknown := request.environments.keys() - environments.keys():
        raise FieldError(
            ["environments"],
            "the run has no such environment; leave it out",
            value=min(unknown),
        )
    for name, spec in environments.items():
        if name not in request.environments:
            folder = spec.folder or (held[name].folder if name in held else "PATH")
            message = (
                f"its trials run in environment {name!r}; add `environments`"
                f" {shlex.quote(f'{name}={folder}')}"
            )
            raise FieldError(["resume"], message, value=run.run)
        text = request.environments[name]
        given = read_environment(text)
        if given.folder is None:
            is_same = list(map(mask_text, given.requirements)) == spec.requirements
        else:
            is_same = spec.folder in {None, given.folder}
        if not is_same:
            was = spec.folder or " ".join(spec.requirements)
            message = f"environment {name!r} of the run is {was}"
            raise FieldError(["environments"], message, value=mask_text(text))
        found[name] = given
    return found
