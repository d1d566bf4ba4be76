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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clientlab import __version__, plugins, strategies
from clientlab.errors import FieldError, IncompleteRun, LabError
from clientlab.results.document import Surroundings
from clientlab.results.plan import Plan, Target
from clientlab.results.surroundings import distributions_of, programs_of, surroundings
from clientlab.running.execute import TrialLost
from clientlab.testbeds.compose import ComposeTestbed
from clientlab.trial.result import ClockOffset
from clientlab.trial.shards import machine_id
from clientlab.workload.workload import Workload

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS, _CLOSE_SECONDS, _LOOK_SECONDS = 10.0, 5.0, 0.5
_ARRIVE_SECONDS, _REPLACE_SECONDS = (
    3.0,
    15.0,
)  # for workers that are started with the lab, and that replace a lost one


@dataclass(frozen=True)
class Worker:
    """A worker as it describes itself.

    `lacks`: why it cannot measure a strategy; `offered`: strategies it declares.
    """

    address: str
    version: str
    host: str
    machine: str
    lacks: Mapping[str, str]
    offered: frozenset[str]

    def offers(self, strategy: str) -> bool:
        """Return whether the worker takes this strategy, with any settings.

        Without a declaration, it takes all.
        """
        return not self.offered or not self.offered.isdisjoint(
            {strategy, strategy.partition("?")[0]}
        )

    def measures(self, strategy: str) -> bool:
        return self.offers(strategy) and strategy not in self.lacks


def describe_worker(
    names: list[str], servers: list[tuple[str, str]], target: Target, dask_worker: Any
) -> Worker:
    """Describe this worker to a lab that wants to measure these strategies.

    `servers`: upstreams with their routes.
    """
    plugins.admit(names)  # the lab's command line named them
    trouble = None
    if not target.urls:  # otherwise, the lab has checked the servers
        try:
            testbed = ComposeTestbed(os.environ)
            trouble = next(
                filter(
                    None, (testbed.trouble(*server, Workload()) for server in servers)
                ),
                None,
            )
        except (IncompleteRun, LabError) as error:
            trouble = str(error)
    lacks = {}
    for name in names:
        try:
            reason = trouble or strategies.unavailable(strategies.find(name))
        except LabError as error:
            reason = str(error)
        if reason is not None:
            lacks[name] = reason
    offered = frozenset(dask_worker.state.total_resources)
    return Worker(
        dask_worker.address,
        __version__,
        socket.gethostname(),
        machine_id(),
        lacks,
        offered,
    )


def read_surroundings(plan: Plan, target: Target) -> Surroundings:
    """Return this machine, the versions of what the plan measures, and the addresses of
    the servers.
    """
    names = [arm.strategy for arm in plan.arms]
    servers = {} if target.urls else ComposeTestbed(os.environ).programs()
    return surroundings(distributions_of(names), servers | programs_of(names))


@contextmanager
def connect(address: str, plan: Plan, target: Target) -> Iterator[DaskCluster]:
    """Connect to the scheduler at an address such as ``tcp://HOST:8786``, and find the
    workers for a plan.

    Raise LabError if nobody answers there, or if the workers cannot measure the plan.
    """
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LabError(
            "--cluster needs Dask; install it with: pip install 'clientlab[cluster]'"
        ) from error
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(
            logging.CRITICAL
        )  # the lab reports a lost scheduler or worker itself
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (
        Exception
    ) as error:  # whatever answers there may be no scheduler, and Dask decodes it
        reason = str(error).partition("\n")[0]
        message = (
            f"no Dask scheduler answers there ({reason}); start one with 'dask"
            " scheduler'"
        )
        raise LabError(f"--cluster {address}: {message}") from error
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
        self._address, self._plan, self._target = address, plan, target
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
        first = self._find_able(
            arm.strategy, self._plan.workloads[arm.workload].shards
        )[0].address
        found: Surroundings = self.client.run(
            read_surroundings, self._plan, self._target, workers=[first]
        )[first]
        return found

    def find_workers(self, strategy: str, count: int) -> list[Worker]:
        """Return this many workers for a trial, or fewer if no more arrive in time.

        Raise IncompleteRun.
        """
        until = time.monotonic() + (
            0.0 if strategy in self._missed else _REPLACE_SECONDS
        )
        while (
            len(found := self._find_able(strategy, count)) < count
            and time.monotonic() < until
        ):
            time.sleep(_LOOK_SECONDS)
        if len(found) < count:
            self._missed.add(strategy)  # the next trials do not wait as long
        return found[:count]

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
        try:
            return dict(
                self.client.run(
                    function, *arguments, workers=[one.address for one in workers]
                )
            )
        except OSError as error:
            self.read_addresses()
            raise TrialLost(f"a worker does not answer ({error})") from error

    def measure_offset(self, worker: Worker) -> ClockOffset | None:
        """Measure the lab's clock minus the worker's as NTP does (RFC 5905); None if
        both have one clock.
        """
        if worker.machine == machine_id():
            return None
        found = []
        for _ in range(5):  # the shortest round trip counts
            sent, there, received = (
                time.time(),
                self.call(time.time, workers=[worker])[worker.address],
                time.time(),
            )
            found.append(
                ClockOffset(
                    seconds=(sent + received) / 2 - there,
                    error_seconds=(received - sent) / 2,
                )
            )
        return min(found, key=lambda one: one.error_seconds)

    def find_trouble(self) -> str | None:
        """Return why the workers that are there now cannot measure the plan, or None;
        choose the run's machine.
        """
        plan, present = self._plan, self._describe_present()
        if not present:
            return (
                f"no worker; start one with 'dask worker {self._address} --preload"
                " clientlab.cluster.preload'"
            )
        for name in self._names:
            taking = [one for one in present if one.offers(name)]
            if not taking:
                offers = ", ".join(
                    sorted(set().union(*(one.offered for one in present)))
                )
                return f"no worker offers {name!r}; they offer {offers}"
            if not any(one.measures(name) for one in taking):
                return (
                    f"strategy {name!r}: {taking[0].lacks[name]} (on worker"
                    f" {taking[0].host})"
                )
        alone = {
            arm.strategy
            for arm in plan.arms
            if plan.workloads[arm.workload].shards == 1
        }
        measured = {
            (one.machine, name)
            for one in present
            for name in alone
            if one.measures(name)
        }
        machines = sorted(
            one.machine
            for one in present
            if all((one.machine, name) in measured for name in alone)
        )
        if not machines:
            return (
                "no machine has workers for all strategies, and arms on different"
                " machines cannot be compared"
            )
        self._machine = machines[0]
        for arm in plan.arms:
            shards, able = (
                plan.workloads[arm.workload].shards,
                len(self._find_able(arm.strategy, 2)),
            )
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
        able = [one for one in self._describe_present() if one.measures(strategy)]
        able = [one for one in able if count > 1 or one.machine == self._machine]
        before = {
            one.address: [other.machine for other in able[:place]]
            for place, one in enumerate(able)
        }
        return sorted(
            able,
            key=lambda one: (not one.offered, before[one.address].count(one.machine)),
        )

    def _describe_present(self) -> list[Worker]:
        """Return the workers that are there now, each described once.

        Raise LabError for one with another version.
        """
        found = self.read_addresses()
        new = [address for address in found if address not in self._described]
        asked = (
            self._names,
            sorted({(arm.upstream, arm.route) for arm in self._plan.arms}),
            self._target,
        )
        answers = (
            self.client.run(describe_worker, *asked, workers=new, on_error="return")
            if new
            else {}
        )
        for address, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # it has just gone
            if isinstance(answer, BaseException):
                raise LabError(
                    f"worker {address} has no clientlab {__version__} ({answer});"
                    " install it there"
                )
            if answer.version != __version__:
                raise LabError(
                    f"worker {address} has clientlab {answer.version}, not"
                    f" {__version__}; install the same"
                )
            self._described[address] = answer
        return [
            self._described[address]
            for address in sorted(found)
            if address in self._described
        ]


def check_portable(plan: Plan, target: Target, *, keep_samples: bool) -> None:
    """Raise FieldError if the plan needs something that only the lab's own
    machine has.
    """
    refused = {
        "keep_samples": (keep_samples, "samples stay on the workers"),
        "rtt": (plan.links and target.urls, "workers have no link to your own servers"),
        "environments": (plan.environments, "workers measure in their own environment"),
        "replay": (
            any(one.replay for one in plan.workloads.values()),
            "workers do not have the file of requests",
        ),
    }
    for key, (applies, reason) in refused.items():
        if applies:
            raise FieldError([key], f"{reason}; leave it out", also=["cluster"])
    if of_file := next(
        (arm.strategy for arm in plan.arms if ".py:" in arm.strategy), None
    ):
        message = (
            "workers do not have this file; install it there as a package with an entry"
            " point"
        )
        raise FieldError(["strategies"], message, value=of_file)
