"""Where the memory goes: what each profiled arm held at its peak and allocated, flame graphs, and differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from clientlab import units
from clientlab.reports.charts import flame
from clientlab.reports.charts.flame import MEMORY, FlameGraph
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.profile_section import pairs, slowdown_of
from clientlab.reports.sections import Flames, Lines, Listing, Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.profile import Allocated, Memory, Profile

TITLE = "Where the memory goes"
_HEADS = ("arm", "peak", "attributed", "allocations/req", "allocated/req", "time under memray")
_PACKAGES, _FUNCTIONS = 12, 15
_NOTE = (
    "Each arm has one more trial behind the rounds, in which memray records each allocation: no figure above has it. "
    "Peak: the most that the measured part held at once, above what the process held when it began. Sizes are those "
    "that were requested: the process takes more, and what the allocator keeps for later is not in them. An allocation "
    "counts for the Python function that made it, also where it was made in C. Time under memray: of a request, as a "
    "multiple of that in the rounds."
)
_FLAME_NOTE = (
    "A cell is a function. Its width is the share of the memory at the peak that the function and what it calls had "
    "allocated; what it calls is below it. The order from left to right means nothing."
)

_Found = tuple[Profile, Memory]


def memory(report: Report) -> Section[Part]:
    """The memory profiles of a run; without content if it has none."""
    run = report.run
    profiled = [one for one in run.profiles if one.kind == "memory"]
    found = _found(run)
    parts: list[Part] = [
        Lines([sentence(*one) for one in found]),
        Listing("Arms without a memory profile", [f"{one.arm}: {one.reason}" for one in profiled if one.reason]),
        Listing("What to know of these trials", [f"{one.arm}: {note}" for one, _ in found for note in one.notes]),
        Flames(lambda: [*graphs(run)], [_FLAME_NOTE]),
        Tables([_overview(run, found)] if found else []),
    ]
    return Section("memory", TITLE, parts if profiled else [], label="Memory", notes=[_NOTE], brief=True)


def details(report: Report) -> Section[Part]:
    """What the packages and functions of each profiled arm held and allocated, and the differences, as tables."""
    run = report.run
    tables = [make(*one) for one in _found(run) for make in (_packages, _holding, _allocating)]
    tables += [_differences(before, after) for before, after in pairs(run, "memory")]
    return Section("memory-tables", "Memory by package and function", [Tables(tables)], folded=True)


def _found(run: Run) -> list[_Found]:
    return [(one, one.memory) for one in run.profiles if one.memory is not None]


def sentence(one: Profile, found: Memory) -> str:
    """What an arm held and allocated, in a line.

    ``urllib3: peak 2.96 MiB above its start, 41 % of it http; 212 allocations and 33.2 KiB a request, most by urllib3``
    """
    largest = one.largest
    share = "" if largest is None else f", {100 * one.packages[largest]:.0f} % of it {largest}"
    said = f"{one.arm}: peak {units.memory(found.peak_bytes)} above its start{share}"
    if not found.requests:
        return said
    count, size = _each(found.allocated, found)
    most = "" if found.busiest is None else f", most by {found.busiest}"
    return f"{said}; {count} allocations and {size} a request{most}"


def graphs(run: Run) -> Iterator[FlameGraph]:
    """A flame graph of each arm's memory at its peak, then the differences."""
    for one, found in _found(run):
        if one.flame:
            yield flame.flame(one, found.peak_bytes, MEMORY)
    for before, after in pairs(run, "memory"):
        if before.memory is not None and after.memory is not None:
            yield flame.difference(before, after, (before.memory.peak_bytes, after.memory.peak_bytes), MEMORY)


def _each(one: Allocated | None, found: Memory) -> tuple[str, str]:
    """Allocations and bytes of a request."""
    if one is None or not found.requests:
        return units.UNKNOWN, units.UNKNOWN
    return units.digits(one.allocations / found.requests), units.memory(one.bytes / found.requests)


def _overview(run: Run, profiles: Sequence[_Found]) -> DataTable:
    rows = [
        (
            one.arm, units.memory(found.peak_bytes), units.share(one.attributed), *_each(found.allocated, found),
            _slower(slowdown_of(run, one)),
        )
        for one, found in profiles
    ]  # fmt: skip
    return DataTable(_HEADS, rows, "Memory of the profiled arms", brief=(1, 3, 4, 5))


def _slower(rate: float | None) -> str:
    """How many times as long a request took, by the rate as a share of that in the rounds."""
    return f"{units.digits(1 / rate, 2)} ×" if rate else units.UNKNOWN


def _packages(one: Profile, found: Memory) -> DataTable:
    names = dict.fromkeys([*one.packages, *found.packages])
    rows = [
        (name, *_held(one.packages.get(name, 0.0), found), *_each(found.packages.get(name), found))
        for name in islice(names, _PACKAGES)
    ]
    heads = ("package", "at the peak", "share", "allocations/req", "allocated/req")
    return DataTable(heads, rows, f"Memory of {one.arm} by package")


def _held(share: float, found: Memory) -> tuple[str, str]:
    return units.memory(share * found.peak_bytes), units.share(round(share, 3))


def _holding(one: Profile, found: Memory) -> DataTable:
    largest = sorted(one.functions, key=lambda function: -function.own)[:_FUNCTIONS]
    rows = [
        (
            function.name, function.package, *_held(function.own, found), units.share(round(function.total, 3)),
        )
        for function in largest
    ]  # fmt: skip
    heads = ("function", "package", "own at the peak", "share", "with what it calls")
    return DataTable(heads, rows, f"Functions of {one.arm} that held most at the peak", texts=(1,))


def _allocating(one: Profile, found: Memory) -> DataTable:
    rows = [
        (function.name, function.package, *_each(function, found))
        for function in islice(found.functions, _FUNCTIONS)
    ]  # fmt: skip
    heads = ("function", "package", "allocations/req", "allocated/req")
    return DataTable(heads, rows, f"Functions of {one.arm} that allocated most", texts=(1,))


def _differences(before: Profile, after: Profile) -> DataTable:
    """Bytes at the peak by package, of both arms."""
    peaks = [0 if one.memory is None else one.memory.peak_bytes for one in (before, after)]
    was, now = (
        {name: share * peak for name, share in one.packages.items()}
        for one, peak in zip((before, after), peaks, strict=True)
    )
    changes = {name: now.get(name, 0.0) - was.get(name, 0.0) for name in {**now, **was}}
    rows = [
        (
            name, units.memory(was.get(name)), units.memory(now.get(name)),
            f"{'+' if change > 0 else '−'}{units.memory(abs(change))}",
        )
        for name, change in sorted(changes.items(), key=lambda one: -abs(one[1]))[:_PACKAGES]
    ]  # fmt: skip
    heads = ("package", before.arm, after.arm, "difference")
    return DataTable(heads, rows, f"Memory at the peak: {after.arm} against {before.arm}")
