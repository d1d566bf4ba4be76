"""`python -m findings`: measure experiments and store each run with its chart, or store
the run of a recipe.
"""

from __future__ import annotations

import gzip
import json
import shlex
import subprocess
import sys
import tempfile
from itertools import takewhile
from pathlib import Path

import click

from clientlab.results.surroundings import changed_code

HERE = Path(__file__).parent
CHARTS = HERE.parent / "docs" / "findings"
MOST_TRIALS = 200
"""Runs with more trials are stored without their histograms and timelines, which no
page shows.
"""


@click.command(
    context_settings={"ignore_unknown_options": True},
    options_metavar="[--recipe RUN.JSON]",
)
@click.option(
    "--recipe",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RUN.JSON",
)
@click.argument(
    "words",
    metavar="NAME... [OPTIONS]",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
)
def findings(words: tuple[str, ...], recipe: Path | None) -> None:
    """Measure each experiment NAME, with OPTIONS for `clientlab run`, and store its run
    and chart.

    With --recipe, nothing is measured: the run file of a recipe is stored among the
    shown runs as NAME.
    """
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    if not names:
        raise click.UsageError("write the names of experiments before the options")
    if recipe is not None:
        store(recipe, HERE / "shown" / f"{names[0]}.json.gz")
        return
    changed = changed_code()
    if changed is None or changed:
        what = (
            "this is not a clone"
            if changed is None
            else f"{changed[0]} differs from the commit"
        )
        raise click.ClickException(
            f"{what}; commit the code first, so that others can measure the same again"
        )
    for name in names:
        target, command = (
            HERE / "runs" / f"{name}.json.gz",
            ["run", name, *words[len(names) :]],
        )
        with tempfile.TemporaryDirectory() as folder:
            _clientlab(*command, "--out", folder)
            [run_file] = Path(folder).glob("*/run.json")
            store(run_file, target, shlex.join(["clientlab", *command]))
        _clientlab("report", str(target), "--chart", str(CHARTS / f"{name}.svg"))


def store(run_file: Path, target: Path, command: str | None = None) -> None:
    """Pack a run file.

    The same run gives the same bytes. `command`: how readers repeat it; None keeps its
    own.
    """
    document = json.loads(run_file.read_text(encoding="utf-8"))
    if command is not None:
        document["experiment"]["command"] = command
    if len(document["trials"]) > MOST_TRIALS:
        for trial in document["trials"]:
            for bulky in ("histogram", "over_time"):
                trial["figures"].pop(bulky, None)
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    target.write_bytes(gzip.compress(f"{text}\n".encode(), mtime=0))


def _clientlab(*words: str) -> None:
    """Run a command of the lab. Exit with its code if it fails."""
    code = subprocess.run(
        [sys.executable, "-m", "clientlab", *words], check=False
    ).returncode
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    findings(prog_name="scripts/findings")
