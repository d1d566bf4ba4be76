"""Mask credentials in what the lab stores: the values of three headers, and users and passwords in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "…"
"""Stands for a value that no file holds. It is not ASCII, so no header can have it."""

_HEADERS = ("authorization", "cookie", "proxy-authorization")
_HEADER = re.compile(rf"\b({'|'.join(_HEADERS)})(['\"]?\s*[:=,]\s*(?:b?['\"])?)[^'\"\r\n]+", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=//)[^\s/?#'\"<>]*@")


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without credentials."""
    return {name: MASK if name.lower() in _HEADERS else value for name, value in headers.items()}


def mask_text(text: str) -> str:
    """Return an error text, a URL or an argument of the command line without credentials, and as valid UTF-8."""
    text = text.encode(errors="replace").decode()
    return _HEADER.sub(rf"\1\2{MASK}", _CREDENTIALS.sub(f"{MASK}@", text))
