"""The Python that runs a trial: the lab's own, or that of an environment."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_OF_ANOTHER = frozenset({"PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"})
"""Variables that would lead one Python to the libraries of another."""


@dataclass(frozen=True)
class Interpreter:
    """A Python program. `lab`: a folder with the lab's package and nothing else; None for the lab's own Python.

    The trial's process needs the lab's package, the standard library, and the strategy's own libraries. An environment
    has the last two.
    """

    program: str = sys.executable
    lab: str | None = None

    def command(self, module: str, *arguments: str) -> list[str]:
        """The command line that runs a module of the lab.

        Without `-P`, packages in the current folder would take the place of those that are installed: in a clone of
        httpx, all environments would measure that clone.
        """
        return [self.program, "-P", "-m", module, *arguments]

    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        if self.lab is None:
            return dict(os.environ)
        return {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | {"PYTHONPATH": self.lab}


OWN = Interpreter()
"""The lab's own."""
