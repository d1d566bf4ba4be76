"""The experiment `free-threads`: what threads gain without a GIL, what one thread pays, and which wheels turn it on."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE, Word, decision_of
from clientlab.analysis.ratios import Ratio, paired_ratio, typical_figure
from clientlab.judging.changes import simultaneous
from clientlab.judging.contrasts import by_round
from clientlab.reports.markdown import table
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY
from findings.contest import listed

WITH, WITHOUT = "3.14", "3.14t"
"""The environments: the same libraries with a GIL and in a Python that was built for free threading."""

_HEADS = (
    "library",
    "threads",
    "with a GIL",
    "without",
    "time without a GIL over with it (95 %)",
    "CPU time of a request, without over with (95 %)",
)
_SAYS: dict[Word, str] = {
    "faster": "take less time",
    "slower": "take more time",
    "equal": f"take as long within {EQUAL_SHARE}",
    "undecided": "are undecided",
}


@dataclass(frozen=True)
class _Library:
    """A library with the arm of one thread and that of several."""

    name: str
    one: str
    many: str
    threads: int


LIBRARIES = (
    _Library("requests", "requests-1", "requests-8", 8),
    _Library("urllib3", "urllib3-1", "urllib3-8", 8),
    _Library("httpx2", "httpx2-1", "httpx2-8", 8),
    _Library("pycurl", "pycurl-1", "pycurl-8", 8),
    _Library("aiohttp", "aiohttp-1", "aiohttp-2", 2),
)


def scaling_table(run: Run) -> str:
    """Two lines for each library: one thread and several, with and without a GIL. Its intervals hold together."""
    lines = [
        _cells(run, library, arm, threads)
        for library in LIBRARIES
        for arm, threads in ((library.one, 1), (library.many, library.threads))
    ]
    return table(_HEADS, lines, left=1)


def threads_answer(run: Run) -> str:
    """The libraries by what the time of several threads without a GIL is over that with it, for a sentence."""
    groups: dict[Word, list[str]] = {word: [] for word in _SAYS}
    for library in LIBRARIES:
        ratio = _ratio(run, library.many, BY_KEY["wall"])
        groups[decision_of(ratio).word].append(f"{library.name} {units.ratio_of(ratio)}")
    return "; ".join(f"threads with {listed(names)} {_SAYS[word]}" for word, names in groups.items() if names)


def cost_answer(run: Run) -> str:
    """How many times the CPU time one thread takes without a GIL, for a sentence."""
    ratios = [(library.name, _ratio(run, library.one, BY_KEY["cpu"])) for library in LIBRARIES]
    return listed([f"{name} {units.ratio_of(ratio)}" for name, ratio in ratios])


def switched_answer(run: Run) -> str:
    """Which arms had a GIL in the Python without one, and which module switched it on, in a sentence."""
    locked: dict[str, list[str]] = {}
    for trial in run.trials:
        if trial.environment == WITHOUT and trial.gil:
            arms = locked.setdefault(trial.gil_switched_by or "a module that is not known", [])
            arms.extend([] if trial.arm in arms else [trial.arm])
    if not locked:
        return "No wheel of these libraries turns the GIL on again"
    return "; ".join(f"{module} turns the GIL on again in {listed(arms)}" for module, arms in locked.items())


def _ratio(run: Run, arm: str, figure: Figure) -> Ratio | None:
    """An arm without a GIL over the same with it, by round. All of the page's ratios hold together."""
    free, locked = (by_round(run, f"{arm} in {environment}", figure) for environment in (WITHOUT, WITH))
    return paired_ratio(free, locked, simultaneous(4 * len(LIBRARIES)))


def _cells(run: Run, library: _Library, arm: str, threads: int) -> list[str]:
    rates = [_rate(run, f"{arm} in {environment}") for environment in (WITH, WITHOUT)]
    return [
        library.name,
        str(threads),
        *rates,
        units.ratio_of(_ratio(run, arm, BY_KEY["wall"])),
        units.ratio_of(_ratio(run, arm, BY_KEY["cpu"])),
    ]


def _rate(run: Run, arm: str) -> str:
    found = typical_figure(by_round(run, arm, BY_KEY["throughput"]))
    return f"{units.rate(None if found is None else found.value)}/s"
