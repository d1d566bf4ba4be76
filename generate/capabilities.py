"""Tables of choosing-a-client.md and workloads.md: capabilities of clients, traps, and columns of kept samples."""

from __future__ import annotations

from clientlab.cli.listing import markdown
from clientlab.cli.run_options import OPTION_NAMES
from clientlab.results.kept_samples import COLUMNS
from clientlab.strategies import EVERY_CLIENT, STRATEGIES, load
from clientlab.strategies.capabilities import CAPABILITIES, Capability

_KINDS = {"i": "integer", "u": "unsigned integer", "f": "float", "U": "text"}


def capability_table() -> str:
    """Every client that is a library, with what it can do beyond sending."""
    return markdown(
        [
            {
                "client": row.name,
                "HTTP": row.http,
                "connections": row.policy,
                **{
                    f"`{OPTION_NAMES[one.field]} {one.value}`".replace(" `", "`"): "yes"
                    if one.has(load(row.import_path))
                    else "–"
                    for one in CAPABILITIES
                },
                "`pool=none`": "yes" if row.unlimited else "–",
            }
            for row in EVERY_CLIENT.values()
            if not row.program
        ]
    )


def _heading(capability: Capability) -> str:
    option = f"{OPTION_NAMES[capability.field]} {capability.value}".strip()
    return f"`{option}`"


def trap_table() -> str:
    """Every trap, what is wrong with it, and the strategy that avoids it."""
    return markdown(
        [
            {"trap": f"`{one.name}`", "mistake": one.wrong, "use instead": f"`{one.mended_by}`"}
            for one in STRATEGIES.values()
            if one.wrong
        ]
    )


def sample_table() -> str:
    """Every column of a file of kept samples."""
    return markdown(
        [{"column": f"`{name}`", "type": _KINDS[kind], "content": text} for name, (kind, text) in COLUMNS.items()]
    )
