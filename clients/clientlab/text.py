"""Text shown to users: safe to print, without credentials, and with suggestions for misspelt names.

Texts of a measured server, a plug-in or somebody else's file can contain escape sequences that change a terminal's
screen, and bidirectional controls that make a line look different from its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "…"  # stands for a credential; it is not ASCII, so it cannot be a header's value

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls, Unicode Standard Annex 9
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff\ufffe\uffff"  # surrogates: no UTF-8 document can hold them; and what no XML document can hold
    "]"
)
_SECRET_HEADERS = ("authorization", "cookie", "proxy-authorization")
_HEADER = re.compile(rf"\b({'|'.join(_SECRET_HEADERS)})(['\"]?\s*[:=,]\s*(?:b?['\"])?)[^'\"\r\n]+", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=//)[^\s/?#'\"<>]*@")


def make_printable(text: str) -> str:
    """Return the text with U+FFFD in place of each control character, bidirectional control and surrogate."""
    return _CONTROLS.sub("\ufffd", text)


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without credentials."""
    return {name: MASK if name.lower() in _SECRET_HEADERS else value for name, value in headers.items()}


def mask_text(text: str) -> str:
    """Return the text without the values of secret headers and the users and passwords of URLs, as valid UTF-8."""
    text = text.encode(errors="replace").decode()
    return _HEADER.sub(rf"\1\2{MASK}", _CREDENTIALS.sub(f"{MASK}@", text))


def suggest_nearest(name: str, names: Iterable[str]) -> str:
    """Return the end of an error message, ``; nearest: rounds``, with up to three similar names; or an empty text."""
    import difflib  # noqa: PLC0415 - measured processes import this module, and suggest nothing

    near = difflib.get_close_matches(name, list(names), cutoff=0.55)
    return f"; nearest: {', '.join(near)}" if near else ""
