"""The experiment `reuse`: what a kept connection saves, by the round trip, and from where on it saves 10 % and 50 %."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from clientlab import units
from clientlab.analysis.ratios import paired_ratio
from clientlab.judging.contrasts import by_round
from clientlab.reports.markdown import table
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.plan import Arm
from clientlab.workload.link import Link

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


def curves(run: Run) -> dict[tuple[str, str], dict[float, float]]:
    """(Client, route) → its curve, of the typical ratios by round of its arms. Without pairs that no round measured."""
    new, kept = (_ending(run.experiment.arms, end) for end in (NEW, KEPT))
    found: dict[tuple[str, str], dict[float, float]] = {}
    for client, route, rtt in new.keys() & kept.keys():
        place = (client, route, rtt)
        ratio = paired_ratio(by_round(run, new[place], BY_KEY["wall"]), by_round(run, kept[place], BY_KEY["wall"]))
        if ratio is not None:
            found.setdefault((client, route), {})[rtt] = 1 - 1 / ratio.value
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
    """A sentence for each share: the round trip from which a kept connection saves it on a route, by client."""
    found = {client: curve for (client, on), curve in curves(run).items() if on == route}
    return " ".join(_sentence(found, share) for share in SHARES)


def _sentence(found: Mapping[str, Curve], share: float) -> str:
    rtts = {client: crossing(curve, share) for client, curve in found.items()}
    reached = {client: rtt for client, rtt in rtts.items() if rtt is not None}
    if not reached:
        return f"No client saves {_percent(share)} at a measured round trip."
    begins = f"A kept connection saves {_percent(share)} from a round trip of {_from(max(reached.values()))} on"
    if len(reached) == len(rtts):
        return f"{begins}, with every client."
    others = sorted(rtts.keys() - reached.keys())
    return f"{begins} with {', '.join(sorted(reached))}, and at no measured one with {', '.join(others)}."


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


def _cells(client: str, route: str, curve: Curve, rtts: Sequence[float]) -> list[str]:
    shares = [_percent(curve.get(rtt)) for rtt in rtts]
    return [client, route, *shares, *(_from(crossing(curve, share)) for share in SHARES)]


def _percent(share: float | None) -> str:
    return units.UNKNOWN if share is None else f"{100 * share:.0f} %"


def _from(rtt: float | None) -> str:
    return units.UNKNOWN if rtt is None else str(Link(round(rtt, 4)))
