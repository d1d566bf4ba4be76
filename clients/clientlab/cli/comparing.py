"""`clientlab compare`: runs beside a baseline, arm by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from clientlab.cli.option_types import OUT, complete_runs
from clientlab.cli.reporting import HTML, JUNIT, MARKDOWN, STDOUT, THRESHOLD_FAILED, write_text
from clientlab.cli.terminal import console
from clientlab.errors import LabError
from clientlab.judging.comparison import Comparison
from clientlab.judging.comparison import compare as compare_runs
from clientlab.judging.judgement import find_judged
from clientlab.judging.run_thresholds import check_arms
from clientlab.judging.thresholds import ThresholdResult, change_threshold, judge_changes
from clientlab.printable import printable
from clientlab.reports import as_junit, comparison
from clientlab.reports.files import JUNIT as JUNIT_FILE
from clientlab.results.figures import find
from clientlab.results.store import Store


@dataclass(frozen=True)
class _Judged:
    """A comparison with the outcomes of its thresholds."""

    found: Comparison
    outcomes: list[ThresholdResult]


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1, shell_complete=complete_runs)
@click.option(
    "--fail-on",
    "texts",
    multiple=True,
    metavar="CHANGE",
    help="Exit with code 1 if a figure changed by more: 'p99 +10%', 'throughput -5%', 'errors +0'. Repeatable.",
)
@click.option(
    "--figure", "keys", multiple=True, metavar="FIGURE", help="Also compare this figure, such as p95; repeatable."
)
@click.option("--strict", is_flag=True, help="Judge --fail-on by the estimate, not by the whole interval.")
@click.option("--force", is_flag=True, help="Compare runs even if their workloads or arms differ.")
@HTML
@MARKDOWN.option
@JUNIT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@OUT
def compare(names: tuple[str, ...], folder: Path, *, as_json: bool, **options: Any) -> int:
    """Compare runs with the first one, the baseline, arm by arm.

    RUN is a name, the beginning of a name, a path, "last", or "last~1" for the one before. A change is real if its
    95 % interval excludes 1. --fail-on fails if the whole interval lies beyond the threshold, or if there is one error
    more than allowed.
    """
    if options["markdown"] == STDOUT and as_json:
        raise LabError("--markdown and --json: leave out one of them, or name a file for --markdown")
    if len(names) < 2:
        target = options["markdown"]
        taken = "" if target in (None, STDOUT) else f"; --markdown took {target!r} as its file: place it after the runs"
        raise LabError(f"nothing to compare: name the baseline and one run or more{taken}")
    judged = _judged(Store(folder), names, options)
    if as_json:
        click.echo(comparison.as_json(judged.found, judged.outcomes))
    elif options["markdown"] == STDOUT:
        click.echo(comparison.as_markdown(judged.found, judged.outcomes), nl=False)
    else:
        console().print(comparison.as_text(judged.found, judged.outcomes), highlight=False)
    _write_files(judged, options, stderr=as_json or options["markdown"] == STDOUT)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged.outcomes) else 0


def _judged(store: Store, names: Sequence[str], options: dict[str, Any]) -> _Judged:
    """The runs of these names, compared and judged. Raises LabError."""
    thresholds = [change_threshold(text) for text in options["texts"]]
    more = [find(key, "figure", repr(key)) for key in options["keys"]]
    if options["strict"] and not thresholds:
        raise LabError("--strict without --fail-on: it changes how --fail-on is judged; leave it out")
    base, *others = (find_judged(store, name) for name in names)
    figures, gated = [*more, *(one.figure for one in thresholds)], {(one.arm, one.figure.key) for one in thresholds}
    found = compare_runs(base, others, figures, gated=gated, force=options["force"])
    check_arms(thresholds, found.arms())
    return _Judged(found, judge_changes(found, thresholds, strict=options["strict"]))


def _write_files(judged: _Judged, options: dict[str, Any], *, stderr: bool) -> None:
    """Write the files whose options were given, and print their paths. Raises LabError."""
    written = {}
    if (path := options["html"]) is not None:
        from clientlab.reports.comparison_page import write  # noqa: PLC0415 - nothing else needs templates

        write(judged.found, path, judged.outcomes)
        written["report"] = path
    if (target := options["markdown"]) not in (None, STDOUT):
        write_text(Path(target), comparison.as_markdown(judged.found, judged.outcomes), "markdown")
        written["markdown"] = target
    if (path := options["junit"]) is not None:
        with JUNIT_FILE.writing(path):
            text = as_junit.render_comparison(judged.found, judged.outcomes)
            path.write_text(text, encoding="utf-8", errors="replace")
        written["junit"] = path
    for what, where in written.items():
        click.echo(f"{what}: {printable(str(where))}", err=stderr)
