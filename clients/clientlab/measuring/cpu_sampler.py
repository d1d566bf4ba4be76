"""Samples of a trial's own main thread, by its CPU time: Python's part of a profile, without another process.

A timer of the kernel sends a signal whenever so much CPU time has been used (setitimer(2), ITIMER_PROF), and Python
calls a function in the main thread. So samples are where CPU time is spent, whatever else runs on the machine.
A function in C is interrupted when it returns: its time counts for the Python function that called it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

from clientlab.measuring.context import CpuSampling

_MOST_DEPTH = 200


@contextlib.contextmanager
def sampled(sampling: CpuSampling | None) -> Iterator[None]:
    """Sample the main thread meanwhile, and write what was seen; without `sampling`, do nothing."""
    if sampling is None:
        yield
        return
    found: Counter[tuple[CodeType, ...]] = Counter()

    def look(_number: int, frame: FrameType | None) -> None:
        stack: list[CodeType] = []
        while frame is not None and len(stack) < _MOST_DEPTH:
            stack.append(frame.f_code)
            frame = frame.f_back
        found[tuple(stack)] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.siginterrupt(signal.SIGPROF, False)  # libraries in C may not expect an interrupted system call
    signal.setitimer(signal.ITIMER_PROF, 1 / sampling.rate, 1 / sampling.rate)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        _write(Path(f"{sampling.file}-{os.getpid()}.json"), found)


def _write(path: Path, found: Counter[tuple[CodeType, ...]]) -> None:
    """Write the stacks in the format of speedscope, from the root to the leaf, as far as the lab reads it."""
    frames: dict[CodeType, int] = {}
    samples = []
    for stack, count in found.items():
        places = [frames.setdefault(code, len(frames)) for code in reversed(stack)]
        samples += [places] * count
    shared = [{"name": getattr(code, "co_qualname", code.co_name), "file": code.co_filename} for code in frames]
    path.write_text(json.dumps({"shared": {"frames": shared}, "profiles": [{"samples": samples}]}), encoding="utf-8")
