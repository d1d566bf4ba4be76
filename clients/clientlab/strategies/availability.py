"""Whether a strategy's libraries, or its program, are here and what their names say; found out without an import.

But for libcurl's HTTP/2: which protocols it was built with is asked of itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.pairs import Strategy
from clientlab.strategies.plugins import client_row

_ON_URLLIB3 = frozenset({"requests", "urllib3"})
_FORKS_PATCH = 900
"""urllib3-future's versions end in .900 and above, so that they are told from urllib3's own."""

MERGED = (
    "urllib3 is overwritten by urllib3-future here, which came with niquests; scripts/setup keeps both, and so do: "
    "URLLIB3_NO_OVERRIDE=1 pip install --force-reinstall --no-deps --no-binary urllib3-future urllib3-future, then "
    "pip install --force-reinstall --no-deps urllib3"
)


def unavailable(strategy: Strategy) -> str | None:
    """Why the strategy can't be measured here, and what to do, in one line; None where it can."""
    client = client_row(strategy.client)
    if client.program and which(client.program) is None:
        return f"{client.program} is not installed; apt-get install {client.package}"
    for distribution, extra in _needed(strategy):
        if distribution != "python" and find_spec(distribution.replace("-", "_")) is None:
            return f"{distribution} is not installed; pip install 'clientlab[{extra}]'"
    if client.distribution in _ON_URLLIB3 and merged():
        return MERGED
    if (client.distribution, client.http) == ("pycurl", "2"):
        return _without_http2()
    return None


def _without_http2() -> str | None:
    """What to do where libcurl can't speak HTTP/2, which nobody but libcurl itself knows."""
    import pycurl  # noqa: PLC0415 - only where it is asked for

    if pycurl.version_info()[4] & pycurl.VERSION_HTTP2:
        return None
    return (
        f"libcurl {pycurl.version_info()[1]} has no HTTP/2; pip install --force-reinstall --only-binary pycurl pycurl, "
        "or build it on a libcurl with nghttp2"
    )


def merged() -> bool:
    """Whether the package urllib3 holds the files of urllib3-future: requests would be measured on another library."""
    found = find_spec("urllib3")
    if found is None or found.origin is None:
        return False
    version = Path(found.origin).with_name("_version.py")
    text = version.read_text(encoding="utf-8") if version.exists() else ""
    number = re.search(r"""__version__\b.*=\s*["']\d+\.\d+\.(\d+)""", text)
    return number is not None and int(number[1]) >= _FORKS_PATCH


def _needed(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """What is from elsewhere has been loaded when its row was looked for."""
    client, executor = CLIENTS.get(strategy.client), EXECUTORS.get(strategy.executor)
    if client is not None:
        yield from ((distribution, client.extra) for distribution in (client.distribution, *client.needs))
    if executor is not None:
        yield executor.distribution, "clients"
    if strategy.settings.get("loop") == "uvloop":
        yield "uvloop", "clients"
