"""`clientlab claims`: the verdicts on the claims of a run, from its trials."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from clientlab.cli.words import OUT, console
from clientlab.errors import LabError
from clientlab.reports.claims import render
from clientlab.runs.claims import judged
from clientlab.runs.document import Claim
from clientlab.runs.store import Store

_CONTRADICTED = 1


@click.command()
@click.argument("name", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--require", is_flag=True, help="Exit 1 where a claim is contradicted.")
@OUT
def claims(name: str, folder: Path, *, as_json: bool, require: bool) -> int:
    """Judge the claims of a run: RUN is its name, the beginning of it, "last", or the path of its file."""
    run = Store(folder).read(name)
    if not run.experiment.claims:
        raise LabError(f"run {run.run}: its experiment {run.experiment.name!r} makes no claims")
    found = judged(run)
    if as_json:
        click.echo(json.dumps([claim.model_dump() for claim in found], indent=1))
    else:
        console().print(render(found), highlight=False)
    return code_of(found) if require else 0


def code_of(found: Iterable[Claim]) -> int:
    """The exit code where claims are asked to hold: one that is inconclusive has not failed."""
    return _CONTRADICTED if any(claim.verdict == "contradicted" for claim in found) else 0
