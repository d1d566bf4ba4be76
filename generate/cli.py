"""docs/cli.md: every subcommand with its arguments and options, from click's own objects."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from clientlab.cli import commands


def reference() -> str:
    """A section for each subcommand, in alphabetical order; those of `runs` follow it."""
    root = click.Context(commands, info_name="clientlab", **commands.context_settings)  # click keeps the help option
    return "\n".join(
        line
        for name in commands.list_commands(root)
        if (command := commands.get_command(root, name)) is not None
        for line in _section(command, root, name)
    )


def _section(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=name)
    yield f"{'#' * (1 + context.command_path.count(' '))} {context.command_path}\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield " ".join(paragraph.split()) + "\n"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    rows = [
        _row(option, context) for option in command.params if isinstance(option, click.Option) and not option.hidden
    ]
    if rows:
        yield "| option | purpose | default |\n| --- | --- | --- |"
        yield "\n".join(rows) + "\n"
    if isinstance(command, click.Group):
        for below in sorted(command.commands):
            yield from _section(command.commands[below], context, below)


def _row(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" {cell(option.make_metavar(context))}"
    text, default = purpose(option)
    if not default and (context.show_default or option.show_default) and option.default not in {None, False, ""}:
        default = str(option.default)
    variable = f" (environment: `{option.envvar}`)" if option.envvar else ""
    return f"| {names}{value} | {text}{variable} | {default} |"


def purpose(option: click.Parameter) -> tuple[str, str]:
    """The option's help, and the default that is written at its end in brackets ("" for none)."""
    help_text, _, rest = cell(getattr(option, "help", None) or "").partition("[default: ")
    return help_text.strip(), rest.rstrip("]")


def cell(text: str) -> str:
    """Text as a cell of a Markdown table: brackets and bars are no links and no columns."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")
