"""Text without characters that a terminal, a browser or an editor would obey instead of show.

A measured server, a file from somebody else and a plug-in can put any character into a text of the lab: escape
sequences change a terminal's title or its screen, and bidirectional controls let a line show what it does not hold.
"""

from __future__ import annotations

import re

_OBEYED = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls, Unicode Standard Annex 9
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff"  # surrogates: no UTF-8 document can hold them
    "]"
)


def printable(text: str) -> str:
    """The text with U+FFFD in place of each control character, bidirectional control and surrogate."""
    return _OBEYED.sub("\ufffd", text)
