"""Carry out a requested run, new or continued: plan and check it, open what it needs,
and measure its trials.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.console import Console

from clientlab import plugins, strategies, units
from clientlab.cli.options import echo, say
from clientlab.cli.output import LabConsole
from clientlab.cluster.measurement import ClusterMeasurement
from clientlab.cluster.workers import check_portable, connect
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
from clientlab.results.document import Run
from clientlab.results.kept_samples import are_kept
from clientlab.results.plan import EnvironmentSpec, Plan, Target
from clientlab.results.store import Store
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.running.environments import open_environments
from clientlab.running.execute import create_run, execute, name_run, resume_run
from clientlab.running.schedule import estimate_seconds, estimate_seconds_left
from clientlab.running.trial_runner import TrialRunner, check_disk, try_functions
from clientlab.testbeds import Servers
from clientlab.text import MASK, make_printable, mask_text
from clientlab.workload.checks import check_request_line
from clientlab.workload.recordings import pin_recorded_requests
from clientlab.workload.workload import NUMBER_FIELD, Workload, change


def measure_run(request: RunRequest, limits: Sequence[Threshold]) -> Run:
    """Measure a run and return it with its verdicts.

    Each trial is saved when it ends. Raise LabError.

    `limits`: the thresholds by which the run will be judged.
    """
    store, stored = Store(request.folder), None
    with contextlib.ExitStack() as stack:
        if request.resume is None:
            name = request.name and store.new_name(request.name)
            base = read_base(request)
            with naming_file(request):
                servers = Servers.of(request.find_target(base), _permits_public)
            plan = plan_run(request, base, servers.external, say)
            name = name or name_run(plan)
        else:
            name = store.inside(request.resume)
            stack.enter_context(store.hold(name))
            stored = store.read(name)
            target, plan = _plan_resumed(stored, request)
            servers = Servers.of(target, _permits_public)
        with naming_file(request):
            answer = servers.check(plan)
        cluster = None
        if request.cluster is not None:
            check_portable(plan, servers.target, keep_samples=request.keep_samples)
            cluster = stack.enter_context(
                connect(request.cluster, plan, servers.target)
            )
        check_limits(list(limits), plan)
        placement = servers.placement(plan)
        seconds = (
            estimate_seconds(plan, answer)
            if stored is None
            else estimate_seconds_left(stored, answer)
        )
        _confirm_long_run(plan, seconds)
        environments = stack.enter_context(open_environments(plan))
        if stored is None:
            check_disk(plan, store.claim(name))
            stack.enter_context(store.hold(name))
        console: Console = LabConsole(stderr=True)
        if cluster is not None:
            announce = cache(
                lambda: console.print(
                    "the lab is measuring another run; this one begins after it"
                )
            )
            stack.enter_context(cluster.reserve(announce))
            where = cluster.read_surroundings()
        else:
            if placement is not None:
                say(f"pinned: {placement}")
            testbed, links, programs = servers.open(
                plan, placement, store.folder / name / "logs", stack
            )
            try_functions(plan, testbed, environments.interpreters)
            keeps = are_kept(store.folder / name, wanted=request.keep_samples)
            runner = TrialRunner(
                testbed,
                keeps,
                interpreters=environments.interpreters,
                links=links,
                placement=placement,
            )
            # Read while the servers run, since the surroundings include the load of the
            # machine.
            own = distributions_of(
                [arm.strategy for arm in plan.arms if arm.environment is None]
            )
            programs |= programs_of(arm.strategy for arm in plan.arms)
            where = surroundings(own, programs, environments.held, placement)
        run = (
            create_run(name, plan, servers.target, where)
            if stored is None
            else resume_run(stored, where)
        )
        for line in run.resumed[-1].differences if stored else ():
            say(f"since the run began: {line}")
        observer = stack.enter_context(ProgressLines(console, answer))
        stack.enter_context(_naming_next_command(name, request.folder))
        if cluster is not None:
            return execute(
                run, ClusterMeasurement(cluster, run), store, observer, whole=plan
            )
        return execute(
            run, runner, store, observer, whole=plan, by_turns=runner.by_turns
        )


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


def _plan_resumed(run: Run, request: RunRequest) -> tuple[Target, Plan]:
    """Return the target of a stored run, and its plan with what its file lacks: code,
    header values and environments.

    Raise FieldError if it cannot go on, or if the request lacks any of these or would
    change the run.
    """
    plan = run.experiment
    secrets = {"headers", "url", "path"}
    allowed = {
        "resume",
        "strategies",
        "environments",
        "folder",
        "cluster",
        "keep_samples",
        "fail_on",
        *secrets,
    }
    if refused := next((name for name in request.given if name not in allowed), None):
        raise FieldError(
            ["resume"], f"the run goes on as it was planned; leave `{refused}` out"
        )
    if run.status == "done" or run.target is None:
        reason = (
            "the run is complete"
            if run.target
            else "its file does not say what it measured"
        )
        raise FieldError(
            ["resume"],
            f"{reason}; measure another with {plan.command!r}",
            value=run.run,
        )
    if request.cluster is not None and run.target.testbed == "local":
        message = (
            "the run was measured on this machine; leave it out, also as a variable"
        )
        raise FieldError(["cluster"], message, value=request.cluster)
    if request.cluster is None and run.target.testbed == "compose":
        raise FieldError(
            ["resume"],
            "the run was measured on a cluster; add `cluster` ADDRESS",
            value=run.run,
        )
    for workload in plan.workloads.values():
        # Raises FieldError if the recorded requests have changed.
        pin_recorded_requests(workload)
    names = dict.fromkeys(arm.strategy for arm in plan.arms)
    if unknown := [name for name in request.strategies if name not in names]:
        raise FieldError(
            ["strategies"],
            "the run has no such strategy; leave it out",
            value=unknown[0],
        )
    plugins.admit(request.strategies)
    for name in names:
        try:
            strategies.find(name)
        except PluginError:
            raise
        except LabError as error:
            raise FieldError(["resume"], str(error), value=run.run) from error
    changes = {
        "workloads": _with_secrets(run, request),
        "environments": _with_folders(run, request),
    }
    return _with_urls(run.target, request), plan.model_copy(update=changes)


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
    return target.model_copy(
        update={"url": urls.pop("", target.url), "servers": urls or target.servers}
    )


def _with_secrets(run: Run, request: RunRequest) -> dict[str, Workload]:
    """Return the workloads with the values of headers and paths that the file of the
    run does not hold.
    """
    paths = [request.workload.get("path", "/")]
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
        hidden = {
            name: name.lower() for name, value in one.headers.items() if value == MASK
        }
        if missing := next(
            (name for name in hidden if hidden[name] not in given), None
        ):
            message = (
                f"its file does not hold the value of header {missing!r}; add `headers`"
                f" '{missing}: VALUE'"
            )
            raise FieldError(["resume"], message, value=run.run)
        masked.update(hidden.values())
        whole = one.headers | {name: given[lower] for name, lower in hidden.items()}
        path = path_of.get(one.path) if MASK in one.path else one.path
        if path is None:
            message = (
                f"its file does not hold the whole path {one.path!r}; add `path` or"
                " `url`"
            )
            raise FieldError(["resume"], message, value=run.run)
        check_request_line(one.method, path.replace(NUMBER_FIELD, ""), whole)
        workloads[key] = change(workload, headers=whole, path=path)
    known = {workload.request.path for workload in workloads.values()}
    if paths[0] not in {"/", *known}:
        raise FieldError(["path"], "the run goes on as it was planned; leave it out")
    if unknown := [name for name in headers if name.lower() not in masked]:
        raise FieldError(
            ["headers"],
            "the run goes on as it was planned; leave it out",
            value=repr(unknown[0]),
        )
    return workloads


def _with_folders(run: Run, request: RunRequest) -> dict[str, EnvironmentSpec]:
    environments, held, found = (
        run.experiment.environments,
        run.surroundings.environments or {},
        {},
    )
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
