"""Command line. Each subcommand parses its options and calls one function.

Exit codes: 0 done; 1 a threshold, a required claim or a comparison failed; 2 the
arguments or the input are wrong; 3 the run is incomplete, a plug-in could not be loaded
(finished trials are saved), or a threshold cannot be judged.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import click

from clientlab import __version__
from clientlab.cli.options import say
from clientlab.cli.preparing import conform, doctor, init, list_, up
from clientlab.cli.reporting import claims, compare, exporter, report, runs
from clientlab.cli.run import run
from clientlab.errors import FieldError, IncompleteRun, LabError

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class _Group(click.Group):
    """A group whose help has the commands in the order in which they are added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(self.commands)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="clientlab")
def commands() -> None:
    """Measure how Python code should make HTTP requests.

    `clientlab run demo` compares eight strategies; `clientlab list` shows what can be
    compared.
    """


for command in (
    run,
    init,
    report,
    compare,
    claims,
    runs,
    list_,
    conform,
    doctor,
    up,
    exporter,
):
    commands.add_command(command)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code.

    An error is one line on standard error.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="replace"
        )  # its encoding may be ASCII, and reports have × and ≥
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, _terminated)
    try:
        code = commands.main(
            list(arguments) or ["--help"], prog_name="clientlab", standalone_mode=False
        )
        sys.stdout.flush()
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "clientlab"
        return _refuse(f"{error.format_message()} See '{command} --help'.")
    except (
        FieldError
    ) as error:  # the core names fields, and the command line shows options
        parameters = [*report.params, *compare.params, *run.params]
        options = {
            str(one.name): one.opts[0]
            for one in parameters
            if isinstance(one, click.Option)
        }
        options |= {
            "stages": options["rate"],
            "body_base64": options["body"],
            "out": "--out",
        }
        return _refuse(error.render(options))
    except LabError as error:
        say(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say(
            "interrupted before anything was measured"
            if arguments[:1] == ["run"]
            else "interrupted"
        )
        return IncompleteRun.exit_code
    except (
        OSError
    ) as error:  # a closed pipe, a full disk, or a file that cannot be opened
        if error.filename is None:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # the interpreter would flush it again
        return (
            0
            if isinstance(error, BrokenPipeError)
            else _refuse(f"{error.filename or 'output'}: {error.strerror}")
        )
    return code if isinstance(code, int) else 0


def _refuse(line: str) -> int:
    say(line)
    return LabError.exit_code


def _terminated(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal as Ctrl-C: child processes are stopped, finished trials are
    saved.
    """
    raise KeyboardInterrupt
