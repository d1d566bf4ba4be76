"""Text shown to users: safe to print, without credentials, with nearest names.

Texts of a measured server, a plug-in or somebody else's file can contain escape
sequences that change a terminal's screen, and bidirectional controls that make a line
look different from its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MASK = "…"  # stands for a credential; it is not ASCII, so it cannot be a header's value

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, C1
    # Bidirectional controls, Unicode Standard Annex 9.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\u2028\u2029"  # separators of lines and paragraphs
    # Surrogates: no UTF-8 document can hold them; and what no XML document can hold.
    "\ud800-\udfff\ufffe\uffff"
    "]"
)
# Names of headers and query parameters: x-api-key, access_token, clientSecret, but not
# author, keyword or max_tokens.
_SECRETS = (
    r"(?:auth|authorization|cookie|key|passw(?:or)?d|secret|sig|signature|token)"
    r"(?:[-_.][\w.-]*)?"
)
_SECRET_NAME = re.compile(rf"[\w.-]*{_SECRETS}", re.IGNORECASE)
# Within a text, a single word such as "key" or "token" need not be a name.
_IN_TEXT = rf"authorization|cookie|[\w.-]*[-_]{_SECRETS}"
# "=" behind other names is that of a query.
_MARK = r"(?:[:,]|(?<=authorization)=|(?<=cookie)=)"
_HEADER = re.compile(
    rf"\b({_IN_TEXT})(['\"]?\s*{_MARK}\s*(?:b?['\"])?)[^'\"\r\n]+", re.IGNORECASE
)
_HEADER_LINE = re.compile(
    rf"\A((?:--header=)?{_SECRET_NAME.pattern}\s*:\s*)\S.*", re.IGNORECASE
)
_QUERY = re.compile(
    rf"([?&]{_SECRET_NAME.pattern}=)(?!\{{k\}})[^&#\s'\"<>]+", re.IGNORECASE
)
_CREDENTIALS = re.compile(r"(?<=//)[^\s/?#'\"<>]*@")


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join(text.partition("\n\n")[0].split())


def make_printable(text: str) -> str:
    """Return the text with U+FFFD in place of each control and surrogate."""
    return _CONTROLS.sub("\ufffd", text)


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without credentials."""
    return {
        name: MASK if _SECRET_NAME.fullmatch(name) else value
        for name, value in headers.items()
    }


def mask_text(text: str) -> str:
    """Return the text, as valid UTF-8, without secrets in headers and URLs.

    Those of URLs are users, passwords, and the values of secret query parameters.
    """
    text = text.encode(errors="replace").decode()
    text = _CREDENTIALS.sub(f"{MASK}@", text)
    text = _QUERY.sub(rf"\1{MASK}", text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    return _HEADER_LINE.sub(rf"\1{MASK}", text)


def shorten(text: str, most: int = 80) -> str:
    """Return the text without its middle if it has more than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}…{text[-half:]}"


def suggest_nearest(name: str, names: Iterable[str]) -> str:
    """Return up to three similar names, or nothing, as the end of an error message.

    For example ``; nearest: rounds``.
    """
    # Measured processes import this module, and suggest nothing.
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(name, list(names), cutoff=0.55)
    return f"; nearest: {', '.join(near)}" if near else ""
