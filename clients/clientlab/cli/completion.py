"""`clientlab completion`: let the shell complete subcommands, options, strategies, experiments and runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from clientlab.errors import LabError
from clientlab.printable import printable


@dataclass(frozen=True)
class _Shell:
    """Where a shell reads what completes a program, below the home folder, and the line that it needs there."""

    file: str
    line: str


_SHELLS = {
    # readline would divide client@executor into three words, of which click sees the last
    "bash": _Shell(
        ".bashrc", 'COMP_WORDBREAKS=${COMP_WORDBREAKS//@}; eval "$(_CLIENTLAB_COMPLETE=bash_source clientlab)"'
    ),
    "zsh": _Shell(".zshrc", 'eval "$(_CLIENTLAB_COMPLETE=zsh_source clientlab)"'),
    "fish": _Shell(".config/fish/completions/clientlab.fish", "_CLIENTLAB_COMPLETE=fish_source clientlab | source"),
}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)), required=False)
@click.option("--print", "shown", is_flag=True, help="Print the line instead, to be added by hand.")
def completion(shell: str | None, *, shown: bool) -> None:
    """Let your shell complete strategies, experiments and runs.

    Adds one line to the file that SHELL reads when it starts: bash 4.4 or newer, zsh or fish. Without SHELL, it is that
    of the variable SHELL. A line that is there is not added again.
    """
    chosen = _SHELLS[shell or _own_shell()]
    if shown:
        click.echo(chosen.line)
        return
    path = Path.home() / chosen.file
    try:
        added = _add(path, chosen.line)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise LabError(f"{path}: {reason}; see 'clientlab completion --print'") from error
    what = "has the line; open a new shell" if added else "has the line already"
    click.echo(printable(f"{path} {what}"))


def _own_shell() -> str:
    """The user's shell. Raises LabError for another one."""
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise LabError(f"completion: SHELL is {name or 'not set'!r}; name one of {', '.join(_SHELLS)}")
    return name


def _add(path: Path, line: str) -> bool:
    """Add the line at the end of the file. False: the file has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if line in text.splitlines():
        return False
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n")
    return True
