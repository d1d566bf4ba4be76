"""The workers of a Dask cluster, and what the lab asks of them before it measures.

A worker offers strategies as Dask resources (`dask worker --resources "aiohttp@workers=1"`); a worker that declares
none takes any strategy. Trials that are not divided all go to workers of one machine, because arms on different
machines cannot be compared.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clientlab import __version__, strategies
from clientlab.cluster.trials import Description, describe, read_clock, surroundings_here
from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.results.document import Surroundings
from clientlab.results.plan import Plan
from clientlab.results.target import Target
from clientlab.results.trial import ClockOffset
from clientlab.running.execute import TrialLost
from clientlab.running.shard_report import machine_id

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS = 10.0
_ARRIVE_SECONDS, _REPLACE_SECONDS = 3.0, 15.0
"""How long workers may take to arrive that are started with the lab, and those that replace a lost one."""

_LOOK_SECONDS = 0.5
_CLOSE_SECONDS = 5.0
_ROUND_TRIPS, _EXACT_ENOUGH = 10, 0.0005
"""Most round trips for a clock offset, and the error in seconds below which one of them is enough."""


@dataclass(frozen=True)
class Worker:
    """A worker of the cluster. `offered`: strategies that it declares; `lacks`: strategy → why it cannot measure it."""

    address: str
    host: str
    machine: str
    offered: frozenset[str]
    lacks: Mapping[str, str] = field(default_factory=dict)

    def offers(self, strategy: str) -> bool:
        """Return whether the worker takes this strategy, with whatever settings."""
        return not self.offered or not self.offered.isdisjoint({strategy, strategy.partition("?")[0]})

    def measures(self, strategy: str) -> bool:
        """Return whether the worker takes this strategy and has what it needs."""
        return self.offers(strategy) and strategy not in self.lacks


@contextmanager
def connected(address: str, plan: Plan, target: Target) -> Iterator[DaskCluster]:
    """Connect to the scheduler at an address such as ``tcp://HOST:8786``, and find the workers for a plan.

    Raise LabError if nobody answers there, or if the workers cannot measure the plan.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LabError("--cluster needs Dask; install it with: pip install 'clientlab[cluster]'") from error
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the lab reports a lost scheduler or worker itself
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except Exception as error:  # whatever answers there may be no scheduler, and Dask decodes it
        reason = str(error).partition("\n")[0]
        raise LabError(
            f"--cluster {address}: no Dask scheduler answers there ({reason}); start one with 'dask scheduler'"
        ) from error
    try:
        cluster = DaskCluster(client, address, plan, target)
        cluster.find_workers()
        yield cluster
    finally:
        client.close(timeout=_CLOSE_SECONDS)


class DaskCluster:
    """The workers of a scheduler, for the run of a plan."""

    def __init__(self, client: Client, address: str, plan: Plan, target: Target) -> None:
        self.client = client
        self._address, self._plan, self._target = address, plan, target
        self._names = sorted({arm.strategy for arm in plan.arms})
        self._described: dict[str, Worker] = {}
        self._machine = ""
        self._missed: set[str] = set()

    @contextmanager
    def alone(self, wait: Callable[[], None]) -> Iterator[None]:
        """Call `wait` until no other lab measures on this cluster. A lab that was killed counts for 30 s."""
        from distributed import Lock  # noqa: PLC0415 - an extra

        lock = Lock("clientlab")
        while not lock.acquire(timeout=_LOOK_SECONDS):
            wait()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # the scheduler may be gone
                lock.release()

    def find_workers(self) -> None:
        """Find the workers for the plan. Raise LabError, with what there is, if they cannot measure it."""
        until = time.monotonic() + _ARRIVE_SECONDS
        while (lack := self._lack()) is not None:
            if time.monotonic() > until:
                raise LabError(f"--cluster {self._address}: {lack}")
            time.sleep(_LOOK_SECONDS)

    def surroundings(self) -> Surroundings:
        """Return the machine that measures, as one of its workers sees it."""
        arm = self._plan.arms[0]
        first = self._able(arm.strategy, self._plan.workloads[arm.workload].shards)[0]
        asked = (self._plan, self._target)
        found: Surroundings = self._call(surroundings_here, *asked, addresses=[first.address])[first.address]
        return found

    def workers_for(self, strategy: str, count: int) -> list[Worker]:
        """Return this many workers for a trial, or fewer if no more arrive in time. Raise IncompleteRun."""
        until = time.monotonic() + (0.0 if strategy in self._missed else _REPLACE_SECONDS)
        while len(found := self._able(strategy, count)) < count and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        if len(found) < count:
            self._missed.add(strategy)  # the next trials do not wait as long
        return found[:count]

    def addresses(self) -> Mapping[str, Any]:
        """Return what the scheduler knows of each worker, by address. Raise IncompleteRun if the scheduler is gone."""
        scheduler = self.client.scheduler
        if scheduler is None or self.client.status != "running":
            raise IncompleteRun(f"the scheduler at {self._address} is gone")
        try:
            # Not `scheduler_info`: its result may be replaced by one without workers before it is returned.
            found: dict[str, dict[str, Any]] = self.client.sync(scheduler.identity, n_workers=-1)
        except (OSError, RuntimeError) as error:
            raise IncompleteRun(f"the scheduler at {self._address} is gone ({error})") from error
        return found["workers"]

    def call(self, function: Callable[..., Any], *arguments: Any, workers: Iterable[Worker]) -> dict[str, Any]:
        """Call a function on workers and return the results by address. Raise TrialLost if one does not answer."""
        try:
            return self._call(function, *arguments, addresses=[one.address for one in workers])
        except OSError as error:
            self.addresses()
            raise TrialLost(f"a worker does not answer ({error})") from error

    def offset_of(self, worker: Worker) -> ClockOffset | None:
        """Measure the lab's clock minus the worker's as NTP does (RFC 5905); None if both have one clock."""
        if worker.machine == machine_id():
            return None
        found: list[ClockOffset] = []
        while len(found) < _ROUND_TRIPS and not (found and found[-1].error_seconds < _EXACT_ENOUGH):
            sent = time.time()
            there = self.call(read_clock, workers=[worker])[worker.address]
            received = time.time()
            found.append(ClockOffset(seconds=(sent + received) / 2 - there, error_seconds=(received - sent) / 2))
        return min(found, key=lambda one: one.error_seconds)

    def _lack(self) -> str | None:
        """Return why the workers that are there now cannot measure the plan; None if they can."""
        plan, present = self._plan, self._present()
        if not present:
            return f"no worker; start one with 'dask worker {self._address} --preload clientlab.cluster.preload'"
        for name in self._names:
            taking = [one for one in present if one.offers(name)]
            if not taking:
                offers = ", ".join(sorted(set().union(*(one.offered for one in present))))
                return f"no worker offers {name!r}; they offer {offers}"
            if not any(one.measures(name) for one in taking):
                return f"strategy {name!r}: {taking[0].lacks[name]} (on worker {taking[0].host})"
        alone = {arm.strategy for arm in plan.arms if plan.workloads[arm.workload].shards == 1}
        machines = [one.machine for one in present]
        fitting = [there for there in machines if all(self._on(there, present, name) for name in alone)]
        if not fitting:
            return "no machine has workers for all strategies, and arms on different machines cannot be compared"
        self._machine = min(fitting)
        for arm in plan.arms:
            shards, able = plan.workloads[arm.workload].shards, len(self._able(arm.strategy, 2))
            if shards > max(able, 1):
                return f"{shards} shards need as many workers, and {able} measure {arm.strategy!r}; reduce --shards"
        return None

    @staticmethod
    def _on(machine: str, workers: Iterable[Worker], strategy: str) -> bool:
        return any(one.machine == machine and one.measures(strategy) for one in workers)

    def _able(self, strategy: str, count: int) -> list[Worker]:
        """Return the workers that measure a strategy: those that declare it first, then one of each machine by turns.

        A trial that is not divided stays on the machine of the run.
        """
        able = [one for one in self._present() if one.measures(strategy)]
        if count == 1:
            able = [one for one in able if one.machine == self._machine]
        earlier, places = Counter[tuple[bool, str]](), []
        for one in able:
            kind = (not one.offered, one.machine)
            places.append((kind[0], earlier[kind], one.machine, one.address, one))
            earlier[kind] += 1
        return [place[-1] for place in sorted(places, key=lambda place: place[:-1])]

    def _present(self) -> list[Worker]:
        """Return the workers that are there now, each described once. Raise LabError for one with another version."""
        found = self.addresses()
        new = [address for address in found if address not in self._described]
        servers = sorted({(arm.upstream, arm.route) for arm in self._plan.arms})
        asked = (self._names, servers, self._target)
        answers = self._call(describe, *asked, addresses=new, on_error="return") if new else {}
        for address, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # it has just gone
            one = _checked(address, answer)
            offered = frozenset(map(str, found[address].get("resources") or {}))
            self._described[address] = Worker(address, one.host, one.machine, offered, one.lacks)
        return [self._described[address] for address in sorted(found) if address in self._described]

    def _call(
        self, function: Callable[..., Any], *arguments: Any, addresses: list[str], **options: Any
    ) -> dict[str, Any]:
        found: dict[str, Any] = self.client.run(function, *arguments, workers=addresses, **options)
        return found


def check_portable(plan: Plan, target: Target) -> None:
    """Raise FieldError if the plan needs something that only the lab's own machine has."""
    if plan.links and target.url is not None:
        raise FieldError(["rtt"], "workers have no link to your own server; leave it out", also=["cluster"])
    if plan.environments:
        raise FieldError(["environments"], "workers measure in their own environment; leave it out", also=["cluster"])
    if any(workload.replay is not None for workload in plan.workloads.values()):
        raise FieldError(["replay"], "workers do not have the file of requests; leave it out", also=["cluster"])
    if of_file := next((arm.strategy for arm in plan.arms if strategies.is_of_file(arm.strategy)), None):
        message = "workers do not have this file; install it there as a package with an entry point"
        raise FieldError(["strategies"], message, value=of_file)


def _checked(address: str, answer: Description | BaseException) -> Description:
    """Return the description of a worker with this version of clientlab. Raise LabError for any other worker."""
    if isinstance(answer, BaseException):
        raise LabError(f"worker {address} has no clientlab {__version__} ({answer}); install it there")
    if answer.version != __version__:
        raise LabError(f"worker {address} has clientlab {answer.version}, and the lab {__version__}; install the same")
    return answer
