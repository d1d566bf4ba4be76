"""Libraries that are compiled into measured ones. Imports the standard library only: environments run it, too."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping


def compiled_into(distributions: Iterable[str]) -> dict[str, str]:
    """Distribution → the libraries compiled into it, as it reports them: libcurl, its TLS library and its features."""
    found: dict[str, str] = {}
    for name in sorted({re.sub(r"[-_.]+", "-", name).lower() for name in distributions} & _REPORTS.keys()):
        try:
            found[name] = _REPORTS[name]()
        except ImportError:  # not installed: its strategies are left out of the run
            continue
    return found


def _pycurl() -> str:
    pycurl = importlib.import_module("pycurl")
    bits: int = pycurl.version_info()[4]
    flags = {
        name.removeprefix("VERSION_"): getattr(pycurl, name) for name in dir(pycurl) if name.startswith("VERSION_")
    }
    return f"{pycurl.version}; {' '.join(sorted(name for name, bit in flags.items() if bits & bit))}"


def _curl_cffi() -> str:
    return str(importlib.import_module("curl_cffi").__curl_version__)


_REPORTS: Mapping[str, Callable[[], str]] = {"pycurl": _pycurl, "curl-cffi": _curl_cffi}
"""Distribution → how it reports the versions of the libraries that it bundles."""
