"""Help of `clientlab run`: options in groups, each on one line. ``--help`` shows those that most runs need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

_ALL = "clientlab.help_all"
_COLUMN, _LINE = 25, 49
"""Characters of an option with its value, and of its line of help: together they fit 80 columns."""


@dataclass(frozen=True)
class HelpGroup:
    """Options under one heading, by their fields. `further`: shown by ``--help-all`` only."""

    title: str
    shown: Sequence[str]
    further: Sequence[str] = ()


GROUPS = (
    HelpGroup(
        "Most used",
        (
            "strategies", "requests", "duration", "concurrency", "delay", "rtt", "url", "environments", "rounds",
            "budget",
        ),
    ),
    HelpGroup(
        "Load",
        ("rate", "find_max", "method", "path", "headers", "body", "payload_size", "connections"),
        (
            "stages", "arrivals", "max_late", "find_from", "overload", "shards", "warmup", "replay", "encode", "parse",
            "read", "chunk_size", "upload_size", "upload", "elapsed",
        ),
    ),
    HelpGroup("Network", ("routes", "bandwidth", "timeout"), ("buffer", "ca_file")),
    HelpGroup("Server", ("upstreams", "testbed"), ("ceilings",)),
    HelpGroup("Precision", ("quick", "precision", "time_budget", "slices", "pin", "seed")),
    HelpGroup(
        "Output",
        ("whole", "html", "junit", "chart", "as_json", "folder", "name", "fail_on", "resume"),
        ("strict", "require_claims", "keep_samples", "keep_headers"),
    ),
    HelpGroup(
        "More",
        ("help_all",),
        ("deadline", "request_limit", "memory_limit", "allowed", "allowed_environments", "yes"),
    ),
)  # fmt: skip


class GroupedCommand(click.Command):
    """A command whose help has its options in `GROUPS`, and an option ``--help-all``."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.append(_HELP_ALL)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = {one.name: one for one in self.params if isinstance(one, click.Option)}
        whole = ctx.meta.get(_ALL, False)
        for group in GROUPS:
            fields = [*group.shown, *group.further] if whole else group.shown
            with formatter.section(group.title):
                rows = [_row(options[field], ctx, whole=whole) for field in fields]
                formatter.write_dl(rows, col_max=_COLUMN)


def _show_all(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value:
        context.meta[_ALL] = True
        click.echo(context.get_help())
        context.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options, described in full, and exit.",
)


def _row(option: click.Option, context: click.Context, *, whole: bool) -> tuple[str, str]:
    """An option and its help. If not `whole`: the help's first sentence, and the default if it fits the line."""
    names, text = option.get_help_record(context) or ("", "")
    if not whole:
        sentence, default = text.partition("  [")[0].partition(". ")[0].removesuffix("."), text.rpartition("  [")[2]
        text = f"{sentence}  [{default}" if len(sentence) + len(default) + 3 <= _LINE and default != text else sentence
    return names.ljust(_COLUMN), text
