"""Command line. Each subcommand parses its options into one value and calls one function.

Exit codes: 0 done; 1 a threshold, a required claim or a comparison failed; 2 the arguments or the input are wrong;
3 the run is incomplete, or a plug-in could not be loaded (finished trials are saved).
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import click

from clientlab import __version__
from clientlab.cli.terminal import say
from clientlab.errors import FieldError, IncompleteRun, LabError

_OF_EVERYBODY = {
    "run": "run",
    "init": "listing",
    "report": "reporting",
    "compare": "comparing",
    "claims": "reporting",
    "runs": "runs",
    "list": "listing",
    "conform": "checks",
    "doctor": "checks",
}
_OF_SERVERS = {"up": "serving", "exporter": "serving"}
_SUBCOMMANDS = _OF_EVERYBODY | _OF_SERVERS
"""Subcommand → the module of this package that defines it."""


_COLUMN = 12
"""Characters of a subcommand and the space behind it."""


class _Subcommands(click.Group):
    """A group that imports the module of a subcommand when the subcommand is wanted: each takes a part of the lab."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return sorted(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        if cmd_name not in _SUBCOMMANDS:
            return None
        module = importlib.import_module(f"clientlab.cli.{_SUBCOMMANDS[cmd_name]}")
        defined = (value for value in vars(module).values() if isinstance(value, click.Command))
        return next(command for command in defined if command.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in (("Commands", _OF_EVERYBODY), ("Servers", _OF_SERVERS)):
            commands = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(title):
                width = formatter.width - formatter.current_indent - _COLUMN
                formatter.write_dl(
                    [
                        (name.ljust(_COLUMN - 2), command.get_short_help_str(width))
                        for name, command in commands.items()
                        if command
                    ]
                )


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="clientlab")
def commands() -> None:
    """Measure how Python code should make HTTP requests.

    `clientlab run demo` compares eight strategies; `clientlab list` shows what can be compared.
    """


_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code. An error is one line on standard error."""
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, _terminated)
    try:
        code = commands.main(list(arguments) or ["--help"], prog_name="clientlab", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "clientlab"
        return _say(f"{error.format_message()} See '{path} --help'.", LabError.exit_code)
    except click.ClickException as error:
        return _say(error.format_message(), LabError.exit_code)
    except LabError as error:
        say(LabError(error.render(_option_names())) if isinstance(error, FieldError) else error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted before anything was measured", IncompleteRun.exit_code)
    except OSError as error:
        return _cannot_write(error)
    return code if isinstance(code, int) else 0


def _option_names() -> dict[str, str]:
    """Field → its option: the core names fields, and the command line shows options."""
    from clientlab.cli.run_options import OPTION_NAMES  # noqa: PLC0415 - for an error of a field alone

    others = ("fail_on", "figure", "force", "out", "strict")
    return OPTION_NAMES | {field: f"--{field.replace('_', '-')}" for field in others}


def _say(line: str, code: int) -> int:
    say(LabError(line))
    return code


def _cannot_write(error: OSError) -> int:
    """Handle a closed pipe, a full disk, or a file that cannot be opened."""
    if error.filename is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter would flush it again at exit
    if isinstance(error, BrokenPipeError):
        return 0
    return _say(f"{error.filename or 'standard output'}: {error.strerror}", LabError.exit_code)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal that ends like Ctrl-C: child processes are stopped, finished trials are saved."""
    raise KeyboardInterrupt
