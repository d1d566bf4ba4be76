"""What code `clientlab run` may run: that of the lab, and that which its command line names.

An experiment's file and a run that is resumed are documents. Others may have written them, and they may name Python
files, plug-ins and environments. Each of these needs the command line: `-t`, `--env`, `--allow` or `--allow-env`.
"""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

from clientlab import redaction, strategies
from clientlab.cli.plan import path_of
from clientlab.cli.run_options import RunOptions
from clientlab.errors import LabError, PluginError
from clientlab.experiments.file import bundled
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.strategies import plugins


def admit(options: RunOptions) -> None:
    """Load the strategies that `-t` and `--allow` name."""
    plugins.admit([*options.strategies, *options.allowed])


def check_permitted(plan: Plan, options: RunOptions) -> None:
    """Raises LabError for code of the plan that the command line does not name. Runs nothing."""
    for arm in plan.arms:
        with contextlib.suppress(PluginError):  # it is named, and its own error is told where it is measured
            strategies.find(arm.strategy)
    if options.resume is None and (options.environments or _is_bundled(options)):
        return
    named = options.allowed_environments
    allowed = {*named, *map(redaction.path, named), *(str(_absolute(name)) for name in named)}
    if unnamed := [code for code in map(_code_of, plan.environments.values()) if code not in allowed]:
        options_named = " ".join(f"--allow-env {shlex.quote(code)}" for code in dict.fromkeys(unnamed))
        document = options.experiment if options.resume is None else f"--resume {options.resume}"
        raise LabError(f"{document}: it runs or installs code of environments; permit it with {options_named}")


def _code_of(spec: EnvironmentSpec) -> str:
    """What an environment is made of, as `--allow-env` names it: without the secrets in requirements' addresses."""
    if spec.folder is not None:
        return str(_absolute(spec.folder))
    return " ".join(filter(None, [spec.python, *map(redaction.path, spec.requirements)]))


def _absolute(folder: str) -> Path:
    return Path(folder).expanduser().absolute()


def _is_bundled(options: RunOptions) -> bool:
    """Whether the experiment is one of the lab, whose code is the lab's own."""
    return options.experiment is None or path_of(options.experiment) in bundled().values()
