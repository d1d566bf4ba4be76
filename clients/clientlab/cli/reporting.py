"""Commands that read stored runs: `clientlab report`, `claims`, `compare`, `runs` and
`exporter`.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from clientlab.cli.options import (
    CHART,
    FAIL_ON,
    HTML,
    JSON,
    JUNIT,
    OUT,
    WHOLE,
    TextType,
    complete_runs,
    echo,
    say,
)
from clientlab.errors import LabError
from clientlab.text import make_printable

_TARGET = click.Path(dir_okay=False, allow_dash=True)
_MARKDOWN = click.option(
    "--markdown",
    type=_TARGET,
    is_flag=False,
    flag_value="-",
    help=(
        "Write Markdown to this file, or to standard output without FILE. Put it after"
        " RUN."
    ),
)


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@CHART
@HTML
@click.option(
    "--csv",
    type=_TARGET,
    help="Write one row per trial to this file; - is standard output.",
)
@_MARKDOWN
@click.option(
    "--junit",
    type=_TARGET,
    help="Write arms, claims and thresholds as JUnit XML to this file.",
)
@FAIL_ON
@click.option(
    "--strict",
    is_flag=True,
    help="Judge --fail-on by the median over rounds, not by the whole interval.",
)
@WHOLE
@OUT
def report(
    *,
    name: str,
    fail_on: tuple[str, ...],
    folder: Path,
    strict: bool,
    whole: bool,
    **targets: Path | str | None,
) -> int:
    """Show a run.

    RUN is its name, the beginning of its name, a path, "last", or "last~1" for the one
    before.
    """
    from clientlab.cli import output
    from clientlab.judging.judgement import read_judged
    from clientlab.judging.thresholds import check_changes, judge_run, parse_threshold
    from clientlab.results.store import Store

    run = read_judged(Store(folder).find(name))
    limits = [parse_threshold(text) for text in fail_on]
    check_changes(limits, run.experiment)
    judged = judge_run(run, limits, strict=strict)
    printed = [option for option, target in targets.items() if target == output.STDOUT]
    if len(printed) > 1:
        raise LabError(
            f"--{' and --'.join(printed)}: only one of them can go to standard output;"
            " name a file"
        )
    output.write_files(run, judged, targets, whole=whole, stderr=bool(printed))
    code = output.show_thresholds(judged, stderr=bool(printed))
    if not printed:
        output.show(run, whole=whole, stderr=False)
    return code


@click.command()
@click.argument("name", metavar="RUN", shell_complete=complete_runs)
@JSON
@click.option(
    "--require", is_flag=True, help="Exit with code 1 if a claim is contradicted."
)
@OUT
def claims(name: str, folder: Path, *, as_json: bool, require: bool) -> int:
    """Show the verdict on each claim of a run.

    RUN is a name, the beginning of a name, a path, or "last".
    """
    from clientlab.cli.output import console
    from clientlab.judging.judgement import read_judged
    from clientlab.reports import as_terminal
    from clientlab.results.store import Store

    run = read_judged(Store(folder).find(name))
    if not run.experiment.claims:
        raise LabError(
            f"run {run.run}: its experiment {run.experiment.name!r} makes no claims"
        )
    if as_json:
        echo(json.dumps([claim.model_dump() for claim in run.claims], indent=1))
    else:
        console().print(as_terminal.claims(run.claims), highlight=False)
    contradicted = [
        one for one in run.claims if one.verdict == "contradicted"
    ]  # an inconclusive claim has not failed
    for one in contradicted if require else ():
        echo(f"FAILED: claim {one.name}: {one.text}: {one.measured}", err=as_json)
    return 1 if require and contradicted else 0


def _parse_share(text: str) -> float:
    from clientlab.results.plan import parse_share

    return parse_share(text)


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1, shell_complete=complete_runs)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="CHANGE",
    help=(
        "Exit with code 1 if a figure changed by more, and with 3 if it cannot be"
        " judged: 'p99 +10%', 'throughput -5%', 'errors +0'. Repeatable."
    ),
)
@click.option(
    "--figure",
    multiple=True,
    metavar="FIGURE",
    help="Also compare this figure, such as p95; repeatable.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Judge --fail-on by the estimate, not by the whole interval.",
)
@click.option(
    "--floor",
    type=TextType("share", _parse_share),
    help=(
        "Share by which equal runs may differ, without five earlier runs of the plan"
        " here.  [default: 10%]"
    ),
)
@click.option(
    "--force", is_flag=True, help="Compare runs even if their workloads or arms differ."
)
@HTML
@_MARKDOWN
@JUNIT
@JSON
@OUT
def compare(
    *,
    names: tuple[str, ...],
    fail_on: tuple[str, ...],
    figure: tuple[str, ...],
    folder: Path,
    strict: bool,
    force: bool,
    as_json: bool,
    floor: float | None,
    **targets: Path | str | None,
) -> int:
    """Compare runs with the first one, the baseline, arm by arm.

    RUN is a name, the beginning of a name, a path, "last", or "last~1" for the one
    before. Runs differ as wholes, and more rounds do not change that. A change is real
    if its 95 % interval excludes all that runs may differ by: --floor, or what five or
    more earlier runs of the plan on this machine show. --fail-on fails if the whole
    interval also lies beyond the threshold.
    """
    from clientlab.cli import output
    from clientlab.judging.comparison import FLOOR, read_earlier
    from clientlab.judging.comparison import compare as compare_runs
    from clientlab.judging.judgement import read_judged
    from clientlab.judging.thresholds import exit_code_of, judge_changes, parse_change
    from clientlab.reports import as_terminal, change_contents
    from clientlab.results.figures import find
    from clientlab.results.store import Store

    has_printed = as_json or targets["markdown"] == output.STDOUT
    if as_json and targets["markdown"] == output.STDOUT:
        raise LabError(
            "--markdown and --json: leave out one of them, or name a file for"
            " --markdown"
        )
    if len(names) < 2:
        where = ", before --markdown" if targets["markdown"] else ""
        raise LabError(
            f"nothing to compare: name the baseline and one run or more{where}"
        )
    thresholds = [parse_change(text) for text in fail_on]
    figures = [find(key, "figure", repr(key)) for key in figure]
    figures += [threshold.figure for threshold in thresholds]
    store = Store(folder)
    base, *others = (read_judged(store.find(name)) for name in names)
    found = compare_runs(
        base,
        others,
        figures,
        gated={(threshold.arm, threshold.figure.key) for threshold in thresholds},
        force=force,
        floor=FLOOR if floor is None else floor,
        earlier=read_earlier(store, base, others) if floor is None else [],
    )
    judged = judge_changes(found, thresholds, strict=strict)
    sections = change_contents.sections(found, judged)
    if as_json:
        echo(change_contents.as_json(found, judged))
    elif not has_printed:
        output.console().print(as_terminal.document(sections), highlight=False)
    output.write_comparison(found, judged, sections, targets, stderr=has_printed)
    return exit_code_of(judged)


@click.group(invoke_without_command=True)
@JSON
@OUT
@click.pass_context
def runs(context: click.Context, folder: Path, *, as_json: bool) -> None:
    """List the runs of a results folder, or remove some of them."""
    from clientlab.cli.output import console
    from clientlab.reports import headline
    from clientlab.results.store import Store

    context.obj = folder
    if context.invoked_subcommand is not None:
        return
    store = Store(folder)
    rows = [headline.summarize_run(store, name) for name in store.names()]
    if as_json:
        echo(json.dumps(rows, indent=1))
    elif rows:
        console().print(headline.runs_table(rows))
    else:
        echo(f"no run in {folder} yet")


@runs.command()
@click.argument(
    "names", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_runs
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the runs.",
)
@click.pass_obj
def rm(listed: Path, names: tuple[str, ...], folder: Path | None, *, yes: bool) -> None:
    """Remove runs, with their samples and logs.

    Refuse a run outside the results folder, and one that is being measured.
    """
    from clientlab.results.store import Store

    store = Store(folder or listed)
    found = list(dict.fromkeys(map(store.inside, names)))
    if not yes:
        try:
            agreed = click.confirm(
                make_printable(f"Remove {', '.join(found)}?"), err=True
            )
        except click.Abort:
            echo("", err=True)
            agreed = False
        if not agreed:
            raise LabError("runs rm: nothing was removed; answer y, or add --yes")
    for name in found:
        store.remove(name)
        echo(f"removed: {name}")


@click.command(context_settings={"show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9465,
    help="Port to listen on; 0 takes a free one.",
)
@OUT
def exporter(host: str, port: int, folder: Path) -> None:
    """Publish the figures of stored runs to Prometheus.

    They include those of a run that is still being measured. Ctrl-C ends it.
    """
    from clientlab.cluster.exporter import make_server
    from clientlab.results.store import Store

    with make_server(Store(folder), host, port, say) as server:
        shown = f"{f'[{host}]' if ':' in host else host}:{server.server_port}"
        echo(f"metrics: http://{shown}/metrics (Ctrl-C ends it)", err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            echo("stopped", err=True)
