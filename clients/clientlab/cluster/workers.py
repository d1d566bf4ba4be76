"""The workers of a Dask cluster: which of them can measure the trials of a run.

A worker offers strategies as Dask resources (`dask worker --resources
"aiohttp@workers=1"`). Trials that are not divided all go to workers of one machine,
because arms on different machines cannot be compared.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from clientlab import __version__, plugins, strategies
from clientlab.analysis.shards import machine_id
from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.results.document import Surroundings
from clientlab.results.plan import Plan, Target
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.results.trial import ClockOffset
from clientlab.running.execute import TrialLost
from clientlab.testbeds.compose import ComposeTestbed
from clientlab.workload.workload import Workload

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_LOOK_SECONDS = 0.5
_ARRIVE_SECONDS = 3.0  # for workers that are started with the lab
_REPLACE_SECONDS = 15.0  # for workers that replace a lost one


@dataclass(frozen=True)
class Worker:
    """A worker as it describes itself."""

    address: str
    version: str
    host: str
    machine: str

    lacks: Mapping[str, str]
    """Strategies that it cannot measure, with the reasons."""

    offered: frozenset[str]
    """Strategies that it declares."""

    def offers(self, strategy: str) -> bool:
        """Return whether the worker takes this strategy, with any settings.

        Without a declaration, it takes all.
        """
        names = {strategy, strategy.partition("?")[0]}
        return not self.offered or not self.offered.isdisjoint(names)

    def measures(self, strategy: str) -> bool:
        return self.offers(strategy) and strategy not in self.lacks


def describe_worker(
    names: list[str], servers: list[tuple[str, str]], target: Target, dask_worker: Any
) -> Worker:
    """Describe this worker to a lab that wants to measure these strategies.

    `servers`: upstreams with their routes.
    """
    plugins.admit(names)  # the lab's command line named them
    # The lab has checked servers of the user.
    trouble = None if target.urls else _find_server_trouble(servers)
    lacks = {}
    for name in names:
        try:
            reason = trouble or strategies.unavailable(strategies.find(name))
        except LabError as error:
            reason = str(error)
        if reason is not None:
            lacks[name] = reason
    return Worker(
        address=dask_worker.address,
        version=__version__,
        host=socket.gethostname(),
        machine=machine_id(),
        lacks=lacks,
        offered=frozenset(dask_worker.state.total_resources),
    )


def _find_server_trouble(servers: list[tuple[str, str]]) -> str | None:
    try:
        testbed = ComposeTestbed(os.environ)
        for upstream, route in servers:
            trouble = testbed.trouble(upstream, route, Workload())
            if trouble:
                return trouble
    except (IncompleteRun, LabError) as error:
        return str(error)
    return None


def read_surroundings(plan: Plan, target: Target) -> Surroundings:
    """Return this machine, the versions that the plan measures, and the servers."""
    names = [arm.strategy for arm in plan.arms]
    servers = {} if target.urls else ComposeTestbed(os.environ).programs()
    return surroundings(distributions_of(names), servers | programs_of(names))


@contextmanager
def connect(address: str, plan: Plan, target: Target) -> Iterator[DaskCluster]:
    """Connect to the scheduler at an address, and find the workers for a plan.

    `address`: for example ``tcp://HOST:8786``. Raise LabError if nobody answers there,
    or if the workers cannot measure the plan.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LabError(
            "--cluster needs Dask; install it with: pip install 'clientlab[cluster]'"
        ) from error
    for name in ("distributed", "distributed.client"):
        # The lab reports a lost scheduler or worker itself.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except Exception as error:  # Dask decodes what answers there, scheduler or not
        reason = str(error).partition("\n")[0]
        raise LabError(
            f"--cluster {address}: no Dask scheduler answers there ({reason});"
            " start one with 'dask scheduler'"
        ) from error
    try:
        cluster = DaskCluster(client, address, plan, target)
        until = time.monotonic() + _ARRIVE_SECONDS
        while (trouble := cluster.find_trouble()) is not None:
            if time.monotonic() > until:
                raise LabError(f"--cluster {address}: {trouble}")
            time.sleep(_LOOK_SECONDS)
        yield cluster
    finally:
        client.close(timeout=_CLOSE_SECONDS)


class DaskCluster:
    """The workers of a scheduler, for the run of a plan."""

    def __init__(
        self, client: Client, address: str, plan: Plan, target: Target
    ) -> None:
        self.client = client
        self._address = address
        self._plan = plan
        self._target = target
        self._names = sorted({arm.strategy for arm in plan.arms})
        self._described: dict[str, Worker] = {}
        self._machine = ""
        self._missed: set[str] = set()

    @contextmanager
    def reserve(self, wait: Callable[[], None]) -> Iterator[None]:
        """Reserve the cluster; call `wait` while another lab measures on it.

        A lab that was killed counts for 30 s.
        """
        from distributed import Lock  # noqa: PLC0415 - an extra

        lock = Lock("clientlab")
        while not lock.acquire(timeout=_LOOK_SECONDS):
            wait()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # the scheduler may be gone
                lock.release()

    def read_surroundings(self) -> Surroundings:
        """Return the machine that measures, as one of its workers sees it."""
        arm = self._plan.arms[0]
        shards = self._plan.workloads[arm.workload].shards
        worker = self._find_able(arm.strategy, shards)[0].address
        answers = self.client.run(
            read_surroundings, self._plan, self._target, workers=[worker]
        )
        answer: Surroundings = answers[worker]
        return answer

    def find_workers(self, strategy: str, count: int) -> list[Worker]:
        """Return this many workers for a trial, or fewer if no more arrive in time.

        Raise IncompleteRun.
        """
        until = time.monotonic() + _REPLACE_SECONDS
        able = self._find_able(strategy, count)
        if strategy in self._missed:  # an earlier trial has waited for them
            return able[:count]
        while len(able) < count and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
            able = self._find_able(strategy, count)
        if len(able) < count:
            self._missed.add(strategy)
        return able[:count]

    def read_addresses(self) -> Mapping[str, Any]:
        """Return what the scheduler knows of each worker, by address.

        Raise IncompleteRun if the scheduler is gone.
        """
        scheduler = self.client.scheduler
        if scheduler is None or self.client.status != "running":
            raise IncompleteRun(f"the scheduler at {self._address} is gone")
        try:
            # Not `scheduler_info`: its result may be replaced by one without workers
            # before it is returned.
            return dict(self.client.sync(scheduler.identity, n_workers=-1)["workers"])
        except (OSError, RuntimeError) as error:
            raise IncompleteRun(
                f"the scheduler at {self._address} is gone ({error})"
            ) from error

    def call(
        self, function: Callable[..., Any], *arguments: Any, workers: Iterable[Worker]
    ) -> dict[str, Any]:
        """Call a function on workers and return the results by address.

        Raise TrialLost if one does not answer.
        """
        addresses = [worker.address for worker in workers]
        try:
            return dict(self.client.run(function, *arguments, workers=addresses))
        except OSError as error:
            self.read_addresses()
            raise TrialLost(f"a worker does not answer ({error})") from error

    def measure_offset(self, worker: Worker) -> ClockOffset | None:
        """Measure the lab's clock minus the worker's as NTP does (RFC 5905).

        Return None if both have one clock.
        """
        if worker.machine == machine_id():
            return None
        offsets = []
        for _ in range(5):
            sent = time.time()
            remote = self.call(time.time, workers=[worker])[worker.address]
            received = time.time()
            offset = ClockOffset(
                seconds=(sent + received) / 2 - remote,
                error_seconds=(received - sent) / 2,
            )
            offsets.append(offset)
        # The shortest round trip counts.
        return min(offsets, key=lambda offset: offset.error_seconds)

    def find_trouble(self) -> str | None:
        """Return why the present workers cannot measure the plan, or None.

        Choose the run's machine.
        """
        present = self._describe_present()
        if not present:
            return (
                f"no worker; start one with 'dask worker {self._address} --preload"
                " clientlab.cluster.preload'"
            )
        for name in self._names:
            refusal = _find_refusal(name, present)
            if refusal is not None:
                return refusal
        workloads = self._plan.workloads
        arms = self._plan.arms
        alone = {arm.strategy for arm in arms if workloads[arm.workload].shards == 1}
        measured = defaultdict[str, set[str]](set)
        for worker in present:
            measured[worker.machine].update(filter(worker.measures, alone))
        machines = [machine for machine, names in measured.items() if names == alone]
        if not machines:
            return (
                "no machine has workers for all strategies, and arms on different"
                " machines cannot be compared"
            )
        self._machine = min(machines)
        for arm in arms:
            shards = workloads[arm.workload].shards
            able = len(self._find_able(arm.strategy, 2))
            if shards > max(able, 1):
                return (
                    f"{shards} shards need as many workers, and {able} measure"
                    f" {arm.strategy!r}; reduce --shards"
                )
        return None

    def _find_able(self, strategy: str, count: int) -> list[Worker]:
        """Return workers for a strategy: declared ones first, machines in turn.

        One alone is on the run's machine.
        """
        able = [
            worker for worker in self._describe_present() if worker.measures(strategy)
        ]
        if count == 1:
            able = [worker for worker in able if worker.machine == self._machine]
        turns = Counter[str]()
        places = {}
        for worker in able:
            places[worker.address] = (not worker.offered, turns[worker.machine])
            turns[worker.machine] += 1
        return sorted(able, key=lambda worker: places[worker.address])

    def _describe_present(self) -> list[Worker]:
        """Return the workers that are there now, each described once.

        Raise LabError for one with another version.
        """
        present = self.read_addresses()
        new = [address for address in present if address not in self._described]
        if new:
            servers = sorted({(arm.upstream, arm.route) for arm in self._plan.arms})
            answers = self.client.run(
                describe_worker,
                self._names,
                servers,
                self._target,
                workers=new,
                on_error="return",
            )
            for address, answer in answers.items():
                if not isinstance(answer, OSError):  # it has just gone
                    _check_version(address, answer)
                    self._described[address] = answer
        known = sorted(present.keys() & self._described.keys())
        return [self._described[address] for address in known]


def _find_refusal(strategy: str, workers: Iterable[Worker]) -> str | None:
    """Return why none of these workers can measure a strategy, or None."""
    taking = [worker for worker in workers if worker.offers(strategy)]
    if not taking:
        offered = set[str]().union(*(worker.offered for worker in workers))
        offers = ", ".join(sorted(offered))
        return f"no worker offers {strategy!r}; they offer {offers}"
    if any(worker.measures(strategy) for worker in taking):
        return None
    first = taking[0]
    return f"strategy {strategy!r}: {first.lacks[strategy]} (on worker {first.host})"


def _check_version(address: str, described: Worker | BaseException) -> None:
    if isinstance(described, BaseException):
        raise LabError(
            f"worker {address} has no clientlab {__version__} ({described});"
            " install it there"
        )
    if described.version != __version__:
        raise LabError(
            f"worker {address} has clientlab {described.version}, not"
            f" {__version__}; install the same"
        )


def check_portable(plan: Plan, target: Target, *, keep_samples: bool) -> None:
    """Raise FieldError if the plan needs what only the lab's own machine has."""

    def refuse(key: str, reason: str) -> NoReturn:
        raise FieldError([key], f"{reason}; leave it out", also=["cluster"])

    if keep_samples:
        refuse("keep_samples", "samples stay on the workers")
    if plan.links and target.urls:
        refuse("rtt", "workers have no link to your own servers")
    if plan.environments:
        refuse("environments", "workers measure in their own environment")
    if any(workload.replay for workload in plan.workloads.values()):
        refuse("replay", "workers do not have the file of requests")
    for arm in plan.arms:
        if ".py:" in arm.strategy:
            raise FieldError(
                ["strategies"],
                "workers do not have this file; install it there as a package with an"
                " entry point",
                value=arm.strategy,
            )
