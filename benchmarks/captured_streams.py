"""Streams of a trial beside a capture of their packets by tcpdump.

The kernel stamps each packet. Its wall clock is brought to the monotonic clock of the lab and the upstream by their
difference at the moment of the capture.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.trials import Site, context_on, expect_no_errors
from benchmarks.upstream import BenchServer
from clientlab.measuring.measurement import measure
from clientlab.samples import event_log_reader
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload

STREAMS, EVENTS, GAP = 5, 200, 0.005
Floats = npt.NDArray[np.float64]
_MARK = re.compile(rb"@(\d{6})(\d{18})\d{6}")
_LITTLE_NANOSECONDS = 0xA1B23C4D
_GLOBAL_HEADER, _PACKET_HEADER = 24, 16
_PATIENCE = 10.0


@dataclass(frozen=True)
class Apart:
    """Seconds between the lab's times and those of the packets, of each event and of each gap between two."""

    lag_apart: Floats
    gap_apart: Floats


def lacking() -> str | None:
    """Why nothing can be captured; None if it can."""
    program = shutil.which("tcpdump")
    if program is None:
        return "tcpdump is not installed"
    tried = subprocess.run([program, "-i", "lo", "-d", "tcp"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


def measured(server: BenchServer, client: str) -> Apart:
    """One trial of `STREAMS` streams, one after the other, and its capture.

    The lag is the arrival at the client minus the write. The lab has the write from the mark; the capture has it from
    the packet. A gap is compared as the server wrote it. Raises SystemExit if an event is in one of them alone.
    """
    workload = Workload(stream="sse", every=Delay("", (GAP,)), events=EVENTS, requests=STREAMS, warmup=0)
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "packets.pcap"
        with _capturing(server.port, capture) as offset:
            trial = Path(folder) / "trial"
            trial.mkdir()
            measurement = measure(context_on(Site(server.url), client, workload, str(trial)))
            expect_no_errors(measurement.samples)
            events = event_log_reader.read_events(trial)
            _flushed(capture, STREAMS * EVENTS)
        sent = _sent(capture, offset)
    if events is None or len(sent) != events.count:
        raise SystemExit(f"streams: the capture has {len(sent)} events, the lab {events and events.count}")
    moments = np.array([moment for _, moment in sorted(sent.items())])
    order = np.argsort(events.written)
    arrived = events.arrived[order]
    by_mark, by_packet = arrived - events.written[order], arrived - moments
    gaps = np.diff(events.written[order]) - np.diff(moments)
    return Apart(np.abs(by_mark - by_packet), np.abs(gaps[np.arange(1, len(moments)) % EVENTS != 0]))


class _capturing:  # noqa: N801 - a context manager, used as one
    """tcpdump of the port, which is capturing when the context is entered. Its value: monotonic minus wall clock."""

    def __init__(self, port: int, path: Path) -> None:
        self._command = ["tcpdump", "-i", "lo", "-U", "--immediate-mode", "--time-stamp-precision=nano"]
        self._command += ["-B", "8192", "-s", "512", "-w", str(path), f"tcp and src port {port}"]

    def __enter__(self) -> float:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        lines = iter(self._process.stderr or ())
        if not any(line.startswith("tcpdump: listening") for line in lines):
            raise SystemExit("streams: tcpdump does not capture")
        return min((time.monotonic() - time.time() for _ in range(9)), key=abs)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_PATIENCE)


def _flushed(capture: Path, events: int) -> None:
    """Wait until the capture has so many events. Raises SystemExit if it never does."""
    deadline = time.monotonic() + _PATIENCE
    while len(_MARK.findall(capture.read_bytes())) < events:
        if time.monotonic() > deadline:
            raise SystemExit("streams: the capture lacks events; tcpdump dropped packets, or the machine is too busy")
        time.sleep(0.05)


def _sent(capture: Path, offset: float) -> dict[int, float]:
    """Nanoseconds of a mark → monotonic seconds of the packet that holds it."""
    return {
        int(written): moment + offset
        for moment, data in _packets(capture.read_bytes())
        for _, written in _MARK.findall(data)
    }


def _packets(data: bytes) -> Iterator[tuple[float, bytes]]:
    """Wall time and bytes of each packet of a file in pcap format, with times in nanoseconds."""
    if struct.unpack_from("<I", data)[0] != _LITTLE_NANOSECONDS:
        raise SystemExit("streams: the capture is not a pcap file with nanoseconds")
    at = _GLOBAL_HEADER
    while at + _PACKET_HEADER <= len(data):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", data, at)
        at += _PACKET_HEADER
        yield seconds + nanoseconds / 1e9, data[at : at + kept]
        at += kept
