"""Why each arm is as fast as it is: where its requests waited, and which code took the
CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from clientlab import strategies, units
from clientlab.reports.rows import Report
from clientlab.reports.sections import (
    GREY,
    HUES,
    ChartRow,
    Charts,
    DataTable,
    Lines,
    RowChart,
    Section,
    Tables,
)
from clientlab.results.document import Run
from clientlab.results.explanation import Explanation, PartOfTime, Waits
from clientlab.results.figures import BY_KEY

_BUSY = 0.7
"""Share of a core from which the client's code is what takes the time."""

_LONG_STALL = 0.02  # seconds
_LEAK_BYTES = 1e6  # per 1,000 requests
_LEAK_FILES = 10.0
_PER = 1000
_LARGE_PACKAGE = 0.1
_HALF = 0.5
_QUARTER = 0.25
_PARTS = {
    "late": "planned to sent",
    "to_handler": "sent to handler",
    "in_handler": "in the handler",
    "to_read": "answered to read",
}
_HUE_NAMES = ("blue", "orange", "green", "pink")
_MOST_PACKAGES = 5  # of an arm
_MOST_DIFFERENCES = 10
_NOTE = (
    "Each arm was measured once more while its processes were looked at, which slows it"
    " down. No other figure of this report is from these trials. A cell has the median"
    " and the p99."
)


def explanations(report: Report) -> Section:
    """Return an answer for each arm, the waits of its requests, and its code."""
    run = report.run
    explained = run.explained
    sentences = [
        explain_in_a_sentence(run, explanation)
        for explanation in explained
        if explanation.waits is not None or explanation.profile is not None
    ]
    left_out = []
    for explanation in explained:
        left_out += [
            f"{explanation.arm}: left out: {reason}" for reason in explanation.left_out
        ]
    tables = [_waits_table(run), _packages_table(run), _functions_table(run)]
    tables += _differences(run)
    parts = (
        Lines(sentences),
        Charts(lambda: _waits_chart(run)),
        Lines(list(_stalls_and_leaks(run)), alert=True),
        Lines(left_out, alert=True),
        Tables([table for table in tables if table.rows]),
        Lines([*_costs(run), *_growths(run), *_files(run)], brief=False),
        Lines([_NOTE] if explained else [], brief=False),
    )
    return Section("why", "Why", parts, brief=True)


def explain_in_a_sentence(run: Run, explanation: Explanation) -> str:
    """Return what takes the time of an arm."""
    arm = explanation.arm
    profile = explanation.profile
    if profile is not None and _client_share(run, arm) >= _BUSY:
        whole = _whole(run, arm)
        if profile.main is not None:
            main = profile.main
            share = _percent(main.total)
            return f"{arm} spent {share} of {whole} in {main.name} ({main.package})."
        largest = list(profile.packages.items())[:3]
        if largest:
            (package, part), *others = largest
            more = "".join(
                f", {_percent(part)} in {name}"
                for name, part in others
                if part >= _LARGE_PACKAGE
            )
            spent = f"{arm} spent {_percent(part)} of {whole} in the code of {package}"
            return f"{spent}{more}."
    waits = explanation.waits
    if waits is None or waits.to_handler is None:
        return f"{arm}: nothing stands out."
    to_handler = waits.to_handler.mean
    if to_handler < _QUARTER * waits.latency.mean:
        return f"{arm}: nothing stands out{_longest_part(waits)}."
    most = waits.most_at_server or 0
    of = f"{most:,} of {explanation.concurrency:,} were at the server at once"
    waited = f"{arm}: requests waited {units.time(to_handler)} (mean)"
    bounds = {trial.bound for trial in run.finished_trials_of(arm)}
    if bounds & {"upstream-threads", "upstream-bound"}:
        return f"{waited} for a free thread of the server or in the client; {of}."
    limit = ""
    if most <= _HALF * explanation.concurrency:
        limit = f": {_name_limit(run, arm)}"
    return f"{waited} in the client; at most {of}{limit}."


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _whole(run: Run, name: str) -> str:
    """Return what a share is of: py-spy cannot tell a wait for a core from work."""
    executor = _strategy_of(run, name).executor
    if strategies.executor_spec(executor).threads:
        return "the time in which its threads had work, waits for a core included,"
    return "its CPU time"


def _strategy_of(run: Run, name: str) -> strategies.Strategy:
    [arm] = [arm for arm in run.experiment.arms if arm.name == name]
    return strategies.find(arm.strategy)


def _longest_part(waits: Waits) -> str:
    parts = _known_parts(waits)
    name = max(parts, key=lambda key: parts[key].mean)
    share = parts[name].mean / max(waits.latency.mean, 1e-12)
    return f"; {_percent(share)} of the time is {_PARTS[name]}"


def _known_parts(waits: Waits) -> dict[str, PartOfTime]:
    parts = {key: getattr(waits, key) for key in _PARTS}
    return {key: part for key, part in parts.items() if part is not None}


def _client_share(run: Run, arm: str) -> float:
    """Return the median share of the client's cores in the ranked rounds."""
    verdicts = [trial.verdict for trial in run.finished_trials_of(arm)]
    shares = [verdict.shares.client for verdict in verdicts if verdict is not None]
    return median(shares) if shares else 0.0


def _name_limit(run: Run, name: str) -> str:
    """Return what keeps requests in the client, as far as its settings tell."""
    settings = _strategy_of(run, name).settings
    for key in ("limit_per_host", "pool", "library_defaults", "threads", "processes"):
        if key in settings:
            return f"the setting {key}={settings[key]}"
    return "a limit of the client's own"


def _waits_chart(run: Run) -> Iterator[RowChart]:
    """Yield a bar of four parts for each arm: the means of its requests."""
    colours = dict(zip(_PARTS, HUES, strict=False))
    rows = []
    longest = 0.0
    for explanation in run.explained:
        if explanation.waits is not None:
            latency = explanation.waits.latency.mean
            longest = max(longest, latency)
            parts = _known_parts(explanation.waits)
            segments = [(part.mean, colours[key]) for key, part in parts.items()]
            row = ChartRow(
                explanation.arm,
                units.time(latency),
                HUES[0],
                segments=segments or [(latency, GREY)],
            )
            rows.append(row)
    if rows:
        names = zip(_PARTS.values(), _HUE_NAMES, strict=True)
        legend = ", ".join(f"{part} ({colour})" for part, colour in names)
        notes = [f"mean time of a request: {legend}"]
        title = "Where requests wait"
        yield RowChart(title, rows, notes, 0.0, 1.02 * longest, units.time)


def _waits_table(run: Run) -> DataTable:
    heads = ["arm", "latency", *_PARTS.values(), "asked delay", "most at the server"]
    rows = []
    for explanation in run.explained:
        waits = explanation.waits
        if waits is not None:
            keys = ("latency", *_PARTS, "asked")
            most = units.UNKNOWN
            if waits.most_at_server is not None:
                most = f"{waits.most_at_server:,} of {explanation.concurrency:,}"
            cells = [_cell(getattr(waits, key)) for key in keys]
            rows.append([explanation.arm, *cells, most])
    return DataTable(heads, rows, "Where requests wait")


def _cell(part: PartOfTime | None) -> str:
    if part is None:
        return units.UNKNOWN
    return f"{units.time(part.p50)} · {units.time(part.p99)}"


def _packages_table(run: Run) -> DataTable:
    rows = []
    for explanation in run.explained:
        profile = explanation.profile
        if profile is not None:
            largest = list(profile.packages.items())[:_MOST_PACKAGES]
            shares = [f"{package} {_percent(share)}" for package, share in largest]
            rows.append([explanation.arm, ", ".join(shares), f"{profile.samples:,}"])
    heads = ["arm", "packages", "samples"]
    return DataTable(heads, rows, "Which packages take the CPU", keys=2)


def _functions_table(run: Run) -> DataTable:
    rows = []
    for explanation in run.explained:
        profile = explanation.profile
        functions = [] if profile is None else profile.functions
        for function in functions:
            shares = [_percent(function.total), _percent(function.own)]
            rows.append([explanation.arm, function.name, function.package, *shares])
    heads = ["arm", "function", "package", "with its calls", "itself"]
    return DataTable(heads, rows, "Which functions take the CPU", keys=3)


def _differences(run: Run) -> Iterator[DataTable]:
    """Yield what two arms differ in: CPU time per request of each function."""
    costs: dict[str, dict[tuple[str, str], float]] = {}
    for explanation in run.explained:
        cpu = _cpu_per_request(run, explanation.arm)
        if explanation.profile is not None:
            if cpu is None:
                return
            costs[explanation.arm] = {
                (function.name, function.package): function.total * cpu
                for function in explanation.profile.functions
            }
    if len(costs) != 2:
        return
    before, after = costs.values()

    def difference(function: tuple[str, str]) -> float:
        return abs(after.get(function, 0.0) - before.get(function, 0.0))

    largest = sorted(before | after, key=difference, reverse=True)
    rows = [
        [*key, units.time(before.get(key)), units.time(after.get(key))]
        for key in largest[:_MOST_DIFFERENCES]
    ]
    title = "CPU time per request of each function with its calls"
    yield DataTable(["function", "package", *costs], rows, title, keys=2)


def _cpu_per_request(run: Run, arm: str) -> float | None:
    return BY_KEY["cpu"].over_rounds(run.finished_trials_of(arm))


def _costs(run: Run) -> Iterator[str]:
    """Yield what looking at each arm cost."""
    for explanation in run.explained:
        arm = explanation.arm
        usual = _cpu_per_request(run, arm)
        watched = explanation.cpu_seconds_per_request
        if usual is not None and watched is not None:
            yield (
                f"{arm}: {units.time(watched)} of CPU time per request while it was"
                f" looked at, {units.time(usual)} without."
            )


def _stalls_and_leaks(run: Run) -> Iterator[str]:
    """Yield what is certain: more than waits for a core, and than chance, explain."""
    for explanation in run.explained:
        stall = None if explanation.waits is None else explanation.waits.longest_stall
        waited = explanation.run_delay_seconds
        if stall is not None and waited is not None and stall - waited >= _LONG_STALL:
            yield (
                f"{explanation.arm}: something blocks its event loop, for up to"
                f" {units.time(stall)}."
            )
        memory, files = explanation.memory_growth, explanation.files_growth
        if memory is not None and memory.low >= _LEAK_BYTES:
            yield (
                f"{explanation.arm}: its memory grows with each request, by"
                f" {units.memory(memory.mean / _PER)}."
            )
        if files is not None and files.low >= _LEAK_FILES:
            yield f"{explanation.arm}: it leaves files or sockets open."


def _growths(run: Run) -> Iterator[str]:
    for explanation in run.explained:
        stall = None if explanation.waits is None else explanation.waits.longest_stall
        waited = explanation.run_delay_seconds
        if stall is not None and waited is not None:
            yield (
                f"{explanation.arm}: longest stall of its event loop"
                f" {units.time(stall)}; its threads waited {units.time(waited)} in all"
                " for a core"
            )
        memory, files = explanation.memory_growth, explanation.files_growth
        if memory is not None and files is not None:
            kilobytes = [size / 1e3 for size in (memory.mean, memory.low, memory.high)]
            yield (
                f"{explanation.arm}: growth per 1,000 requests (95 %): memory"
                f" {_interval(*kilobytes)} kB, open files"
                f" {_interval(files.mean, files.low, files.high)}"
            )


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:,.0f} ({low:,.0f} to {high:,.0f})"


def _files(run: Run) -> Iterator[str]:
    for explanation in run.explained:
        profile = explanation.profile
        if profile is not None:
            yield (
                f"{explanation.arm}: flame graph explained/{profile.flame_graph}, for"
                f" speedscope.app explained/{profile.speedscope}"
            )
