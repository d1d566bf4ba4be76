"""The link's process: ``python -m clientlab.link --rtt 35ms [--bandwidth 20mbit]
--forward HOST:PORT …``.

It prints ``{"ports": [51234]}`` when it accepts connections, with a port for each
``--forward``. If its standard input is a pipe, it answers each line with the bytes that
a limited bandwidth has carried, ``{"up_bytes": 5120, "down_bytes": …}``, and ends when
the pipe closes.
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
from clientlab.trial.usage import raise_descriptor_limit
from clientlab.workload.values import Link, parse_bandwidth, parse_rtt


def main(words: list[str]) -> None:
    """Relay until a signal arrives or standard input closes.

    Exit with code 2 if the arguments are wrong.
    """
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
    given = parser.parse_args(words)
    listen = given.listen or ["127.0.0.1:0"] * len(given.forward)
    if len(listen) != len(given.forward):
        parser.error("--listen: write one for each --forward, or none")
    raise_descriptor_limit()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        link = Link(
            parse_rtt(given.rtt), given.bandwidth and parse_bandwidth(given.bandwidth)
        )
        # Looking up a name for each connection could take longer than the link's round
        # trip.
        targets = [
            (host if ":" in host else socket.gethostbyname(host), port)
            for host, port in map(_parse, given.forward)
        ]
        families = (socket.AF_INET, socket.AF_INET6)
        listeners = [
            socket.create_server(one, family=families[":" in one[0]])
            for one in map(_parse, listen)
        ]
    except (OSError, ValueError) as error:  # ValueError also for an invalid DNS name
        parser.error(f"{error} (to {', '.join(given.forward)})")
    # Linux has a kernel timer. Elsewhere, asyncio's timers are more precise than
    # uvloop's, which count milliseconds.
    with asyncio.Runner(
        loop_factory=uvloop.new_event_loop if sys.platform == "linux" else None
    ) as runner:
        runner.run(_relay(link, listeners, targets))


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
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    agenda = Agenda(time.monotonic)
    agenda.set_timer = make_timer(loop, agenda.run)
    up, down = (OneWay(agenda, link.rtt, link.bandwidth) for _ in range(2))
    for listener, target in zip(listeners, targets, strict=True):
        await loop.create_server(
            functools.partial(accept, up, down, target), sock=listener, backlog=65_535
        )

    def answer() -> None:
        if asked := os.read(0, 4096):
            for _ in range(asked.count(b"\n")):
                _print(up_bytes=up.carried, down_bytes=down.carried)
        else:
            loop.remove_reader(0)
            ended.set()

    with contextlib.suppress(OSError):  # standard input is closed
        if stat.S_ISFIFO(os.fstat(0).st_mode):
            loop.add_reader(0, answer)
    gc.freeze()
    gc.set_threshold(
        1_000_000
    )  # objects; with 10,000 connections, a collection takes longer than a round trip
    _print(ports=[listener.getsockname()[1] for listener in listeners])
    await ended.wait()


def _print(**figures: object) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
