"""A lab service and a worker that measure while they are attacked: how long health checks take, and what is lost."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import BenchmarkRow
from benchmarks.siege import Attackers, HealthChecks, attacked, check_health
from clientlab.results.document import Run
from clientlab.results.store import Store
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for

LIMIT_MS = 500.0
_SIEGE_SECONDS = 15.0
_QUIET_SECONDS = 5.0
_OPEN_FILES = 1024
"""The limit of the lab and of the worker: what most systems give a process."""

_MOST_LOGGED = 1.0  # MB
_PATIENCE = 120.0
_EXPERIMENT = """
question = "Is a trial lost while the lab is attacked?"
strategies = ["http.client"]
rounds = 12
[workloads.small]
duration = "3s"
warmup = 2
timeout = "5s"
"""


def rows() -> Iterator[BenchmarkRow]:
    """The slowest health check of the lab and of its worker; trials that were lost; megabytes of log."""
    with (
        tempfile.TemporaryDirectory() as name,
        LocalTestbed(["aiohttp"], ["direct"], Path(name), workers_for(1)) as testbed,
    ):
        folder = Path(name)
        address = testbed.base_url("aiohttp", "direct").removeprefix("http://")
        with _started(folder, address) as (lab, worker):
            yield _quiet(lab)
            yield _health("the lab", lab, folder / "lab.log")
            yield _health("a worker", worker, folder / "worker.log")
            run = _ended(Store(folder / "results"))
        lost = sum(trial.status != "done" for trial in run.trials)
        logged = sum((folder / f"{program}.log").stat().st_size for program in ("lab", "worker")) / 1e6
    name = f"trials not measured under attack, of {len(run.trials)}"
    yield BenchmarkRow(name, lost, lost, lost, "one run", "<= 0", lost == 0, "")
    met = logged <= _MOST_LOGGED
    yield BenchmarkRow("log under attack", logged, logged, logged, "one run", f"<= {_MOST_LOGGED:g}", met, "MB")


@contextlib.contextmanager
def _started(folder: Path, address: str) -> Iterator[tuple[int, int]]:
    """The ports of a lab and of its worker, while they measure."""
    (folder / "siege.toml").write_text(_EXPERIMENT)
    environment = os.environ | {"AIOHTTP_ADDRESS": address, "CLIENTLAB_TOKEN": "of the siege"}
    serve = ["serve", "--experiment", str(folder / "siege.toml"), "--port", "0", "--out", str(folder / "results")]
    with _program("lab", serve, folder, environment) as log:
        lab = _port(log, r"Running on http://127.0.0.1:(\d+)")
        work = ["work", "-t", "http.client", "--lab", f"http://127.0.0.1:{lab}", "--port", "0"]
        with _program("worker", work, folder, environment) as said:
            yield lab, _port(said, r"metrics at port (\d+)")


@contextlib.contextmanager
def _program(name: str, words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """The log of a subcommand that runs meanwhile."""
    log = folder / f"{name}.log"
    limited = ["bash", "-c", f'ulimit -n {_OPEN_FILES}; exec "$@"', name]
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*limited, sys.executable, "-m", "clientlab", *words], stdout=output, stderr=output, env=environment
        ) as process,
    ):
        try:
            yield log
        finally:
            process.terminate()


def _port(log: Path, pattern: str) -> int:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if found := re.search(pattern, log.read_text()):
            return int(found[1])
        time.sleep(0.05)
    raise SystemExit(f"{log.name}: it did not start\n{log.read_text()}")


def _quiet(port: int) -> BenchmarkRow:
    """What the machine adds by itself, and the trials that are measured meanwhile."""
    checks = check_health(port, _QUIET_SECONDS)
    slowest, spread = 1e3 * checks.slowest, f"median {1e3 * checks.typical:.0f} ms"
    name = f"health check of the lab without an attack, slowest of {len(checks.seconds)}"
    return BenchmarkRow(name, slowest, 1e3 * min(checks.seconds), slowest, spread, "none", met=True, unit="ms")


def _health(what: str, port: int, log: Path) -> BenchmarkRow:
    try:
        with attacked(port, Attackers()):
            checks = check_health(port, _SIEGE_SECONDS)
    except OSError as error:
        print(f"{what}: {error}; its log ends with\n{log.read_text()[-2000:]}", file=sys.stderr)
        checks = HealthChecks([float("inf")])
    slowest, typical = 1e3 * checks.slowest, 1e3 * checks.typical
    name = f"health check of {what} under attack, slowest of {len(checks.seconds)}"
    spread = f"median {typical:.0f} ms"
    return BenchmarkRow(name, slowest, 1e3 * min(checks.seconds), slowest, spread, f"<= {LIMIT_MS:g}",
              slowest <= LIMIT_MS, "ms")  # fmt: skip


def _ended(store: Store) -> Run:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        run = store.read("last")
        if run.status != "running":
            return run
        time.sleep(0.2)
    raise SystemExit("the run did not end after the attack")
