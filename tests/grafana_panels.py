"""The panels of a dashboard's file."""

from __future__ import annotations


def flat(document: dict) -> list[dict]:
    """The panels of a dashboard, those in closed rows included."""
    return [one for panel in document["panels"] for one in (panel["panels"] if panel["type"] == "row" else [panel])]
