"""The link's process, which relays TCP connections with a delay and a bandwidth.

``python -m clientlab.link --rtt 35ms [--bandwidth 20mbit] --forward HOST:PORT …``
prints ``{"ports": [51234]}`` when it accepts connections, with a port for each
``--forward``. If standard input is a pipe, the process answers each line with the bytes
that a limited bandwidth has carried, ``{"up_bytes": 5120, "down_bytes": …}``, and ends
when the pipe closes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import json
import os
import signal
import socket
import stat
import sys
import time

import uvloop

from clientlab.link.path import Agenda, OneWay, make_timer
from clientlab.link.relay import HostPort, accept
from clientlab.machine.usage import raise_descriptor_limit
from clientlab.workload.values import Link, parse_bandwidth, parse_rtt


def main(words: list[str]) -> None:
    """Relay until a signal arrives or standard input closes.

    Exit with code 2 if the arguments are wrong.
    """
    parser = _make_parser()
    given = parser.parse_args(words)
    listen = given.listen or ["127.0.0.1:0"] * len(given.forward)
    if len(listen) != len(given.forward):
        parser.error("--listen: write one for each --forward, or none")
    raise_descriptor_limit()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        rtt = parse_rtt(given.rtt)
        bandwidth = parse_bandwidth(given.bandwidth) if given.bandwidth else None
        link = Link(rtt, bandwidth)
        targets = [_resolve(text) for text in given.forward]
        listeners = [_listen(text) for text in listen]
    except (OSError, ValueError) as error:  # ValueError also for an invalid DNS name
        parser.error(f"{error} (to {', '.join(given.forward)})")
    # Linux has a kernel timer. Elsewhere, asyncio's timers are more precise than
    # uvloop's, which count milliseconds.
    loop_factory = uvloop.new_event_loop if sys.platform == "linux" else None
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_relay(link, listeners, targets))


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m clientlab.link", description="Relay TCP connections."
    )
    parser.add_argument("--rtt", required=True, help="round-trip time, like 35ms")
    parser.add_argument(
        "--bandwidth", help="in each direction, like 20mbit; unlimited without it"
    )
    parser.add_argument(
        "--forward",
        action="append",
        required=True,
        metavar="HOST:PORT",
        help="a server; repeatable",
    )
    parser.add_argument(
        "--listen",
        action="append",
        metavar="HOST:PORT",
        help="one per --forward (free ports)",
    )
    return parser


def _resolve(text: str) -> HostPort:
    """Return the address of a target.

    A look-up of its name for each connection could take longer than a round trip.
    """
    host, port = _parse(text)
    if ":" not in host:
        host = socket.gethostbyname(host)
    return host, port


def _listen(text: str) -> socket.socket:
    address = _parse(text)
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    return socket.create_server(address, family=family)


def _parse(text: str) -> HostPort:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(
            f"{text!r} is not an address; write 127.0.0.1:8000 or [::1]:8000"
        )
    return host.strip("[]"), int(port)


async def _relay(
    link: Link, listeners: list[socket.socket], targets: list[HostPort]
) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    agenda = Agenda(time.monotonic)
    agenda.set_timer = make_timer(loop, agenda.run)
    up = OneWay(agenda, link.rtt, link.bandwidth)
    down = OneWay(agenda, link.rtt, link.bandwidth)
    for listener, target in zip(listeners, targets, strict=True):
        make_side = functools.partial(accept, up, down, target)
        await loop.create_server(make_side, sock=listener, backlog=65_535)

    def answer() -> None:
        asked = os.read(0, 4096)
        for _ in range(asked.count(b"\n")):
            _print(up_bytes=up.carried, down_bytes=down.carried)
        if not asked:
            loop.remove_reader(0)
            ended.set()

    with contextlib.suppress(OSError):  # standard input is closed
        if stat.S_ISFIFO(os.fstat(0).st_mode):
            loop.add_reader(0, answer)
    # With 10,000 connections, a collection would take longer than a round trip.
    gc.freeze()
    gc.set_threshold(1_000_000)
    _print(ports=[listener.getsockname()[1] for listener in listeners])
    await ended.wait()


def _print(**figures: object) -> None:
    print(json.dumps(figures), flush=True)  # noqa: T201 - for the lab


if __name__ == "__main__":
    main(sys.argv[1:])
