"""Commands that serve: `clientlab serve`, the lab service; `work`, its worker; `up`, the upstreams alone."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clientlab import child_processes, strategies
from clientlab.cli.option_types import OUT, WAIT
from clientlab.errors import LabError
from clientlab.experiments.file import path_of
from clientlab.printable import printable
from clientlab.service.plans import served_plan
from clientlab.service.recruiter import Bounds
from clientlab.service.schemas import MOST_ROUNDS, Wanted
from clientlab.service.workers import ANY
from clientlab.strategies import plugins
from clientlab.testbeds.compose import ComposeTestbed
from clientlab.testbeds.local import ROUTES, LocalTestbed, Ports
from clientlab.testbeds.server_process import workers_for
from clientlab.upstreams import UPSTREAMS
from clientlab.worker.lab_client import LabClient
from clientlab.worker.token import TOKEN, keep_token, read_token
from clientlab.workload.workload import MOST_SHARDS

if TYPE_CHECKING:
    from clientlab.service.lab import LabSettings

_LOOK_SECONDS = 0.5
_PORT = click.IntRange(0, 65535)


@click.command(context_settings={"show_default": True})
@click.option(
    "--experiment", envvar="EXPERIMENT", default="demo", help="Experiment to start with: a bundled one or a TOML file."
)
@click.option(
    "-t", "--strategy", "strategies", envvar="STRATEGIES", multiple=True, help="Replaces that of the experiment."
)
@click.option("--rounds", envvar="ROUNDS", type=click.IntRange(1, MOST_ROUNDS), help="Replaces that of the experiment.")
@click.option("--quick", envvar="QUICK", is_flag=True, help="Run the short form of the experiment.")
@click.option(
    "--shards", envvar="SHARDS", type=click.IntRange(1, MOST_SHARDS), help="Divide each trial among this many workers."
)
@click.option("--host", envvar="LAB_HOST", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    envvar="LAB_PORT",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--patience", type=WAIT, default="30s", help="How long a strategy waits for a worker before it fails.")
@click.option(
    "--generic-after", type=WAIT, default="5s", help="How long a strategy waits before a worker for '*' takes it."
)
@click.option(
    "--lost-after", type=WAIT, default="10s", help="How long a worker may be silent before it counts as lost."
)
@OUT
def serve(experiment: str, rounds: int | None, folder: Path, *, quick: bool, **options: Any) -> None:
    """Give trials to workers and store the runs.

    The service continues an unfinished run. Its workers are `clientlab work` processes. They need the token in
    CLIENTLAB_TOKEN, or in the file CLIENTLAB_TOKEN_FILE, which the service writes. Without a token, the service listens
    on loopback only.

    The variables EXPERIMENT, STRATEGIES (separated by spaces), ROUNDS, QUICK, SHARDS, LAB_HOST and LAB_PORT set
    options, too; an option on the command line wins.
    """
    from clientlab.service.lab import LabSettings  # noqa: PLC0415 - no other subcommand needs a web server

    names = list(options["strategies"])
    plugins.admit(name for name in names if not strategies.is_of_file(name))
    wanted = Wanted(experiment=experiment, strategies=names, rounds=rounds, quick=quick, shards=options["shards"])
    first = served_plan(wanted, path_of(experiment))
    token, host = keep_token(os.environ), options["host"]
    if not token and not _loopback(host):
        raise LabError(f"--host {host}: others can reach it, and there is no token; set {TOKEN} here and for workers")
    settings = LabSettings(
        folder=folder,
        token=token,
        first=first,
        programs=ComposeTestbed(os.environ).programs(),
        bounds=Bounds(options["patience"], options["generic_after"], options["lost_after"]),
    )
    _serve(settings, host, options["port"])


def _serve(settings: LabSettings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT. Raises LabError."""
    from clientlab.service.server import serve as run  # noqa: PLC0415 - as above

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    listener = _listen(host, port)
    bound = listener.getsockname()[1]
    url = f"http://{f'[{host}]' if ':' in host else host}:{bound}"

    def started() -> None:
        click.echo(f"Running on {url} (Ctrl-C ends it)", err=True)

    asyncio.run(run(settings, listener, started))


def _listen(host: str, port: int) -> socket.socket:
    """The listening socket. Raises LabError where the port is taken or the host has no address."""
    try:
        family, *_, address = min(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))  # IPv4 before IPv6
        return socket.create_server(address, family=family)
    except OSError as error:
        # create_server adds the address to the system's message.
        reason = str(error.strerror).partition(" (while")[0]
        raise LabError(f"--host {host} --port {port}: {reason}; name another or stop what listens there") from error


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@click.command(context_settings={"show_default": True})
@click.option(
    "-t", "--strategy", "names", multiple=True, required=True, help="Strategy to measure; repeatable; '*' takes any."
)
@click.option("--lab", envvar="LAB_URL", default="http://127.0.0.1:8000", help="URL of the lab service.")
@click.option(
    "--host", envvar="WORKER_HOST", default="127.0.0.1", help="Address on which the worker serves its metrics."
)
@click.option(
    "--port",
    envvar="WORKER_PORT",
    type=click.IntRange(0, 65535),
    default=9100,
    help="Port of the metrics; 0 takes a free one.",
)
@click.option(
    "--scraped",
    envvar="WORKER_SCRAPED",
    is_flag=True,
    help="After the first trial, wait until Prometheus knows the worker.",
)
def work(names: tuple[str, ...], lab: str, host: str, port: int, *, scraped: bool) -> None:
    """Measure trials for the lab service, one at a time.

    The token is in CLIENTLAB_TOKEN, or in the file CLIENTLAB_TOKEN_FILE. The upstreams and the proxy are at
    FLASK_ADDRESS, AIOHTTP_ADDRESS, PROXY_FLASK_ADDRESS, PROXY_AIOHTTP_ADDRESS, PROXY_FLASK_TLS_ADDRESS,
    PROXY_AIOHTTP_TLS_ADDRESS and PROXY_METRICS_ADDRESS; the proxy's CA is in the file PROXY_CA_FILE, or else on the
    address of the proxy's metrics. The worker answers /metrics and /healthz. LAB_URL, WORKER_HOST, WORKER_PORT and
    WORKER_SCRAPED set options as well; an option on the command line wins.
    """
    named = [name for name in names if name != ANY]
    if of_file := next(filter(strategies.is_of_file, named), None):
        raise LabError(f"-t {of_file}: a worker runs no strategy of a file; measure it with 'clientlab run'")
    plugins.admit(named)
    for name in named:
        strategies.check_settings(strategies.find(name))
    ComposeTestbed(os.environ)
    LabClient(lab, "").split()
    os.environ[TOKEN] = read_token(os.environ)
    settings = {"lab": lab, "strategies": names, "host": host, "port": port, "scraped": scraped, "named": named}
    command = child_processes.python("clientlab.worker.agent", json.dumps(settings))
    sys.stderr.flush()
    try:
        # In place of this process, which has all of the lab in its memory: a worker waits most of its life.
        os.execv(sys.executable, command)  # noqa: S606 - that is the point
    except OSError as error:
        raise LabError(f"{sys.executable}: {error.strerror}") from error


@click.command()
@click.option("--flask-port", type=_PORT, default=8001, show_default=True, help="Port of Flask; 0 takes a free one.")
@click.option("--aiohttp-port", type=_PORT, default=8002, show_default=True, help="Port of aiohttp.")
@click.option("--proxy-flask-port", type=_PORT, default=9001, show_default=True, help="Flask through Caddy.")
@click.option("--proxy-aiohttp-port", type=_PORT, default=9002, show_default=True, help="aiohttp through Caddy.")
@click.option("--proxy-metrics-port", type=_PORT, default=9003, show_default=True, help="Metrics of Caddy.")
@click.option("--proxy-flask-tls-port", type=_PORT, default=9443, show_default=True, help="Flask over TLS.")
@click.option("--proxy-aiohttp-tls-port", type=_PORT, default=9444, show_default=True, help="aiohttp over TLS.")
@click.option(
    "-c", "--concurrency", type=click.IntRange(1), default=100, show_default=True,
    help="Most requests that Flask handles at once.",
)  # fmt: skip
def up(concurrency: int, **ports: int) -> None:
    """Start both upstreams and the proxy.

    They listen on 127.0.0.1. Ctrl-C stops them.
    """
    chosen = Ports(**{name.removesuffix("_port"): port for name, port in ports.items()})
    logs = Path(tempfile.mkdtemp(prefix="clientlab-up-"))
    try:
        with LocalTestbed(UPSTREAMS, ROUTES, logs, workers_for(concurrency), chosen) as testbed:
            for upstream in UPSTREAMS:
                for route in ROUTES:
                    click.echo(f"{upstream:8} {route:9} {testbed.base_url(upstream, route)}/")
            click.echo(f"CA of proxy-tls: {testbed.endpoint(UPSTREAMS[0], 'proxy-tls').ca_file}")
            click.echo(printable(f"logs: {logs}; stop with Ctrl-C"))
            while True:
                testbed.check()
                time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        shutil.rmtree(logs)  # nothing went wrong that they could explain
        click.echo("stopped")
