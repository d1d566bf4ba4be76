"""Options of `clientlab run`: one frozen dataclass. Each field is annotated with its option, and click fills it in.

A field that is None, False or empty was not given, and the experiment's own value holds. Keys of experiments that are
rarely changed (`warmup`, `parse`, `deadline` and others) have no option; they are set in a file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from clientlab.cli.option_fields import Option, option_names
from clientlab.cli.option_types import (
    BANDWIDTHS,
    BODY,
    CONDITIONS,
    DELAY,
    METHOD,
    OUT,
    RATE,
    ROUND_TRIPS,
    SECONDS,
    SHARE,
    WAIT,
    complete_experiments,
    complete_runs,
    complete_strategies,
    environments_of,
    headers_of,
)
from clientlab.cli.reporting import CHART, FAIL_ON, HTML, JUNIT, WHOLE
from clientlab.results.conditions import Conditions
from clientlab.testbeds.local import ROUTES
from clientlab.workload.arrivals import Stages
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The arguments of one `clientlab run`. Fields of the workload have the names of `Workload`'s fields."""

    experiment: Annotated[
        str | None, click.argument("experiment", required=False, shell_complete=complete_experiments)
    ] = None

    # Most used
    strategies: Annotated[
        tuple[str, ...],
        Option(
            "-t --strategy",
            "Strategy to measure, see 'clientlab list'; repeatable.",
            shell_complete=complete_strategies,
        ),
    ] = ()
    requests: Annotated[int | None, Option("-n --requests", "Requests per trial.  [default: 1000]")] = None
    duration: Annotated[
        float | None,
        Option("-d --duration", "Length of each trial (10s), instead of -n.", type=SECONDS),
    ] = None
    concurrency: Annotated[
        int | None, Option("-c --concurrency", "Most requests in flight.  [default: the strategy's own]")
    ] = None
    delay: Annotated[
        Delay | None,
        Option("--delay", "Time the upstream waits: 140ms, lognormal:100ms,0.3.", type=DELAY),
    ] = None
    rtt: Annotated[
        tuple[float, ...] | None,
        Option("--rtt", "Round-trip time of an emulated network: 35ms, or several: 1ms,20ms.", type=ROUND_TRIPS,
               multiple=False),
    ] = None  # fmt: skip
    url: Annotated[str | None, Option("--url", "Measure your own server at this URL.")] = None
    environments: Annotated[
        dict[str, str] | None,
        Option(
            "--env",
            "Measure in this virtual environment; repeat to compare.",
            metavar="NAME=PATH",
            multiple=True,
            callback=environments_of,
        ),
    ] = None
    rounds: Annotated[int | None, Option("--rounds", "Trials of each strategy, interleaved.  [default: 3]")] = None
    budget: Annotated[
        float | None,
        Option("--budget", "Add rounds until everything is decided, for at most this long (60s).", type=WAIT),
    ] = None

    # Load
    rate: Annotated[
        float | Stages | None,
        Option("--rate", "Open load: send requests at this rate (500/s), or in stages: "
               "'0s:100/s,30s:1000/s'.", type=RATE),
    ] = None  # fmt: skip
    find_max: Annotated[
        Conditions | None,
        Option(
            "--find-max", "Find the highest rate that keeps these limits: 'p99<250ms,errors<0.1%'.", type=CONDITIONS
        ),
    ] = None
    method: Annotated[str | None, Option("--method", "HTTP method.  [default: GET]", type=METHOD)] = None
    path: Annotated[str | None, Option("--path", "Path to request; {k} is the number of the request.")] = None
    headers: Annotated[
        dict[str, str] | None,
        Option("--header", "Header to send, as 'Name: value'; repeatable.", multiple=True, callback=headers_of),
    ] = None
    body: Annotated[str | None, Option("--body", "Body to send: a text, or @FILE.", type=BODY)] = None
    payload_size: Annotated[
        int | None, Option("--payload-size", "Send a JSON body with this many random characters.")
    ] = None  # fmt: skip
    connections: Annotated[
        Literal["cold", "warm"] | None,
        Option(
            "--connections",
            "Connect during the measured time (cold) or before it (warm).  [default: cold with -n, warm with -d]",
        ),
    ] = None
    shards: Annotated[
        int | None, Option("--shards", "Divide each trial among this many processes.  [default: 1]")
    ] = None  # fmt: skip
    replay: Annotated[
        Path | None,
        Option(
            "--replay",
            "Send the recorded requests of this file (HAR or JSON Lines).",
            type=click.Path(dir_okay=False, path_type=Path),
        ),
    ] = None

    # Network
    routes: Annotated[
        tuple[str, ...],
        Option(
            "--route",
            "direct, proxy or proxy-tls; repeatable.  [default: direct]",
            type=click.Choice(ROUTES),
            metavar="ROUTE",
        ),
    ] = ()
    bandwidth: Annotated[
        tuple[float, ...] | None,
        Option("--bandwidth", "Bandwidth of the emulated network: 20mbit.", type=BANDWIDTHS,
               multiple=False),
    ] = None  # fmt: skip
    timeout: Annotated[
        float | None,
        Option("--timeout", "Time limit for each wait for the server.  [default: 30s]", type=SECONDS),
    ] = None
    ca_file: Annotated[
        Path | None,
        Option(
            "--ca-file",
            "CA certificate (PEM) to trust for an https --url.",
            type=click.Path(dir_okay=False, path_type=Path),
        ),
    ] = None

    # Server
    upstreams: Annotated[
        tuple[str, ...],
        Option("--upstream", "flask or aiohttp, also as 'flask?workers=4'; repeatable.  [default: aiohttp]"),
    ] = ()
    cluster: Annotated[
        str | None,
        Option(
            "--cluster",
            "Measure on the workers of this Dask scheduler (tcp://HOST:8786).",
            metavar="ADDRESS",
            envvar="CLIENTLAB_CLUSTER",
        ),
    ] = None

    # Precision
    quick: Annotated[bool, Option("--quick", "Run the short form of the experiment.")] = False
    precision: Annotated[
        float | None,
        Option(
            "--until-precision",
            "Add rounds until every interval is this narrow (3%), for at most --budget.  [default: 10m]",
            type=SHARE,
        ),
    ] = None
    pin: Annotated[bool, Option("--pin", "Give client and servers CPU cores of their own.")] = False
    seed: Annotated[int | None, Option("--seed", "Seed of all random choices.  [default: a new one]")] = None

    # Output
    whole: Annotated[bool, Option("-v --all", WHOLE)] = False
    html: Annotated[Path | None, HTML] = None
    junit: Annotated[Path | None, JUNIT] = None
    chart: Annotated[Path | None, CHART] = None
    as_json: Annotated[bool, Option("--json", "Print the run as JSON to standard output.")] = False
    folder: Annotated[Path, OUT] = Path("results")
    name: Annotated[str | None, Option("--name", "Name of the run.  [default: from time and experiment]")] = None
    fail_on: Annotated[tuple[str, ...], Option("--fail-on", FAIL_ON, metavar="LIMIT")] = ()
    resume: Annotated[
        str | None,
        Option(
            "--resume",
            "Continue this run: measure its missing and failed trials.",
            metavar="RUN",
            shell_complete=complete_runs,
        ),
    ] = None
    keep_samples: Annotated[bool, Option("--keep-samples", "Store every request of each trial in a NumPy archive.")] = (
        False
    )

    @property
    def stages(self) -> Stages | None:
        """The stages of `rate`, if it has several."""
        return self.rate if isinstance(self.rate, Stages) else None

    def has(self, name: str) -> bool:
        """Whether the option of that field was given. 0 is a value like any other."""
        value = getattr(self, name, None)
        return value is not None and value is not False and value != ()

    def given(self) -> list[str]:
        """The fields whose option was given."""
        return [one.name for one in fields(self) if self.has(one.name) and getattr(self, one.name) != one.default]

    def workload_fields(self) -> dict[str, Any]:
        """The fields of the workload that were given. The seed is the run's."""
        names = [one.name for one in fields(Workload) if one.name != "seed"]
        found = {name: getattr(self, name) for name in names if self.has(name)}
        if self.stages is not None:
            del found["rate"]
        return found


OPTION_NAMES = option_names(RunOptions) | {"stages": "--rate"}
"""Field → its option, for messages."""
