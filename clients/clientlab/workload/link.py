"""An emulated network between client and route, and how it is written.

RTT        round-trip time, as a delay: ``35ms``, ``0ms``, ``1.28s``, or a number of seconds
BANDWIDTH  bits per second of each direction, with a unit: ``20mbit``, ``1gbit``, ``512kbit``
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from clientlab.workload.delays import seconds
from clientlab.workload.value_range import ValueRange
from clientlab.workload.workload import Workload, delay_of

MOST_RTT = 10.0
"""Seconds. A geostationary satellite takes 0.6 s; longer ones would exceed the time limits of most clients."""

LEAST_BANDWIDTH, MOST_BANDWIDTH = 1e3, 1e11
"""Bits per second. One segment of 1,460 bytes takes 12 s at the least one."""

_BITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_BANDWIDTH = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9}) ?([kmg]?bit)(?:/s)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Link:
    """A network path: `rtt` in seconds, `bandwidth` of each direction in bits per second (None: unlimited).

    Raises ValueError for a value beyond the limits.
    """

    rtt: Annotated[float, ValueRange(0.0, MOST_RTT, "seconds")]
    bandwidth: Annotated[float, ValueRange(LEAST_BANDWIDTH, MOST_BANDWIDTH, "bits per second")] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rtt <= MOST_RTT:
            raise ValueError(f"a round-trip time of {self.rtt:g} s; write 0ms to {MOST_RTT:g}s")
        if self.bandwidth is not None and not LEAST_BANDWIDTH <= self.bandwidth <= MOST_BANDWIDTH:
            raise ValueError(
                f"a bandwidth of {self.bandwidth:g} bit/s; write 1kbit to 100gbit, or leave it out for no limit"
            )

    def __str__(self) -> str:
        """``35 ms``, or ``35 ms, 20 Mbit/s``. Links that differ have different texts."""
        parts = [_number(self.rtt * 1000, "ms") if self.rtt < 1 else _number(self.rtt, "s")]
        if self.bandwidth is not None:
            parts.append(_rate(self.bandwidth))
        return ", ".join(parts)


LINK_PARTS = ("rtt", "bandwidth")
"""Fields of a link. Each may be an axis of an experiment."""


def link_of(rtt: float | None, bandwidth: float | None) -> Link | None:
    """Return the link of these parts, or None if there are none. Without a round-trip time, it delays nothing."""
    return None if rtt is None and bandwidth is None else Link(rtt or 0.0, bandwidth)


def part_text(part: str, value: float) -> str:
    """Return a part of a link as it is written in options, files and names of arms: ``35ms``, ``20mbit``."""
    if part == "rtt":
        return f"{value * 1000:.12g}ms"
    unit, bits = next((unit, bits) for unit, bits in reversed(_BITS.items()) if value >= bits)
    return f"{value / bits:.12g}{unit}"


def rtt_of(text: str) -> float:
    """Parse a round-trip time to seconds. Raises ValueError, also for one beyond the limits."""
    rtt = seconds(text)
    if rtt > MOST_RTT and not text.strip()[-1:].isalpha():
        raise ValueError(f"{text} without a unit is a time in seconds; write {text}ms, or 0 to {MOST_RTT:g}")
    return Link(rtt).rtt


def bandwidth_of(text: str) -> float:
    """Parse ``20mbit`` to bits per second. Raises ValueError, also for a rate beyond the limits."""
    found = _BANDWIDTH.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a bandwidth; write 512kbit, 20mbit or 1gbit (bits per second)")
    bandwidth = float(found[1]) * _BITS[found[2].lower()]
    Link(0.0, bandwidth)
    return bandwidth


def unavoidable_of(workload: Workload, link: Link | None) -> Callable[[int], float] | None:
    """A function from k to the seconds of request k that no client can save; None without a delay and a link.

    They are the delay that it asks of the upstream, and one round trip of the link: what a request takes on a
    connection that was kept. Connecting, slow start and a limited bandwidth take more.
    """
    delay = delay_of(workload)
    if link is None:
        return delay
    rtt = link.rtt
    return (lambda _: rtt) if delay is None else (lambda number: delay(number) + rtt)


def _rate(bandwidth: float) -> str:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bandwidth >= size:
            return _number(bandwidth / size, unit)
    return _number(bandwidth, "bit/s")


def _number(value: float, unit: str) -> str:
    return f"{value:.12g} {unit}"  # 0.07 * 1000 is not 70
