"""The sections of a report: answer, pictures, tables, doubts, then everything else.

A section is a function that returns its parts. A new one is a function and its entry in
`SECTIONS`; every format then has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import median

from clientlab import units
from clientlab.reports import charts
from clientlab.reports.explanations import explanations
from clientlab.reports.failing import faults
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
from clientlab.reports.sweeps import sweeps_of
from clientlab.results.document import ClaimResult, Run, failed_for_good
from clientlab.results.figures import ranked_by
from clientlab.results.trial import MOST_PATHS, PathFigures, RequestFigures, Trial
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE
from clientlab.text import shorten

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
    "Each round gives one ratio: an arm's figure divided by the other's. The ratio"
    " shown is typical of the rounds: their median, or their trimmed mean if there are"
    " at least eight."
)
FASTEST = (
    f"x fastest: how many times the {ranked_by().label} of the fastest arm an arm"
    " takes, typical of the rounds. In 95 of 100 runs, all intervals of a table contain"
    " the true ratios. An arm is slower if its interval excludes 1, equal within"
    f" {EQUAL_SHARE} if the interval lies between 1/{EQUAL} and {EQUAL}, and otherwise"
    " undecided."
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
_RATIO_NOTES = {
    "time_per_request": FASTEST,
    "p99": LEAST_P99,
    "cpu_per_event": LEAST_CPU,
}
"""How to read the ratios of the figure that ranks arms, by its key."""
_MEDIANS = (
    "Figures are medians of the rounds; errors are a mean share. A ratio beside a"
    " figure divides it by the fastest arm's."
)
_HIGHEST_RATE = (
    "Each round searches for the highest rate; x fastest divides the fastest arm's"
    " rate by it. Other figures are measured at that rate."
)
_COSTS = (
    "Medians of the rounds; a dot is one round. CPU time and memory include child"
    " processes."
)

_MOST_GROUPS = 12  # in charts; the tables show all groups


def claims(report: Report) -> Section:
    """Return the source of the claims, their ratios, and the verdict on each."""
    run = report.run
    source = run.experiment.source
    cited = []
    if source is not None:
        parts = filter(None, (source.title, source.authors, source.date, source.url))
        cited.append(f"Source: {', '.join(parts)}.")
    # Those of the source come first.
    found = sorted(run.claims, key=lambda claim: claim.control)
    return Section(
        "claims",
        "Claims",
        [
            Lines(cited),
            Charts(lambda: charts.claim_ratios(run.claims)),
            Verdicts(found),
            Lines([PAIRED] if found else [], brief=False),
        ],
        brief=True,
    )


def claims_table(found: Sequence[ClaimResult]) -> DataTable:
    """Return a table of the claims for text formats."""
    heads = ("verdict", "claim", "ratio (95 %)", "rounds", "measured", "published")
    rows = [
        (
            f"{SIGNS[claim.verdict]} {claim.verdict}",
            claim_sentence(claim) + claim_doubts(claim),
            units.ratio(claim.ratio, claim.interval),
            str(claim.rounds),
            claim.measured,
            claim.published or units.UNKNOWN,
        )
        for claim in found
    ]
    return DataTable(
        heads,
        rows,
        texts=(1, 4, 5),
        brief=(1, 2),
    )


def claim_sentence(claim: ClaimResult) -> str:
    """Return the claim's text: whether it is a control, and its band of ratios."""
    text = f"(control) {claim.text}" if claim.control else claim.text
    if claim.band:
        low, high = map(units.digits, claim.band)
        text += f" [{low} to {high}]"
    return text


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
        count = len(report.groups)
        notes = [note]
        if count > _MOST_GROUPS:
            notes.append(
                f"The charts show the first {_MOST_GROUPS} of {count} groups. The"
                " tables show all."
            )
        drawn = Charts(
            lambda: make(report.run, report.groups[:_MOST_GROUPS]),
            notes=notes,
            **how,
        )
        return replace(section, parts=[drawn])

    return add_charts


def sweeps(report: Report) -> Section:
    """Return curves along the axes of the experiment."""
    return Section(
        "sweep",
        "Sweeps",
        [Charts(lambda: sweeps_of(report.run))],
    )


def figures(report: Report) -> Section:
    """Return a table for each group, with a row for each arm, the fastest first."""
    parts = (
        Tables([figure_table(group) for group in report.groups]),
        Lines(list(_shard_lines(report.run))),
        Lines(list(_figure_notes(report)), brief=False),
    )
    return Section("table", "Figures", parts, label="Table", brief=True)


def _figure_notes(report: Report) -> Iterator[str]:
    """Yield how to read the tables, and what was not controlled."""
    plan = report.run.experiment
    ranked_keys = {group.ranks_by.key for group in report.groups if len(group.rows) > 1}
    if report.groups:
        yield _MEDIANS
    for key, note in _RATIO_NOTES.items():
        if key in ranked_keys:
            yield note
    if any(group.searched for group in report.groups):
        yield _HIGHEST_RATE
    unequal = "Unequal, or left out"
    if report.run.claims or plan.source:
        unequal = "The source did not control"
    for name in plan.uncontrolled:
        yield f"{unequal}: {name}"


def _shard_lines(run: Run) -> Iterator[str]:
    """Yield a sentence for each arm with divided trials."""
    for arm in run.experiment.arms:
        trials = run.finished_trials_of(arm.name)
        rates = [
            shard.figures.requests_per_second or 0.0
            for shard in chain.from_iterable(trial.shards for trial in trials)
        ]
        if rates:
            shards = trials[-1].shards
            hosts = {shard.host for shard in shards}
            spread = median(trial.start_spread or 0.0 for trial in trials)
            yield (
                f"{arm.name}: {len(shards)} shards, hosts: {len(hosts)}, each with"
                f" {units.rate(min(rates))} to {units.rate(max(rates))} requests/s; the"
                f" last began {units.time(spread)} after the first (median)."
            )


def paths(report: Report) -> Section:
    """Return a table of the most frequent paths of each replay, with a row per arm."""
    plan = report.run.experiment
    labels = {arm.name: arm.label or arm.name for arm in plan.arms}
    if len(set(labels.values())) < len(labels):
        labels = {name: name for name in labels}
    heads = ("path", "arm", "requests", "errors", "p50", "p99")
    tables = []
    for workload in plan.workloads:
        rows = list(_path_rows(report.run, workload, labels))
        if rows:
            title = workload if len(plan.workloads) > 1 else ""
            tables.append(DataTable(heads, rows, title, keys=2))
    note = (
        f"The {MOST_PATHS} most frequent paths. Requests and errors are sums, p50 and"
        " p99 medians, over the rounds."
    )
    notes = Lines([note] if tables else [], brief=False)
    return Section("paths", "Paths", [Tables(tables), notes])


def _path_rows(
    run: Run, workload: str, labels: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    totals = Counter[str]()
    by_path: dict[str, dict[str, list[PathFigures]]] = {}
    for trial in run.trials:
        if trial.status == "done" and trial.planned.workload == workload:
            for figures in trial.figures.paths:
                totals[figures.path] += figures.requests
                by_arm = by_path.setdefault(figures.path, {})
                by_arm.setdefault(labels[trial.planned.arm], []).append(figures)
    for path, _ in totals.most_common(MOST_PATHS):
        for arm, rounds in sorted(by_path[path].items()):
            yield (
                shorten(path),
                arm,
                f"{sum(figures.requests for figures in rounds):,}",
                f"{sum(figures.errors for figures in rounds):,}",
                _median_time(figures.p50 for figures in rounds),
                _median_time(figures.p99 for figures in rounds),
            )


def _median_time(times: Iterable[float | None]) -> str:
    known = [seconds for seconds in times if seconds is not None]
    return units.time(median(known) if known else None)


def failures(report: Report) -> Section:
    """Return errors by kind, and the failed trials with their reasons.

    Trials that were measured again are left out. A trial that ended early is partial:
    the requests that had finished are shown, and count nowhere else.
    """
    tables = [_errors_by_kind(report.run), _failed_trials(report.run)]
    shown = Tables([table for table in tables if table.rows])
    return Section(
        "errors", "Errors and failed trials", [shown], label="Errors", brief=True
    )


def _errors_by_kind(run: Run) -> DataTable:
    by_arm: dict[str, list[RequestFigures]] = {}
    for trial in sorted(run.trials, key=_arm_of):
        if not trial.partial:
            by_arm.setdefault(_arm_of(trial), []).append(trial.figures)
    rows = []
    for arm, rounds in by_arm.items():
        requests = sum(figures.requests for figures in rounds)
        errors = Counter[str]()
        examples: dict[str, str] = {}
        for figures in rounds:
            errors.update(figures.errors)
            examples = figures.error_examples | examples
        for kind, count in errors.items():
            share = units.share(count / requests)
            rows.append((arm, kind, f"{count:,}", share, examples.get(kind, "")))
    heads = ("arm", "kind", "errors", "share of requests", "example")
    return DataTable(
        heads,
        rows,
        "Errors by kind",
        keys=2,
        texts=(4,),
        brief=(2, 3, 4),
    )


def _failed_trials(run: Run) -> DataTable:
    rows = []
    for trial in sorted(failed_for_good(run), key=_arm_of):
        planned = trial.planned
        finished = f"{trial.figures.requests:,}"
        requests = run.experiment.workloads[planned.workload].load.requests
        if requests is not None:
            finished += f" of {requests:,}"
        kinds = [f"{count:,} {kind}" for kind, count in trial.figures.errors.items()]
        rows.append(
            (
                _arm_of(trial),
                str(planned.round),
                finished,
                ", ".join(kinds) or "0",
                f"{trial.status}: {reason_of(trial)}",
            )
        )
    heads = ("arm", "round", "finished", "errors", "why it ended")
    return DataTable(
        heads,
        rows,
        "Failed trials",
        keys=2,
        texts=(3, 4),
    )


def _arm_of(trial: Trial) -> str:
    """Return the arm's name.

    An arm named like its strategy gets its workload, upstream, route and link as well.
    """
    planned = trial.planned
    way = (planned.workload, *planned.way)
    parts = ", ".join(part for part in way if part not in planned.arm)
    if parts and planned.arm == planned.strategy:
        return f"{planned.arm} ({parts})"
    return planned.arm


def reason_of(trial: Trial) -> str:
    """Return why a trial is not done, in a line."""
    reason = trial.reason or "unknown"
    if trial.partial:
        reason += f"; partial: {trial.figures.requests:,} requests had finished"
    return reason


def cautions(report: Report) -> Section:
    """Return every caution with its advice."""
    reasons = list(reasons_for_doubt(report.run).items())
    return Section("cautions", "Cautions", [Alerts(reasons)])


def surroundings(report: Report) -> Section:
    """Return the machine, the software below the clients, and each environment.

    Text formats have a line for each.
    """
    run = report.run
    found = run.surroundings
    servers = run.target.servers if run.target else {}
    lists = {
        "": _machine(run),
        "Libraries": found.libraries,
        "What the libraries require": found.dependencies,
        "What is compiled into the libraries": found.compiled,
        "Servers": found.programs | servers,
    }
    for name, environment in (found.environments or {}).items():
        lists[f"Environment {name}"] = {
            "folder": environment.folder,
            "Python": f"{environment.python}: {environment.python_build}",
            "TLS of Python": environment.openssl or units.UNKNOWN,
            **environment.packages,
            **{
                f"compiled into {library}": text
                for library, text in environment.compiled.items()
            },
        }
    brief = [f"system: {found.system} {found.kernel}, {found.architecture}"]
    if found.placement is not None:
        brief.append(f"pinned: {found.placement}")
    shown = [(title, list(pairs.items())) for title, pairs in lists.items() if pairs]
    parts = [Facts(shown, brief=brief)]
    return Section("surroundings", "Surroundings", parts, folded=True)


def _machine(run: Run) -> dict[str, str]:
    """Return what is known about the machine and the lab's Python."""
    found = run.surroundings
    cores = f"{found.cpu_count} cores"
    if found.smt is not None:
        cores += ", two threads per core" if found.smt else ", one thread per core"
    memory = units.memory(found.memory_bytes)
    if found.memory_limit_bytes:
        memory += f", limit {units.memory(found.memory_limit_bytes)}"
    facts = {
        "host": found.host,
        "system": f"{found.system}, kernel {found.kernel}, {found.architecture}",
        "virtualization": found.virtualization,
        "CPU": f"{found.cpu_model}; {cores}, {found.cpu_usable:g} usable",
        "pinned": str(found.placement or ""),
        "CPU governor": found.cpu_governor,
        "memory": memory,
        "open files": f"at most {found.open_files_limit:,}",
        "load average": f"{found.load_average:.2f} in the minute before the run",
        "Python": ": ".join(filter(None, (found.python, found.python_build))),
        "TLS of Python": found.openssl,
        "clock": found.clock,
        "clientlab": ", commit ".join(filter(None, (run.clientlab, found.lab_commit))),
    }
    return {name: value for name, value in facts.items() if value}


def reproduction(report: Report) -> Section:
    """Return the command that makes the run again, its seed, and its requests."""
    run = report.run
    plan = run.experiment
    rounds = str(max([1, *(trial.planned.round for trial in run.trials)]))
    if run.decided:
        first = min(run.decided.values())
        rounds += f" (decided arms stopped early, the first after {first})"
    line = (
        f"With clientlab {run.clientlab}: rounds: {rounds}, arms: {len(plan.arms)},"
        f" seed: {plan.seed}. --seed {plan.seed} repeats the order of the trials, and"
        " the delays, bodies and arrivals of each round."
    )
    parts = (Command((plan.command,)), Lines([line, *load_lines(plan)]))
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
    faults,
    explanations,
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
    sections = (make(report) for make in SECTIONS)
    return _with_content(
        replace(section, parts=[_as_text(part, whole=whole) for part in section.parts])
        for section in sections
        if whole or section.brief
    )


def _as_text(part: Part, *, whole: bool) -> Part:
    match part:
        case Charts(sparklines=True):
            drawn = [chart for chart in part.items if isinstance(chart, RowChart)]
            part = Tables(list(map(_sparklines, drawn)))
        case Charts():
            part = Lines([])
        case Facts():
            part = Lines(part.brief)
        case Alerts():
            reasons = chain.from_iterable(reasons for _, reasons in part.items)
            lines = [f"{text} - {advice}" for text, advice in reasons]
            part = Lines(lines, alert=True)
        case Verdicts():
            part = Tables([claims_table(part.items)] if part.items else [])
    if isinstance(part, Tables) and whole:
        return Tables([replace(table, brief=None) for table in part.items])
    if isinstance(part, Lines) and not (whole or part.brief):
        return Lines([])
    return part


def _sparklines(chart: RowChart) -> DataTable:
    rows = [(row.name, row.sparkline, row.text) for row in chart.rows]
    return DataTable(
        ("arm", "over time", "least to most"),
        rows,
        chart.title,
    )


def _with_content(sections: Iterable[Section]) -> list[Section]:
    """Drop the parts that are empty, then the sections that are."""
    found = [
        replace(section, parts=[part for part in section.parts if part.items])
        for section in sections
    ]
    return [section for section in found if section.parts or section.sentences]
