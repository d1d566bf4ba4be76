"""Commands that read runs: `clientlab report`, `claims` and `compare`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from clientlab.cli.options import CHART, FAIL_ON, HTML, JSON, JUNIT, OUT, WHOLE, complete_runs
from clientlab.cli.terminal import echo
from clientlab.errors import LabError

_TARGET = click.Path(dir_okay=False, allow_dash=True)
_MARKDOWN = click.option(
    "--markdown", type=_TARGET, is_flag=False, flag_value="-",
    help="Write Markdown to this file, or to standard output without FILE. Put it after RUN.",
)  # fmt: skip


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@CHART
@HTML
@click.option("--csv", type=_TARGET, help="Write one row per trial to this file; - is standard output.")
@_MARKDOWN
@click.option("--junit", type=_TARGET, help="Write arms, claims and thresholds as JUnit XML to this file.")
@FAIL_ON
@click.option("--strict", is_flag=True, help="Judge --fail-on by the median over rounds, not by the whole interval.")
@WHOLE
@OUT
def report(
    *,
    name: str,
    chart: Path | None,
    html: Path | None,
    fail_on: tuple[str, ...],
    folder: Path,
    strict: bool,
    whole: bool,
    **targets: str | None,
) -> int:
    """Show a run. RUN is its name, the beginning of its name, a path, "last", or "last~1" for the one before."""
    from clientlab.cli import output
    from clientlab.judging.judgement import find_judged
    from clientlab.judging.thresholds import check_changes, judge_run, parse_threshold
    from clientlab.reports import as_csv, as_junit, as_markdown
    from clientlab.results.store import Store

    run = find_judged(Store(folder), name)
    limits = [parse_threshold(text) for text in fail_on]
    check_changes(limits, run.experiment)
    judged = judge_run(run, limits, strict=strict)
    printed = [option for option, target in targets.items() if target == output.STDOUT]
    if len(printed) > 1:
        raise LabError(f"--{' and --'.join(printed)}: only one of them can go to standard output; name a file")
    formats: dict[str, Callable[[], str]] = {
        "csv": lambda: as_csv.render(run),
        "markdown": lambda: as_markdown.render(run, judged, whole=whole),
        "junit": lambda: as_junit.render(run, judged),
    }
    for option, render in formats.items():
        if (target := targets[option]) is not None:
            output.write_text(target, render(), option, stderr=bool(printed))
    code = output.tell(judged, stderr=bool(printed))
    if not printed:
        output.show(run, whole=whole, stderr=False)
    output.write_files(run, judged, chart, html, None, stderr=bool(printed))
    return code


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@JSON
@click.option("--require", is_flag=True, help="Exit with code 1 if a claim is contradicted.")
@OUT
def claims(name: str, folder: Path, *, as_json: bool, require: bool) -> int:
    """Show the verdict on each claim of a run. RUN is a name, the beginning of a name, a path, or "last"."""
    from clientlab.cli.tables import console
    from clientlab.judging.judgement import find_judged
    from clientlab.reports import as_terminal
    from clientlab.results.store import Store

    run = find_judged(Store(folder), name)
    if not run.experiment.claims:
        raise LabError(f"run {run.run}: its experiment {run.experiment.name!r} makes no claims")
    found = run.claims
    if as_json:
        echo(json.dumps([claim.model_dump() for claim in found], indent=1))
    else:
        console().print(as_terminal.claims(found), highlight=False)
    contradicted = [one for one in found if one.verdict == "contradicted"]  # an inconclusive claim has not failed
    for one in contradicted if require else ():
        echo(f"FAILED: claim {one.name}: {one.text}: {one.measured}", err=as_json)
    return 1 if require and contradicted else 0


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1, shell_complete=complete_runs)
@click.option(
    "--fail-on", multiple=True, metavar="CHANGE",
    help="Exit with code 1 if a figure changed by more: 'p99 +10%', 'throughput -5%', 'errors +0'. Repeatable.",
)  # fmt: skip
@click.option(
    "--figure", "keys", multiple=True, metavar="FIGURE", help="Also compare this figure, such as p95; repeatable."
)
@click.option("--strict", is_flag=True, help="Judge --fail-on by the estimate, not by the whole interval.")
@click.option("--force", is_flag=True, help="Compare runs even if their workloads or arms differ.")
@HTML
@_MARKDOWN
@JUNIT
@JSON
@OUT
def compare(
    *,
    names: tuple[str, ...],
    fail_on: tuple[str, ...],
    keys: tuple[str, ...],
    html: Path | None,
    markdown: str | None,
    junit: Path | None,
    folder: Path,
    strict: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Compare runs with the first one, the baseline, arm by arm.

    RUN is a name, the beginning of a name, a path, "last", or "last~1" for the one before. A change is real if its
    95 % interval excludes 1. --fail-on fails if the whole interval lies beyond the threshold, or if there is one error
    more than allowed.
    """
    from clientlab.cli import output
    from clientlab.cli.tables import console
    from clientlab.judging.comparison import compare as compare_runs
    from clientlab.judging.judgement import find_judged
    from clientlab.judging.thresholds import check_arms, judge_changes, parse_change
    from clientlab.reports import as_junit, comparison
    from clientlab.results.figures import find
    from clientlab.results.store import Store

    if markdown == output.STDOUT and as_json:
        raise LabError("--markdown and --json: leave out one of them, or name a file for --markdown")
    if len(names) < 2:
        raise LabError("nothing to compare: name the baseline and one run or more, before --markdown")
    thresholds = [parse_change(text) for text in fail_on]
    more = [find(key, "figure", repr(key)) for key in keys]
    base, *others = (find_judged(Store(folder), name) for name in names)
    figures, gated = [*more, *(one.figure for one in thresholds)], {(one.arm, one.figure.key) for one in thresholds}
    found = compare_runs(base, others, figures, gated=gated, force=force)
    check_arms(thresholds, found.arms())
    judged = judge_changes(found, thresholds, strict=strict)
    printed = as_json or markdown == output.STDOUT
    if as_json:
        echo(comparison.as_json(found, judged))
    elif not printed:
        console().print(comparison.as_text(found, judged), highlight=False)
    if html is not None:
        from clientlab.reports.as_html import write_comparison

        write_comparison(found.base, comparison.sections(found, judged), html)
        echo(f"report: {html}", err=printed)
    if markdown is not None:
        output.write_text(markdown, comparison.as_markdown(found, judged), "markdown", stderr=printed)
    if junit is not None:
        output.write_text(junit, as_junit.render_comparison(found, judged), "junit", stderr=printed)
    return output.THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0
