"""An incident in `clientlab run`, with its own upstream and proxy, and `clientlab run --resume` after it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from signal import SIGKILL

from benchmarks.chaos import checks
from benchmarks.chaos.incidents import ROUNDS
from benchmarks.chaos.scene import IncidentReport, Scene
from clientlab.judging.judgement import read_judged

_ENDS_WITHIN = 120.0
_LOOK_SECONDS = 0.05
_INCOMPLETE = 3
_PROCESSES = 4
_STATUSES = {-SIGKILL: ("interrupted", "done"), 0: ("done",), _INCOMPLETE: ("incomplete",)}
"""Exit code → the run's status. A run may be done, and its report not yet printed."""


class RunScene(Scene):
    """The lab as one command."""

    _process: subprocess.Popen[bytes]

    def play(self, attempt: int) -> IncidentReport:
        self._process = self.place.start(self._words())
        victim = self.strike({"main": self._process.pid})
        self.continue_after(victim)
        broken = checks.orphaned(self.children) if self.incident.strike.number == SIGKILL else []
        noticed = self._await_end()
        broken += self._stopped(noticed)
        resumed = self._go_on(broken)
        run = self.place.run()
        broken += checks.kept(self.saved, run) + checks.left(self.place, run)
        if run is None:
            broken.append("there is no run")
        else:
            broken += checks.whole(run, self.requests, errors=self.incident.strike.errors)
        return IncidentReport(broken, self._summary(noticed, resumed), attempt)

    def trial_folder(self) -> Path | None:
        return next(self.place.results.folder.glob(f"*/trial-{self.incident.moment.trial:04d}/"), None)

    def goes_on(self) -> bool:
        return self._process.poll() is None

    def _words(self) -> list[str]:
        return [
            "run", "-t", self.strategy, "-n", str(self.requests), "--delay", "5ms", "--rounds", str(ROUNDS),
            "--timeout", "5s", "--upstream", self.incident.upstream,
            "--route", self.incident.route, *(["-c", str(_PROCESSES)] if self.incident.strike.pooled else []),
        ]  # fmt: skip

    def _await_end(self) -> float | None:
        """Wait for the end of the command; seconds after the strike at which a trial was saved as failed or lost."""
        noticed = None
        while self._process.poll() is None and time.monotonic() - self.struck_at < _ENDS_WITHIN:
            if noticed is None and self._has_ended_trial():
                noticed = time.monotonic() - self.struck_at
            time.sleep(_LOOK_SECONDS)
        if noticed is None and self._has_ended_trial():
            noticed = time.monotonic() - self.struck_at
        return noticed

    def _has_ended_trial(self) -> bool:
        run = self.place.run()
        return run is not None and any(trial.status != "done" for trial in run.trials)

    def _stopped(self, noticed: float | None) -> list[str]:
        """What does not hold when the command has ended, before it is started again."""
        strike, code = self.incident.strike, self._process.poll()
        if code is None:
            return [f"the command did not end within {_ENDS_WITHIN:g} s"]
        run, broken = self.place.run(), []
        expected = {-SIGKILL} if (strike.victim, strike.number) == ("main", SIGKILL) else {0, _INCOMPLETE}
        if code not in expected:
            broken.append(f"exit code {code}: {self.place.said(self._process).strip().splitlines()[-1:]}")
        if noticed is not None and noticed > strike.within:
            broken.append(f"noticed after {noticed:.1f} s")
        if run is not None:
            broken += checks.kept(self.saved, run) + checks.caused(self.incident, run, self.requests)
            status = read_judged(self.place.results.find("last")).status
            if status not in _STATUSES.get(code, ()):
                broken.append(f"exit code {code}, and the run is {status}")
        return broken

    def _go_on(self, broken: list[str]) -> bool:
        """Resume a run that is not whole; one that has no file yet is begun once more. Whether that was needed."""
        run = self.place.run()
        if run is not None and run.status == "done":
            return False
        words = self._words() if run is None else ["run", "--resume", "last"]
        process = self.place.start(words)
        try:
            code = process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            broken.append(f"{' '.join(words[:3])} did not end within {_ENDS_WITHIN:g} s")
        else:
            if code:
                said = self.place.said(process).strip().splitlines()[-1:]
                broken.append(f"{' '.join(words[:3])}: exit code {code}: {said}")
        return True

    def _summary(self, noticed: float | None, resumed: bool) -> str:  # noqa: FBT001 - one caller
        how = "no trial ended by it" if noticed is None else f"noticed within {noticed:.1f} s"
        return f"{how}, {'completed by a new start' if resumed else 'completed by itself'}"
