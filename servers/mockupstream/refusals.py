"""The response to a refused request: a status and a JSON document with the reason."""

from __future__ import annotations

import json
from typing import NamedTuple


class RefusedError(Exception):
    """A request gets an error response, with the same bytes from both upstreams.

    `details`: for its JSON body.
    """

    def __init__(self, status: int, error: str, **details: object) -> None:
        super().__init__(error)
        self.status = status
        self.document: dict[str, object] = {"error": error, **details}

    def body(self) -> bytes:
        """Return the document as JSON."""
        return as_json(self.document)


class Limit(NamedTuple):
    """A limit for requests, and the environment variable that raises it."""

    value: float
    unit: str
    variable: str

    def check(self, asked: float, what: str) -> None:
        """Raise RefusedError (400) if `asked` is beyond the limit.

        `what` describes it.
        """
        if asked > self.value:
            raise RefusedError(
                400,
                f"{what} is beyond the limit of {self.value:.15g} {self.unit}, which"
                f" {self.variable} raises",
            )


def as_json(document: object) -> bytes:
    """Return `document` as one line of JSON."""
    return json.dumps(document).encode() + b"\n"


def whole_number(text: str, what: str, least: int) -> int:
    """Parse a whole number from `least` up, with at most 18 digits.

    Raise RefusedError (400) that names `what`.
    """
    if text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= least:
        return int(text)
    raise RefusedError(
        400, f"{what} must be a whole number of at least {least}, not {text!r}"
    )
