"""`clientlab claims`: judge the claims of a run from its trials."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from clientlab.cli import completion
from clientlab.cli.option_types import OUT, console
from clientlab.errors import LabError
from clientlab.judging.claims import judged
from clientlab.judging.judgement import find_judged
from clientlab.reports import as_terminal
from clientlab.results.document import ClaimResult
from clientlab.results.store import Store

_CONTRADICTED = 1


@click.command()
@click.argument("name", metavar="RUN", shell_complete=completion.runs)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--require", is_flag=True, help="Exit with code 1 if a claim is contradicted.")
@OUT
def claims(name: str, folder: Path, *, as_json: bool, require: bool) -> int:
    """Judge the claims of a run. RUN is a name, the beginning of a name, "last", or the path of a run file."""
    run = find_judged(Store(folder), name)
    if not run.experiment.claims:
        raise LabError(f"run {run.run}: its experiment {run.experiment.name!r} makes no claims")
    found = judged(run)
    if as_json:
        click.echo(json.dumps([claim.model_dump() for claim in found], indent=1))
    else:
        console().print(as_terminal.claims(found), highlight=False)
    return code_of(found) if require else 0


def code_of(found: Iterable[ClaimResult]) -> int:
    """The exit code for required claims. An inconclusive claim has not failed."""
    return _CONTRADICTED if any(claim.verdict == "contradicted" for claim in found) else 0
