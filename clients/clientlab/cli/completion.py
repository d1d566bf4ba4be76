"""What a shell completes: names of experiments, strategies and runs. docs/cli.md explains how to switch it on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from clientlab.experiments.file import bundled
from clientlab.results.store import Store
from clientlab.strategies import STRATEGIES


def experiments(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Bundled experiments, and files."""
    return [*_beginning(bundled(), begun), CompletionItem(begun, type="file")]


def strategies(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Listed strategies, and files with a client."""
    return [*_beginning(STRATEGIES, begun), CompletionItem(begun, type="file")]


def runs(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Runs of the results folder, the newest first, and files."""
    store = Store(context.params.get("folder") or Path("results"))
    return [*_beginning(["last", *reversed(store.names())], begun), CompletionItem(begun, type="file")]


def _beginning(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]
