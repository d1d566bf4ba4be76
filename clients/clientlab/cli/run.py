"""`clientlab run`: measure strategies, as an experiment or the options describe them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clientlab.cli import options as shared
from clientlab.cli.options import Parsed, complete_experiments, complete_runs, complete_strategies
from clientlab.cli.terminal import echo, say
from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.printable import printable
from clientlab.redaction import mask_text
from clientlab.workload.arrivals import Stages
from clientlab.workload.delays import Delay, seconds
from clientlab.workload.link import bandwidth_of, rtt_of
from clientlab.workload.workload import Workload

if TYPE_CHECKING:
    from clientlab.results.plan import Plan
    from clientlab.results.target import Target
    from clientlab.standalone.requests import NewRun, ResumedRun

LONG_RUN = 1800.0
"""Seconds. Longer runs ask first at a terminal, because `--delay 5` may have been meant as 5 ms."""

PUBLIC = "CLIENTLAB_PUBLIC"
"""Environment variable that permits load to addresses of the internet, as a yes at a terminal does."""


class _GroupedCommand(click.Command):
    """A command whose help shows its options in groups. `FIRSTS`: heading → the first field of the group."""

    FIRSTS = {  # noqa: RUF012 - no class changes it
        "Most used": "strategies", "Load": "rate", "Network": "routes", "Server": "upstreams",
        "Precision": "quick", "Output": "whole",
    }  # fmt: skip

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = [one.name for one in self.params]
        starts = [*map(names.index, self.FIRSTS.values()), len(names)]
        for place, heading in enumerate(self.FIRSTS):
            with formatter.section(heading):
                records = (one.get_help_record(ctx) for one in self.params[starts[place] : starts[place + 1]])
                formatter.write_dl([(names.ljust(25), text) for names, text in filter(None, records)])


_TIME = Parsed("time", seconds)


# fmt: off
@click.command(cls=_GroupedCommand)
@click.argument("experiment", required=False, shell_complete=complete_experiments)
@click.option("-t", "--strategy", "strategies", multiple=True, shell_complete=complete_strategies,
              help="Strategy to measure, see 'clientlab list'; repeatable.")
@click.option("-n", "--requests", type=int, help="Requests per trial.  [default: 1000]")
@click.option("-d", "--duration", type=_TIME, help="Length of each trial (10s), instead of -n.")
@click.option("-c", "--concurrency", type=int, help="Most requests in flight.  [default: the strategy's own]")
@click.option("--delay", type=Parsed("text", Delay.parse),
              help="Time the upstream waits: 140ms, lognormal:100ms,0.3.")
@click.option("--rtt", type=Parsed("time", shared.each_of(rtt_of)), default=(),
              help="Round-trip time of an emulated network: 35ms, or several: 1ms,20ms.")
@click.option("--url", help="Measure your own server at this URL.")
@click.option("--env", "environments", metavar="NAME=PATH", multiple=True, callback=shared.pairs("="),
              help="Measure in this virtual environment; repeat to compare.")
@click.option("--rounds", type=int, help="Trials of each strategy, interleaved.  [default: 3]")
@click.option("--budget", type=_TIME, help="Add rounds until everything is decided, for at most this long (60s).")
@click.option("--rate", type=Parsed("rate", shared.rate_or_stages),
              help="Open load: send requests at this rate (500/s), or in stages: '0s:100/s,30s:1000/s'.")
@click.option("--find-max", type=Parsed("conditions", shared.conditions),
              help="Find the highest rate that keeps these limits: 'p99<250ms,errors<0.1%'.")
@click.option("--method", type=Parsed("text", str.upper), help="HTTP method.  [default: GET]")
@click.option("--path", help="Path to request; {k} is the number of the request.")
@click.option("--header", "headers", multiple=True, callback=shared.pairs(":"),
              help="Header to send, as 'Name: value'; repeatable.")
@click.option("--body", type=Parsed("text", shared.body), help="Body to send: a text, or @FILE.")
@click.option("--payload-size", type=int, help="Send a JSON body with this many random characters.")
@click.option("--connections", type=click.Choice(["cold", "warm"]),
              help="Connect during the measured time (cold) or before it (warm).  "
              "[default: cold with -n, warm with -d]")
@click.option("--shards", type=int, help="Divide each trial among this many processes.  [default: 1]")
@click.option("--replay", type=shared.FILE, help="Send the recorded requests of this file (HAR or JSON Lines).")
@click.option("--route", "routes", type=click.Choice(["direct", "proxy", "proxy-tls"]), metavar="ROUTE", multiple=True,
              help="direct, proxy or proxy-tls; repeatable.  [default: direct]")
@click.option("--bandwidth", type=Parsed("bandwidth", shared.each_of(bandwidth_of)), default=(),
              help="Bandwidth of the emulated network: 20mbit.")
@click.option("--timeout", type=_TIME, help="Time limit for each wait for the server.  [default: 30s]")
@click.option("--ca-file", type=shared.FILE, help="CA certificate (PEM) to trust for an https --url.")
@click.option("--upstream", "upstreams", multiple=True,
              help="flask or aiohttp, also as 'flask?workers=4'; repeatable.  [default: aiohttp]")
@click.option("--cluster", metavar="ADDRESS", envvar="CLIENTLAB_CLUSTER",
              help="Measure on the workers of this Dask scheduler (tcp://HOST:8786).")
@click.option("--quick", is_flag=True, help="Run the short form of the experiment.")
@click.option("--until-precision", "precision", type=Parsed("share", shared.share),
              help="Add rounds until every interval is this narrow (3%), for at most --budget.  [default: 10m]")
@click.option("--pin", is_flag=True, help="Give client and servers CPU cores of their own.")
@click.option("--seed", type=int, help="Seed of all random choices.  [default: a new one]")
@shared.WHOLE
@shared.HTML
@shared.JUNIT
@shared.CHART
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON to standard output.")
@shared.OUT
@click.option("--name", help="Name of the run.  [default: from time and experiment]")
@shared.FAIL_ON
@click.option("--resume", metavar="RUN", shell_complete=complete_runs,
              help="Continue this run: measure its missing and failed trials.")
@click.option("--keep-samples", is_flag=True, help="Store every request of each trial in a NumPy archive.")
def run(**arguments: Any) -> int:
    """Measure strategies (-t) or an experiment.

    EXPERIMENT is the name of a bundled one or a TOML file. Options win over its values.
    """
    return _measure(**arguments)
# fmt: on


OPTION_NAMES = {str(one.name): one.opts[0] for one in run.params if isinstance(one, click.Option)}
"""Field → its option, for messages."""

OPTION_NAMES["stages"] = OPTION_NAMES["rate"]


def _measure(
    *,
    folder: Path,
    cluster: str | None,
    keep_samples: bool,
    fail_on: tuple[str, ...],
    resume: str | None,
    whole: bool,
    as_json: bool,
    html: Path | None,
    junit: Path | None,
    chart: Path | None,
    **described: Any,
) -> int:
    """Measure a run, show it and write its files. Return the exit code. `described`: what decides the measurement."""
    from clientlab.cli import output
    from clientlab.cli.tables import LabConsole
    from clientlab.judging.thresholds import judge_run, parse_threshold
    from clientlab.standalone.measuring import measured
    from clientlab.standalone.requests import RunSettings

    given = given_of(described)
    limits = tuple(map(parse_threshold, fail_on))
    request = new_run(given, cluster) if resume is None else _resumed_run(given, resume)
    settings = RunSettings(
        folder=folder, permits_public=permits_public, keep_samples=keep_samples, limits=limits, cluster=cluster
    )
    run = measured(request, settings, LabConsole(stderr=True), say, confirm_long_run)
    output.show(run, whole=whole, stderr=as_json)
    if as_json:
        echo(run.model_dump_json(indent=1))
    judged = judge_run(run, limits)
    try:
        output.write_files(run, judged, chart, html, junit, stderr=as_json)
    except (LabError, OSError) as error:
        raise IncompleteRun(f"{error}; the run is saved in {folder / run.run}") from error
    failed = output.tell(judged, stderr=as_json)
    return IncompleteRun.exit_code if run.status == "incomplete" else failed


def given_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given, by field. 0 is a value like any other. A rate may be stages."""
    found = {name: value for name, value in options.items() if value not in (None, (), {}) and value is not False}
    if isinstance(found.get("rate"), Stages):
        found["stages"] = found.pop("rate")
    return found


def confirm_long_run(plan: Plan, seconds: float) -> None:
    """Ask before a run that takes `seconds`, if it is long and somebody can answer. Raises LabError for a no."""
    from clientlab import units
    from clientlab.reports.headline import load_lines

    if seconds <= LONG_RUN or not _at_terminal():
        return
    for line in load_lines(plan):
        echo(line, err=True)
    if not click.confirm(f"The run takes about {units.minutes(seconds)}. Measure it?", err=True):
        raise LabError("nothing was measured; reduce the work with -n, -d, --delay or --rounds, or answer y")


def permits_public(addresses: Sequence[str]) -> bool:
    """Whether load may go to these addresses of the internet: asks at a terminal, elsewhere the environment decides."""
    if os.environ.get(PUBLIC) == "1":
        return True
    question = f"Load would go to {', '.join(addresses)} on the internet. Does the server's owner permit it?"
    return _at_terminal() and click.confirm(printable(question), err=True)


def _at_terminal() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def new_run(given: dict[str, Any], cluster: str | None) -> NewRun:
    """Return the run that the given options describe. Raises LabError for options that contradict each other."""
    from clientlab.experiments.overrides import Overrides
    from clientlab.standalone.requests import NewRun

    workload = {one.name: given[one.name] for one in fields(Workload) if one.name in given and one.name != "seed"}
    if "replay" in workload:
        workload["replay"] = str(given["replay"].resolve())  # trials run in folders of their own
    replaced = {one.name: given[one.name] for one in fields(Overrides) if one.name in given}
    return NewRun(
        command=shlex.join(map(mask_text, ["clientlab", *sys.argv[1:]])),
        target=_target(given, cluster),
        experiment=given.get("experiment"),
        quick="quick" in given,
        overrides=Overrides(**replaced, workload=workload),
        name=given.get("name"),
        given=frozenset(given),
    )


def _target(given: dict[str, Any], cluster: str | None) -> Target:
    """Return what is measured: the user's own server, or the lab's upstreams. Raises LabError."""
    from clientlab.results.target import Target

    if "url" not in given:
        if "ca_file" in given:
            raise LabError("--ca-file without --url: the lab's own routes bring their CA; leave it out")
        return Target(testbed="local" if cluster is None else "compose")
    for field in ("upstreams", "routes", "delay", "path"):
        if field in given:
            option = OPTION_NAMES[field]
            raise LabError(f"--url with {option}: only the lab's own upstreams have {option}; write it into the URL")
    return Target.external(given["url"], given.get("ca_file"))


def _resumed_run(given: dict[str, Any], name: str) -> ResumedRun:
    """Return the run that goes on. Raises LabError for an option that would change it."""
    from clientlab.standalone.requests import ResumedRun

    again = {field: given.pop(field) for field in ("strategies", "environments", "headers") if field in given}
    for field in given:
        option = OPTION_NAMES.get(field, field)
        raise FieldError(["resume"], f"the run goes on as it was planned; leave {option} out")
    return ResumedRun(name=name, **again)
