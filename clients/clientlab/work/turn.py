"""One turn of a worker: a trial measured by the same code as everywhere, its page, its result to the lab.

Started by the waiting worker as ``python -m clientlab.work.turn LISTENER MARKS``, two inherited descriptors.
It reads its order from standard input and writes a line each to MARKS: ``folder`` and where its files are,
``serving`` when the page is its own, ``scraped`` when the page was read.
"""

from __future__ import annotations

import http
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from clientlab.errors import LabError
from clientlab.homes.containers import ContainerHome
from clientlab.measuring.connections import Address
from clientlab.runs.document import Trial
from clientlab.runs.figures import Reading
from clientlab.runs.here import Here
from clientlab.work.exporter import Exporter
from clientlab.work.lab import LOST_ERRORS, Lab, Refused, WrongToken
from clientlab.work.order import Turn
from clientlab.work.pages import Pages
from clientlab.work.waiting import say


class Abandoned(Exception):
    """The lab does not wait for this trial any more, or the worker is to end."""


@dataclass(frozen=True)
class _Told:
    """A home that tells the exporter when it is read: just before and just after the measured part."""

    home: ContainerHome
    exporter: Exporter
    moments: list[str]

    def serve(self, upstream: str) -> None:
        self.home.serve(upstream)

    def base_url(self, upstream: str, route: str) -> str:
        return self.home.base_url(upstream, route)

    def address(self, upstream: str, route: str) -> Address:
        return self.home.address(upstream, route)

    def ca_file(self, upstream: str, route: str) -> str | None:
        return self.home.ca_file(upstream, route)

    def reading(self, upstream: str, route: str) -> Reading:
        if self.moments:
            self.exporter.ended()
            return self.home.reading(upstream, route)
        found = self.home.reading(upstream, route)
        self.moments.append("began")
        self.exporter.started()
        return found


class _Beats:
    """Tells the lab again and again that the trial is alive and how far it is."""

    def __init__(self, lab: Lab, worker: str, turn: Turn) -> None:
        self._lab = lab
        self._document = {"worker": worker, "run": turn.run, "order": turn.trial.order}
        self._pause = turn.beat_seconds
        self._finished = 0
        self._over = threading.Event()
        self._unwanted = False
        self._thread = threading.Thread(target=self._beat, name="beats", daemon=True)
        self._thread.start()

    def progressed(self, finished: int) -> None:
        """Note how many requests have finished. Raises Abandoned where the trial is wanted no more."""
        self._finished = finished
        if self._unwanted:
            raise Abandoned("the lab does not wait for it any more")

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while True:
            try:
                answer = self._lab.post("/api/beats", {**self._document, "finished": self._finished})
                self._unwanted = answer is not None and not answer["go_on"]
            except LOST_ERRORS:
                pass  # the lab is away and may come back; the trial goes on, and its result is kept for it
            except (Refused, WrongToken) as error:
                say(str(error))
                self._unwanted = True
            if self._over.wait(self._pause):
                return


def main(words: list[str]) -> int:
    """Do the turn that standard input orders."""
    signal.signal(signal.SIGTERM, _abandon)
    listener = socket.socket(fileno=int(words[1]))
    marks = os.fdopen(int(words[2]), "w", encoding="utf-8", buffering=1)
    order = json.load(sys.stdin)
    turn = Turn.model_validate(order["turn"])
    folder = Path(tempfile.mkdtemp(prefix="clientlab-turn-"))
    marks.write(f"folder {folder}\n")
    place = folder / f"trial-{turn.trial.order:04d}"
    exporter = Exporter(turn.run, turn.experiment, turn.trial, turn.workload, place)
    registry = CollectorRegistry()
    registry.register(exporter)
    pages = Pages(listener, lambda: generate_latest(registry))
    with marks:
        marks.write("serving\n")
        try:
            code = _measure(order, turn, exporter, folder)
            _linger(pages, order, exporter.settled)
        finally:
            pages.stop()
            shutil.rmtree(folder)
        if pages.scrapes:
            marks.write("scraped\n")
    return code


def _measure(order: dict[str, Any], turn: Turn, exporter: Exporter, folder: Path) -> int:
    """Measure, and hand the result over; the exit code."""
    lab = Lab(**order["lab"])
    beats = _Beats(lab, order["worker"], turn)
    try:
        trial = _trial(turn, exporter, folder, beats)
    except Abandoned as reason:
        say(f"trial {turn.trial.order} of {turn.run} is given up: {reason}")
        exporter.settle(turn.trial)
        return 0
    finally:
        beats.stop()
    exporter.settle(trial)
    try:
        answer = _handed_over(lab, order["worker"], turn, trial)
    except Refused as error:
        say(f"trial {turn.trial.order} of {turn.run}: {error}")
    except WrongToken as error:
        say(str(error))
        return LabError.exit_code
    except Abandoned as reason:
        say(f"the result of trial {turn.trial.order} of {turn.run} is given up: {reason}")
    else:
        if answer is not None and not answer["taken"]:
            say(f"trial {turn.trial.order} of {turn.run}: {answer['says']}")
    return 0


def _handed_over(lab: Lab, worker: str, turn: Turn, trial: Trial) -> dict[str, Any] | None:
    """The lab's answer to the result. One that it can't take goes as a failed trial: it would be measured again."""
    result = {"worker": worker, "run": turn.run}

    def send(trial: Trial) -> dict[str, Any] | None:
        document = {**result, "trial": trial.model_dump(mode="json")}
        return lab.insist("/api/results", document, 10.0, lambda error: say(f"the result waits for the lab: {error}"))

    try:
        return send(trial)
    except Refused as error:
        if error.status == http.HTTPStatus.CONFLICT:
            raise
        reason = f"its result was refused: {error}"
        say(f"trial {turn.trial.order} of {turn.run}: {reason}")
        return send(turn.trial.model_copy(update={"status": "failed", "reason": reason}))


def _trial(turn: Turn, exporter: Exporter, folder: Path, beats: _Beats) -> Trial:
    """The trial with its figures; a failed one where the servers do not answer."""
    try:
        home = _Told(ContainerHome(os.environ), exporter, [])
        return Here(home)(turn.trial, turn.workload, folder, beats.progressed)
    except (LabError, OSError) as error:
        return turn.trial.model_copy(update={"status": "failed", "reason": str(error)})


def _linger(pages: Pages, order: dict[str, Any], settled: float) -> None:
    """Keep the last values until they were scraped, as long as somebody scrapes at all."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the wait is bounded, and what it is for is nearly done
    if order["scraped"] or pages.scrapes:
        pages.wait_for_scrape(settled, order["linger"])


def _abandon(_number: int, _frame: FrameType | None) -> None:
    raise Abandoned("the worker is to end")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
