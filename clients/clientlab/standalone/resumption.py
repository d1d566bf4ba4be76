"""A stored run that goes on: what it is measured against, and what its file does not hold."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path

from clientlab import strategies
from clientlab.errors import FieldError, LabError, PluginError
from clientlab.redaction import MASK
from clientlab.results.document import Run
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.standalone.requests import ResumedRun
from clientlab.strategies import plugins
from clientlab.workload.request_line import check_request_line
from clientlab.workload.workload import NUMBER_FIELD, Workload, pinned


def stored_run(request: ResumedRun, store: Store, stack: contextlib.ExitStack) -> Run:
    """Return the run to go on with, which `stack` holds. Raises LabError if it cannot go on."""
    name = store.inside(request.name)
    stack.enter_context(store.hold(name))
    run = store.read(name)
    if run.status == "done":
        message = f"the run is whole; measure another with {run.experiment.command!r}"
        raise FieldError(["resume"], message, value=name)
    for workload in run.experiment.workloads.values():
        pinned(workload)
    return run


def target_of(run: Run, cluster: str | None) -> Target:
    """Return what the run is measured against. Raise FieldError if it is unknown, or needs a cluster or none."""
    if run.target is None:
        message = f"its file does not hold what it measured against; measure anew with {run.experiment.command!r}"
        raise FieldError(["resume"], message, value=run.run)
    if cluster is not None and run.target.testbed == "local":
        message = "the run was measured on this machine; leave it out, also as a variable"
        raise FieldError(["cluster"], message, value=cluster)
    if cluster is None and run.target.testbed == "compose":
        raise FieldError(["resume"], "the run was measured on a cluster; add `cluster` ADDRESS", value=run.run)
    return run.target


def completed_plan(run: Run, request: ResumedRun) -> Plan:
    """Return the plan of the run with the headers and environments of `request`, and load the code that it names.

    Raises FieldError for a value, an environment or code that is missing, or that the run does not have.
    """
    names = dict.fromkeys(arm.strategy for arm in run.experiment.arms)
    if others := [name for name in request.strategies if name not in names]:
        raise FieldError(["strategies"], "the run has no such strategy; leave it out", value=others[0])
    plugins.admit(request.strategies)
    for name in names:
        try:
            strategies.find(name)
        except PluginError:
            raise
        except LabError as error:
            raise FieldError(["resume"], str(error), value=run.run) from error
    return run.experiment.model_copy(
        update={"workloads": _with_headers(run, request), "environments": _named_environments(run, request)}
    )


def _with_headers(run: Run, request: ResumedRun) -> dict[str, Workload]:
    """Return the workloads of the run with the given values of masked headers."""
    given = {name.lower(): value for name, value in request.headers.items()}
    headers = [item for workload in run.experiment.workloads.values() for item in workload.headers.items()]
    masked = [name for name, value in headers if value == MASK]
    if others := [name for name in request.headers if name.lower() not in map(str.lower, masked)]:
        raise FieldError(["headers"], "the run goes on as it was planned; leave it out", value=repr(others[0]))
    if missing := [name for name in masked if name.lower() not in given]:
        message = f"its file does not hold the value of header {missing[0]!r}; add `headers` '{missing[0]}: VALUE'"
        raise FieldError(["resume"], message, value=run.run)
    found = {}
    for key, workload in run.experiment.workloads.items():
        whole = {name: given[name.lower()] if value == MASK else value for name, value in workload.headers.items()}
        check_request_line(workload.method, workload.path.replace(NUMBER_FIELD, ""), whole)
        found[key] = replace(workload, headers=whole)
    return found


def _named_environments(run: Run, request: ResumedRun) -> dict[str, EnvironmentSpec]:
    """Return the environments of the run by the folders of the command line."""
    if unknown := request.environments.keys() - run.experiment.environments.keys():
        raise FieldError(["environments"], "the run has no such environment; leave it out", value=min(unknown))
    held, found = run.surroundings.environments or {}, {}
    for name, spec in run.experiment.environments.items():
        if name not in request.environments:
            folder = spec.folder or (held[name].folder if name in held else "PATH")
            message = f"its trials run in environment {name!r}; add `environments` {shlex.quote(f'{name}={folder}')}"
            raise FieldError(["resume"], message, value=run.run)
        given = str(Path(request.environments[name]).expanduser().absolute())
        if spec.folder not in {None, given}:
            raise FieldError(["environments"], f"environment {name!r} of the run is {spec.folder}", value=given)
        found[name] = EnvironmentSpec(folder=given)
    return found
