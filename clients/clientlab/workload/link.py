"""An emulated network between client and route: its values, the texts that they are read from, and shown as.

RTT        round-trip time, as a delay: ``35ms``, ``0ms``, ``1.28s``, or a number of seconds
BANDWIDTH  bits per second of each direction, with a unit: ``20mbit``, ``1gbit``, ``512kbit``
BUFFER     bytes that may wait for the bandwidth, with a unit: ``128KB``, ``64KiB``
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from clientlab import units
from clientlab.workload.delays import seconds
from clientlab.workload.faults import Faults
from clientlab.workload.value_range import ValueRange
from clientlab.workload.workload import Workload, delay_of

MOST_RTT = 10.0
"""Seconds. A geostationary satellite takes 0.6 s; longer ones would exceed the time limits of most clients."""

LEAST_BANDWIDTH, MOST_BANDWIDTH = 1e3, 1e11
"""Bits per second. One segment of 1,460 bytes takes 12 s at the least one."""

LEAST_BUFFER, MOST_BUFFER = 1_500, 2**30
"""Bytes. The least one has room for one segment."""
_LEAST_DEFAULT = 64 * 2**10
"""Bytes: more than four initial windows of TCP."""

_BITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_BANDWIDTH = re.compile(r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9}) ?([kmg]?bit)(?:/s)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Link:
    """A network path: `rtt` in seconds, `bandwidth` of each direction in bits per second (None: unlimited).

    `buffer`: bytes that may wait for the bandwidth in each direction; those beyond are dropped. None: all wait, as in
    runs older than the buffer. `faults`: those that the link makes; None: none. Raises ValueError for a value beyond
    the limits, and for a buffer without a bandwidth.
    """

    rtt: Annotated[float, ValueRange(0.0, MOST_RTT, "seconds")]
    bandwidth: Annotated[float, ValueRange(LEAST_BANDWIDTH, MOST_BANDWIDTH, "bits per second")] | None = None
    buffer: Annotated[int, ValueRange(LEAST_BUFFER, MOST_BUFFER, "bytes")] | None = None
    faults: Faults | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rtt <= MOST_RTT:
            raise ValueError(f"a round-trip time of {self.rtt:g} s; write 0ms to {MOST_RTT:g}s")
        if self.bandwidth is not None and not LEAST_BANDWIDTH <= self.bandwidth <= MOST_BANDWIDTH:
            raise ValueError(
                f"a bandwidth of {self.bandwidth:g} bit/s; write 1kbit to 100gbit, or leave it out for no limit"
            )
        if self.buffer is not None:
            self._check_buffer(self.buffer)

    def __str__(self) -> str:
        """``35 ms``, or ``35 ms, 20 Mbit/s, buffer of 128 KB``. Links that differ have unlike texts."""
        parts = [_number(self.rtt * 1000, "ms") if self.rtt < 1 else _number(self.rtt, "s")]
        if self.bandwidth is not None:
            parts.append(_rate(self.bandwidth))
        if self.buffer is not None:
            parts.append(f"buffer of {_size(self.buffer, ' ')}")
        if self.faults is not None:
            parts.append(f"faults {self.faults}")
        return ", ".join(parts)

    def _check_buffer(self, buffer: int) -> None:
        if self.bandwidth is None:
            raise ValueError(f"a buffer of {buffer:,} bytes without a bandwidth, for which nothing waits; add one")
        if not LEAST_BUFFER <= buffer <= MOST_BUFFER:
            raise ValueError(_refusal(buffer))


LINK_PARTS = ("rtt", "bandwidth", "buffer")
"""Fields of a link. Each may be an axis of an experiment."""


def link_of(rtt: float | None, bandwidth: float | None, buffer: float | None = None) -> Link | None:
    """The link of these parts; None without any. Without a round-trip time, it delays nothing.

    A bandwidth without a buffer has the default one. Raises ValueError for a buffer without a bandwidth.
    """
    if rtt is None and bandwidth is None and buffer is None:
        return None
    if bandwidth is not None and buffer is None:
        buffer = default_buffer(rtt or 0.0, bandwidth)
    return Link(rtt or 0.0, bandwidth, None if buffer is None else int(buffer))


def with_faults(link: Link | None, faults: Faults | None) -> Link | None:
    """The link with the faults that it makes; one that delays nothing, if there is none without."""
    made = None if faults is None else faults.of("link")
    if made is None or not made.each:
        return link
    return replace(Link(0.0) if link is None else link, faults=made)


def default_buffer(rtt: float, bandwidth: float) -> int:
    """Bytes of one bandwidth-delay product (Villamizar and Song 1994), within bounds.

    One TCP connection then keeps the link full: it halves its window when the buffer is full, and the buffer has the
    other half.
    """
    return min(max(round(bandwidth / 8 * rtt), _LEAST_DEFAULT), MOST_BUFFER)


def part_text(part: str, value: float) -> str:
    """A part of a link as options, files and names of arms have it: ``35ms``, ``20mbit``, ``64KiB``."""
    if part == "rtt":
        return f"{value * 1000:.12g}ms"
    if part == "buffer":
        return _size(int(value))
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


def buffer_of(text: str) -> int:
    """Parse ``64KiB`` to bytes. Raises ValueError, also for a size without a unit or beyond the limits."""
    try:
        buffer = units.bytes_of(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a buffer; write 64KiB, 128KB or 1MB (bytes)") from error
    if not LEAST_BUFFER <= buffer <= MOST_BUFFER:
        raise ValueError(_refusal(buffer))
    return buffer


def unavoidable_of(workload: Workload, link: Link | None) -> Callable[[int], float] | None:
    """A function from k to the seconds of request k that no client can save; None without both, and for streams.

    They are the delay that it asks of the upstream, and one round trip of the link: what a request takes on a
    connection that was kept. Connecting, slow start and a limited bandwidth take more.
    """
    if workload.stream is not None:
        return None
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


def _refusal(buffer: int) -> str:
    return f"a buffer of {buffer:,} bytes; write {LEAST_BUFFER}B to 1GiB"


def _size(count: int, space: str = "") -> str:
    """Bytes, exact, in the largest unit of which it is a whole number, or else in kilobytes."""
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count % size == 0:
            return f"{count // size}{space}{unit}"
    return f"{count / 1e3:.12g}{space}KB"


def _number(value: float, unit: str) -> str:
    return f"{value:.12g} {unit}"  # 0.07 * 1000 is not 70
