"""Measure the lab itself: ``scripts/bench [overhead|upstream|truth …] [--rounds N] [--client NAME] [--seed N]``.

overhead: what the lab adds to a bare loop of each client, in about 15 minutes.
upstream: the mock server beside a bare aiohttp handler, and how exact its delays are, in about a minute.
truth: real trials with a known bottleneck, and simulations of how often intervals, headlines and comparisons hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from benchmarks import bare_loops, overhead, simulated_runs, upstream, verdicts
from benchmarks.figures import BenchmarkRow

PARTS = ("overhead", "upstream", "truth")
SEED = 1
"""The methods were chosen by this seed; any other one checks them."""


def main(words: list[str]) -> int:
    """Print each row when it is known, and the table at the end. Return 1 if a figure is not reached."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--rounds", type=int, default=31, help="fresh processes per client; fewer for slow ones (31)")
    parser.add_argument("--client", action="append", choices=list(bare_loops.strategies()), metavar="NAME",
                        help="overhead of this client only; repeatable")  # fmt: skip
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the simulations ({SEED})")
    chosen = parser.parse_args(words)
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    found: list[BenchmarkRow] = []
    try:
        for row in rows(chosen.parts or PARTS, chosen):
            measured = f"{row.value:.3f} {row.unit} ({row.low:.3f} to {row.high:.3f}, {row.spread})"
            print(f"{row.name}: {measured}", file=sys.stderr, flush=True)
            found.append(row)
    finally:  # what is known already took its time
        Console(width=140).print(_table(found))
    return 0 if all(row.met for row in found) else 1


def rows(parts: list[str] | tuple[str, ...], chosen: argparse.Namespace) -> Iterator[BenchmarkRow]:
    """Yield the rows of these parts."""
    if "overhead" in parts:
        yield from overhead.rows(chosen.rounds, chosen.client or list(bare_loops.strategies()))
    if "upstream" in parts:
        yield from upstream.rows(max(3, chosen.rounds // 3))
    if "truth" in parts:
        yield from verdicts.rows()
        yield from simulated_runs.rows(chosen.seed)


def _table(found: list[BenchmarkRow]) -> Table:
    table = Table("figure", "measured", "spread", "", "to reach", "", box=None, header_style="bold", pad_edge=False)
    for row in found:
        spread, met = f"{row.low:.3f} to {row.high:.3f}", "ok" if row.met else "MISSED"
        table.add_row(row.name, f"{row.value:.3f} {row.unit}", spread, row.spread, row.target, met)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
