"""Measure the lab itself: ``scripts/bench [overhead|upstream|streams|rates|truth …]
…``.

overhead: what the lab adds to a bare loop of each client, in about 15 minutes.
upstream: the mock server compared with a bare aiohttp handler, and how exact its delays
are, in about a minute. streams: how exact the moments of streamed events are, and what
recording an event costs, in two minutes. rates: the lab's rates over those of
continuous loops, in about half an hour. truth: real trials with a known bottleneck, and
simulations of how often intervals, headlines and comparisons hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    bare_loops,
    overhead,
    rates,
    simulated_runs,
    streams,
    upstream,
    verdicts,
)
from benchmarks.figures import BenchmarkRow

PARTS = ("overhead", "upstream", "streams", "rates", "truth")
SEED = 1
"""The methods were chosen with this seed; any other one checks them."""


def main(words: list[str]) -> int:
    """Print each row when it is known, and the table at the end.

    Return 1 if a target is missed.
    """
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=31,
        help="fresh processes per client; fewer for slow ones (31)",
    )
    parser.add_argument(
        "--client",
        action="append",
        choices=list(bare_loops.strategies()),
        metavar="NAME",
        help="overhead of this client only; repeatable",
    )
    parser.add_argument(
        "--case",
        dest="cases",
        action="append",
        choices=rates.NAMES,
        metavar="NAME",
        help=f"rates of this case only; repeatable: {', '.join(rates.NAMES)}",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the table of rates to this file",
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"of the simulations ({SEED})"
    )
    chosen = parser.parse_args(words)
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(
            f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    table = Table(
        "figure",
        "measured",
        "spread",
        "",
        "to reach",
        "",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    all_met = True
    try:
        for row in rows(chosen.parts or PARTS, chosen):
            value, spread = (
                f"{row.value:.3f} {row.unit}",
                f"{row.low:.3f} to {row.high:.3f}",
            )
            print(
                f"{row.name}: {value} ({spread}, {row.spread})",
                file=sys.stderr,
                flush=True,
            )
            table.add_row(
                row.name,
                value,
                spread,
                row.spread,
                row.target,
                "ok" if row.met else "MISSED",
            )
            all_met &= row.met
    finally:  # an interrupted benchmark shows what it has measured
        Console(width=140).print(table)
    return 0 if all_met else 1


def rows(
    parts: list[str] | tuple[str, ...], chosen: argparse.Namespace
) -> Iterator[BenchmarkRow]:
    """Yield the rows of these parts."""
    if "overhead" in parts:
        yield from overhead.rows(
            chosen.rounds, chosen.client or list(bare_loops.strategies())
        )
    if "upstream" in parts:
        yield from upstream.rows(max(3, chosen.rounds // 3))
    if "streams" in parts:
        yield from streams.rows(max(5, chosen.rounds // 2))
    if "rates" in parts:
        yield from rates.rows(chosen.cases or rates.NAMES, chosen.markdown)
    if "truth" in parts:
        yield from verdicts.rows()
        yield from simulated_runs.rows(chosen.seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
