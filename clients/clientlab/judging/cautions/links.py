"""Cautions about the queue of a link: bytes that waited long for its bandwidth, and segments that were dropped."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import units
from clientlab.judging.cautions.trials import arms_of, finished, names_of
from clientlab.results.document import Caution, Run
from clientlab.results.trial import Trial

MOST_LOSS = 0.01
"""Share of segments. TCP's throughput falls with the square root of the loss, and time-outs begin."""
_SEGMENT = 1460
"""Bytes of payload in a full segment of TCP."""


def standing_queue(run: Run) -> Iterator[Caution]:
    """Trials whose bytes waited longer for the link's bandwidth than its round trip takes."""
    trials = [trial for trial in finished(run) if _rtt(trial) and _queued_seconds(trial) > _rtt(trial)]
    if trials:
        worst = max(trials, key=_queued_seconds)
        yield Caution(
            kind="link-queue",
            arms=arms_of(trials),
            text=f"bytes of {names_of(trials)} waited longer for the link's bandwidth than its round trip takes: "
            f"up to {units.time(_queued_seconds(worst))} on average, behind {worst.link}",
            advice="latencies measured the queue before the bandwidth: send fewer requests at once or smaller bodies, "
            "or set a smaller buffer",
        )


def dropped_segments(run: Run) -> Iterator[Caution]:
    """Trials of whose segments the link's buffer dropped many."""
    trials = [trial for trial in finished(run) if max(_lost(trial).values(), default=0.0) > MOST_LOSS]
    if trials:
        worst = max(trials, key=lambda trial: max(_lost(trial).values()))
        shares = ", ".join(f"{units.share(share)} of those {way}" for way, share in _lost(worst).items())
        yield Caution(
            kind="link-drops",
            arms=arms_of(trials),
            text=f"the link's buffer was full and dropped segments of {names_of(trials)}: up to {shares}, "
            f"behind {worst.link}",
            advice="latencies hold their retransmission, and time-outs of 200 ms and more: "
            "send fewer requests at once or smaller bodies, or set a larger buffer",
        )


def _rtt(trial: Trial) -> float:
    return 0.0 if trial.link is None else trial.link.rtt


def _queued_seconds(trial: Trial) -> float:
    """Mean wait of a byte in the fuller direction; 0 where the link counts nothing."""
    use = trial.link_use
    if use is None:
        return 0.0
    ways = ((use.up_byte_seconds, use.up_bytes), (use.down_byte_seconds, use.down_bytes))
    return max((waited / count for waited, count in ways if waited and count), default=0.0)


def _lost(trial: Trial) -> dict[str, float]:
    """The share of segments that were dropped, by direction; empty where the link counts nothing."""
    use = trial.link_use
    if use is None:
        return {}
    ways = (("to the server", use.up_dropped, use.up_bytes), ("to the client", use.down_dropped, use.down_bytes))
    return {way: lost / (lost + count / _SEGMENT) for way, lost, count in ways if lost and count is not None}
