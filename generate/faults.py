"""The table of faults in docs/faults.md, from the kinds that the lab knows."""

from __future__ import annotations

from clientlab.cli.listing import markdown
from clientlab.workload.fault_kinds import KINDS, Maker


def kind_table(maker: Maker) -> str:
    """Every kind that the upstream, or the link, makes: how it is written, its default, and its meaning."""
    return markdown(
        [
            {
                "fault": f"`{kind.form}`",
                "default": f"`{kind.default}`" if kind.default else "–",
                "what happens": kind.meaning,
                "needs a body": "yes" if kind.needs_body else "",
            }
            for kind in KINDS.values()
            if kind.maker == maker
        ]
    )
