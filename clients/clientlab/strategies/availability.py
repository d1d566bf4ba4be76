"""Whether a strategy's libraries, or its program, are installed. No library is imported to find out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import client_spec
from clientlab.strategies.pairs import Strategy
from clientlab.strategies.specs import EXTRA

_URLLIB3 = "urllib3"
_FORKS_PATCH = 900
"""The third number of urllib3-future's versions is 900 or more; that of urllib3's is less."""

MERGED = (
    "urllib3 is overwritten by urllib3-future, which niquests installed; scripts/setup keeps both, and so do: "
    "URLLIB3_NO_OVERRIDE=1 pip install --force-reinstall --no-deps --no-binary urllib3-future urllib3-future, then "
    "pip install --force-reinstall --no-deps urllib3"
)


def unavailable(strategy: Strategy) -> str | None:
    """Why the strategy can't be measured on this machine, and what to do, in one line; None if it can."""
    client = client_spec(strategy.client)
    if client.program and which(client.program) is None:
        return f"{client.program} is not installed; apt-get install {client.package}"
    for distribution, extra in missing(strategy):
        return f"{distribution} is not installed; pip install 'clientlab[{extra}]'"
    if _URLLIB3 in {client.distribution, *client.needs} and merged():
        return MERGED
    return None


def missing(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """The distributions that the strategy needs and this Python does not have, each with the extra that installs it."""
    for distribution, extra in _needed(strategy):
        if distribution != "python" and find_spec(distribution.replace("-", "_")) is None:
            yield distribution, extra


def merged() -> bool:
    """Whether urllib3-future's files replaced those of urllib3: requests would be measured with another library."""
    found = find_spec(_URLLIB3)
    if found is None or found.origin is None:
        return False
    version = Path(found.origin).with_name("_version.py")
    text = version.read_text(encoding="utf-8") if version.exists() else ""
    number = re.search(r"""__version__\b.*=\s*["']\d+\.\d+\.(\d+)""", text)
    return number is not None and int(number[1]) >= _FORKS_PATCH


def _needed(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """Distribution and extra. A plug-in's module was already imported when its spec was made, so it needs none."""
    client, executor = CLIENTS.get(strategy.client), EXECUTORS.get(strategy.executor)
    if client is not None:
        yield from ((distribution, client.extra) for distribution in (client.distribution, *client.needs))
    if executor is not None:
        yield executor.distribution, executor.extra
    if strategy.settings.get("loop") == "uvloop":
        yield "uvloop", EXTRA
