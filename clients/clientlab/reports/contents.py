"""The sections of a report, in their order: the answer, the pictures, the tables, the
doubts, then everything else.

A section is a function that returns its parts. A new one is a function and its entry in
`SECTIONS`; every format then has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from clientlab import units
from clientlab.reports import charts
from clientlab.reports.headline import headline, load_lines, reasons_for_doubt
from clientlab.reports.rows import Report, figure_table
from clientlab.reports.sections import (
    Alerts,
    Charts,
    Command,
    DataTable,
    Facts,
    Lines,
    Part,
    RowChart,
    Section,
    Tables,
    Verdicts,
)
from clientlab.results.document import ClaimResult, Run, failed_for_good
from clientlab.results.figures import ranked_by
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE
from clientlab.text import shorten
from clientlab.trial.result import MOST_PATHS, PathFigures, Trial

SIGNS = {
    "supported": "✓",
    "contradicted": "✗",
    "inconclusive": "?",
    "better": "✓",
    "worse": "✗",
    "undecided": "?",
}
"""Verdicts on claims and changes → signs for readers who cannot tell colours apart."""

PAIRED = (
    "A ratio is the typical one: the median over the rounds of how many times as much"
    " one arm has as the other in the same round."
)
FASTEST = (
    f"x fastest is the typical ratio of {ranked_by().label}, paired by round. All"
    " intervals of a table together hold the ratio to the truly fastest arm in 95 of"
    " 100 runs. An arm is slower if its interval excludes 1, equal within"
    f" {EQUAL_SHARE} if it lies within 1/{EQUAL} and {EQUAL}, and else undecided."
)
LEAST_P99 = (
    "x least p99 is the same ratio of p99 from the planned start: the schedule decides"
    " an open load's wall time."
)
LEAST_CPU = (
    "x least CPU/event is the same ratio of CPU time per event: the server decides how"
    " long a stream takes. Lag is the time from the server's write of an event until"
    " the client hands it over."
)
_MEDIANS = (
    "Figures are medians of the rounds; errors are a mean share. A figure with a ratio"
    " is the fastest arm's times it."
)
_HIGHEST_RATE = (
    "Each round searches the highest rate; x fastest compares its inverse. Other"
    " figures are at that rate."
)
_COSTS = (
    "Medians of the rounds; a dot is one round. CPU time and memory include child"
    " processes."
)

_MOST_GROUPS = 12  # in charts; the tables show all groups


def claims(report: Report) -> Section:
    """Return the source of the claims, the verdict on each claim, and the ratios as a
    chart.
    """
    source = report.run.experiment.source
    found = sorted(
        report.run.claims, key=lambda claim: claim.control
    )  # those of the source first
    cited = (
        ""
        if source is None
        else ", ".join(
            filter(None, (source.title, source.authors, source.date, source.url))
        )
    )
    parts: list[Part] = [
        Lines([f"Source: {cited}."] if cited else []),
        Charts(lambda: charts.claim_ratios(report.run.claims)),
        Verdicts(found),
        Lines([PAIRED] if found else [], brief=False),
    ]
    return Section("claims", "Claims", parts, brief=True)


def claims_table(found: Sequence[ClaimResult]) -> DataTable:
    """Return a table of the claims for text formats."""
    heads = ("verdict", "claim", "ratio (95 %)", "rounds", "measured", "published")
    rows = [
        (
            f"{SIGNS[one.verdict]} {one.verdict}",
            claim_sentence(one) + claim_doubts(one),
            units.ratio(one.ratio, one.interval),
            str(one.rounds),
            one.measured,
            one.published or units.UNKNOWN,
        )
        for one in found
    ]
    return DataTable(heads, rows, texts=(1, 4, 5), brief=(1, 2))


def claim_sentence(claim: ClaimResult) -> str:
    """Return the claim's text, with the mark of a control and the band of ratios that
    supports it.
    """
    band = (
        f" [{units.digits(claim.band[0])} to {units.digits(claim.band[1])}]"
        if claim.band
        else ""
    )
    return f"{'(control) ' if claim.control else ''}{claim.text}{band}"


def claim_doubts(claim: ClaimResult) -> str:
    """Return the kinds of the cautions about the claim's arms, in parentheses."""
    return f" (caution: {', '.join(claim.cautions)})" if claim.cautions else ""


def _with_charts(
    section: Section, make: charts.ChartMaker, note: str, **how: bool
) -> Callable[[Report], Section]:
    """Return a function that adds the charts of the first groups to the section.

    `how`: fields of `Charts`.
    """

    def add_charts(report: Report) -> Section:
        shown, count = report.groups[:_MOST_GROUPS], len(report.groups)
        notes = [note]
        if len(shown) < count:
            which = f"the first {len(shown)} of {count} groups"
            notes.append(f"The charts show {which}. The tables show all.")
        return replace(
            section, parts=[Charts(lambda: make(report.run, shown), notes=notes, **how)]
        )

    return add_charts


def sweeps(report: Report) -> Section:
    """Return curves along the axes of the experiment."""
    return Section("sweep", "Sweeps", [Charts(lambda: charts.sweeps_of(report.run))])


def figures(report: Report) -> Section:
    """Return a table for each group, with a row for each arm, the fastest first."""
    run, groups = report.run, report.groups
    unequal = (
        "The source did not control"
        if run.claims or run.experiment.source
        else "Unequal, or left out"
    )
    notes = [_MEDIANS] if groups else []
    for key, note in (
        ("time_per_request", FASTEST),
        ("p99", LEAST_P99),
        ("cpu_per_event", LEAST_CPU),
    ):
        notes += (
            [note]
            if any(
                group.ranks_by.key == key and len(group.rows) > 1 for group in groups
            )
            else []
        )
    notes += [_HIGHEST_RATE] if any(group.searched for group in groups) else []
    notes += [f"{unequal}: {one}" for one in run.experiment.uncontrolled]
    tables = Tables([figure_table(group) for group in groups])
    parts: list[Part] = [
        tables,
        Lines(list(_shard_lines(run))),
        Lines(notes, brief=False),
    ]
    return Section("table", "Figures", parts, label="Table", brief=True)


def _shard_lines(run: Run) -> Iterator[str]:
    """Yield a sentence for each arm with divided trials."""
    for arm in (one.name for one in run.experiment.arms):
        trials = run.finished_trials_of(arm)
        if trials and (shards := trials[-1].shards):
            rates = [
                shard.figures.requests_per_second or 0.0
                for trial in trials
                for shard in trial.shards
            ]
            spread = median(trial.start_spread or 0.0 for trial in trials)
            yield (
                f"{arm}: {len(shards)} shards, hosts:"
                f" {len({shard.host for shard in shards})}, each with"
                f" {units.rate(min(rates))} to {units.rate(max(rates))} requests/s; the"
                f" last began {units.time(spread)} after the first (median)."
            )


def paths(report: Report) -> Section:
    """Return a table for each replay, with a row for each of its most frequent paths
    and each arm.
    """
    run, tables = report.run, list[DataTable]()
    heads = ("path", "arm", "requests", "errors", "p50", "p99")
    labels = {arm.name: arm.label or arm.name for arm in run.experiment.arms}
    if len(set(labels.values())) < len(labels):
        labels = {name: name for name in labels}
    for workload in run.experiment.workloads:
        found, totals = dict[str, dict[str, list[PathFigures]]](), Counter[str]()
        for trial in run.trials:
            for one in (
                trial.figures.paths
                if (trial.status, trial.planned.workload) == ("done", workload)
                else ()
            ):
                found.setdefault(one.path, {}).setdefault(
                    labels[trial.planned.arm], []
                ).append(one)
                totals[one.path] += one.requests
        rows = []
        for path, _ in totals.most_common(MOST_PATHS):
            for arm, rounds in sorted(found[path].items()):
                counts = (
                    sum(one.requests for one in rounds),
                    sum(one.errors for one in rounds),
                )
                known = ([one.p50 for one in rounds], [one.p99 for one in rounds])
                times = (
                    [value for value in values if value is not None] for values in known
                )
                shown = (
                    units.time(median(values) if values else None) for values in times
                )
                rows.append(
                    (shorten(path), arm, *(f"{count:,}" for count in counts), *shown)
                )
        title = workload if len(run.experiment.workloads) > 1 else ""
        if rows:
            tables.append(DataTable(heads, rows, title, keys=2))
    note = (
        f"The {MOST_PATHS} most frequent paths. Requests and errors are sums, p50 and"
        " p99 medians, over the rounds."
    )
    return Section(
        "paths", "Paths", [Tables(tables), Lines([note] if tables else [], brief=False)]
    )


def failures(report: Report) -> Section:
    """Return errors by kind, and the failed trials with their reasons, unless they were
    measured again.

    A trial that ended early is partial: the requests that had finished are shown, and
    count nowhere else.
    """
    run = report.run
    lost = {trial.planned.order for trial in failed_for_good(run)}
    errors, requests = Counter[tuple[str, str]](), Counter[str]()
    examples: dict[tuple[str, str], str] = {}
    failed = []
    for trial in sorted(run.trials, key=_arm_of):
        name, of = _arm_of(trial), trial.figures
        if not trial.partial:
            requests[name] += of.requests
            for kind, count in of.errors.items():
                errors[name, kind] += count
                examples.setdefault((name, kind), of.error_examples.get(kind, ""))
        if trial.planned.order in lost:
            planned = run.experiment.workloads[trial.planned.workload].requests
            finished = f"{of.requests:,}{'' if planned is None else f' of {planned:,}'}"
            kinds = (
                ", ".join(f"{count:,} {kind}" for kind, count in of.errors.items())
                or "0"
            )
            failed.append(
                (
                    name,
                    str(trial.planned.round),
                    finished,
                    kinds,
                    f"{trial.status}: {reason_of(trial)}",
                )
            )
    shares = {
        key: units.share(count / max(1, requests[key[0]]))
        for key, count in errors.items()
    }
    by_kind = [
        (*key, f"{count:,}", shares[key], examples[key])
        for key, count in errors.items()
    ]
    heads = ("arm", "kind", "errors", "share of requests", "example")
    tables = [
        DataTable(heads, by_kind, "Errors by kind", keys=2, texts=(4,), brief=(2, 3, 4))
    ]
    heads = ("arm", "round", "finished", "errors", "why it ended")
    tables += [DataTable(heads, failed, "Failed trials", keys=2, texts=(3, 4))]
    shown = Tables([table for table in tables if table.rows])
    return Section(
        "errors", "Errors and failed trials", [shown], label="Errors", brief=True
    )


def _arm_of(trial: Trial) -> str:
    """Return the arm's name.

    An arm named like its strategy gets its workload, upstream, route and link as well.
    """
    planned = trial.planned
    parts = [
        part for part in (planned.workload, *planned.way) if part not in planned.arm
    ]
    return (
        f"{planned.arm} ({', '.join(parts)})"
        if parts and planned.arm == planned.strategy
        else planned.arm
    )


def reason_of(trial: Trial) -> str:
    """Return why a trial is not done, in a line."""
    kept = (
        f"; partial: {trial.figures.requests:,} requests had finished"
        if trial.partial
        else ""
    )
    return f"{trial.reason or 'unknown'}{kept}"


def cautions(report: Report) -> Section:
    """Return every caution with its advice."""
    return Section(
        "cautions", "Cautions", [Alerts(list(reasons_for_doubt(report.run).items()))]
    )


def surroundings(report: Report) -> Section:
    """Return the machine, the software below the clients, and each environment.

    Text formats have a line for each.
    """
    run, found = report.run, report.run.surroundings
    limit = found.memory_limit_bytes
    threads = {
        None: "",
        True: ", two threads per core",
        False: ", one thread per core",
    }[found.smt]
    machine = {
        "host": found.host,
        "system": f"{found.system}, kernel {found.kernel}, {found.architecture}",
        "virtualization": found.virtualization,
        "CPU": (
            f"{found.cpu_model}; {found.cpu_count} cores{threads}, {found.cpu_usable:g}"
            " usable"
        ),
        "pinned": found.placement and str(found.placement),
        "CPU governor": found.cpu_governor,
        "memory": (
            units.memory(found.memory_bytes)
            + (f", limit {units.memory(limit)}" if limit else "")
        ),
        "open files": f"at most {found.open_files_limit:,}",
        "load average": f"{found.load_average:.2f} in the minute before the run",
        "Python": ": ".join(filter(None, (found.python, found.python_build))),
        "TLS of Python": found.openssl,
        "clock": found.clock,
        "clientlab": ", commit ".join(filter(None, (run.clientlab, found.lab_commit))),
    }
    lists = {
        "": {name: value for name, value in machine.items() if value},
        "Libraries": found.libraries,
        "What the libraries require": found.dependencies,
        "What is compiled into the libraries": found.compiled,
        "Servers": found.programs | (run.target.servers if run.target else {}),
    }
    for name, one in (found.environments or {}).items():
        lists[f"Environment {name}"] = {
            "folder": one.folder,
            "Python": f"{one.python}: {one.python_build}",
            "TLS of Python": one.openssl or units.UNKNOWN,
            **one.packages,
            **{
                f"compiled into {library}": text
                for library, text in one.compiled.items()
            },
        }
    brief = [f"system: {found.system} {found.kernel}, {found.architecture}"]
    brief += [] if found.placement is None else [f"pinned: {found.placement}"]
    facts = Facts(
        [(title, list(of.items())) for title, of in lists.items() if of], brief=brief
    )
    return Section("surroundings", "Surroundings", [facts], folded=True)


def reproduction(report: Report) -> Section:
    """Return the command that makes the run again, its seed, and what its workloads
    send.
    """
    run, plan = report.run, report.run.experiment
    rounds = max([1, *(trial.planned.round for trial in run.trials)])
    stopped = (
        f" (decided arms stopped early, the first after {min(run.decided.values())})"
        if run.decided
        else ""
    )
    line = (
        f"With clientlab {run.clientlab}: rounds: {rounds}{stopped}, arms:"
        f" {len(plan.arms)}, seed: {plan.seed}. --seed {plan.seed} repeats the order of"
        " the trials, and the delays, bodies and arrivals of each round."
    )
    parts: list[Part] = [Command((plan.command,)), Lines([line, *load_lines(plan)])]
    return Section("again", "Reproduce this run", parts, label="Reproduce")


SECTIONS: list[Callable[[Report], Section]] = [
    headline,
    claims,
    _with_charts(
        Section("compared", "How the arms compare", label="Compared"),
        charts.comparisons,
        charts.RATIOS_NOTE,
    ),
    _with_charts(
        Section("times", "How long it takes", label="Time"),
        charts.times,
        charts.TIMES_NOTE,
    ),
    sweeps,
    figures,
    paths,
    failures,
    cautions,
    _with_charts(
        Section("latency", "Latency"), charts.distributions, charts.LATENCY_NOTE
    ),
    _with_charts(
        Section("course", "Over time"),
        charts.courses,
        charts.COURSE_NOTE,
        sparklines=True,
    ),
    _with_charts(
        Section("resources", "CPU, memory, connections"),
        charts.costs,
        _COSTS,
        small=True,
    ),
    surroundings,
    reproduction,
]
"""The sections of every report, in their order.

Sections without content are left out.
"""


def page_sections(report: Report) -> list[Section]:
    """Return the sections that have content."""
    return _with_content(make(report) for make in SECTIONS)


def text_sections(report: Report, *, whole: bool) -> list[Section]:
    """Return the sections, or those of the short form, as lines and tables.

    Charts are not even drawn.
    """
    sections = (
        section
        for section in (make(report) for make in SECTIONS)
        if whole or section.brief
    )
    return _with_content(
        replace(one, parts=[_as_text(part, whole=whole) for part in one.parts])
        for one in sections
    )


def _as_text(part: Part, *, whole: bool) -> Part:
    match part:
        case Charts(sparklines=True):
            return Tables(
                [
                    _sparklines(chart)
                    for chart in part.items
                    if isinstance(chart, RowChart)
                ]
            )
        case Charts():
            return Lines([])
        case Facts(brief=lines):
            return Lines(lines)
        case Alerts(items=items):
            return Lines(
                [
                    f"{text} - {advice}"
                    for _, reasons in items
                    for text, advice in reasons
                ],
                alert=True,
            )
        case Verdicts(items=found):
            part = Tables([claims_table(found)] if found else [])
    if isinstance(part, Lines) and not (whole or part.brief):
        return Lines([])
    return (
        Tables([replace(table, brief=None) for table in part.items])
        if isinstance(part, Tables) and whole
        else part
    )


def _sparklines(chart: RowChart) -> DataTable:
    rows = [(row.name, row.sparkline, row.text) for row in chart.rows]
    return DataTable(("arm", "over time", "least to most"), rows, chart.title)


def _with_content(sections: Iterable[Section]) -> list[Section]:
    """Drop the parts that are empty, then the sections that are."""
    found = [
        replace(one, parts=[part for part in one.parts if part.items])
        for one in sections
    ]
    return [one for one in found if one.parts or one.sentences]
