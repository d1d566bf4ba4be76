"""Options of `clientlab run`: one frozen dataclass. Each field is annotated with its option, and click fills it in.

A field that is None, False or empty was not given, and the experiment's own value holds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click

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


class _Option:
    """A command-line option. What its field's type and default do not say, `attributes` say, as of `click.option`."""

    def __init__(self, names: str, text: str, **attributes: Any) -> None:
        self.names = names.split()
        self.attributes = {"help": text, **attributes}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What one `clientlab run` was given. Fields of the workload have the names of `Workload`'s fields."""

    experiment: Annotated[
        str | None, click.argument("experiment", required=False, shell_complete=complete_experiments)
    ] = None
    strategies: Annotated[
        tuple[str, ...],
        _Option("-t --strategy", "A strategy; may be repeated (see 'list').", shell_complete=complete_strategies),
    ] = ()
    requests: Annotated[int | None, _Option("-n --requests", "Requests of each trial.  [default: 1000]")] = None
    duration: Annotated[
        float | None,
        _Option(
            "-d --duration",
            "Run each trial for this long (10s), not for a number of requests.  [default with --find-max: 5s]",
            type=SECONDS,
        ),
    ] = None
    rate: Annotated[
        float | None,
        _Option("--rate", "Open load: requests arrive at this rate (500/s), whatever became of others.", type=RATE),
    ] = None
    stages: Annotated[
        Stages | None,
        _Option("--stages", "Open load in steps: '0s:100/s,30s:1000/s' from each time on.", type=STAGES),
    ] = None
    arrivals: Annotated[
        Literal["uniform", "poisson"] | None,
        _Option("--arrivals", "Open load: evenly spaced, or as independent users would send.  [default: uniform]"),
    ] = None
    max_late: Annotated[
        float | None,
        _Option("--max-late", "Open load: drop a request that is later than this.  [default: --timeout]", type=SECONDS),
    ] = None
    find_max: Annotated[
        Conditions | None,
        _Option(
            "--find-max",
            "Search the highest rate at which these conditions hold ('p99<250ms,errors<0.1%'), with trials of -d.",
            type=CONDITIONS,
        ),
    ] = None
    find_from: Annotated[
        float | None, _Option("--find-from", "The rate that --find-max tries first.  [default: 100/s]", type=RATE)
    ] = None
    overload: Annotated[
        tuple[float, ...] | None,
        _Option(
            "--overload",
            "Behind --find-max: load each strategy with these shares of its capacity (110%,200%).",
            type=OVERLOAD,
            multiple=False,
        ),
    ] = None
    concurrency: Annotated[
        int | None, _Option("-c --concurrency", "Most requests in flight at once.  [default: the strategy's own]")
    ] = None
    shards: Annotated[
        int | None,
        _Option(
            "--shards", "Divide each trial over so many processes, with equal parts of requests and -c.  [default: 1]"
        ),
    ] = None
    rounds: Annotated[int | None, _Option("--rounds", "Trials of each strategy, interleaved.  [default: 3]")] = None
    slices: Annotated[
        int | None, _Option("--slices", "Parts of a trial with -d, by turns with the others.  [default: up to 8]")
    ] = None
    budget: Annotated[
        float | None,
        _Option("--budget", "Add rounds until every comparison is decided, or this time is over (60s).", type=SECONDS),
    ] = None
    precision: Annotated[
        float | None,
        _Option("--until-precision", "Add rounds until the ratios' intervals are this narrow (3%).", type=SHARE),
    ] = None
    time_budget: Annotated[
        float | None,
        _Option("--time-budget", "Start no round that would end after this time.  [default: 10m]", type=SECONDS),
    ] = None
    quick: Annotated[bool, _Option("--quick", "The experiment's short form; the run lists what it changed.")] = False
    require_claims: Annotated[bool, _Option("--require-claims", "Exit 1 where a claim is contradicted.")] = False
    fail_on: Annotated[tuple[str, ...], _Option("--fail-on", FAIL_ON, metavar="LIMIT")] = ()
    strict: Annotated[bool, _Option("--strict", STRICT)] = False
    whole: Annotated[bool, _Option("-v --all", WHOLE)] = False
    warmup: Annotated[int | None, _Option("--warmup", "Requests before the measured ones.  [default: 10]")] = None
    connections: Annotated[
        Literal["cold", "warm"] | None,
        _Option(
            "--connections", "Open connections inside the clock, or before it.  [default: warm with -d, else cold]"
        ),
    ] = None
    resume: Annotated[
        str | None,
        _Option(
            "--resume",
            "Measure what this run lacks: what was interrupted or failed. Its name, or last.",
            metavar="RUN",
            shell_complete=complete_runs,
        ),
    ] = None
    ceilings: Annotated[
        bool,
        _Option(
            "--ceilings", "Measure before round 1 how many requests per second each server answers at most (2 s each)."
        ),
    ] = False
    seed: Annotated[
        int | None,
        _Option("--seed", "Decides the order of trials, and all random draws of each round.  [default: a new seed]"),
    ] = None
    environments: Annotated[
        dict[str, str] | None,
        _Option(
            "--env",
            "Run every strategy in this virtual environment: its folder, or its Python. Repeat it to compare several.",
            metavar="NAME=PATH",
            multiple=True,
            callback=environments_of,
        ),
    ] = None
    pin: Annotated[
        bool, _Option("--pin", "Give client, upstream and proxy cores of their own; with two, the servers share one.")
    ] = False
    upstreams: Annotated[
        tuple[str, ...],
        _Option("--upstream", "flask, aiohttp, or one with settings: 'flask?workers=4'.  [default: aiohttp]"),
    ] = ()
    routes: Annotated[tuple[str, ...], _Option("--route", "[default: direct]", type=click.Choice(ROUTES))] = ()
    rtt: Annotated[
        tuple[float, ...] | None,
        _Option(
            "--rtt",
            "Emulate a network with this round-trip time before the server (35ms). Several, as 1ms,20ms, are an axis.",
            type=ROUND_TRIPS,
            multiple=False,
        ),
    ] = None
    bandwidth: Annotated[
        tuple[float, ...] | None,
        _Option(
            "--bandwidth",
            "Its bits per second in each direction (20mbit); several are an axis.  [default: no limit]",
            type=BANDWIDTHS,
            multiple=False,
        ),
    ] = None
    buffer: Annotated[
        tuple[float, ...] | None,
        _Option(
            "--buffer",
            "Bytes that may wait for the bandwidth in each direction (64KiB); several are an axis.  "
            "[default: one bandwidth-delay product, at least 64KiB]",
            type=BUFFERS,
            multiple=False,
        ),
    ] = None
    url: Annotated[str | None, _Option("--url", "Measure against this server of yours; the lab starts none.")] = None
    allowed: Annotated[
        tuple[str, ...],
        _Option(
            "--allow",
            "Permit code that the experiment's file, or the resumed run, names: a Python file, or a package's plug-in.",
            metavar="FILE|NAME",
        ),
    ] = ()
    allowed_environments: Annotated[
        tuple[str, ...],
        _Option(
            "--allow-env",
            "Permit an environment that the experiment's file, or the resumed run, names: its folder, or 'PYTHON "
            "REQUIREMENT ...'.",
            metavar="CODE",
        ),
    ] = ()
    yes: Annotated[bool, _Option("--yes", "Permit load to an address of the internet, with --url or --resume.")] = False
    ca_file: Annotated[
        Path | None,
        _Option(
            "--ca-file",
            "PEM file of the CA to trust, with --url https://...  [default: each library's own trust store]",
            type=click.Path(dir_okay=False, path_type=Path),
        ),
    ] = None
    path: Annotated[
        str | None,
        _Option("--path", "Path to request from the lab's own upstreams; {k} is the number of the request."),
    ] = None
    method: Annotated[str | None, _Option("--method", "[default: GET]", type=METHOD)] = None
    payload_size: Annotated[
        int | None, _Option("--payload-size", "Send a JSON object with a field of so many random characters.")
    ] = None
    body: Annotated[str | None, _Option("--body", "Send this text, or @FILE.", type=BODY)] = None
    replay: Annotated[
        Path | None,
        _Option(
            "--replay",
            "Send the requests of this file (JSON Lines, or HAR), once each unless -n or -d is given.",
            type=click.Path(dir_okay=False, path_type=Path),
        ),
    ] = None
    encode: Annotated[
        Literal["once", "each"] | None, _Option("--encode", "Encode the payload once, or for each request.")
    ] = None
    parse: Annotated[bool, _Option("--parse", "Parse each response as JSON, inside the clock.")] = False
    read: Annotated[
        Literal["whole", "chunks"] | None, _Option("--read", "Keep each response's body, or stream it.")
    ] = None
    chunk_size: Annotated[
        int | None, _Option("--chunk-size", "Bytes to read at a time with --read chunks.  [default: 65536]")
    ] = None
    upload_size: Annotated[int | None, _Option("--upload-size", "Send so many bytes.")] = None
    upload: Annotated[
        Literal["whole", "stream"] | None, _Option("--upload", "Hold the bytes in memory, or stream them.")
    ] = None
    elapsed: Annotated[bool, _Option("--elapsed", "Also keep the library's own time of each request.")] = False
    delay: Annotated[
        Delay | None, _Option("--delay", "Delay of the upstream: 140ms, lognormal:100ms,0.3, ...", type=DELAY)
    ] = None
    headers: Annotated[
        dict[str, str] | None,
        _Option("--header", "'Name: value'; may be repeated.", multiple=True, callback=headers_of),
    ] = None
    keep_headers: Annotated[
        tuple[str, ...],
        _Option(
            "--keep-header",
            "Store the secret value of this header, or parameter of a query, in the run file; may be repeated.",
            metavar="NAME",
        ),
    ] = ()
    timeout: Annotated[
        float | None,
        _Option("--timeout", "Limit for connecting and for each wait for bytes.  [default: 30s]", type=SECONDS),
    ] = None
    deadline: Annotated[
        float | None,
        _Option(
            "--deadline",
            "A trial that takes longer has failed.  [default: by requests, timeout, delay and duration]",
            type=SECONDS,
        ),
    ] = None
    request_limit: Annotated[
        float | None,
        _Option(
            "--request-limit",
            "Limit for a whole request: a trial in which none ends for so long fails.  [default: timeout + 30s]",
            type=SECONDS,
        ),
    ] = None
    memory_limit: Annotated[
        int | None,
        _Option(
            "--memory-limit",
            "A trial whose processes hold more memory fails (2GiB).  [default: 75% of the free memory]",
            type=SIZE,
        ),
    ] = None
    testbed: Annotated[
        Literal["local", "compose"],
        _Option(
            "--testbed",
            "Start upstreams and proxy as processes of this machine, or use those of the Compose stack.",
            type=click.Choice(["local", "compose"]),
            envvar="CLIENTLAB_TESTBED",
            show_default=True,
        ),
    ] = "local"
    folder: Annotated[Path, OUT] = Path("results")
    chart: Annotated[Path | None, CHART] = None
    html: Annotated[Path | None, HTML] = None
    junit: Annotated[Path | None, JUNIT] = None
    keep_samples: Annotated[
        bool, _Option("--keep-samples", "Keep every request's sample, in one compressed file per trial.")
    ] = False
    as_json: Annotated[bool, _Option("--json", "Print the run document; everything else goes to standard error.")] = (
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


_HINTS = get_type_hints(RunOptions, include_extras=True)

OPTION_NAMES = {
    name: hint.__metadata__[0].names[0]
    for name, hint in _HINTS.items()
    if isinstance(hint.__metadata__[0], _Option)
}  # fmt: skip
"""Field → its option, for messages."""


def run_options(command: Callable[[RunOptions], int]) -> Callable[..., int]:
    """Decorator below `click.command`: the command gets its arguments and options as one `RunOptions`."""

    @functools.wraps(command)
    def parsed(**arguments: Any) -> int:
        return command(RunOptions(**arguments))

    decorated: Callable[..., int] = parsed
    for one in reversed(fields(RunOptions)):
        decorated = _decorator(one)(decorated)
    return decorated


def _decorator(one: Field[Any]) -> Callable[..., Any]:
    """The click decorator of a field."""
    hint, option = get_args(_HINTS[one.name])
    if not isinstance(option, _Option):
        found: Callable[..., Any] = option
        return found
    default = {"default": one.default} if one.default else {}
    return click.option(*option.names, one.name, **{**default, **_inferred(hint), **option.attributes})


def _inferred(hint: Any) -> dict[str, Any]:
    """Attributes of `click.option` that follow from a field's type."""
    types = [hint] if get_origin(hint) in {Literal, tuple} else [one for one in get_args(hint) if one is not NoneType]
    base = types[0] if types else hint
    if base is bool:
        return {"is_flag": True}
    if base is int:
        return {"type": int}
    if get_origin(base) is tuple:
        return {"multiple": True}
    return {"type": click.Choice(get_args(base))} if get_origin(base) is Literal else {}
