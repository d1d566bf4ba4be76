"""`clientlab run`: measure strategies, as an experiment or the options
describe them.
"""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from clientlab.cli import options as shared
from clientlab.cli.options import (
    BANDWIDTH,
    DELAY,
    RATE,
    RTT,
    STATUSES,
    TIME,
    TextType,
    echo,
)
from clientlab.errors import IncompleteRun, LabError
from clientlab.text import mask_text


class _GroupedCommand(click.Command):
    """A command whose help shows its options in groups."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        first_options = {
            "Most used": "strategies",
            "Load": "rate",
            "Network": "routes",
            "Server": "upstreams",
            "Precision": "quick",
            "Output": "whole",
        }
        names = [one.name for one in self.params]
        starts = [*map(names.index, first_options.values()), len(names)]
        for place, heading in enumerate(first_options):
            with formatter.section(heading):
                records = (
                    one.get_help_record(ctx)
                    for one in self.params[starts[place] : starts[place + 1]]
                )
                formatter.write_dl(
                    [(names.ljust(25), text) for names, text in filter(None, records)]
                )


@click.command(cls=_GroupedCommand)
@click.argument(
    "experiment", required=False, shell_complete=shared.complete_experiments
)
@click.option(
    "-t",
    "--strategy",
    "strategies",
    multiple=True,
    shell_complete=shared.complete_strategies,
    help="Strategy to measure, see 'clientlab list'; repeatable.",
)
@click.option("-n", "--requests", type=int, help="Requests per trial.  [default: 1000]")
@click.option(
    "-d", "--duration", type=TIME, help="Length of each trial (10s), instead of -n."
)
@click.option(
    "-c",
    "--concurrency",
    type=int,
    help="Most requests in flight.  [default: the strategy's own]",
)
@click.option(
    "--delay", type=DELAY, help="Time the upstream waits: 140ms, lognormal:100ms,0.3."
)
@click.option(
    "--fault",
    "faults",
    metavar="FAULT",
    multiple=True,
    callback=shared.read_faults,
    help=(
        "What the upstream does instead of an answer: 503:5%, 429:10%,after=1s,"
        " reset:1%, stall:1%, outage:2s..5s, limit:100/s …; repeatable."
    ),
)
@click.option(
    "--rtt",
    type=RTT,
    default=(),
    help="Round-trip time of an emulated network: 35ms, or several: 1ms,20ms.",
)
@click.option(
    "--url",
    metavar="[NAME=]URL",
    multiple=True,
    callback=shared.read_urls,
    help=(
        "Measure your own server; repeat with names to compare:"
        " base=http://127.0.0.1:8001/."
    ),
)
@click.option(
    "--env",
    "environments",
    metavar="NAME=ENV",
    multiple=True,
    callback=shared.pairs("="),
    help=(
        "Measure in this virtual environment (a path), or in one with this package:"
        " httpx==0.28.1, git+https://…@REF or a folder of sources; repeat to compare."
    ),
)
@click.option(
    "--rounds", type=int, help="Trials of each strategy, interleaved.  [default: 3]"
)
@click.option(
    "--budget",
    type=TIME,
    help="Add rounds until everything is decided, for at most this long (60s).",
)
@click.option(
    "--rate",
    type=RATE,
    help=(
        "Open load: send requests at this rate (500/s), or in stages:"
        " '0s:100/s,30s:1000/s'."
    ),
)
@click.option(
    "--find-max",
    metavar="CONDITIONS",
    help="Find the highest rate that keeps these limits: 'p99<250ms,errors<0.1%'.",
)
@click.option(
    "--method", type=TextType("text", str.upper), help="HTTP method.  [default: GET]"
)
@click.option("--path", help="Path to request; {k} is the number of the request.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    callback=shared.pairs(":"),
    help="Header to send, as 'Name: value'; repeatable.",
)
@click.option(
    "--body",
    type=TextType("text", shared.read_body),
    help="Body to send: a text, or @FILE.",
)
@click.option(
    "--payload-size",
    type=int,
    help="Send a JSON body with this many random characters.",
)
@click.option(
    "--expect",
    type=STATUSES,
    help="Statuses that are successes: 2xx,404.  [default: all below 400]",
)
@click.option(
    "--decode",
    is_flag=True,
    help="Ask for gzip, and let every client decode the bodies.",
)
@click.option(
    "--first-byte",
    is_flag=True,
    help="Also measure the time to the first byte of each body.",
)
@click.option(
    "--stream",
    type=click.Choice(["sse", "jsonl", "openai-chat", "openai-responses", "anthropic"]),
    metavar="FORMAT",
    help=(
        "Read streams of events: sse, jsonl, openai-chat, openai-responses or"
        " anthropic."
    ),
)
@click.option(
    "--first", type=DELAY, help="Time to the first event of a stream.  [default: 0ms]"
)
@click.option("--every", type=DELAY, help="Time between its events.  [default: 10ms]")
@click.option("--events", type=int, help="Events of each stream.  [default: 100]")
@click.option(
    "--stream-options",
    metavar="NAME=VALUE&…",
    help="More settings of the mock: pings=10&end=5ms&size=200.",
)
@click.option(
    "--connections",
    type=click.Choice(["cold", "warm"]),
    help=(
        "Connect during the measured time (cold) or before it (warm).  "
        "[default: cold with -n, warm with -d]"
    ),
)
@click.option(
    "--cold",
    is_flag=True,
    help="Start a new interpreter for each request, and count its imports.",
)
@click.option(
    "--shards",
    type=int,
    help="Divide each trial among this many processes.  [default: 1]",
)
@click.option(
    "--replay",
    type=click.Path(dir_okay=False, resolve_path=True),
    help=(
        "Send the recorded requests of this file: HAR, access log, JSON Lines or"
        " vegeta."
    ),
)
@click.option(
    "--replay-times",
    is_flag=True,
    help="Send them at their recorded times (open load).",
)
@click.option(
    "--max-gap",
    type=TIME,
    help="Shorten longer pauses between recorded times to this (10s).",
)
@click.option(
    "--skip-bad",
    is_flag=True,
    help="Leave out entries of the file that cannot be read.",
)
@click.option(
    "--route",
    "routes",
    type=click.Choice(["direct", "proxy", "proxy-tls"]),
    metavar="ROUTE",
    multiple=True,
    help="direct, proxy or proxy-tls; repeatable.  [default: direct]",
)
@click.option(
    "--bandwidth",
    type=BANDWIDTH,
    default=(),
    help="Bandwidth of the emulated network: 20mbit.",
)
@click.option(
    "--timeout",
    type=TIME,
    help="Time limit for each wait for the server.  [default: 30s]",
)
@click.option(
    "--call-timeout",
    type=TIME,
    help="Time limit for a whole call with all its attempts (2s).",
)
@click.option(
    "--ca-file",
    type=shared.FILE,
    help="CA certificate (PEM) to trust for an https --url.",
)
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    help="flask or aiohttp, also as 'flask?workers=4'; repeatable.  [default: aiohttp]",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    envvar="CLIENTLAB_CLUSTER",
    help="Measure on the workers of this Dask scheduler (tcp://HOST:8786).",
)
@click.option("--quick", is_flag=True, help="Run the short form of the experiment.")
@click.option(
    "--until-precision",
    "precision",
    metavar="SHARE",
    help=(
        "Add rounds until every interval is this narrow (3%), for at most --budget. "
        " [default: 10m]"
    ),
)
@click.option(
    "--pin", is_flag=True, help="Give client and servers CPU cores of their own."
)
@click.option(
    "--explain",
    is_flag=True,
    help=(
        "Measure each arm once more, to show where requests wait and which code takes"
        " the CPU."
    ),
)
@click.option(
    "--seed", type=int, help="Seed of all random choices.  [default: a new one]"
)
@shared.WHOLE
@shared.HTML
@shared.JUNIT
@shared.CHART
@click.option(
    "--json", "as_json", is_flag=True, help="Print the run as JSON to standard output."
)
@shared.OUT
@click.option("--name", help="Name of the run.  [default: from time and experiment]")
@shared.FAIL_ON
@click.option(
    "--resume",
    metavar="RUN",
    shell_complete=shared.complete_runs,
    help="Continue this run: measure its missing and failed trials.",
)
@click.option(
    "--keep-samples",
    is_flag=True,
    help="Store every request of each trial in a NumPy archive.",
)
def run(*, whole: bool, as_json: bool, **options: Any) -> int:
    """Measure strategies (-t) or an experiment.

    EXPERIMENT is the name of a bundled one or a TOML file. Options win over its values.
    """
    from clientlab.cli import output
    from clientlab.cli.measuring import measure_run
    from clientlab.experiments.request import RunRequest
    from clientlab.judging.thresholds import judge_run, parse_threshold

    request = RunRequest.from_options(
        options, shlex.join(map(mask_text, ["clientlab", *sys.argv[1:]]))
    )
    limits = [parse_threshold(text) for text in request.fail_on]
    run = measure_run(request, limits)
    saved = f"the run is saved in {request.folder / run.run}"
    try:
        output.show(run, whole=whole, stderr=as_json)
        if as_json:
            echo(run.model_dump_json(indent=1))
        judged = judge_run(run, limits)
        code = output.show_thresholds(judged, stderr=as_json)
        targets = {name: options[name] for name in ("chart", "html", "junit")}
        try:
            output.write_files(run, judged, targets, stderr=as_json)
        except (LabError, OSError) as error:
            raise IncompleteRun(f"{error}; {saved}") from error
    except KeyboardInterrupt as interrupt:
        raise IncompleteRun(f"interrupted; {saved}") from interrupt
    return IncompleteRun.exit_code if run.status == "incomplete" else code
