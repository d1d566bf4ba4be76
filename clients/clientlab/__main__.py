"""The command `clientlab`: arguments in, exit code out."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install where the extra is missing."""
    try:
        from clientlab.cli import run_command_line  # noqa: PLC0415 - the extra may be missing
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("clientlab"):
            raise
        sys.exit(f"clientlab: {error.name} is not installed; the lab needs: pip install 'clientlab[local]'")
    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
