"""Why each arm is as fast as it is: one more trial per arm after the ranked rounds, in
which the upstream logs its handler's times and py-spy samples the client.

Looking slows a client down, so no figure of such a trial is ranked or shown.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from clientlab import strategies
from clientlab.analysis import profiles
from clientlab.analysis.growth import find_growth
from clientlab.analysis.waits import Trace, find_waits
from clientlab.errors import LabError, ServerLost
from clientlab.machine import child_processes, usage
from clientlab.observing.measurement import Measurement, TrialEvents, measure
from clientlab.observing.process_handle import OWN, TrialFailed
from clientlab.results.document import Run
from clientlab.results.explanation import Explanation, Profile
from clientlab.results.plan import Arm, Plan
from clientlab.running.trial_runner import TrialRunner, compute_deadline
from clientlab.strategies import Strategy
from clientlab.trial.context import TrialContext
from clientlab.trial.sample_log import MAPPED_FILES
from clientlab.workload.load import expected_requests
from clientlab.workload.workload import Workload, reseed_for_round

FOLDER = "explained"
"""In the folder of a run: flame graphs and profiles."""

TRACE = "trace"
"""In the folder of a run, until it ends: the logs of the upstreams."""

_TRIAL_MODULE = "clientlab.trial.process"
_RATE = 200  # samples per second
_FEWEST_SAMPLES = 200
# The first samples take long, and the process is stopped meanwhile.
_FIRST_SAMPLES = 0.5
_PATIENCE = 20.0  # seconds for py-spy to begin, and to write its file

Say = Callable[[str], None]


def explain(run: Run, runner: TrialRunner, folder: Path, say: Say) -> Run:
    """Return the finished run, in this folder, with an explanation of each arm."""
    plan = run.experiment
    explainer = _Explainer(runner, folder, plan)
    explained = []
    try:
        for place, arm in enumerate(plan.arms):
            say(f"explaining {arm.name}")
            explained.append(explainer.explain(place, arm))
    finally:
        shutil.rmtree(folder / TRACE, ignore_errors=True)
    return run.updated(explained=explained)


@dataclass(frozen=True)
class _Explainer:
    runner: TrialRunner
    folder: Path
    plan: Plan

    def explain(self, place: int, arm: Arm) -> Explanation:
        """Return the explanation of an arm. `place`: in the plan, for file names."""
        strategy = strategies.find(arm.strategy)
        workload = replace(self.plan.measured_workload(arm.workload), shards=1)
        workload = reseed_for_round(workload, self.plan.seed, 0)
        concurrency = strategy.in_flight(
            workload.load.concurrency, expected_requests(workload)
        )
        about = Explanation(arm=arm.name, concurrency=concurrency)
        reason = self._find_obstacle(workload, strategy)
        if reason is not None:
            return about.updated(left_out=[f"all: {reason}"])
        name = re.sub(r"[^A-Za-z0-9.=-]+", "-", arm.name).strip("-")[:100]
        profiler = _Profiler(self.folder / FOLDER / f"{place}-{name}.json")
        trace = Trace(self.folder / TRACE)
        held = _Held()
        try:
            measurement = self._measure(
                arm, workload, concurrency, profiler, trace, held
            )
        except (ServerLost, TrialFailed, LabError) as failure:
            return about.updated(left_out=[f"all: its trial failed: {failure}"])
        finally:
            profiler.kill()
        left_out = []
        records = trace.read()
        if not records:
            left_out.append("times at the server: it does not log them")
        profile = self._read(profiler, arm, left_out)
        requests = max(1, len(measurement.samples.records))
        outcome = measurement.outcome
        is_async = strategies.executor_spec(strategy.executor).needs == "asyncio"
        one_loop = is_async and outcome.callers == 1
        disturbance = outcome.disturbance
        run_delay = None if disturbance is None else disturbance.run_delay_seconds
        return about.updated(
            waits=find_waits(measurement.samples, workload, records, one_loop=one_loop),
            profile=profile,
            cpu_seconds_per_request=outcome.cpu_seconds / requests,
            run_delay_seconds=run_delay,
            memory_growth=find_growth(held.finished, held.memory),
            files_growth=find_growth(held.finished, held.files),
            left_out=left_out,
        )

    def _find_obstacle(self, workload: Workload, strategy: Strategy) -> str | None:
        """Return why trials of the workload are not looked at, or None."""
        if workload.cold:
            return "a cold trial is one request"
        if self.plan.find_max is not None:
            return "a search for the highest rate has no rate of its own"
        program = strategies.client_spec(strategy.client).program
        if program:
            return f"{program} sends the requests itself"
        return None

    def _measure(  # noqa: PLR0913, PLR0917 - a trial, and what looks at it
        self,
        arm: Arm,
        workload: Workload,
        concurrency: int,
        profiler: _Profiler,
        trace: Trace,
        held: _Held,
    ) -> Measurement:
        """Raise ServerLost, TrialFailed or LabError."""
        testbed = self.runner.testbed
        if arm.link is not None:
            testbed = self.runner.links[arm.link]
        interpreter = OWN
        if arm.environment is not None:
            interpreter = self.runner.interpreters[arm.environment]

        def begin() -> None:
            if workload.faults is not None:
                testbed.faults_of(arm.target[0]).begin(workload.faults, workload.seed)
            profiler.start()
            trace.begin()

        testbed.serve(arm.target[0])
        if workload.faults is not None:
            testbed.faults_of(arm.target[0]).begin(None, workload.seed)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            context = TrialContext(
                strategies.find(arm.strategy),
                workload,
                testbed.address(*arm.target),
                str(Path(folder) / "trial"),
                numbered=(self.folder / TRACE).exists(),
            )
            return measure(
                context,
                events=TrialEvents(begin, profiler.stop, held.read),
                interpreter=interpreter,
                deadline=compute_deadline(workload, concurrency, arm.link),
            )

    def _read(
        self, profiler: _Profiler, arm: Arm, left_out: list[str]
    ) -> Profile | None:
        """Return the profile, and write its flame graph."""
        if profiler.problem:
            left_out.append(f"the code: {profiler.problem}")
            return None
        try:
            stacks = profiles.read_profile(profiler.target)
        except ValueError as error:
            left_out.append(f"the code: {error}")
            return None
        count = sum(stack.samples for stack in stacks)
        if count < _FEWEST_SAMPLES:
            left_out.append(
                f"the code: only {count} samples of the client's CPU time; measure"
                " longer (-d), or more requests (-n)"
            )
        if not count:
            return None
        flame_graph = profiler.target.with_suffix(".svg")
        title = f"CPU time of {arm.name}, {count:,} samples"
        flame_graph.write_text(
            profiles.draw_flame_graph(stacks, title), encoding="utf-8"
        )
        functions = profiles.shares_by_function(stacks)
        main = profiles.find_main_function(stacks)
        return Profile(
            samples=count,
            packages=profiles.shares_by_package(stacks),
            functions=list(functions.values())[: profiles.MOST_FUNCTIONS],
            main=None if main is None else functions[main],
            flame_graph=flame_graph.name,
            speedscope=profiler.target.name,
        )


@dataclass
class _Held:
    """What the trial's processes held when so many requests had finished."""

    finished: list[int] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    files: list[float] = field(default_factory=list)

    def read(self, finished: int, _failed_in_a_row: int) -> None:
        """Read it now, unless the measured part has not begun, or they have ended."""
        if not finished:
            return
        with contextlib.suppress(psutil.Error, ValueError):
            pids = child_processes.with_descendants(_find_trial())
            footprint = usage.read_footprint(pids, left_out=MAPPED_FILES)
            files = sum(psutil.Process(pid).num_fds() for pid in pids)
            if footprint is not None:
                self.finished.append(finished)
                self.memory.append(footprint.now)
                self.files.append(files)


def _find_trial() -> int:
    """Return the id of the trial's process, the last one that was started."""
    trials = [
        process
        for process in psutil.Process().children()
        if _TRIAL_MODULE in process.cmdline()
    ]
    return max(trials, key=psutil.Process.create_time).pid


@dataclass
class _Profiler:
    """py-spy on the processes of a trial."""

    target: Path
    problem: str = ""
    """Why there is no profile."""

    _process: subprocess.Popen[str] | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to sample, before the measured part."""
        beside = Path(sys.executable).with_name("py-spy")
        program = str(beside) if beside.exists() else shutil.which("py-spy")
        if program is None:
            self.problem = "py-spy is not installed; pip install 'clientlab[explain]'"
            return
        self.target.parent.mkdir(exist_ok=True)
        command = [program, "record", "--pid", str(_find_trial()), "--subprocesses"]
        command += ["--rate", str(_RATE), "--function"]
        command += ["--format", "speedscope", "--output", str(self.target)]
        self._process = subprocess.Popen(
            [*command, "--duration", "unlimited"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._wait_until_it_samples(self._process)

    def _wait_until_it_samples(self, process: subprocess.Popen[str]) -> None:
        output = process.stdout
        if output is None:
            return
        said = []
        until = time.monotonic() + _PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while selector.select(max(0.0, until - time.monotonic())):
                line = output.readline()
                if "Sampling process" in line:
                    time.sleep(_FIRST_SAMPLES)
                    return
                if not line:
                    break
                said.append(line.strip())
        self.kill()
        text = " ".join(filter(None, said)) or "it did not begin"
        if "ermission" in text:
            text = (
                "py-spy may not look at other processes; allow it with"
                " 'sysctl kernel.yama.ptrace_scope=0', or in a container with"
                " --cap-add SYS_PTRACE"
            )
        self.problem = text

    def stop(self) -> None:
        """Write the profile, after the measured part."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self.problem = "py-spy did not end"
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.communicate()
            self._process = None
