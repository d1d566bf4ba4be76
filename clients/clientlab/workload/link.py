"""An emulated network between client and route, and how it is written.

RTT        round-trip time, as a delay: ``35ms``, ``0ms``, ``1.28s``, or a number of seconds
BANDWIDTH  bits per second of each direction, with a unit: ``20mbit``, ``1gbit``, ``512kbit``
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from clientlab.workload.delays import seconds
from clientlab.workload.workload import Workload, delay_of

MOST_RTT = 10.0
"""Seconds. A geostationary satellite takes 0.6 s; longer ones would exceed the time limits of most clients."""

LEAST_BANDWIDTH, MOST_BANDWIDTH = 1e3, 1e11
"""Bits per second. One segment of 1,460 bytes takes 12 s at the least one."""

_BITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_BANDWIDTH = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9}) ?([kmg]?bit)(?:/s)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Link:
    """A network path: `rtt` in seconds, `bandwidth` of each direction in bits per second (None: no limit).

    Raises ValueError for a value beyond the limits.
    """

    rtt: float
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rtt <= MOST_RTT:
            raise ValueError(f"a round-trip time of {self.rtt:g} s; write 0ms to {MOST_RTT:g}s")
        if self.bandwidth is not None and not LEAST_BANDWIDTH <= self.bandwidth <= MOST_BANDWIDTH:
            raise ValueError(f"a bandwidth of {self.bandwidth:g} bit/s; write 1kbit to 100gbit, or leave it out")

    def __str__(self) -> str:
        """Return ``35 ms`` or ``35 ms, 20 Mbit/s``. Links that differ have different texts."""
        rtt = f"{self.rtt * 1000:.12g} ms" if self.rtt < 1 else f"{self.rtt:.12g} s"
        if self.bandwidth is None:
            return rtt
        unit, bits = _unit_of(self.bandwidth)
        return f"{rtt}, {self.bandwidth / bits:.12g} {unit.replace('bit', 'bit/s').replace('m', 'M').replace('g', 'G')}"


LINK_PARTS = ("rtt", "bandwidth")
"""Fields of a link. Each may be an axis of an experiment."""


def link_of(rtt: float | None, bandwidth: float | None) -> Link | None:
    """Return the link of these parts, or None if there are none. Without a round-trip time, it delays nothing."""
    return None if rtt is None and bandwidth is None else Link(rtt or 0.0, bandwidth)


def part_text(part: str, value: float) -> str:
    """Return a part of a link as it is written in options, files and names of arms: ``35ms``, ``20mbit``."""
    if part == "rtt":
        return f"{value * 1000:.12g}ms"
    unit, bits = _unit_of(value)
    return f"{value / bits:.12g}{unit}"


def _unit_of(bandwidth: float) -> tuple[str, float]:
    """Return the largest unit that the bandwidth is not less than, and its bits per second."""
    return next((unit, bits) for unit, bits in reversed(_BITS.items()) if bandwidth >= bits)


def rtt_of(text: str) -> float:
    """Parse a round-trip time to seconds. Raises ValueError, also for one beyond the limits."""
    return Link(seconds(text)).rtt


def bandwidth_of(text: str) -> float:
    """Parse ``20mbit`` to bits per second. Raises ValueError, also for a rate beyond the limits."""
    found = _BANDWIDTH.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a bandwidth; write 512kbit, 20mbit or 1gbit (bits per second)")
    bandwidth = float(found[1]) * _BITS[found[2].lower()]
    Link(0.0, bandwidth)
    return bandwidth


def unavoidable_of(workload: Workload, link: Link | None) -> Callable[[int], float] | None:
    """Return a function from k to the seconds of request k that no client can save, or None without delay and link.

    They are the delay that it asks of the upstream, and one round trip of the link: what a request takes on a
    connection that was kept. Connecting, slow start and a limited bandwidth take more.
    """
    delay = delay_of(workload)
    if link is None:
        return delay
    rtt = link.rtt
    return (lambda _: rtt) if delay is None else (lambda number: delay(number) + rtt)
