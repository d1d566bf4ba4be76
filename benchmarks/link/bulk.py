"""Connections that always have more to receive, and one that asks for little: ``python -m benchmarks.link.bulk …``.

Arguments: host, port, connections, and the seconds before and of the measurement. It prints a `Received`, as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
from dataclasses import asdict, dataclass, field
from statistics import median
from time import monotonic

from benchmarks.link.received import Received

_BODY = 1_000_000
_ASKED_EVERY = 0.05
_PATIENCE = 0.01
_READ = 1 << 18
_SMALL = b"100\n"


@dataclass
class _Download:
    """A connection, the bytes that it has asked for, and those that it got."""

    connection: socket.socket
    asked: int = 0
    got: int = 0

    def ask(self) -> None:
        """Keep one body in reserve, so that the sender is never idle."""
        while self.asked - self.got <= _BODY:
            self.connection.send(b"%d\n" % _BODY)
            self.asked += _BODY


@dataclass
class _Probe:
    """A connection with one small request at a time. `taken`: seconds of each."""

    connection: socket.socket
    began: float | None = None
    due: float = 0.0
    taken: list[float] = field(default_factory=list)

    def ask(self, now: float) -> None:
        if self.began is None and now >= self.due:
            self.connection.send(_SMALL)
            self.began, self.due = now, now + _ASKED_EVERY

    def answered(self) -> None:
        if self.began is not None:
            self.taken.append(monotonic() - self.began)
        self.began = None


def measured(host: str, port: int, connections: int, settle: float, seconds: float) -> Received:
    """The load of so many connections. Raises SystemExit if no small request was answered."""
    with selectors.DefaultSelector() as selector:
        many = [_Download(_connected(host, port)) for _ in range(connections)]
        probe = _Probe(_connected(host, port))
        every: list[_Download | _Probe] = [*many, probe]
        for one in every:
            selector.register(one.connection, selectors.EVENT_READ, one)
        _run(selector, many, probe, settle)
        before, probe.taken = [one.got for one in many], []
        lasted = _run(selector, many, probe, seconds)
        received = [one.got - old for one, old in zip(many, before, strict=True)]
        for one in every:
            one.connection.close()
    if not probe.taken:
        raise SystemExit(f"no exchange ended within {seconds:g} s")
    fairness = sum(received) ** 2 / connections / sum(count * count for count in received)
    return Received(sum(received) * 8 / lasted, median(probe.taken), fairness)


def _connected(host: str, port: int) -> socket.socket:
    found = socket.create_connection((host, port))
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.setblocking(False)
    return found


def _run(selector: selectors.BaseSelector, many: list[_Download], probe: _Probe, seconds: float) -> float:
    """Receive for so long; the seconds that it took."""
    began = now = monotonic()
    for one in many:
        one.ask()
    while now - began < seconds:
        probe.ask(now)
        for key, _ in selector.select(_PATIENCE):
            count = len(key.data.connection.recv(_READ))
            if key.data is probe:
                probe.answered()
            else:
                key.data.got += count
                key.data.ask()
        now = monotonic()
    return now - began


if __name__ == "__main__":
    print(json.dumps(asdict(measured(sys.argv[1], *map(int, sys.argv[2:4]), *map(float, sys.argv[4:6])))))
