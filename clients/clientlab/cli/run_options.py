"""Options of `clientlab run`: one frozen dataclass. Each field is annotated with its option, and click fills it in.

A field that is None, False or empty was not given, and the experiment's own value holds.
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
    BUFFERS,
    CONDITIONS,
    DELAY,
    METHOD,
    OUT,
    OVERLOAD,
    RATE,
    ROUND_TRIPS,
    SECONDS,
    SHARE,
    SIZE,
    STAGES,
    complete_experiments,
    complete_runs,
    complete_strategies,
    environments_of,
    headers_of,
)
from clientlab.cli.reporting import CHART, FAIL_ON, HTML, JUNIT, STRICT, WHOLE
from clientlab.results.capacity_search import Conditions
from clientlab.testbeds.local import ROUTES
from clientlab.workload.arrivals import Stages
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What one `clientlab run` was given. Fields of the workload have the names of `Workload`'s fields."""

    experiment: Annotated[
        str | None, click.argument("experiment", required=False, shell_complete=complete_experiments)
    ] = None
    strategies: Annotated[
        tuple[str, ...],
        Option(
            "-t --strategy",
            "Strategy to measure; repeatable. 'clientlab list' names them.",
            shell_complete=complete_strategies,
        ),
    ] = ()
    requests: Annotated[int | None, Option("-n --requests", "Requests of each trial.  [default: 1000]")] = None
    duration: Annotated[
        float | None,
        Option(
            "-d --duration",
            "Length of each trial (10s), in place of -n.  [default with --find-max: 5s]",
            type=SECONDS,
        ),
    ] = None
    rate: Annotated[
        float | None,
        Option(
            "--rate",
            "Open load: requests arrive at this rate (500/s). They are sent whatever became of others.",
            type=RATE,
        ),
    ] = None
    stages: Annotated[
        Stages | None,
        Option("--stages", "Open load in steps: '0s:100/s,30s:1000/s' from each time on.", type=STAGES),
    ] = None
    arrivals: Annotated[
        Literal["uniform", "poisson"] | None,
        Option("--arrivals", "Open load: evenly spaced, or as independent users would send.  [default: uniform]"),
    ] = None
    max_late: Annotated[
        float | None,
        Option("--max-late", "Open load: drop a request that is later than this.  [default: --timeout]", type=SECONDS),
    ] = None
    find_max: Annotated[
        Conditions | None,
        Option(
            "--find-max",
            "Search the highest rate that holds 'p99<250ms'. Several: 'p99<250ms,errors<0.1%'. -d: length of trials.",
            type=CONDITIONS,
        ),
    ] = None
    find_from: Annotated[
        float | None, Option("--find-from", "The rate that --find-max tries first.  [default: 100/s]", type=RATE)
    ] = None
    overload: Annotated[
        tuple[float, ...] | None,
        Option(
            "--overload",
            "Behind --find-max: load each strategy with these shares of its capacity (110%,200%).",
            type=OVERLOAD,
            multiple=False,
        ),
    ] = None
    concurrency: Annotated[
        int | None, Option("-c --concurrency", "Most requests in flight at once.  [default: the strategy's own]")
    ] = None
    shards: Annotated[
        int | None,
        Option(
            "--shards", "Divide each trial over so many processes, with equal parts of requests and -c.  [default: 1]"
        ),
    ] = None
    rounds: Annotated[int | None, Option("--rounds", "Trials of each strategy, interleaved.  [default: 3]")] = None
    slices: Annotated[
        int | None, Option("--slices", "Parts of a trial with -d, by turns with others.  [default: up to 8]")
    ] = None
    budget: Annotated[
        float | None,
        Option(
            "--budget",
            "Add rounds for up to this time (60s). They end as soon as every comparison is decided.",
            type=SECONDS,
        ),
    ] = None
    precision: Annotated[
        float | None,
        Option(
            "--until-precision",
            "Add rounds until intervals are this narrow (3%). They are those of the ratios.",
            type=SHARE,
        ),
    ] = None
    time_budget: Annotated[
        float | None,
        Option("--time-budget", "Start no round that would end after this time.  [default: 10m]", type=SECONDS),
    ] = None
    quick: Annotated[bool, Option("--quick", "The experiment's short form. The run lists what it changed.")] = False
    require_claims: Annotated[bool, Option("--require-claims", "Exit 1 where a claim is contradicted.")] = False
    fail_on: Annotated[tuple[str, ...], Option("--fail-on", FAIL_ON, metavar="LIMIT")] = ()
    strict: Annotated[bool, Option("--strict", STRICT)] = False
    whole: Annotated[bool, Option("-v --all", WHOLE)] = False
    warmup: Annotated[int | None, Option("--warmup", "Requests before the measured ones.  [default: 10]")] = None
    connections: Annotated[
        Literal["cold", "warm"] | None,
        Option("--connections", "Open connections inside the clock, or before it.  [default: warm with -d, else cold]"),
    ] = None
    resume: Annotated[
        str | None,
        Option(
            "--resume",
            "Measure what this run lacks. It was interrupted, or trials failed. RUN is its name, or last.",
            metavar="RUN",
            shell_complete=complete_runs,
        ),
    ] = None
    ceilings: Annotated[
        bool,
        Option(
            "--ceilings", "Measure before round 1 how many requests per second each server answers at most (2 s each)."
        ),
    ] = False
    seed: Annotated[
        int | None,
        Option("--seed", "Decides the order of trials and random draws.  [default: a new seed]"),
    ] = None
    environments: Annotated[
        dict[str, str] | None,
        Option(
            "--env",
            "Run in this virtual environment; repeatable. PATH is its folder, or its Python. Several are compared.",
            metavar="NAME=PATH",
            multiple=True,
            callback=environments_of,
        ),
    ] = None
    pin: Annotated[
        bool,
        Option("--pin", "Give client and servers cores of their own. With two cores, upstream and proxy share one."),
    ] = False
    upstreams: Annotated[
        tuple[str, ...],
        Option("--upstream", "flask or aiohttp; repeatable. With settings: 'flask?workers=4'.  [default: aiohttp]"),
    ] = ()
    routes: Annotated[
        tuple[str, ...],
        Option(
            "--route",
            "direct, proxy or proxy-tls; repeatable.  [default: direct]",
            type=click.Choice(ROUTES),
            metavar="ROUTE",
        ),
    ] = ()
    rtt: Annotated[
        tuple[float, ...] | None,
        Option(
            "--rtt",
            "Round-trip time of an emulated network (35ms). Several, as 1ms,20ms, are an axis.",
            type=ROUND_TRIPS,
            multiple=False,
        ),
    ] = None
    bandwidth: Annotated[
        tuple[float, ...] | None,
        Option(
            "--bandwidth",
            "Bits per second of that network (20mbit). In each direction; several are an axis.  [default: no limit]",
            type=BANDWIDTHS,
            multiple=False,
        ),
    ] = None
    buffer: Annotated[
        tuple[float, ...] | None,
        Option(
            "--buffer",
            "Bytes that may wait for the bandwidth in each direction (64KiB); several are an axis.  "
            "[default: one bandwidth-delay product, at least 64KiB]",
            type=BUFFERS,
            multiple=False,
        ),
    ] = None
    url: Annotated[str | None, Option("--url", "Measure this server of yours. The lab starts none.")] = None
    allowed: Annotated[
        tuple[str, ...],
        Option(
            "--allow",
            "Permit code that the experiment's file, or the resumed run, names: a Python file, or a package's plug-in.",
            metavar="FILE|NAME",
        ),
    ] = ()
    allowed_environments: Annotated[
        tuple[str, ...],
        Option(
            "--allow-env",
            "Permit an environment that the experiment's file, or the resumed run, names: its folder, or 'PYTHON "
            "REQUIREMENT ...'.",
            metavar="CODE",
        ),
    ] = ()
    yes: Annotated[
        bool, Option("--yes", "Measure for more than 30 minutes without asking; permit load to the internet.")
    ] = False
    ca_file: Annotated[
        Path | None,
        Option(
            "--ca-file",
            "PEM file of the CA to trust, with --url https://...  [default: each library's own trust store]",
            type=click.Path(dir_okay=False, path_type=Path),
        ),
    ] = None
    path: Annotated[
        str | None,
        Option(
            "--path", "Path to request; {k} is the request's number. Of the lab's own upstreams; a --url has its own."
        ),
    ] = None
    method: Annotated[str | None, Option("--method", "HTTP method.  [default: GET]", type=METHOD)] = None
    payload_size: Annotated[
        int | None,
        Option("--payload-size", "Send a JSON object of so many random characters. They are in its field data."),
    ] = None
    body: Annotated[str | None, Option("--body", "Send this text, or @FILE.", type=BODY)] = None
    replay: Annotated[
        Path | None,
        Option(
            "--replay",
            "Send the requests of this file (JSON Lines, or HAR), once each unless -n or -d is given.",
            type=click.Path(dir_okay=False, path_type=Path),
        ),
    ] = None
    encode: Annotated[
        Literal["once", "each"] | None, Option("--encode", "Encode the payload once, or for each request.")
    ] = None
    parse: Annotated[bool, Option("--parse", "Parse each response as JSON, inside the clock.")] = False
    read: Annotated[Literal["whole", "chunks"] | None, Option("--read", "Keep each response's body, or stream it.")] = (
        None
    )
    chunk_size: Annotated[
        int | None, Option("--chunk-size", "Bytes to read at a time with --read chunks.  [default: 65536]")
    ] = None
    upload_size: Annotated[int | None, Option("--upload-size", "Send so many bytes.")] = None
    upload: Annotated[
        Literal["whole", "stream"] | None, Option("--upload", "Hold the bytes in memory, or stream them.")
    ] = None
    elapsed: Annotated[bool, Option("--elapsed", "Also keep the library's own time of each request.")] = False
    delay: Annotated[
        Delay | None,
        Option("--delay", "Delay of the upstream (140ms). A distribution: lognormal:100ms,0.3.", type=DELAY),
    ] = None
    headers: Annotated[
        dict[str, str] | None,
        Option("--header", "Header, as 'Name: value'; repeatable.", multiple=True, callback=headers_of),
    ] = None
    keep_headers: Annotated[
        tuple[str, ...],
        Option(
            "--keep-header",
            "Store the secret value of this header, or parameter of a query, in the run file; may be repeated.",
            metavar="NAME",
        ),
    ] = ()
    timeout: Annotated[
        float | None,
        Option("--timeout", "Limit for connecting and each wait for bytes.  [default: 30s]", type=SECONDS),
    ] = None
    deadline: Annotated[
        float | None,
        Option(
            "--deadline",
            "A trial that takes longer has failed.  [default: by requests, timeout, delay and duration]",
            type=SECONDS,
        ),
    ] = None
    request_limit: Annotated[
        float | None,
        Option(
            "--request-limit",
            "Limit for a whole request: a trial in which none ends for so long fails.  [default: timeout + 30s]",
            type=SECONDS,
        ),
    ] = None
    memory_limit: Annotated[
        int | None,
        Option(
            "--memory-limit",
            "A trial whose processes hold more memory fails (2GiB).  [default: 75% of the free memory]",
            type=SIZE,
        ),
    ] = None
    testbed: Annotated[
        Literal["local", "compose"],
        Option(
            "--testbed",
            "Upstreams as processes here, or in containers. local starts them; compose: those of the stack.",
            type=click.Choice(["local", "compose"]),
            envvar="CLIENTLAB_TESTBED",
            show_default=True,
        ),
    ] = "local"
    folder: Annotated[Path, OUT] = Path("results")
    name: Annotated[
        str | None, Option("--name", "Name of the run, as before-upgrade.  [default: time and experiment]")
    ] = None
    chart: Annotated[Path | None, CHART] = None
    html: Annotated[Path | None, HTML] = None
    junit: Annotated[Path | None, JUNIT] = None
    keep_samples: Annotated[
        bool, Option("--keep-samples", "Keep every request's sample, in one compressed file per trial.")
    ] = False
    as_json: Annotated[bool, Option("--json", "Print the run document. Everything else goes to standard error.")] = (
        False
    )

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
        return {name: getattr(self, name) for name in names if self.has(name)}


OPTION_NAMES = option_names(RunOptions)
"""Field → its option, for messages."""
