"""`clientlab compare`: what has changed between runs, and whether it has changed too much."""

from __future__ import annotations

from pathlib import Path

import click

from clientlab.cli.words import OUT, console
from clientlab.errors import LabError
from clientlab.reports import compare_json, compare_markdown, compare_table
from clientlab.runs.changes import compare as compare_runs
from clientlab.runs.store import Store
from clientlab.runs.thresholds import change_threshold, judge_changes

THRESHOLD_FAILED = 1


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1)
@click.option(
    "--fail-on",
    "texts",
    multiple=True,
    metavar="CHANGE",
    help="Exit 1 where a figure changed by more: 'p99 +10%', 'throughput -5%', 'errors +0'; may be repeated.",
)
@click.option("--strict", is_flag=True, help="Judge --fail-on by the estimate, not by its whole interval.")
@click.option("--force", is_flag=True, help="Compare runs of unlike workloads or arms nevertheless.")
@click.option("--markdown", "as_markdown", is_flag=True, help="As Markdown.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@OUT
def compare(  # noqa: PLR0913 - an option each
    names: tuple[str, ...], texts: tuple[str, ...], folder: Path, *,
    strict: bool, force: bool, as_markdown: bool, as_json: bool,
) -> int:  # fmt: skip
    """Compare runs with the first, the baseline, arm by arm.

    A change is called one where the 95 % interval of its ratio (Welch's, over rounds) does not hold 1.
    --fail-on fails where that interval lies beyond the threshold as a whole: an arm at the threshold fails
    one time in 40. Errors are counted: any beyond the threshold fails.
    """
    if as_markdown and as_json:
        raise LabError("--markdown and --json: leave out one of them")
    if len(names) < 2:
        raise LabError("nothing to compare: name the baseline and one run or more")
    thresholds = [change_threshold(text) for text in texts]
    if strict and not thresholds:
        raise LabError("--strict without --fail-on: it says how that is judged; leave it out")
    store = Store(folder)
    base, *others = (store.read(name) for name in names)
    found = compare_runs(base, others, [one.quantity.name for one in thresholds], force=force)
    judged = judge_changes(found, thresholds, strict=strict)
    if as_json:
        click.echo(compare_json.render(found, judged))
    elif as_markdown:
        click.echo(compare_markdown.render(found, judged), nl=False)
    else:
        console().print(compare_table.render(found, judged), highlight=False)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0
