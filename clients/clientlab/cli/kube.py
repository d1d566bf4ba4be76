"""`clientlab kube`: runs on the lab of a Kubernetes cluster, by `kubectl`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from clientlab.cli.option_types import OUT
from clientlab.cli.reporting import show
from clientlab.cluster.lab_access import (
    ForwardedLab,
    Kubectl,
    await_workers,
    delete_jobs,
    follow,
    make_jobs,
    require_permission,
)
from clientlab.errors import IncompleteRun, LabError
from clientlab.printable import printable
from clientlab.results.store import Store, run_of
from clientlab.service.schemas import MOST_ROUNDS
from clientlab.worker.lab_client import Refused
from clientlab.workload.workload import MOST_SHARDS

_NAMESPACE = click.option(
    "-n", "--namespace", envvar="CLIENTLAB_NAMESPACE", default="clientlab", show_default=True, help="Of the lab."
)


@click.group()
def kube() -> None:
    """Measure on a Kubernetes cluster that has the lab. It is that of deploy/kubernetes.

    kubectl, its KUBECONFIG and its context name the cluster.
    """


@kube.command(name="run")
@click.argument("experiment", metavar="EXPERIMENT")
@click.option("-t", "--strategy", "strategies", multiple=True, help="Instead of the experiment's own; may be repeated.")
@click.option("--quick", is_flag=True, help="The experiment's quick form.")
@click.option("--rounds", type=click.IntRange(1, MOST_ROUNDS), help="Instead of the experiment's own.")
@click.option("--shards", type=click.IntRange(1, MOST_SHARDS), help="Divide each trial over so many pods.")
@_NAMESPACE
@OUT
def run_(  # noqa: PLR0913 - the command's words
    experiment: str, strategies: tuple[str, ...], namespace: str, folder: Path,
    *, rounds: int | None, shards: int | None, quick: bool,
) -> int:  # fmt: skip
    """Begin a run of a bundled experiment, follow it to its end, and store its run file.

    Each strategy gets an Indexed Job, whose pods are the workers. The Jobs are deleted when the run has ended. If this
    command is interrupted, the run goes on in the cluster: see 'clientlab kube fetch'.
    """
    kubectl = Kubectl(namespace)
    wanted = {"experiment": experiment, "quick": quick, "rounds": rounds, "shards": shards}
    if strategies:
        wanted["strategies"] = list(strategies)
    with ForwardedLab.opened(kubectl, _say) as lab:
        require_permission(kubectl)
        try:
            name = lab.post("/api/runs", {key: value for key, value in wanted.items() if value is not None})["run"]
        except Refused as error:
            raise LabError(str(error)) from error
        _say(f"run {name}")
        with _interruptible(name):
            make_jobs(kubectl, lab.document(f"/api/runs/{name}"))
            return _finish(kubectl, lab, name, folder)


@kube.command()
@click.argument("name", metavar="RUN")
@_NAMESPACE
@OUT
def fetch(name: str, namespace: str, folder: Path) -> int:
    """Store the run file of RUN, when the run has ended, and delete its Jobs."""
    kubectl = Kubectl(namespace)
    with ForwardedLab.opened(kubectl, _say) as lab, _interruptible(name):
        return _finish(kubectl, lab, name, folder)


@kube.command()
@_NAMESPACE
def status(namespace: str) -> None:
    """Print what the lab does now, and its workers."""
    with ForwardedLab.opened(Kubectl(namespace), _say) as lab:
        state = lab.document("/api/state")
    ended, what = state["done"] + state["failed"], "measuring" if state["measuring"] else "idle"
    click.echo(
        f"{what}: {state['run'] or 'no run yet'}, {ended} of {state['planned']} trials, {state['failed']} failed"
    )
    if state["message"]:
        click.echo(printable(state["message"]))
    for worker in state["workers"]:
        more = f" and {worker['more_strategies']} more" if worker["more_strategies"] else ""
        click.echo(printable(f"{worker['host']}  {worker['state']}  {', '.join(worker['strategies'])}{more}"))


def _finish(kubectl: Kubectl, lab: ForwardedLab, name: str, folder: Path) -> int:
    """Wait for the run's end, store its file, and show it. The exit code."""
    store = Store(folder)
    follow(lab, name, _say)
    try:
        finished = run_of(lab.get(f"/api/runs/{name}"), f"run {name} of the lab")
    except Refused as error:
        raise LabError(str(error)) from error
    await_workers(kubectl, name)
    delete_jobs(kubectl, name)
    if finished.run not in store.names():
        store.claim(finished.run)
    store.save(finished)
    show(finished, stderr=False)
    click.echo(printable(f"run file: {folder / finished.run}"))
    return 0 if finished.status == "done" else IncompleteRun.exit_code


@contextlib.contextmanager
def _interruptible(name: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        again = f"'clientlab kube fetch {name}' stores its file"
        raise IncompleteRun(f"interrupted; run {name} goes on in the cluster, and {again}") from error


def _say(line: str) -> None:
    click.echo(printable(line), err=True)
