"""`clientlab serve`: the lab service."""

from __future__ import annotations

import ipaddress
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clientlab.cli.asked import named
from clientlab.cli.words import OUT
from clientlab.errors import LabError
from clientlab.homes.containers import ContainerHome
from clientlab.runs.experiment_check import check_experiment
from clientlab.service.shapes import MOST_ROUNDS, command_of
from clientlab.service.turns import Bounds
from clientlab.work.token import TOKEN, keep_token

if TYPE_CHECKING:
    from clientlab.service.app import Settings

_SECONDS = click.FloatRange(0, min_open=True)


@click.command(context_settings={"show_default": True})
@click.option("--experiment", envvar="EXPERIMENT", default="demo", help="Bundled, or a TOML file; begun at once.")
@click.option("--rounds", envvar="ROUNDS", type=click.IntRange(1, MOST_ROUNDS), help="Instead of the experiment's own.")
@click.option("--quick", envvar="QUICK", is_flag=True, help="The experiment's quick form.")
@click.option("--idle", is_flag=True, help="Begin nothing; runs are started on the page.")
@click.option("--host", envvar="LAB_HOST", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", envvar="LAB_PORT", type=click.IntRange(0, 65535), default=8000, help="0 takes any that is free."
)
@click.option("--grafana", envvar="GRAFANA_URL", default="", show_default=False, help="What the page links to.")
@click.option("--patience", type=_SECONDS, default=30.0, help="Seconds in which a worker for a strategy is to come.")
@click.option("--generic-after", type=_SECONDS, default=5.0, help="Seconds before a worker for '*' takes a strategy.")
@click.option("--lost-after", type=_SECONDS, default=10.0, help="Seconds without a sign after which a worker is lost.")
@OUT
def serve(experiment: str, rounds: int | None, folder: Path, *, quick: bool, idle: bool, **words: Any) -> None:
    """Serve the lab: give workers their turns, keep the runs, show them.

    A run that the service left unfinished goes on where it was. Workers are those of `clientlab work`; they
    need the token in CLIENTLAB_TOKEN, or in the file CLIENTLAB_TOKEN_FILE, which the service writes; without
    one it listens on loopback only. Options may come
    from EXPERIMENT, ROUNDS, QUICK, LAB_HOST, LAB_PORT and GRAFANA_URL as well; a flag wins. It is asked for by
    loopback names, its host or `lab`, and by the names in LAB_HOSTS, with commas between.
    """
    from clientlab.service.app import Settings  # noqa: PLC0415 - no other verb needs to import a web server
    from clientlab.service.guard import HOSTS, known_hosts  # noqa: PLC0415 - as above

    first = named(experiment, quick=quick)
    if rounds is not None:
        first = first.model_copy(update={"rounds": rounds})
    check_experiment(first)
    token, host, grafana = keep_token(os.environ), words["host"], words["grafana"]
    if not token and not _loopback(host):
        raise LabError(f"--host {host}: others can reach it, and there is no token; set {TOKEN} here and for workers")
    if grafana and not grafana.startswith(("http://", "https://")):
        raise LabError(f"--grafana {grafana!r}: write it as http://127.0.0.1:3000")
    settings = Settings(
        folder=folder,
        token=token,
        grafana=grafana,
        first=None if idle else (first, command_of(experiment, rounds, quick=quick)),
        programs=ContainerHome(os.environ).programs(),
        hosts=known_hosts(host, os.environ.get(HOSTS, "")),
        bounds=Bounds(words["patience"], words["generic_after"], words["lost_after"]),
    )
    _serve(settings, host, words["port"])


def _serve(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT. Raises LabError where the port is taken."""
    from aiohttp import web  # noqa: PLC0415 - as above

    from clientlab.service.app import application  # noqa: PLC0415 - as above

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    try:
        web.run_app(
            application(settings), host=host, port=port, print=lambda line: click.echo(line, err=True), access_log=None,
            shutdown_timeout=1.0,
        )  # fmt: skip
    except OSError as error:
        raise LabError(
            f"--host {host} --port {port}: {error.strerror}; name another or stop what listens there"
        ) from error


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
