"""Libraries that are compiled into measured ones. Imports the standard library only: environments run it, too."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterable


def compiled_into(distributions: Iterable[str]) -> dict[str, str]:
    """Return distribution → the libraries compiled into it: libcurl, its TLS library and its features."""
    names, found = {re.sub(r"[-_.]+", "-", name).lower() for name in distributions}, {}
    with contextlib.suppress(ImportError):  # not installed: its strategies are left out of the run
        if "curl-cffi" in names:
            found["curl-cffi"] = str(importlib.import_module("curl_cffi").__curl_version__)
    with contextlib.suppress(ImportError):
        if "pycurl" in names:
            pycurl = importlib.import_module("pycurl")
            bits: int = pycurl.version_info()[4]
            flags = (name for name in dir(pycurl) if name.startswith("VERSION_") and bits & getattr(pycurl, name))
            found["pycurl"] = f"{pycurl.version}; {' '.join(sorted(name.removeprefix('VERSION_') for name in flags))}"
    return found
