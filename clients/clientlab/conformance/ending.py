"""The scenarios of ending: a duration that is over, and a trial that receives SIGTERM."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from clientlab.conformance.evidence import FEW_CAS, Evidence, serve
from clientlab.conformance.scenario import Scenario
from clientlab.conformance.server import Seen, ServerAnswer, ok
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.samples.log import process_notes
from clientlab.strategies import Strategy, executor_spec
from clientlab.workload.workload import Workload

SECONDS, LONGER = 0.4, 2.0
"""Seconds of the second attempt, if the first sent too few requests: a pool of processes may start that slowly."""

LATE = 1.0
"""Seconds after the end within which a request may still begin on a busy machine."""

_CONCURRENCY = 4
_HOLD = 0.01
_ENDLESS = 15.0
_WIDE, _MANY = 10, 40
_BEFORE_THE_END = 6  # the warm-up's one and a few more
_GRACE = 5.0
_TIMEOUT = 3.0


def _for_a_while(strategy: Strategy) -> Evidence:
    found = _lasting(strategy, SECONDS)
    return found if len(found.server.seen) > _CONCURRENCY else _lasting(strategy, LONGER)


def _lasting(strategy: Strategy, seconds: float) -> Evidence:
    began = time.monotonic()

    def watch(_folder: Path) -> None:
        if time.monotonic() - began > _ENDLESS:
            raise TrialFailed(f"a workload of {seconds:g} s went on for {_ENDLESS:g} s")

    workload = Workload(duration=seconds, concurrency=_CONCURRENCY, warmup=1)
    return serve(strategy, workload, lambda _: ok(), hold=_HOLD, watch=watch, ca_file=FEW_CAS)


def _on_time(found: Evidence) -> str:
    starts, seconds = found.samples.records["start"] - found.outcome.began, found.workload.duration or 0.0
    latest = max(starts.tolist(), default=0.0)
    return "" if latest <= seconds + LATE else f"after {seconds:g} s none is to begin; one began at {latest:.1f} s"


def _all_recorded(found: Evidence) -> str:
    recorded, sent = found.samples.numbers.tolist(), len(found.server.seen)
    if len(set(recorded)) != len(recorded):
        return "requests of one number were recorded twice"
    if len(recorded) == sent > _CONCURRENCY:
        return ""
    return f"{sent} requests reached the server in {found.workload.duration:g} s, and {len(recorded)} were recorded"


def _can_take_a_duration(strategy: Strategy) -> bool:
    return not executor_spec(strategy.executor).needs_count


@dataclass
class Stopped:
    """The processes of a trial after SIGTERM, and those that are still alive."""

    processes: list[psutil.Process] = field(default_factory=list)
    left: list[psutil.Process] = field(default_factory=list)
    went_on: bool = False


class _Held:
    """Answers the warm-up and a few more requests, then none until it is released."""

    def __init__(self) -> None:
        self.seen = 0
        self.release = threading.Event()

    def __call__(self, _seen: Seen) -> ServerAnswer:
        self.seen += 1
        if self.seen > _BEFORE_THE_END:
            self.release.wait()
        return ok()


def _stop(strategy: Strategy) -> Stopped:
    """The trial receives SIGTERM during its 40 requests.

    libcurl in the main thread delays a signal until its request ends, so the workload has a time limit.
    """
    found, answer = Stopped(), _Held()

    def watch(folder: Path) -> None:
        if answer.seen > _BEFORE_THE_END and not found.processes:
            trial = psutil.Process(os.getsid(process_notes(folder)[0].pid))
            found.processes = [trial, *trial.children(recursive=True)]
            trial.send_signal(signal.SIGTERM)

    workload = Workload(path="/item/{k}?x=1", requests=_MANY, concurrency=_WIDE, warmup=1, timeout=_TIMEOUT)
    try:
        serve(strategy, workload, answer, watch=watch)
        found.went_on = True
    except TrialFailed:
        if not found.processes:
            raise  # by itself, before it was told to
    finally:
        answer.release.set()
    _, left = psutil.wait_procs(found.processes, timeout=_GRACE)
    found.left = [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    return found


def _no_process(found: Stopped) -> str:
    if found.went_on:
        return "the trial went on after SIGTERM"
    return f"{len(found.left)} of {len(found.processes)} processes are left after SIGTERM" if found.left else ""


DURATION = Scenario(
    "duration",
    _for_a_while,
    {"ends on time": _on_time, "all of a duration": _all_recorded},
    _can_take_a_duration,
)
STOP = Scenario("stop", _stop, {"no process left": _no_process})
