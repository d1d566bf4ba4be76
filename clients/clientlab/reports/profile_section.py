"""Where the CPU time goes: the packages and functions of each profiled arm, flame graphs, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import sqrt

from clientlab import units
from clientlab.judging.contrasts import environment_pairs
from clientlab.reports.charts import flame
from clientlab.reports.charts.flame import FlameGraph
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.sections import Flames, Lines, Listing, Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.profile import Profile, ProfiledFunction, ProfileKind

TITLE = "Where the CPU time goes"
_HEADS = (
    "arm", "samples", "± points", "attributed", "kernel", "GIL held", "wait for the GIL", "rate under the profiler",
)  # fmt: skip
_PACKAGES, _FUNCTIONS = 12, 15
_IN_A_LINE = 5
_MOST_PAIRS = 6
_NOTE = (
    "Trials under py-spy, behind the rounds: no figure above has them. A sample counts for the package whose code ran: "
    "the interpreter works for the function that it runs, and a system call is the kernel's. Samples in system calls "
    "are weighted to the kernel's share by the system's clock. ± points: 95 % of a share of one half. Rate under the "
    "profiler: of the rounds' rate. The profiler slows arms down unequally; the shares of one that it slows much are "
    "rougher."
)
_FLAME_NOTE = (
    "A cell is a function. Its width is the share of the CPU time in it and in what it calls, which is below it. The "
    "order from left to right means nothing. Hold the pointer on a cell for its name and share."
)


def profile(report: Report) -> Section[Part]:
    """The profiles of a run; without content if it has none."""
    run = report.run
    profiled = [one for one in run.profiles if one.kind == "cpu"]
    whole = _whole(run)
    flames = Flames(lambda: [*graphs(run)], [_FLAME_NOTE])
    parts: list[Part] = [
        Lines([sentence(one) for one in whole]),
        Listing("Arms without a profile", [f"{one.arm}: {one.reason}" for one in profiled if one.reason]),
        Listing("What the profiler could not see", [f"{one.arm}: {note}" for one in whole for note in one.notes]),
        Tables([_overview(run, whole)] if whole else []),
        flames,
    ]
    return Section("profile", TITLE, parts if profiled else [], label="Profile", notes=[_NOTE], brief=True)


def details(report: Report) -> Section[Part]:
    """The packages and functions of each profiled arm, and the differences between arms, as tables."""
    run = report.run
    tables = [make(run, one) for one in _whole(run) for make in (_packages, _functions)]
    tables += [_differences(run, *pair) for pair in pairs(run)]
    return Section("profile-tables", "CPU time by package and function", [Tables(tables)], folded=True)


def _whole(run: Run) -> list[Profile]:
    return [one for one in run.profiles if one.kind == "cpu" and one.reason is None]


def sentence(one: Profile) -> str:
    """The packages that took most, in a line: ``httpx2: httpcore2 61 %, h11 14 %, others 25 %``."""
    shown = list(islice(one.packages.items(), _IN_A_LINE))
    others = 1 - sum(share for _, share in shown)
    parts = [f"{name} {100 * share:.0f} %" for name, share in shown]
    return f"{one.arm}: {', '.join([*parts, *([f'others {100 * others:.0f} %'] if others > 0.005 else [])])}"


def graphs(run: Run) -> Iterator[FlameGraph]:
    """A flame graph of each profiled arm, then the differences."""
    for one in _whole(run):
        if one.flame:
            yield flame.flame(one, cpu_of(run, one.arm))
    for before, after in pairs(run):
        seconds = cpu_of(run, before.arm), cpu_of(run, after.arm)
        if seconds[0] is not None and seconds[1] is not None:
            yield flame.difference(before, after, (seconds[0], seconds[1]))


def pairs(run: Run, kind: ProfileKind = "cpu") -> list[tuple[Profile, Profile]]:
    """Profiles to compare: of an arm in two environments; without any, of the first arm of a workload and others."""
    by_arm = {one.arm: one for one in run.profiles if one.kind == kind and one.packages}
    found = [(first.name, arm.name) for arm, first in environment_pairs(run.experiment.arms)]
    if not found:
        firsts: dict[str, str] = {}
        profiled = [arm for arm in run.experiment.arms if arm.name in by_arm]
        found = [(firsts.setdefault(arm.workload, arm.name), arm.name) for arm in profiled]
    known = [(by_arm[one], by_arm[two]) for one, two in found if one != two and one in by_arm and two in by_arm]
    return known[:_MOST_PAIRS]


def cpu_of(run: Run, arm: str) -> float | None:
    """CPU seconds per request of an arm in its rounds."""
    return BY_KEY["cpu"].over_rounds(run.trials_of(arm))


def slowdown_of(run: Run, one: Profile) -> float | None:
    """The rate under the profiler, as a share of the rate in the rounds."""
    rate = BY_KEY["throughput"].over_rounds(run.trials_of(one.arm))
    return one.requests_per_second / rate if rate and one.requests_per_second is not None else None


def _overview(run: Run, profiles: Sequence[Profile]) -> DataTable:
    rows = [
        (
            one.arm,
            units.count(one.samples),
            units.digits(100 * 1.96 * 0.5 / sqrt(one.samples), 2) if one.samples else units.UNKNOWN,
            units.share(one.attributed),
            units.share(one.kernel_share),
            units.share(one.gil_held),
            units.UNKNOWN if one.gil_waiting is None else f"{units.digits(one.gil_waiting, 2)} threads",
            units.share(slowdown_of(run, one)),
        )
        for one in profiles
    ]
    return DataTable(_HEADS, rows, "The profiled arms", brief=(1, 2, 5, 6, 7))


def _packages(run: Run, one: Profile) -> DataTable:
    cpu = cpu_of(run, one.arm)
    rows = [
        (name, units.share(round(share, 3)), _time(share, cpu))
        for name, share in islice(one.packages.items(), _PACKAGES)
    ]
    others = sum(share for _, share in islice(one.packages.items(), _PACKAGES, None))
    if others > 0:
        rows.append(("others", units.share(round(others, 3)), _time(others, cpu)))
    return DataTable(("package", "share", "CPU/req"), rows, f"Packages of {one.arm}")


def _functions(run: Run, one: Profile) -> DataTable:
    cpu = cpu_of(run, one.arm)
    rows = [
        (
            function.name, function.package, units.share(round(function.own, 3)), _time(function.own, cpu),
            units.share(round(function.total, 3)),
        )
        for function in _largest(one)
    ]  # fmt: skip
    heads = ("function", "package", "own", "own CPU/req", "with what it calls")
    return DataTable(heads, rows, f"Functions of {one.arm}", texts=(1,))


def _largest(one: Profile) -> list[ProfiledFunction]:
    return sorted(one.functions, key=lambda function: -function.own)[:_FUNCTIONS]


def _differences(run: Run, before: Profile, after: Profile) -> DataTable:
    """Time per request by package, of both arms."""
    cpu = cpu_of(run, before.arm), cpu_of(run, after.arm)
    names = {**after.packages, **before.packages}
    changes = {
        name: after.packages.get(name, 0.0) * (cpu[1] or 0.0) - before.packages.get(name, 0.0) * (cpu[0] or 0.0)
        for name in names
    }
    rows = [
        (
            name, _time(before.packages.get(name), cpu[0]), _time(after.packages.get(name), cpu[1]),
            f"{'+' if changes[name] > 0 else '−'}{units.time(abs(changes[name]))}",
        )
        for name in sorted(names, key=lambda name: -abs(changes[name]))[:_PACKAGES]
    ]  # fmt: skip
    heads = ("package", before.arm, after.arm, "difference per request")
    return DataTable(heads, rows, f"CPU time per request: {after.arm} against {before.arm}")


def _time(share: float | None, cpu: float | None) -> str:
    return units.UNKNOWN if share is None or cpu is None else units.time(share * cpu)
