"""Commands that serve: `clientlab up`, the upstreams alone, and `clientlab exporter`, the metrics of stored runs."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

import click

from clientlab.cli.options import OUT
from clientlab.cli.terminal import echo, say

_LOOK_SECONDS = 0.5
_PORT = click.IntRange(0, 65535)


@click.command(context_settings={"show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=_PORT, default=9465, help="Port to listen on; 0 takes a free one.")
@OUT
def exporter(host: str, port: int, folder: Path) -> None:
    """Publish the figures of stored runs to Prometheus.

    Also those of the run that is being measured with this results folder. Ctrl-C ends it.
    """
    from clientlab.cluster.exporter import serve
    from clientlab.results.store import Store

    with serve(Store(folder), host, port, say) as bound:
        echo(f"metrics: http://{f'[{host}]' if ':' in host else host}:{bound}/metrics (Ctrl-C ends it)", err=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            echo("stopped", err=True)


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
    from clientlab.testbeds.local import ROUTES, LocalTestbed, Ports
    from clientlab.testbeds.server_process import workers_for
    from clientlab.upstreams import UPSTREAMS

    chosen = Ports(**{name.removesuffix("_port"): port for name, port in ports.items()})
    logs = Path(tempfile.mkdtemp(prefix="clientlab-up-"))
    try:
        with LocalTestbed(UPSTREAMS, ROUTES, logs, workers_for(concurrency), chosen) as testbed:
            for upstream in UPSTREAMS:
                for route in ROUTES:
                    echo(f"{upstream:8} {route:9} {testbed.base_url(upstream, route)}/")
            echo(f"CA of proxy-tls: {testbed.endpoint(UPSTREAMS[0], 'proxy-tls').ca_file}")
            echo(f"logs: {logs}; stop with Ctrl-C")
            while True:
                testbed.check()
                time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        shutil.rmtree(logs)  # nothing went wrong that they could explain
        echo("stopped")
