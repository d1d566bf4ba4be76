"""`clientlab work`: a worker of the lab service."""

from __future__ import annotations

import json
import os
import sys

import click

from clientlab import child_processes, strategies
from clientlab.errors import LabError
from clientlab.service.workers import ANY
from clientlab.strategies import plugins
from clientlab.testbeds.compose import ComposeTestbed
from clientlab.worker.lab_client import LabClient
from clientlab.worker.token import TOKEN, read_token


@click.command(context_settings={"show_default": True})
@click.option(
    "-t", "--strategy", "names", multiple=True, required=True, help="A strategy; may be repeated; '*' takes all."
)
@click.option("--lab", envvar="LAB_URL", default="http://127.0.0.1:8000", help="The lab service.")
@click.option("--host", envvar="WORKER_HOST", default="127.0.0.1", help="Address of the worker's own page.")
@click.option("--port", envvar="WORKER_PORT", type=click.IntRange(0, 65535), default=9100, help="0 takes a free one.")
@click.option("--linger", type=click.FloatRange(0), default=5.0, help="Seconds to wait for a trial's last scrape.")
@click.option(
    "--scraped",
    envvar="WORKER_SCRAPED",
    is_flag=True,
    help="Wait for it after the first trial already, until Prometheus knows the worker.",
)
@click.option("--run", metavar="RUN", help="Measure for this run of the lab only, and exit when it has ended.")
def work(  # noqa: PLR0913 - the command's words
    names: tuple[str, ...], lab: str, host: str, port: int, linger: float, *, run: str | None, scraped: bool
) -> None:
    """Measure for the lab service, a trial at a time, as it assigns them to this worker.

    The token is in CLIENTLAB_TOKEN, or in the file CLIENTLAB_TOKEN_FILE. The upstreams and the proxy are at
    FLASK_ADDRESS, AIOHTTP_ADDRESS, PROXY_FLASK_ADDRESS, PROXY_AIOHTTP_ADDRESS, PROXY_FLASK_TLS_ADDRESS,
    PROXY_AIOHTTP_TLS_ADDRESS and PROXY_METRICS_ADDRESS; the proxy's CA is in the file PROXY_CA_FILE, or else on the
    site with the proxy's metrics. The worker's page has /metrics, of the trial while there is one, and /healthz.
    Options may come from LAB_URL, WORKER_HOST, WORKER_PORT and WORKER_SCRAPED as well; a flag wins.
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
    settings = {"lab": lab, "strategies": names, "host": host, "port": port, "linger": linger}
    settings |= {"scraped": scraped, "run": run, "named": named}
    command = child_processes.python("clientlab.worker.agent", json.dumps(settings))
    sys.stderr.flush()
    try:
        # In place of this process, which has all of the lab in its memory: a worker waits most of its life.
        os.execv(sys.executable, command)  # noqa: S606 - that is the point
    except OSError as error:
        raise LabError(f"{sys.executable}: {error.strerror}") from error
