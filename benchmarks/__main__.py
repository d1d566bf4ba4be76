"""Every figure in one table: ``scripts/bench [PART ...] [--rounds N] [--client NAME] [--seed N] [--runs N]``.

Each part is behind a figure of the documentation, or of a release.

overhead: what the lab adds to a bare loop of each client, in 15 minutes, three times that at most where noise leaves
it open. streaming: what a large body costs. saving: what the lab does between two trials, early and late in a run.
open-load: planned and achieved rates, and both latencies of a frozen server.
link: transfers over the emulated network against arithmetic, in about 10 minutes.
truth: real trials with a known bottleneck; simulations of how often intervals, headlines, comparisons and limits hold.
chaos: SIGKILL and SIGSTOP of each process of the lab, at moments that the seed draws (--incidents, 50).
leaks: secrets of every client's requests in files and outputs of the lab, after faults of a server.
scale: 1,000 simulated workers and one lab service, in about a minute.
siege: health checks of the lab service and a worker, and the trials of a run, while 1,500 clients attack.
environments: how often the interval of two equal ones holds 1 (--runs, 100), whether a library that is slower by 5 % is
found, and the set-up of another environment. shards: divided trials beside all their samples.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    bare_loops,
    besieged_lab,
    chaos,
    environments,
    link,
    open_load,
    overhead,
    saving,
    scale,
    shards,
    streaming,
    truth,
)
from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for

_WITHOUT_A_LAB = (
    ("siege", besieged_lab),
    ("scale", scale),
)
SEED = 1
"""Of simulations. The methods were chosen by this seed; any other one checks them."""

_IN_A_LAB = ("overhead", "streaming", "open-load")
_WITH_OPTIONS: dict[str, Callable[[argparse.Namespace], Iterator[BenchmarkRow]]] = {
    "link": lambda chosen: link.rows(chosen.rounds),
    "shards": lambda chosen: shards.rows(max(3, chosen.rounds // 6)),
    "saving": lambda chosen: saving.rows(max(3, chosen.rounds // 3)),
    "truth": lambda chosen: truth.rows(chosen.seed),
    "chaos": lambda chosen: chaos.rows(chosen.seed, chosen.incidents),
    "environments": lambda chosen: environments.rows(chosen.runs),
}
PARTS = (*_IN_A_LAB, *_WITH_OPTIONS, *(name for name, _ in _WITHOUT_A_LAB))


def main(words: list[str]) -> int:
    """Measure, print a row as it is known and then the table; exit 1 where a figure is not reached."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument(
        "--rounds",
        type=int,
        default=31,
        help="fresh processes a client of overhead (31; fewer for slow ones); a third of them for saving",
    )
    parser.add_argument(
        "--client",
        action="append",
        default=[],
        choices=list(bare_loops.strategies()),
        help="overhead of this client only; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the simulations of truth, and of chaos ({SEED})")
    parser.add_argument("--incidents", type=int, default=50, help="of chaos (50)")
    parser.add_argument("--runs", type=int, default=100, help="of equal environments (100)")
    chosen = parser.parse_args(words)
    if min(chosen.incidents, chosen.runs) < 1:
        parser.error("--incidents, --runs: write 1 or more")
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    found: list[BenchmarkRow] = []
    try:
        for row in rows(chosen.parts or list(PARTS), chosen):
            measured = f"{row.value:.3f} {row.unit} ({row.low:.3f} to {row.high:.3f}, {row.spread})"
            print(f"{row.name}: {measured}", file=sys.stderr, flush=True)
            found.append(row)
    finally:  # what is known already took its time
        Console(width=140).print(_table(found))
    return 0 if all(row.met for row in found) else 1


def rows(parts: list[str], chosen: argparse.Namespace) -> Iterator[BenchmarkRow]:
    """The rows of the parts, by the options of the command line."""
    rounds: int = chosen.rounds
    if set(_IN_A_LAB) & set(parts):
        yield from _in_a_lab(parts, rounds, chosen.client)
    for name, rows_of in _WITH_OPTIONS.items():
        if name in parts:
            yield from rows_of(chosen)
    for name, part in _WITHOUT_A_LAB:
        if name in parts:
            yield from part.rows()


def _in_a_lab(parts: list[str], rounds: int, clients: list[str]) -> Iterator[BenchmarkRow]:
    """Those that share a testbed. The proxy is there for HTTP/2 alone."""
    routes = ["direct", "proxy-tls"] if {"overhead", "streaming"} & set(parts) else ["direct"]
    with (
        tempfile.TemporaryDirectory() as logs,
        LocalTestbed(["aiohttp"], routes, Path(logs), workers_for(32)) as testbed,
    ):
        ways = [Site(testbed.base_url("aiohttp", way), testbed.ca_file("aiohttp", way)) for way in routes]
        roots = [Site(f"{site.url}/", site.ca_file) for site in ways]
        if "overhead" in parts:
            yield from overhead.rows(roots[0], roots[-1], rounds, clients)
        if "streaming" in parts:
            yield from streaming.rows(ways[0], ways[-1])
        if "open-load" in parts:
            yield from open_load.rows(roots[0])


def _table(found: list[BenchmarkRow]) -> Table:
    table = Table("figure", "measured", "spread", "", "to reach", "", box=None, header_style="bold", pad_edge=False)
    for row in found:
        spread = f"{row.low:.3f} to {row.high:.3f}"
        table.add_row(
            row.name, f"{row.value:.3f} {row.unit}", spread, row.spread, row.target, "ok" if row.met else "MISSED"
        )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
