"""A comparison in words and cells: what the terminal, Markdown and JUnit show of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clientlab.analysis.unpaired import Estimate
from clientlab.reports import units
from clientlab.runs.changes import Change, Compared, Comparison
from clientlab.runs.document import Run
from clientlab.runs.quantities import Unit
from clientlab.runs.thresholds import Judged

_LONGEST = 60
CHANCE = "of equal figures one in 20 is called different by chance"


def figure(value: float | None, unit: Unit) -> str:
    """A quantity's figure with the unit that suits its size."""
    if value is None:
        return units.NOTHING
    if unit == "seconds":
        return units.time(value)
    if unit == "bytes":
        return units.memory(value)
    if unit == "share":
        return f"{units.digits(value * 100)} %" if value else "0"
    return units.rate(value) if unit == "per-second" else f"{value:,.0f}"


def estimate(change: Change) -> str:
    """The ratio with its interval; of errors the difference in percentage points."""
    if change.difference is not None:
        return _points(change.difference) if change.before or change.after or change.difference.value else ""
    found = change.ratio
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return f"x {found.value:.2f}"
    places = 3 if 0.9 < found.value < 1.1 else 2
    return f"x {found.value:.{places}f} ({found.low:.{places}f} to {found.high:.{places}f})"


def _points(found: Estimate) -> str:
    """A difference of shares, in percentage points."""
    if found.low is None or found.high is None:
        return f"{100 * found.value:+.2f} points"
    return f"{100 * found.value:+.2f} points ({100 * found.low:+.2f} to {100 * found.high:+.2f})"


def heading(run: Run) -> str:
    """A run in a few words."""
    return f"{run.run} ({run.created}, {run.surroundings.host}, {run.surroundings.python})"


def notices(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """What is to be known before the figures are read: for each run a heading and its lines."""
    alone = _halves(comparison.base)
    if alone:
        yield f"the baseline {comparison.base.run}", alone
    for compared in comparison.others:
        lines = [f"not alike: {line}" for line in compared.unlike]
        lines += [_difference(compared, index) for index in range(len(compared.differences))]
        lines += _halves(compared.run)
        if lines:
            yield compared.run.run, lines


def _difference(compared: Compared, index: int) -> str:
    one = compared.differences[index]
    before, after = (_short(value or "none") for value in (one.before, one.after))
    return f"{one.part}: {before} -> {after}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _halves(run: Run) -> list[str]:
    """What is missing in a run."""
    failed = sum(trial.status == "failed" for trial in run.trials)
    faulty = sum(trial.status == "done" and bool(trial.errors) for trial in run.trials)
    lines = [f"{failed} of {len(run.trials)} trials failed and are left out, but for their errors"] if failed else []
    if faulty:
        lines.append(
            f"requests failed in {faulty} of {len(run.trials)} trials: their wall times are of less work and are left "
            "out; throughput counts the requests that succeeded"
        )
    if run.status != "done":
        lines.append(f"the run is {run.status}: {len(run.trials)} trials of {run.experiment.rounds} rounds are there")
    return lines


def summary(comparison: Comparison) -> str:
    """How many figures changed, and what chance would have made of equal ones."""
    changes = [
        change for one in comparison.others for by_name in one.changes.values() for change in by_name.values()
        if change.before is not None or change.after is not None
    ]  # fmt: skip
    counts = {word: sum(change.verdict == word for change in changes) for word in ("better", "worse", "within noise")}
    unknown = len(changes) - sum(counts.values())
    few = f", {unknown} can't be told (an interval needs 3 rounds of both runs)" if unknown else ""
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    return f"{len(changes)} figures compared: {said}{few}; {CHANCE}."


def judged_lines(found: Sequence[Judged]) -> list[str]:
    """The thresholds that failed or are not sure, or a line that says all held."""
    if not found:
        return []
    lines = [f"{one.outcome.upper()}: {judged(one)}" for one in found if one.outcome != "held"]
    return lines or [f"all thresholds held ({len(found)} checked)"]


def judged(one: Judged) -> str:
    """A threshold, the arm, and what was found."""
    return f"{one.threshold.text} · {one.arm} · {one.run}: {_judged(one)}"


def _judged(one: Judged) -> str:
    lost = f"{one.lost} {'trial' if one.lost == 1 else 'trials'} failed"
    if one.lost:
        return lost if one.found is None else f"{_found(one)}, and {lost}"
    return _found(one)


def _found(one: Judged) -> str:
    about = one.threshold.quantity
    if one.found is None:
        return "no finished trial that has it"
    if not one.threshold.change:
        return f"{about.says} {figure(one.found, about.unit)}"
    change = 100 * one.found if about.unit == "share" else 100 * (one.found - 1)
    unsure = "; its interval reaches back within: more rounds would settle it" if one.outcome == "not sure" else ""
    return f"{about.says} {change:+.1f} {'points' if about.unit == 'share' else '%'}{unsure}"
