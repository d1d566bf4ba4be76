"""The link's process: ``python -m clientlab.link --rtt 35ms [--bandwidth 20mbit] --forward HOST:PORT …``.

It prints one line of JSON when it accepts connections: ``{"ports": [51234]}``, a port for each ``--forward``. If its
standard input is a pipe, it answers each line there with a line of what its limited bandwidth did in each direction:
``{"up_bytes": 5120, "up_byte_seconds": 0.5, "up_dropped": 0, "down_bytes": …}``, the bytes that were carried, their
waits, and the segments that were dropped. With ``--fault``, the line ``faults SEED`` makes it draw the faults of
connections from then on, ``faults`` alone ends that, and each answer counts those that were made.

It ends when the pipe closes: so it does not outlive the process that started
it. It ends on SIGTERM and SIGINT, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import signal
import stat
import sys
from collections.abc import Sequence

from clientlab.errors import LabError
from clientlab.link import addresses
from clientlab.link.arguments import Arguments, parsed
from clientlab.link.relay import Directions, Forward, serving
from clientlab.measuring.usage import raise_descriptor_limit
from clientlab.workload.link import Link

_STDIN = 0
_COLLECT_AFTER = 1_000_000
"""Objects. A collection with 10,000 open connections takes longer than a round trip may be wrong.

The link's own objects are freed by their reference counts. What remains are a few of a failed attempt to connect.
"""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_BLOCK, _MOST_KEPT = 32 * 2**20, 256 * 2**20
"""Bytes. glibc accepts no larger limit for a block."""


def main(words: Sequence[str]) -> int:
    """Relay until a signal, or until standard input closes. Returns the exit code: 2 if the arguments are wrong."""
    try:
        return _run(parsed(words))
    except LabError as error:
        sys.stderr.write(f"clientlab.link: {error}\n")
        return error.exit_code


def _run(given: Arguments) -> int:
    raise_descriptor_limit()
    _keep_freed_memory()
    listeners = [addresses.bind(address) for address in given.listeners]
    targets = [addresses.resolve(address) for address in given.targets]
    forwards = [Forward(*pair) for pair in zip(listeners, targets, strict=True)]
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(_relay(given.link, forwards))
    return 0


def _keep_freed_memory() -> None:
    """Let glibc use freed memory again. To get new pages for each read takes longer than to copy its bytes.

    With the defaults, a body of 10 MB on a kept connection arrived 3.5 to 6.3 ms late at 100 ms, and so 0.3 to 1.4 ms.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
        set_option(_M_TRIM_THRESHOLD, _MOST_KEPT)


async def _relay(link: Link, forwards: Sequence[Forward]) -> None:
    loop, told_to_end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    async with serving(link, forwards) as directions:
        _answer_stdin(loop, told_to_end, directions)
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
        ports = [forward.listener.getsockname()[1] for forward in forwards]
        _print(ports=ports)
        await told_to_end.wait()


def _new_loop() -> asyncio.AbstractEventLoop:
    """The loop of uvloop on Linux. Where it is not installed, asyncio's own does the same for more CPU time.

    On other systems, asyncio's own timers are more precise than uvloop's, which count milliseconds.
    """
    if sys.platform == "linux":
        with contextlib.suppress(ImportError):
            import uvloop  # noqa: PLC0415 - not on every system

            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def _print(**figures: object) -> None:
    """A line of JSON, at once."""
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def _answer_stdin(loop: asyncio.AbstractEventLoop, told_to_end: asyncio.Event, directions: Directions) -> None:
    """Print what was counted for each line of standard input, and set the event when it closes, if it is a pipe."""

    def read() -> None:
        if found := os.read(_STDIN, 4096):
            for line in found.splitlines():
                _obey(line, directions)
                made = {} if directions.faults is None else {"faults": dict(directions.faults.made)}
                _print(**directions.up.counted("up"), **directions.down.counted("down"), **made)
        else:
            loop.remove_reader(_STDIN)
            told_to_end.set()

    with contextlib.suppress(OSError):  # standard input is closed: it is no pipe
        if stat.S_ISFIFO(os.fstat(_STDIN).st_mode):
            loop.add_reader(_STDIN, read)


def _obey(line: bytes, directions: Directions) -> None:
    """Begin to make faults, or make none any more, if the line says so: ``faults 7``, with a seed, or ``faults``."""
    word, _, seed = line.partition(b" ")
    if word == b"faults" and directions.faults is not None:
        directions.faults.begin(int(seed) if seed else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
