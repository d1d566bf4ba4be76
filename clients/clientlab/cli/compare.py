"""`clientlab compare`: the changes between runs, and thresholds for them."""

from __future__ import annotations

from pathlib import Path

import click

from clientlab.cli import completion
from clientlab.cli.option_types import OUT, console
from clientlab.errors import LabError
from clientlab.judging.comparison import compare as compare_runs
from clientlab.judging.judgement import find_judged
from clientlab.judging.threshold_checks import check_arms
from clientlab.judging.thresholds import change_threshold, judge_changes
from clientlab.reports import comparison
from clientlab.results.figures import find
from clientlab.results.store import Store

THRESHOLD_FAILED = 1


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1, shell_complete=completion.runs)
@click.option(
    "--fail-on",
    "texts",
    multiple=True,
    metavar="CHANGE",
    help="Exit with code 1 if a figure changed by more: 'p99 +10%', 'throughput -5%', 'errors +0'. Repeatable.",
)
@click.option("--figure", "keys", multiple=True, metavar="FIGURE", help="Compare this figure too: 'p95'. Repeatable.")
@click.option("--strict", is_flag=True, help="Judge --fail-on by the estimate instead of the whole interval.")
@click.option("--force", is_flag=True, help="Compare runs even if their workloads or arms differ.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@OUT
def compare(  # noqa: PLR0913 - one argument per option
    names: tuple[str, ...], texts: tuple[str, ...], keys: tuple[str, ...], folder: Path, *,
    strict: bool, force: bool, as_markdown: bool, as_json: bool,
) -> int:  # fmt: skip
    """Compare runs with the first one, the baseline, arm by arm.

    A change is real if the confidence interval of its typical ratio excludes 1. All intervals together hold the truth
    in 95 of 100 comparisons. --fail-on fails if the whole interval lies beyond the threshold: where all arms are
    exactly at it, one comparison in 40 fails. Errors are counted: a single error beyond the threshold fails.
    """
    if as_markdown and as_json:
        raise LabError("--markdown and --json: leave out one of them")
    if len(names) < 2:
        raise LabError("nothing to compare: name the baseline and one run or more")
    thresholds = [change_threshold(text) for text in texts]
    more = [find(key, "figure", repr(key)) for key in keys]
    if strict and not thresholds:
        raise LabError("--strict without --fail-on: it changes how --fail-on is judged; leave it out")
    store = Store(folder)
    base, *others = (find_judged(store, name) for name in names)
    found = compare_runs(base, others, [*more, *(one.figure for one in thresholds)], force=force)
    check_arms(thresholds, found.arms())
    judged = judge_changes(found, thresholds, strict=strict)
    if as_json:
        click.echo(comparison.as_json(found, judged))
    elif as_markdown:
        click.echo(comparison.as_markdown(found, judged), nl=False)
    else:
        console().print(comparison.as_text(found, judged), highlight=False)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0
