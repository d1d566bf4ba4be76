"""The command `clientlab`: arguments in, exit code out."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install where a library is missing."""
    try:
        # Without dependencies.
        from clientlab.cli import run_command_line  # noqa: PLC0415

        code = run_command_line(sys.argv[1:])  # imports what the subcommand needs
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("clientlab"):
            raise
        sys.exit(f"clientlab: {error.name} is not installed; pip install clientlab")
    sys.exit(code)


if __name__ == "__main__":
    main()
