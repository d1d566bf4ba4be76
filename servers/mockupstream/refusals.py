"""The response to a refused request: a status and a JSON document with the reason."""

from __future__ import annotations

import json
from typing import NamedTuple


class RefusedError(Exception):
    """A request that gets an error response, with equal bytes from every upstream.

    `status` is the HTTP status (400 or 404); `document` is what becomes the JSON body and always has the key `error`.
    """

    def __init__(self, status: int, error: str, **details: object) -> None:
        """Keep the status and the document; `details` are further keys of the document."""
        super().__init__(error)
        self.status = status
        self.document: dict[str, object] = {"error": error, **details}

    def body(self) -> bytes:
        """Return the document as JSON."""
        return as_json(self.document)


class Limit(NamedTuple):
    """A bound that a request must not exceed, and the environment variable that raises it."""

    value: float
    unit: str
    variable: str

    def check(self, asked: float, what: str) -> None:
        """Raise RefusedError (400) if `asked`, in the unit of the limit, is beyond the limit. `what` describes it."""
        if asked > self.value:
            limit = f"{self.value:.15g} {self.unit}"
            raise RefusedError(400, f"{what} is beyond the limit of {limit}, which {self.variable} raises")


def as_json(document: object) -> bytes:
    """Return `document` as one line of JSON, ended by a line feed so that it reads well in a terminal."""
    return json.dumps(document).encode() + b"\n"


def whole_number(text: str, what: str, least: int) -> int:
    """Read a whole number of at least `least`; RefusedError (400) names `what` where it is not one.

    Eighteen digits at most: enough for any size, and Python refuses to read numbers of thousands of digits.
    """
    if text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= least:
        return int(text)
    raise RefusedError(400, f"{what} must be a whole number of at least {least}, not {text!r}")
