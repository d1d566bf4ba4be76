"""`clientlab up`: start the upstreams and the proxy only, for your own client."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import click

from clientlab.printable import printable
from clientlab.testbeds.local import ROUTES, LocalTestbed, Ports
from clientlab.testbeds.upstream_process import workers_for
from clientlab.upstreams import UPSTREAMS

_LOOK_SECONDS = 0.5
_PORT = click.IntRange(0, 65535)


@click.command()
@click.option("--flask-port", type=_PORT, default=8001, show_default=True, help="0: a free port; so for all ports.")
@click.option("--aiohttp-port", type=_PORT, default=8002, show_default=True)
@click.option("--proxy-flask-port", type=_PORT, default=9001, show_default=True)
@click.option("--proxy-aiohttp-port", type=_PORT, default=9002, show_default=True)
@click.option("--proxy-metrics-port", type=_PORT, default=9003, show_default=True)
@click.option("--proxy-flask-tls-port", type=_PORT, default=9443, show_default=True)
@click.option("--proxy-aiohttp-tls-port", type=_PORT, default=9444, show_default=True)
@click.option(
    "-c", "--concurrency", type=click.IntRange(1), default=100, show_default=True,
    help="Requests that Flask can hold at once.",
)  # fmt: skip
def up(concurrency: int, **ports: int) -> None:
    """Start both upstreams and the proxy on 127.0.0.1, until interrupted."""
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
