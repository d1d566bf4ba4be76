"""What the hook for faults costs where no fault is asked: the aiohttp upstream with it beside the same code without it.

Each round starts both servers anew, and sends the same requests to them one by one, by turns. The first path is one
whose replies the upstream remembers, the second one that it answers anew each time. The client has no hook: without
faults, the function that makes its requests is the one of before, and a test holds it to that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from statistics import median
from time import process_time
from typing import NamedTuple

from benchmarks.figures import BenchmarkRow, at_most, ratio
from benchmarks.servers import cpu_seconds_with_workers
from benchmarks.trials import Site, outcome_of
from benchmarks.upstream import BenchServer, serving
from clientlab.workload.workload import Workload
from mockupstream.contract import ROUTES, Call, Contract
from mockupstream.ledger import Book
from mockupstream.settings import read_settings

_ROUNDS, _TURNS, _REQUESTS = 8, 6, 1000
_DIRECT_TURNS, _DIRECT_CALLS, _DIRECT_LIMIT = 1000, 200, 1.01
_PATHS = {"a remembered reply": "/", "a reply made anew": "/delay/0"}
_CONFIGURATIONS = ("mockupstream.gunicorn_config", "benchmarks.without_faults")
_SETTINGS = {"MOCKUPSTREAM_FRAMEWORK": "aiohttp", "MOCKUPSTREAM_WORKERS": "1"}


class _Costs(NamedTuple):
    """CPU seconds for all requests of a turn."""

    upstream: float
    client: float


def rows() -> Iterator[BenchmarkRow]:
    """Requests per CPU second of the upstream, and the client's CPU time of a request: with the hook over without."""
    found: dict[str, list[tuple[_Costs, _Costs]]] = {name: [] for name in _PATHS}
    for _ in range(_ROUNDS):
        for name, pair in _round().items():
            found[name].append(pair)
    for name, pairs in found.items():
        upstream = [bare.upstream / hooked.upstream for hooked, bare in pairs]
        client = [hooked.client / bare.client for hooked, bare in pairs]
        yield _no_cost(ratio(f"hook for faults: upstream's requests per CPU second, {name}", upstream))
        yield _no_cost(ratio(f"hook for faults: client's CPU time of a request, {name}", client))
    yield from direct_rows()


def direct_rows() -> Iterator[BenchmarkRow]:
    """The same without a server: the contract's replies by both functions in turn, in one process."""
    hooked, route = Contract.reply, next(one for one in ROUTES if one.template == "/delay/{seconds}")
    from benchmarks import without_faults  # noqa: F401, PLC0415 - it takes the hook out of the class

    bare, contract = Contract.reply, Contract(read_settings({}), Book().open(0))
    call = Call("GET", "", {"seconds": "0"}, 0, "", b"", dict, lambda: "http://x/delay/0")
    ratios = []
    for turn in range(_DIRECT_TURNS):
        took = {}
        for function in (hooked, bare) if turn % 2 else (bare, hooked):
            began = process_time()
            for _ in range(_DIRECT_CALLS):
                function(contract, route, call)
            took[function] = process_time() - began
        ratios.append(took[hooked] / took[bare])
    yield at_most("hook for faults: CPU time of a reply made anew, called directly", ratios, _DIRECT_LIMIT)


def _round() -> dict[str, tuple[_Costs, _Costs]]:
    """By path, the costs with the hook and without it. Both servers are new, and take turns: others disturb both."""
    commands = [[sys.executable, "-m", "gunicorn", "-c", f"python:{one}"] for one in _CONFIGURATIONS]
    with serving(commands[0], _SETTINGS) as hooked, serving(commands[1], _SETTINGS) as bare:
        found = {}
        for name, path in _PATHS.items():
            workload = Workload(path=path, requests=_REQUESTS, connections="warm")
            for server in (hooked, bare):  # code is loaded and specialised
                _costs(server, workload)
            turns = [(hooked, bare) if turn % 2 else (bare, hooked) for turn in range(_TURNS)]
            costs = [{server.pid: _costs(server, workload) for server in turn} for turn in turns]
            found[name] = _typical(costs, hooked), _typical(costs, bare)
    return found


def _typical(costs: Sequence[dict[int, _Costs]], server: BenchServer) -> _Costs:
    """Medians over the turns."""
    own = [one[server.pid] for one in costs]
    return _Costs(median(one.upstream for one in own), median(one.client for one in own))


def _costs(server: BenchServer, workload: Workload) -> _Costs:
    before = cpu_seconds_with_workers(server.pid)
    client = outcome_of("http.client", Site(server.url), workload).cpu_seconds
    return _Costs(cpu_seconds_with_workers(server.pid) - before, client)


def _no_cost(row: BenchmarkRow) -> BenchmarkRow:
    """The row with its target: the interval includes 1."""
    return BenchmarkRow(row.name, row.value, row.low, row.high, row.spread, "1 in it", row.low <= 1 <= row.high)
