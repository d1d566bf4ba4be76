"""`clientlab run`: measure strategies, by an experiment or by the words of the command line."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from clientlab.cli.asked import asked
from clientlab.cli.claims import code_of
from clientlab.cli.report import CHART, draw, show
from clientlab.cli.words import OUT, SECONDS, SHARE
from clientlab.errors import IncompleteRun, LabError
from clientlab.homes.containers import ContainerHome, check_plain
from clientlab.homes.elsewhere import Elsewhere
from clientlab.homes.local import ROUTES, LocalHome, check_upstreams
from clientlab.homes.serving import workers_for
from clientlab.reports.progress import LiveBar, PlainLines
from clientlab.runs.document import Run
from clientlab.runs.execute import execute
from clientlab.runs.experiment import Experiment, new_run, run_name
from clientlab.runs.here import Here, Home
from clientlab.runs.store import Store
from clientlab.runs.surroundings import distributions_of, programs_of, surroundings

_LOOK_SECONDS = 0.5


@click.command()
@click.argument("experiment", required=False)
@click.option("-t", "--strategy", "strategies", multiple=True, help="A strategy; may be repeated (see 'list').")
@click.option("-n", "--requests", type=int, help="Requests of each trial.  [default: 1000]")
@click.option("-d", "--duration", type=SECONDS, help="Run each trial for this long (10s) instead.")
@click.option("-c", "--concurrency", type=int, help="Requests in flight at once.  [default: the strategy's own]")
@click.option("--rounds", type=int, help="Trials of each strategy, interleaved.  [default: 3]")
@click.option("--until-precision", "precision", type=SHARE, help="Add rounds until ratios are this sure (3%).")
@click.option("--time-budget", type=SECONDS, help="Add no round beyond this.  [default: 10m]")
@click.option("--quick", is_flag=True, help="The experiment's short form; the run says what it changed.")
@click.option("--require-claims", is_flag=True, help="Exit 1 where a claim is contradicted.")
@click.option("--warmup", type=int, help="Requests before the measured ones.  [default: 10]")
@click.option("--connections", type=click.Choice(["cold", "warm"]), help="Opened inside the clock, or before it.")
@click.option("--seed", type=int, help="Decides orders, payloads and delays.  [default: 1]")
@click.option(
    "--upstream",
    "upstreams",
    multiple=True,
    help="flask, aiohttp, or one of them with settings: 'flask?workers=4'.  [default: aiohttp]",
)
@click.option("--route", "routes", multiple=True, type=click.Choice(ROUTES), help="[default: direct]")
@click.option("--url", help="Measure against this server of yours; nothing is started.")
@click.option(
    "--ca-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="PEM file of the CA to trust, with --url https://...  [default: those that each library knows]",
)
@click.option("--path", help="Path asked for, on the lab's own upstreams; {k} is the number of the request.")
@click.option("--method", help="[default: GET]")
@click.option("--payload-size", type=int, help="Send a JSON object with a field of so many random characters.")
@click.option("--body", help="Send this text, or @FILE.")
@click.option("--encode", type=click.Choice(["once", "each"]), help="Encode the payload once, or for each request.")
@click.option("--parse", is_flag=True, default=None, help="Parse each answer as JSON, inside the clock.")
@click.option("--read", type=click.Choice(["whole", "chunks"]), help="Keep each answer's body, or stream it.")
@click.option("--chunk-size", type=int, help="Bytes asked for at a time with --read chunks.  [default: 65536]")
@click.option("--upload-size", type=int, help="Send so many bytes.")
@click.option("--upload", type=click.Choice(["whole", "stream"]), help="Hold them in memory, or stream them.")
@click.option("--elapsed", is_flag=True, default=None, help="Keep the library's own measure of each request as well.")
@click.option("--delay", help="Ask the upstream to wait: 140ms, lognormal:100ms,0.3, ...")
@click.option("--header", "headers", multiple=True, help="'Name: value'; may be repeated.")
@click.option("--timeout", type=SECONDS, help="Limit for connecting and for each wait for bytes.  [default: 30s]")
@click.option(
    "--home",
    type=click.Choice(["here", "containers"]),
    envvar="CLIENTLAB_HOME",
    default="here",
    show_default=True,
    help="Start upstreams and proxy here, or use those of the containers.",
)
@OUT
@CHART
@click.option("--keep-samples", is_flag=True, help="Keep every request's sample, a compressed file a trial.")
@click.option("--json", "as_json", is_flag=True, help="Print the run document; everything else on standard error.")
def run(  # noqa: PLR0913 - the command's words
    experiment: str | None,
    url: str | None,
    home: str,
    folder: Path,
    chart: Path | None,
    *,
    as_json: bool,
    **words: Any,
) -> int:
    """Measure strategies: EXPERIMENT is a bundled one (see 'list experiments') or a TOML file.

    Without it, name the strategies with -t. Options given here win over the experiment's.
    """
    elsewhere = _elsewhere(url, words)
    planned = asked(experiment, elsewhere, words)
    if words["require_claims"] and not planned.claims:
        raise LabError(f"--require-claims: experiment {planned.name!r} makes no claims; leave it out")
    if elsewhere is None:
        upstreams = {arm.upstream for arm in planned.arms()}
        check_upstreams(upstreams, {arm.route for arm in planned.arms()})
        if home == "containers":
            check_plain(upstreams)
    if elsewhere is not None:
        for workload in planned.workloads.values():
            elsewhere.probe(workload)
    finished = _measure(planned, elsewhere, home, Store(folder), keep_samples=words["keep_samples"])
    show(finished, stderr=as_json)
    if as_json:
        click.echo(finished.model_dump_json(indent=1))
    try:
        draw(finished, chart, stderr=as_json)
    except LabError as error:
        raise IncompleteRun(f"{error}; the run is saved in {folder / finished.run}") from error
    if finished.status == "incomplete":
        return IncompleteRun.exit_code
    return code_of(finished.claims) if words["require_claims"] else 0


def _elsewhere(url: str | None, words: dict[str, Any]) -> Elsewhere | None:
    if url is None:
        if words["ca_file"] is not None:
            raise LabError("--ca-file without --url: the lab's own routes bring their CA; leave it out")
        return None
    for word in ("upstreams", "routes", "delay", "path"):
        if words[word]:
            option = word.removesuffix("s")
            raise LabError(f"--url with --{option}: that is asked of the lab's own upstreams; write it into the URL")
    return Elsewhere(url, words["ca_file"])


def _measure(
    experiment: Experiment, elsewhere: Elsewhere | None, where: str, store: Store, *, keep_samples: bool
) -> Run:
    """Carry out the experiment in its home."""
    name, arms = run_name(experiment), experiment.arms()
    logs = store.claim(name) / "logs"
    console = Console(stderr=True)
    with contextlib.ExitStack() as stack:
        home: Home
        if elsewhere is not None:
            home, programs = elsewhere, {}
        elif where == "containers":
            stack.enter_context(store.alone(_waiting(console)))
            containers = ContainerHome(os.environ)
            home, programs = containers, containers.programs()
        else:
            workers = replace(workers_for(experiment.most_in_flight()), **experiment.workers)
            ways = ({arm.upstream for arm in arms}, {arm.route for arm in arms})
            local = stack.enter_context(LocalHome(*ways, logs, workers))
            home, programs = local, local.programs()
        measured = distributions_of(arm.strategy for arm in arms)
        programs |= programs_of(arm.strategy for arm in arms)
        planned = new_run(name, experiment, surroundings(measured, programs), shlex.join(["clientlab", *sys.argv[1:]]))
        observer = stack.enter_context(LiveBar(console)) if console.is_terminal else PlainLines(console)
        return execute(planned, Here(home, keep_samples), store, observer)


def _waiting(console: Console) -> Callable[[], None]:
    """Say once that the lab measures, and wait."""
    said: list[bool] = []

    def wait() -> None:
        if not said:
            said.append(True)
            console.print("the lab is measuring another run; this one begins after it")
        time.sleep(_LOOK_SECONDS)

    return wait
