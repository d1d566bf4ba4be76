"""Libraries that are compiled into measured ones. Imports the standard library only: environments run it, too."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable


def compiled_into(distributions: Iterable[str]) -> dict[str, str]:
    """Distribution → the libraries compiled into it, as it reports them: libcurl, its TLS library and its features."""
    names, found = {re.sub(r"[-_.]+", "-", name).lower() for name in distributions}, {}
    for name, report in (("curl-cffi", _curl_cffi), ("pycurl", _pycurl)):
        if name in names:
            try:
                found[name] = report()
            except ImportError:  # not installed: its strategies are left out of the run
                continue
    return found


def _pycurl() -> str:
    pycurl = importlib.import_module("pycurl")
    bits: int = pycurl.version_info()[4]
    flags = (name for name in dir(pycurl) if name.startswith("VERSION_") and bits & getattr(pycurl, name))
    return f"{pycurl.version}; {' '.join(sorted(name.removeprefix('VERSION_') for name in flags))}"


def _curl_cffi() -> str:
    return str(importlib.import_module("curl_cffi").__curl_version__)
