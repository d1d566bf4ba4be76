"""A wire with a delay between two network namespaces: ``python -m benchmarks.link.delayer DEVICE ONE OTHER SECONDS``.

Each namespace gets a TUN device of that name. A packet that leaves by one arrives at the other so many seconds later.
It prints a line when both are there. It needs CAP_NET_ADMIN and CAP_SYS_ADMIN.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
from collections import deque
from pathlib import Path
from time import monotonic

_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_LARGEST = 65_536


def _device_in(namespace: str, name: str) -> int:
    """The descriptor of a new device there. The process stays in that namespace. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/var/run/netns", namespace).open("rb") as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns of {namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return device


def _deliver(end: int, packet: bytes) -> None:
    """A packet that comes before the device is up is lost, as on a wire that is not plugged in yet. Raises OSError."""
    try:
        os.write(end, packet)
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def main(name: str, one: str, other: str, seconds: float) -> None:
    """Carry packets until terminated."""
    ends = _device_in(one, name), _device_in(other, name)
    across = {ends[0]: ends[1], ends[1]: ends[0]}
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        while under_way and under_way[0][0] <= monotonic():
            _, end, packet = under_way.popleft()
            _deliver(end, packet)
        wait = max(0.0, under_way[0][0] - monotonic()) if under_way else None
        ready, _, _ = select.select(ends, [], [], wait)
        due = monotonic() + seconds
        for end in ready:
            with contextlib.suppress(BlockingIOError):  # all is read
                while True:
                    under_way.append((due, across[end], os.read(end, _LARGEST)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
