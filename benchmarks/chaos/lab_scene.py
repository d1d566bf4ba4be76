"""An incident in `clientlab serve` with a worker of it, `clientlab work`, against an upstream that is not struck."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM
from types import TracebackType
from typing import Self

from benchmarks.chaos import checks
from benchmarks.chaos.incidents import ROUNDS, Incident
from benchmarks.chaos.place import Missed, awaited
from benchmarks.chaos.scene import WARM_UP, IncidentReport, Scene
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for

_STARTS_WITHIN = 30.0
_ENDS_WITHIN = 90.0
_LOST_AFTER = "3"
_RUNNING = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")


class LabScene(Scene):
    """The lab as a service."""

    def __init__(self, incident: Incident, folder: Path) -> None:
        super().__init__(incident, folder)
        self._file = folder / "small.toml"
        self._logs = folder / "logs"
        self._stack = contextlib.ExitStack()
        self._variables = {"CLIENTLAB_TOKEN": "of this incident"}

    def __enter__(self) -> Self:
        upstream = self.incident.upstream
        testbed = LocalTestbed([upstream], ["direct"], self._logs, workers_for(1))
        self._stack.enter_context(testbed)
        endpoint = testbed.endpoint(upstream, "direct")
        self._variables[f"{upstream.upper()}_ADDRESS"] = f"{endpoint.host}:{endpoint.port}"
        workload = f'[workloads.small]\nrequests = {self.requests}\ndelay = "5ms"\nwarmup = {WARM_UP}\ntimeout = "5s"\n'
        plan = f'question = "?"\nstrategies = ["{self.strategy}"]\nupstreams = ["{upstream}"]\nrounds = {ROUNDS}\n'
        self._file.write_text(plan + workload, encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            super().__exit__(kind, error, trace)

    def play(self, attempt: int) -> IncidentReport:
        self._lab = self._serve(0)
        self._workers = [self._work()]
        victim = self.strike({"lab": self._lab.pid, "worker": self._workers[0].pid})
        self.continue_after(victim)
        self._start_again()
        broken = [] if awaited(self._has_ended, _ENDS_WITHIN) else [f"no end within {_ENDS_WITHIN:g} s"]
        took = time.monotonic() - self.struck_at
        broken += self._terminate()
        run = self.place.run()
        broken += checks.kept(self.saved, run) + checks.left(self.place, run)
        if run is None:
            broken.append("there is no run")
        else:
            broken += checks.caused(self.incident, run, self.requests) + checks.whole(run, self.requests, errors=False)
        return IncidentReport(broken, f"completed {took:.1f} s after the strike", attempt)

    def trial_folder(self) -> Path | None:
        return next(self.place.temporary.glob(f"*/trial-{self.incident.moment.trial:04d}/"), None)

    def goes_on(self) -> bool:
        return not self._has_ended()

    def _serve(self, port: int) -> subprocess.Popen[bytes]:
        lab = self.place.start(
            ["serve", "--experiment", str(self._file), "--port", str(port), "--lost-after", _LOST_AFTER],
            self._variables,
        )
        if not awaited(lambda: _RUNNING.search(self.place.said(lab)) is not None, _STARTS_WITHIN):
            raise Missed(f"the lab did not start: {self.place.said(lab)[-300:]}")
        return lab

    def _work(self) -> subprocess.Popen[bytes]:
        lab = _RUNNING.search(self.place.said(self._lab))
        url = f"http://127.0.0.1:{lab[1] if lab else 0}"
        words = ["work", "-t", self.strategy, "--lab", url, "--port", "0", "--linger", "0.2"]
        worker = self.place.start(words, self._variables)
        if not awaited(lambda: "metrics at port" in self.place.said(worker), _STARTS_WITHIN):
            raise Missed(f"the worker did not start: {self.place.said(worker)[-300:]}")
        return worker

    def _start_again(self) -> None:
        """The killed lab, at its port; another worker in place of one that was killed or is frozen."""
        strike = self.incident.strike
        if strike.victim == "lab" and strike.number == SIGKILL:
            self._lab.wait()
            found = _RUNNING.search(self.place.said(self._lab))
            self._lab = self._serve(int(found[1]) if found else 0)
        if strike.victim == "worker":
            if strike.number == SIGKILL:  # its job ends with it
                self._workers.pop().wait()
                awaited(lambda: len(self.place.processes()) == 1, _STARTS_WITHIN)
            self._workers.append(self._work())

    def _has_ended(self) -> bool:
        run = self.place.run()
        return run is not None and run.status != "running"

    def _terminate(self) -> list[str]:
        """End lab and workers as users do, the frozen one after SIGCONT. Their exit codes are 0."""
        broken = []
        named = [("worker", worker) for worker in self._workers] + [("lab", self._lab)]
        for _, process in named:
            process.send_signal(SIGCONT)
            process.send_signal(SIGTERM)
        for name, process in named:
            try:
                code = process.wait(_STARTS_WITHIN)
            except subprocess.TimeoutExpired:
                broken.append(f"the {name} did not end within {_STARTS_WITHIN:g} s of SIGTERM")
            else:
                broken += [f"the {name} ended with {code}: {self.place.said(process)[-200:]}"] if code else []
        return broken
