"""Cautions about the search for capacities: arms without one, and searches that ended early."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.judging.capacity import ArmSearch, capacities, rate_of, why_not_held
from clientlab.results.document import Caution, Run


def no_capacity(run: Run) -> Iterator[Caution]:
    """Arms that held not even the lowest rate. Those that never held one are left out of the comparison."""
    found = [one for one in _searches(run) if one.bracket.held is None and one.next_rate is None]
    if found:
        yield Caution(
            kind="no-capacity",
            arms=sorted({one.arm for one in found}),
            text="no rate held: " + "; ".join(f"{one.arm} in round {one.round} ({_why(one)})" for one in found),
            advice="an arm that held none in any round is not compared at equal load: "
            "loosen the conditions, lower the first rate, or lengthen the trials",
        )


def ended_early(run: Run) -> Iterator[Caution]:
    """Searches that ended before the rates that were held and not held were close."""
    found = [one for one in _searches(run) if one.is_limited or one.is_lost]
    if found:
        yield Caution(
            kind="search-ended-early",
            arms=sorted({one.arm for one in found}),
            text="the search ended early: "
            + "; ".join(f"{one.arm} in round {one.round} ({_end(one)})" for one in found),
            advice="these capacities are less exact than the others: begin at a rate nearer to them, or permit more "
            "probes (most_probes, most_seconds); where probes were lost, --resume goes on, and arms are compared then",
        )


def failed_overloads(run: Run) -> Iterator[Caution]:
    """Trials of an overload without figures, which no later trial of the same kind replaced."""
    good = {(trial.arm, trial.round, trial.search) for trial in run.overloads if trial.status == "done"}
    failed = [trial for trial in run.overloads if (trial.arm, trial.round, trial.search) not in good]
    if failed:
        shown = [f"{trial.arm} at {units.rate(rate_of(trial))}/s in round {trial.round}" for trial in failed]
        yield Caution(
            kind="failed-overloads",
            arms=sorted({trial.arm for trial in failed}),
            text=f"trials of an overload failed: {', '.join(dict.fromkeys(shown))}",
            advice=f"the table of overloads leaves them out; the first reason was: {failed[0].reason}",
        )


def _searches(run: Run) -> list[ArmSearch]:
    return [one for arms in capacities(run).values() for arm in arms for one in arm.searches]


def _why(one: ArmSearch) -> str:
    """At which rate an arm failed, and why."""
    if one.limit is None:
        return "its probes were lost" if one.is_lost else "its search ended before"
    return f"at {units.rate(rate_of(one.limit))}/s: {why_not_held(one.limit, one.search)}"


def _end(one: ArmSearch) -> str:
    """After how many probes, and between which rates."""
    ends = (one.bracket.held, one.bracket.failed)
    held, failed = ("none" if rate is None else f"{units.rate(rate)}/s" for rate in ends)
    return f"after {len(one.probes)} probes{', some lost' if one.is_lost else ''}; held {held}, not held {failed}"
