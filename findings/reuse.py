"""The experiment `reuse`: what a kept connection saves, by the round trip, and from where on it saves 10 % and 50 %.

A round trip between the measured ones is stated only with both ends of its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.ratios import Estimate, paired_ratio
from clientlab.judging.contrasts import by_round
from clientlab.reports.markdown import table
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.plan import Arm
from clientlab.running.due import mean_delay
from clientlab.workload.link import Link
from findings.contest import listed

NEW, KEPT = "-new", "-kept"
"""How the arms of a client end: with a connection for each request, and with one that is kept."""

SHARES = (0.1, 0.5)

Curve = Mapping[float, float]
"""Round trip in seconds → share of the time of new connections that a kept connection saves."""


def crossing(curve: Curve, share: float) -> float | None:
    """The shortest round trip in seconds from which on `share` is saved; None if the longest one saves less.

    Linear between the measured points. The shortest measured one, if all of them save so much.
    """
    points = sorted(curve.items())
    if not points or points[-1][1] < share:
        return None
    fewer = [number for number, (_, saved) in enumerate(points) if saved < share]
    if not fewer:
        return points[0][0]
    (rtt, saved), (longer, more) = points[fewer[-1] : fewer[-1] + 2]
    return rtt + (share - saved) / (more - saved) * (longer - rtt)


@dataclass(frozen=True)
class Saved:
    """The share of the time of new connections that a kept one saves, and both ends of its 95 % interval."""

    share: float
    low: float
    high: float


Saving = Mapping[float, Saved]
"""Round trip in seconds → what is saved there."""


def threshold(saving: Saving, share: float) -> Estimate | None:
    """The round trip in seconds from which on `share` is saved, with its interval.

    The interval is between the round trips at which the upper and the lower ends of the measured intervals cross the
    share. None where one of the three curves does not: then nobody knows it.
    """
    found, early, late = (
        crossing({rtt: getattr(one, end) for rtt, one in saving.items()}, share) for end in ("share", "high", "low")
    )
    return None if found is None or early is None or late is None else Estimate(found, early, late)


def curves(run: Run) -> dict[tuple[str, str], dict[float, Saved]]:
    """(Client, route) → its curve, of the typical ratios by round of its arms. Without pairs that have no interval."""
    new, kept = (_ending(run.experiment.arms, end) for end in (NEW, KEPT))
    found: dict[tuple[str, str], dict[float, Saved]] = {}
    for client, route, rtt in new.keys() & kept.keys():
        place = (client, route, rtt)
        ratio = paired_ratio(by_round(run, new[place], BY_KEY["wall"]), by_round(run, kept[place], BY_KEY["wall"]))
        if ratio is not None and ratio.interval is not None:
            shares = (1 - 1 / end for end in (ratio.value, *ratio.interval))
            found.setdefault((client, route), {})[rtt] = Saved(*shares)
    return dict(sorted(found.items()))


def _ending(arms: Iterable[Arm], end: str) -> dict[tuple[str, str, float], str]:
    """(Client, route, round trip) → the name of the arm, of the arms with that end behind a link."""
    entries = [(arm, (arm.label or arm.name).partition("[")[0]) for arm in arms]
    return {
        (entry.removesuffix(end), arm.route, arm.link.rtt): arm.name
        for arm, entry in entries
        if entry.endswith(end) and arm.link is not None
    }


def answer(run: Run, route: str) -> str:
    """A sentence for each share: the round trip from which a kept connection saves it on a route, by client.

    Before them, how long the server takes: the shares depend on it.
    """
    found = {client: curve for (client, on), curve in curves(run).items() if on == route}
    delays = {units.time(mean_delay(workload)) for workload in run.experiment.workloads.values()}
    server = f"The server takes {' or '.join(sorted(delays))}."
    return " ".join([server, *(_sentence(found, share) for share in SHARES)])


def _sentence(found: Mapping[str, Saving], share: float) -> str:
    """Only round trips whose interval is known are stated."""
    rtts = {client: threshold(saving, share) for client, saving in found.items()}
    reached = {client: rtt for client, rtt in rtts.items() if rtt is not None}
    if not reached:
        return f"From which round trip on a client saves {_percent(share)} is not known: no interval has both ends."
    last = max(reached.values(), key=lambda rtt: rtt.value)
    begins = f"A kept connection saves {_percent(share)} from a round trip of {_from(last)} on"
    if len(reached) == len(rtts):
        return f"{begins}, with every client."
    others = sorted(rtts.keys() - reached.keys())
    return (
        f"{begins} with {listed(sorted(reached))}; with {listed(others)}, no interval of the round trip has both ends."
    )


def saved_table(run: Run) -> str:
    """Shares saved by client, route and round trip, and the round trips from which 10 % and 50 % are saved."""
    found = curves(run)
    rtts = sorted({rtt for curve in found.values() for rtt in curve})
    heads = [
        *("client", "route"),
        *(str(Link(rtt)) for rtt in rtts),
        *(f"{_percent(share)} from" for share in SHARES),
    ]
    return table(heads, [_cells(client, route, curve, rtts) for (client, route), curve in found.items()], left=2)


def _cells(client: str, route: str, saving: Saving, rtts: Sequence[float]) -> list[str]:
    shares = [_range(saving.get(rtt)) for rtt in rtts]
    return [client, route, *shares, *(_from(threshold(saving, share)) for share in SHARES)]


def _range(saved: Saved | None) -> str:
    if saved is None:
        return units.UNKNOWN
    return f"{_percent(saved.share)} ({100 * saved.low:.0f} to {100 * saved.high:.0f})"


def _percent(share: float | None) -> str:
    return units.UNKNOWN if share is None else f"{100 * share:.0f} %"


def _from(rtt: Estimate | None) -> str:
    if rtt is None:
        return units.UNKNOWN
    value, low, high = (str(Link(round(end or 0.0, 4))) for end in (rtt.value, rtt.low, rtt.high))
    return f"{value} ({low} to {high})"
