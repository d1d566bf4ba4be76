"""What code a run may run: that of the lab, and that which its user names.

An experiment's file and a run that is resumed are documents. Others may have written them, and they may name Python
files, plug-ins and environments. Each of these needs the command line: `-t`, `--env`, `--allow` or `--allow-env`.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection
from pathlib import Path

from clientlab import redaction, strategies
from clientlab.errors import FieldError, PluginError
from clientlab.experiments.file import bundled, path_of
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.standalone.requests import NewRun, ResumedRun


def check_permitted(plan: Plan, request: NewRun | ResumedRun, permitted: Collection[str]) -> None:
    """Raises FieldError for code of the plan that is not among the permitted. Runs nothing."""
    for arm in plan.arms:
        with contextlib.suppress(PluginError):  # it is named, and its own error is told where it is measured
            strategies.find(arm.strategy)
    if isinstance(request, NewRun) and (request.overrides.environments or _is_bundled(request)):
        return
    allowed = {*permitted, *map(redaction.path, permitted), *(str(_absolute(name)) for name in permitted)}
    if unnamed := [code for code in map(_code_of, plan.environments.values()) if code not in allowed]:
        named = " ".join(f"`allowed_environments` {shlex.quote(code)}" for code in dict.fromkeys(unnamed))
        message = f"it runs or installs code of environments; permit it with {named}"
        if isinstance(request, ResumedRun):
            raise FieldError(["resume"], message, value=request.name)
        raise FieldError([str(request.experiment)], message)


def _code_of(spec: EnvironmentSpec) -> str:
    """What an environment is made of, as `--allow-env` names it: without the secrets in requirements' addresses."""
    if spec.folder is not None:
        return str(_absolute(spec.folder))
    return " ".join(filter(None, [spec.python, *map(redaction.path, spec.requirements)]))


def _absolute(folder: str) -> Path:
    return Path(folder).expanduser().absolute()


def _is_bundled(request: NewRun) -> bool:
    """Whether the experiment is one of the lab, whose code is the lab's own."""
    return request.experiment is None or path_of(request.experiment) in bundled().values()
