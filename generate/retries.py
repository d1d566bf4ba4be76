"""The tables of docs/retries.md: the policies with their defaults, and the clients that have each."""

from __future__ import annotations

from clientlab.cli.listing import markdown
from clientlab.clients.retry_policy import KINDS_OF_SETTINGS, POLICIES, SETTING
from clientlab.settings import written
from clientlab.strategies import EVERY_CLIENT, find, policies_of


def policy_table() -> str:
    """Every policy: what it does, the clients that have it, and the values of jitter."""
    having: dict[str, list[str]] = {name: [] for name in POLICIES}
    for name, spec in EVERY_CLIENT.items():
        if spec.streams_only:
            continue
        for policy in policies_of(find(name)):
            having[policy].append(name)
    rows = [
        {
            "policy": f"`retry={kind.name}`",
            "what it is": kind.meaning,
            "clients": "every client but a program" if kind.wrapper else ", ".join(having[kind.name]),
            "jitter": ", ".join(kind.jitters),
        }
        for kind in POLICIES.values()
    ]
    return markdown(rows)


def default_table() -> str:
    """Setting × policy → the default; a dash where the policy does not have the setting."""
    rows = []
    for name in KINDS_OF_SETTINGS:
        if name != SETTING:
            row = {"setting": f"`{name}`"}
            for kind in POLICIES.values():
                row[kind.name] = written(kind.defaults[name]) if name in kind.defaults else "–"
            rows.append(row)
    return markdown(rows)
