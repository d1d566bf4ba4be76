"""A stored run that goes on: what it is measured against, and the values that its file does not hold."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from clientlab import strategies
from clientlab.errors import FieldError, LabError, PluginError
from clientlab.redaction import MARK
from clientlab.results.document import Run
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.results.store import Store
from clientlab.results.target import Target
from clientlab.results.withheld_plan import Lacking, completed, lacking
from clientlab.standalone.requests import ResumedRun
from clientlab.strategies import plugins
from clientlab.workload.workload import pinned


def stored_run(request: ResumedRun, store: Store, stack: contextlib.ExitStack) -> Run:
    """The run to go on with, which `stack` holds. Raises LabError where it can't go on."""
    name = store.inside(request.name)
    stack.enter_context(store.hold(name))
    run = store.read(name)
    if run.status == "done":
        message = f"the run is whole; measure another with {run.experiment.command!r}"
        raise FieldError(["resume"], message, value=name)
    _check_code_named(run, request)
    for workload in run.experiment.workloads.values():
        pinned(workload)
    return run


def _check_code_named(run: Run, request: ResumedRun) -> None:
    """Raise FieldError for code that the run file names and the command line does not. Load what both name."""
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
    if unknown := request.environments.keys() - run.experiment.environments.keys():
        raise FieldError(["environments"], "the run has no such environment; leave it out", value=min(unknown))
    held = run.surroundings.environments or {}
    for name, spec in run.experiment.environments.items():
        if name not in request.environments:
            folder = spec.folder or (held[name].folder if name in held else "PATH")
            message = f"its trials run in environment {name!r}; add `environments` {shlex.quote(f'{name}={folder}')}"
            raise FieldError(["resume"], message, value=run.run)
        given = str(Path(request.environments[name]).expanduser().absolute())
        if spec.folder not in (None, given):
            raise FieldError(["environments"], f"environment {name!r} of the run is {spec.folder}", value=given)


def target_of(run: Run, request: ResumedRun) -> Target:
    """What the run is measured against. Raises FieldError for another testbed, and where its file lacks the target.

    Also where its arms name another server: reports show them, and must not hide where load goes.
    """
    if run.target is None:
        message = f"its file does not hold what it measured against; measure anew with {run.experiment.command!r}"
        raise FieldError(["resume"], message, value=run.run)
    if request.testbed == "compose" and run.target.testbed == "local":
        message = "the run goes on in its own testbed, local; leave it out, also as a variable"
        raise FieldError(["testbed"], message, value=request.testbed)
    shown = {arm.upstream for arm in run.experiment.arms}
    if run.target.url is not None and shown != {urlsplit(run.target.url).netloc}:
        message = f"its target is another server than its arms name ({', '.join(sorted(shown))}); measure anew"
        raise FieldError(["resume"], message, value=run.run)
    return run.target


def completed_plan(run: Run, target: Target, request: ResumedRun) -> Plan:
    """The plan of the run with the values of `request`: of headers, and of the query of its URL or path.

    Raises FieldError where a value is lacking, or is none that the run lacks.
    """
    plan = completed(run.experiment, request.headers, _path_of(target, request))
    environments = {name: EnvironmentSpec(folder=path) for name, path in request.environments.items()}
    plan = plan.model_copy(update={"environments": environments})
    if (found := lacking(plan)) is None:
        return plan
    raise FieldError(["resume"], f"its file does not hold {found}; {_remedy(found, target)}", value=run.run)


def _path_of(target: Target, request: ResumedRun) -> str | None:
    """The path that is given again, with its query. Raises FieldError for the URL of another server."""
    if request.url is None:
        return request.path
    before, now = (urlsplit(url or "") for url in (target.url, request.url))
    if (before.scheme, before.netloc) != (now.scheme, now.netloc):
        raise FieldError(["url"], f"the run goes on with {before.netloc or 'its own upstreams'}; leave it out")
    return (now.path or "/") + (f"?{now.query}" if now.query else "")


def _remedy(found: Lacking, target: Target) -> str:
    if found.kind == "header":
        return f"add `headers` '{found.name}: VALUE'"
    if found.kind == "query":
        option = "path" if target.url is None else "url"
        return f"add `{option}` with the values in place of {MARK}"
    return "measure anew"
