"""Help of `clientlab run`, with its options in groups."""

from __future__ import annotations

import click

GROUPS = {
    "Most used": (
        "strategies", "requests", "duration", "concurrency", "delay", "rtt", "url", "environments", "rounds", "budget",
    ),
    "Load": (
        "rate", "find_max", "method", "path", "headers", "body", "payload_size", "connections", "shards", "replay",
    ),
    "Network": ("routes", "bandwidth", "timeout", "ca_file"),
    "Server": ("upstreams", "cluster"),
    "Precision": ("quick", "precision", "pin", "seed"),
    "Output": (
        "whole", "html", "junit", "chart", "as_json", "folder", "name", "fail_on", "resume", "keep_samples",
    ),
}  # fmt: skip
"""Heading → fields of `RunOptions`."""


_COLUMN = 25
"""Characters of an option with its value, so that all groups are aligned."""


class GroupedCommand(click.Command):
    """A command whose help shows its options by `GROUPS`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {one.name: one.get_help_record(ctx) for one in self.params}
        for title, fields in GROUPS.items():
            with formatter.section(title):
                rows = (record for field in fields if (record := records[field]))
                formatter.write_dl([(names.ljust(_COLUMN), text) for names, text in rows])
