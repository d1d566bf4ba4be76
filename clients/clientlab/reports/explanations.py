"""Why each arm is as fast as it is: where its requests waited, and which code took the
CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from clientlab import strategies, units
from clientlab.reports.palette import HUES
from clientlab.reports.rows import Report
from clientlab.reports.sections import (
    ChartRow,
    Charts,
    DataTable,
    Lines,
    Part,
    RowChart,
    Section,
    Tables,
)
from clientlab.results.document import Run
from clientlab.results.explanation import Explanation, PartOfTime, Waits
from clientlab.results.figures import find

_BUSY = 0.7
"""Share of a core from which the client's code is what takes the time."""

_HALF = 0.5
_QUARTER = 0.25
_PARTS = {
    "late": "planned to sent",
    "to_handler": "sent to handler",
    "in_handler": "in the handler",
    "to_read": "answered to read",
}
_COLOURS = dict(zip(_PARTS, HUES, strict=False))
_HUE_NAMES = ("blue", "orange", "green", "pink")
_NOTE = (
    "Each arm was measured once more while its processes were looked at, which slows it"
    " down. No other figure of this report is from these trials. A cell has the median"
    " and the p99."
)


def explanations(report: Report) -> Section:
    """Return an answer for each arm, the waits of its requests, and its code."""
    run = report.run
    found = run.explained
    sentences = [
        explain_in_a_sentence(run, one)
        for one in found
        if one.waits is not None or one.profile is not None
    ]
    tables = [_waits_table(found), _functions_table(found)]
    tables += _differences(run)
    left_out = [
        f"{one.arm}: left out: {reason}" for one in found for reason in one.left_out
    ]
    parts: list[Part] = [
        Lines(sentences),
        Charts(lambda: _waits_chart(found)),
        Lines(left_out, alert=True),
        Tables([table for table in tables if table.rows]),
        Lines([*_costs(run), *_files(found)], brief=False),
        Lines([_NOTE] if found else [], brief=False),
    ]
    return Section("why", "Why", parts, brief=True)


def explain_in_a_sentence(run: Run, found: Explanation) -> str:
    """Return what takes the time of an arm."""
    profile, waits = found.profile, found.waits
    busy = _client_share(run, found.arm)
    if profile is not None and profile.main is not None and busy >= _BUSY:
        main = profile.main
        return (
            f"{found.arm} spent {_percent(main.total)} of {_whole(run, found.arm)} in"
            f" {main.name} ({main.package})."
        )
    if profile is not None and profile.packages and busy >= _BUSY:
        name, share = next(iter(profile.packages.items()))
        whole = _whole(run, found.arm)
        return f"{found.arm} spent {_percent(share)} of {whole} in the code of {name}."
    if waits is None or waits.to_handler is None:
        return f"{found.arm}: nothing stands out."
    to_handler, most = waits.to_handler, waits.most_at_server or 0
    if to_handler.mean < _QUARTER * waits.latency.mean:
        return f"{found.arm}: nothing stands out{_longest_part(waits)}."
    of = f"{most:,} of {found.concurrency:,} were at the server at once"
    waited = f"{found.arm}: requests waited {units.time(to_handler.mean)} (mean)"
    if _server_is_full(run, found.arm):
        return f"{waited} for a free thread of the server or in the client; {of}."
    limit = ""
    if most <= _HALF * found.concurrency:
        limit = f": {_name_limit(run, found.arm)}"
    return f"{waited} in the client; at most {of}{limit}."


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _whole(run: Run, name: str) -> str:
    """Return what a share is of: py-spy cannot tell a wait for a lock from work."""
    [arm] = [arm for arm in run.experiment.arms if arm.name == name]
    executor = strategies.executor_spec(strategies.find(arm.strategy).executor)
    if executor.threads:
        return "the time of its threads, waits for locks included,"
    return "its CPU time"


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


def _server_is_full(run: Run, arm: str) -> bool:
    bounds = [trial.bound for trial in run.finished_trials_of(arm)]
    return "upstream-threads" in bounds or "upstream-bound" in bounds


def _name_limit(run: Run, name: str) -> str:
    """Return what keeps requests in the client, as far as its settings tell."""
    [arm] = [arm for arm in run.experiment.arms if arm.name == name]
    settings = strategies.find(arm.strategy).settings
    for key in ("limit_per_host", "pool", "library_defaults", "threads", "processes"):
        if key in settings:
            return f"the setting {key}={settings[key]}"
    return "a limit of the client's own"


def _waits_chart(found: list[Explanation]) -> Iterator[RowChart]:
    """Yield a bar of four parts for each arm: the means of its requests."""
    known = [(one, one.waits) for one in found if one.waits is not None]
    rows = []
    for one, waits in known:
        parts = _known_parts(waits)
        segments = [
            (parts[key].mean, colour)
            for key, colour in _COLOURS.items()
            if key in parts
        ]
        rows.append(
            ChartRow(
                one.arm,
                units.time(waits.latency.mean),
                HUES[0],
                segments=segments or [(waits.latency.mean, HUES[-1])],
            )
        )
    if not rows:
        return
    colours = ", ".join(
        f"{_PARTS[key]} ({name})"
        for key, name in zip(_COLOURS, _HUE_NAMES, strict=True)
    )
    longest = max(waits.latency.mean for _, waits in known)
    yield RowChart(
        "Where requests wait",
        rows,
        [f"mean time of a request: {colours}"],
        0.0,
        1.02 * longest,
        units.time,
    )


def _waits_table(found: list[Explanation]) -> DataTable:
    heads = ["arm", "latency", *_PARTS.values(), "asked delay", "most at the server"]
    rows = []
    for one in found:
        if one.waits is None:
            continue
        parts = [one.waits.latency, *(getattr(one.waits, key) for key in _PARTS)]
        most = one.waits.most_at_server
        rows.append(
            [
                one.arm,
                *map(_cell, [*parts, one.waits.asked]),
                units.UNKNOWN if most is None else f"{most:,} of {one.concurrency:,}",
            ]
        )
    return DataTable(heads, rows, "Where requests wait")


def _cell(part: PartOfTime | None) -> str:
    if part is None:
        return units.UNKNOWN
    return f"{units.time(part.p50)} · {units.time(part.p99)}"


def _functions_table(found: list[Explanation]) -> DataTable:
    heads = ["arm", "function", "package", "with its calls", "itself", "samples"]
    rows = []
    for one in found:
        if one.profile is None:
            continue
        for name, share in list(one.profile.packages.items())[:5]:
            rows.append([one.arm, "(all)", name, units.UNKNOWN, _percent(share), ""])
        rows += [
            [
                one.arm,
                function.name,
                function.package,
                _percent(function.total),
                _percent(function.own),
                f"{one.profile.samples:,}",
            ]
            for function in one.profile.functions
        ]
    return DataTable(heads, rows, "Which code takes the CPU", keys=3)


def _differences(run: Run) -> Iterator[DataTable]:
    """Yield what two arms differ in: CPU time per request of each function."""
    known = [one for one in run.explained if one.profile is not None]
    if len(known) != 2:
        return
    costs = []
    for one in known:
        cpu = _cpu_per_request(run, one.arm)
        if cpu is None or one.profile is None:
            return
        costs.append(
            {
                (function.name, function.package): function.total * cpu
                for function in one.profile.functions
            }
        )
    before, after = costs
    rows = []
    for key in before | after:
        difference = after.get(key, 0.0) - before.get(key, 0.0)
        rows.append((difference, [*key, *(units.time(of.get(key)) for of in costs)]))
    rows.sort(key=lambda row: -abs(row[0]))
    yield DataTable(
        ["function", "package", known[0].arm, known[1].arm],
        [cells for _, cells in rows[:10]],
        "CPU time per request of each function with its calls",
        keys=2,
    )


def _cpu_per_request(run: Run, arm: str) -> float | None:
    figure = find("cpu", "figure")
    return figure.over_rounds(run.finished_trials_of(arm))


def _costs(run: Run) -> Iterator[str]:
    """Yield what looking at each arm cost."""
    for one in run.explained:
        usual = _cpu_per_request(run, one.arm)
        if usual is not None and one.cpu_seconds_per_request is not None:
            yield (
                f"{one.arm}: {units.time(one.cpu_seconds_per_request)} of CPU time per"
                f" request while it was looked at, {units.time(usual)} without."
            )


def _files(found: list[Explanation]) -> Iterator[str]:
    for one in found:
        if one.profile is not None:
            yield (
                f"{one.arm}: flame graph explained/{one.profile.flame_graph}, for"
                f" speedscope.app explained/{one.profile.speedscope}"
            )
