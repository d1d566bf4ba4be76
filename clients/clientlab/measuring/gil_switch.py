"""Which extension module switched the GIL on, in a process of a Python that was built for free threading.

CPython switches it on when it imports an extension module that does not declare support for free threading, and warns
with the name of that module (`_PyImport_CheckGILForModule` in Python/import.c). It is silent about later ones, because
the GIL is on then.
"""

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import Any

from clientlab.measuring import usage

LONGEST = 200
"""Characters of a module's name that are kept."""

_BEGINNING = r"The global interpreter lock \(GIL\) has been enabled to load module"
_WARNING = re.compile(rf"{_BEGINNING} '(.+?)'")

_modules: list[str] = []


def watch() -> None:
    """Read CPython's warning from now on, whatever filters of warnings the process has; other warnings pass as before.

    A process that has a GIL already is left as it is.
    """
    if usage.has_gil():
        return
    warnings.filterwarnings("always", message=_BEGINNING, category=RuntimeWarning)
    warnings.showwarning = partial(_note, warnings.showwarning)


def switched_by() -> str | None:
    """The extension module that switched the GIL on since `watch`; None: none did, or nobody was warned."""
    return _modules[0] if _modules else None


def _note(show: Any, message: Warning | str, *rest: Any, **more: Any) -> None:
    """Note the module if it is that warning, and show the warning: it belongs into the trial's log too."""
    if (found := _WARNING.match(str(message))) is not None:
        _modules.append(found[1][:LONGEST])
    show(message, *rest, **more)
