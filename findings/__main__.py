"""`python -m findings`: measure an experiment and store its run and its chart, or store the run of a recipe."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from clientlab.results.machine import changed_code

HERE = Path(__file__).parent
CHARTS = HERE.parent / "docs" / "findings"
MOST_TRIALS = 200
"""Runs with more trials are stored without their histograms and timelines, which no page shows."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.option("--recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RUN.JSON")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def findings(name: str, recipe: Path | None, options: tuple[str, ...]) -> None:
    """Measure the experiment NAME, with OPTIONS for `clientlab run`, and store its run and chart.

    With --recipe, nothing is measured: the run file of a recipe takes its place among the shown runs as NAME.
    """
    if recipe is not None:
        store(recipe, HERE / "shown" / f"{name}.json.gz")
        return
    changed = changed_code()
    if changed is None or changed:
        what = "this is no clone" if changed is None else f"{changed[0]} differs from the commit"
        raise click.ClickException(f"{what}; commit the code first, so that others can measure the same again")
    target = HERE / "runs" / f"{name}.json.gz"
    with tempfile.TemporaryDirectory() as folder:
        _clientlab("run", name, *options, "--out", folder)
        [run_file] = Path(folder).glob("*/run.json")
        store(run_file, target)
    _clientlab("report", str(target), "--chart", str(CHARTS / f"{name}.svg"))


def store(run_file: Path, target: Path) -> None:
    """Pack a run file. The same run gives the same bytes."""
    document = json.loads(run_file.read_text(encoding="utf-8"))
    if len(document["trials"]) > MOST_TRIALS:
        for trial in document["trials"]:
            for bulky in ("histogram", "over_time"):
                trial.pop(bulky, None)
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    target.write_bytes(gzip.compress(f"{text}\n".encode(), mtime=0))


def _clientlab(*words: str) -> None:
    """Run a command of the lab. Exits with its code if it fails."""
    code = subprocess.run([sys.executable, "-m", "clientlab", *words], check=False).returncode
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    findings(prog_name="scripts/findings")
