"""The lines on divided trials: in the terminal, in Markdown and on the page."""

from __future__ import annotations

from clientlab.reports import as_markdown
from clientlab.reports.as_html import render
from clientlab.reports.figure_tables import shard_lines
from clientlab.results.trial import Shard
from clients.documents import a_run, a_trial


def divided(number: int, *starts: float):
    """A trial whose shards began at these seconds, on a host each."""
    found = [
        Shard(
            host=f"host-{place}", began_seconds=start, wall_seconds=1.0, concurrency=2, requests=100 + place,
            requests_per_second=100.0 + place, cpu_seconds=0.1,
        )
        for place, start in enumerate(starts)
    ]  # fmt: skip
    return a_trial("aiohttp", number).model_copy(update={"by_shard": found})


def test_an_arm_in_shards_has_a_line_with_their_rates_and_their_start_spread():
    """In every report; an arm that is not divided has none."""
    run = a_run(divided(1, 0.0, 0.002, 0.001), divided(2, 0.0, 0.004, 0.0), divided(3, 0.0, 0.003, 0.0), a_trial())
    rate = "each with 100 to 102 requests/s"
    line = f"aiohttp: 3 shards on 3 hosts, {rate}; the last began 3.00 ms after the first (median)."
    assert shard_lines(run) == [line]
    assert line in as_markdown.render(run)
    assert line in render(run)
    assert shard_lines(a_run(a_trial())) == []
