"""The command line of the link's process."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from clientlab.errors import LabError
from clientlab.link import addresses
from clientlab.link.addresses import HostPort
from clientlab.workload import delays
from clientlab.workload.faults import Faults
from clientlab.workload.link import Link, bandwidth_of, buffer_of, link_of, with_faults

UNLIMITED = "unlimited"
"""A buffer in which all bytes wait, as in runs older than the buffer."""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for: a link, its targets, and the addresses to listen on, one for each target."""

    link: Link
    targets: list[HostPort]
    listeners: list[HostPort]


class _Parser(argparse.ArgumentParser):
    """Errors in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise LabError(f"{message}; see --help")


def parsed(words: Sequence[str]) -> Arguments:
    """The arguments that were given. Raises LabError for wrong ones."""
    parser = _Parser(prog="python -m clientlab.link", description="Relay TCP connections as over a network.")
    parser.add_argument("--rtt", type=_seconds, required=True, metavar="TIME", help="round-trip time; 0 delays nothing")
    parser.add_argument("--bandwidth", type=_bits, metavar="RATE", help="bits per second, each way; none: no limit")
    parser.add_argument(
        "--buffer", type=_buffer, metavar="SIZE",
        help="bytes that may wait for the bandwidth, each way, as 64KiB (one bandwidth-delay product, at least 64KiB); "
        f"{UNLIMITED}: all wait",
    )  # fmt: skip
    parser.add_argument(
        "--fault",
        type=_faults,
        metavar="FAULTS",
        help="what it does wrong, as refuse:10%%,outage=5s@10s",
    )
    parser.add_argument(
        "--forward", type=_address, action="append", required=True, metavar="HOST:PORT", help="a server; repeatable"
    )
    parser.add_argument(
        "--listen", type=_address, action="append", default=[], metavar="HOST:PORT",
        help="where to accept connections to it, in the same order (a free port of 127.0.0.1)",
    )  # fmt: skip
    given = parser.parse_args(words)
    missing = len(given.forward) - len(given.listen)
    if given.listen and missing:
        raise LabError("--listen: write one for each --forward, or none")
    try:
        link = _link(given.rtt, given.bandwidth, given.buffer)
    except ValueError as error:
        raise LabError(f"--rtt, --bandwidth, --buffer: {error}") from error
    return Arguments(
        with_faults(link, given.fault) or link, given.forward, given.listen or [("127.0.0.1", 0)] * missing
    )


def _link(rtt: float, bandwidth: float | None, buffer: float | None) -> Link:
    """Raises ValueError. `buffer`: infinite, if all bytes wait."""
    if buffer == math.inf:
        return Link(rtt, bandwidth)
    link = link_of(rtt, bandwidth, buffer)
    assert link is not None  # noqa: S101 - it has a round-trip time
    return link


def _seconds(text: str) -> float:
    """A number of seconds, or a time with its unit."""
    return _parsed(delays.seconds, text)


def _bits(text: str) -> float:
    """A number of bits per second, or a rate with its unit."""
    return _parsed(bandwidth_of, text)


def _buffer(text: str) -> float:
    """A size with its unit, or infinite."""
    try:
        return math.inf if text == UNLIMITED else buffer_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _faults(text: str) -> Faults:
    try:
        return Faults.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parsed(parse: Callable[[str], float], text: str) -> float:
    with contextlib.suppress(ValueError):
        return float(text)
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _address(text: str) -> HostPort:
    try:
        return addresses.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
