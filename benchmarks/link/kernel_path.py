"""A path of the kernel with a bottleneck: network namespaces, `tbf` for bandwidth and buffer, and a wire with a delay.

    far ─ veth ─ router ─ tbf ─ wire (delay) ─ near

The server is far, the client is near. A router in between is needed: the kernel stops a sender before it overflows the
queue of its own device (TCP Small Queues).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from clientlab import child_processes
from clientlab.workload.link import Link

HOST = "10.78.0.1"
"""Of the server."""
_DEVICE = "wire"
_ROUTER, _WIRE_ENDS = "10.78.0.2", ("10.77.0.1", "10.77.0.2")
_PACKET, _SEGMENT = 1500, 1460
_BURST = 1600
_SETTINGS = {"tcp_timestamps": 0, "tcp_no_metrics_save": 1, "ip_forward": 1, "tcp_congestion_control": "reno"}
"""Segments of 1,460 bytes; no memory of earlier connections; and RFC 5681, as the link has it."""


@dataclass(frozen=True)
class KernelPath:
    """`far`, `near`: what to write before a command so that it runs there."""

    far: list[str]
    near: list[str]


def why_not() -> str | None:
    """Why this machine has no such path; None if it can have one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    if missing := [name for name in ("ip", "tc") if shutil.which(name) is None]:
        return f"{missing[0]} is not installed (package iproute2)"
    return None if os.path.exists("/dev/net/tun") else "there is no /dev/net/tun"  # noqa: PTH110 - a device


@contextlib.contextmanager
def kernel_path(link: Link) -> Iterator[KernelPath]:
    """A path with the round-trip time, the bandwidth and the buffer of a link."""
    far, router, near = names = [f"lab-{part}-{os.getpid()}" for part in ("far", "router", "near")]
    with contextlib.ExitStack() as stack:
        for name in names:
            _do("ip", "netns", "add", name)
            stack.callback(_do, "ip", "netns", "del", name)
            _do("ip", "-n", name, "link", "set", "lo", "up")
            for key, value in _SETTINGS.items():
                _do(*_in(name), "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{key}")
        stack.enter_context(_wire(router, near, link.rtt / 2))
        _do("ip", "link", "add", "near", "netns", far, "type", "veth", "peer", "name", "far", "netns", router)
        _set_up(far, "near", f"{HOST}/24")
        _set_up(router, "far", f"{_ROUTER}/24")
        for name, (own, peer) in ((router, _WIRE_ENDS), (near, _WIRE_ENDS[::-1])):
            _set_up(name, _DEVICE, own, "peer", peer)
        _do("ip", "-n", far, "route", "add", "default", "via", _ROUTER)
        _do("ip", "-n", near, "route", "add", "default", "via", _WIRE_ENDS[0])
        # The link counts payload, tbf whole packets.
        rate, limit = round((link.bandwidth or 0) * _PACKET / _SEGMENT), round((link.buffer or 0) * _PACKET / _SEGMENT)
        shaped = ("root", "tbf", "rate", f"{rate}bit", "burst", str(_BURST), "limit", str(limit))
        _do(*_in(router), "tc", "qdisc", "add", "dev", _DEVICE, *shaped)
        yield KernelPath(_in(far), _in(near))


@contextlib.contextmanager
def _wire(one: str, other: str, seconds: float) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.link.delayer", _DEVICE, one, other, repr(seconds)]
    process = child_processes.start(command, None, os.environ, stdout=subprocess.PIPE)
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        if not process.stdout.readline():
            raise SystemExit("the wire between the namespaces did not start")
        yield
    finally:
        child_processes.stop(process, patience=0)
        process.stdout.close()


def _in(name: str) -> list[str]:
    return ["ip", "netns", "exec", name]


def _set_up(name: str, device: str, *address: str) -> None:
    """A device with its address. Packets leave it one by one, as on a wire, and not 64 kB at once."""
    _do("ip", "-n", name, "addr", "add", *address, "dev", device)
    _do("ip", "-n", name, "link", "set", device, "gso_max_segs", "1", "txqueuelen", "10000", "up")


def _do(*command: str) -> None:
    """Raises SystemExit if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
