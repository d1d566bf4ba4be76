"""The table of a workload's fields in docs/own-experiment.md, from the class and from the options that set them."""

from __future__ import annotations

import dataclasses
from typing import Any

from clientlab.cli.listing import markdown
from clientlab.cli.run import run
from clientlab.workload.workload import Workload
from generate.cli import cell, purpose


def workload_table() -> str:
    """Every field: its default, and the meaning of the option that sets it, or else the meaning that it brings."""
    options = {option.name: option for option in run.params}
    rows = []
    for field in dataclasses.fields(Workload):
        option = None if "meaning" in field.metadata else options.get(field.name)  # --seed is that of the run
        names = [] if option is None else option.opts
        meaning = field.metadata["meaning"] if option is None else purpose(option)[0]
        rows.append(
            {
                "key": f"`{field.name}`",
                "default": _default(field),
                "option": cell(", ".join(f"`{name}`" for name in names)) if names else "–",
                "meaning": meaning,
            }
        )
    return markdown(rows)


def _default(field: dataclasses.Field[Any]) -> str:
    value = getattr(Workload(), field.name)
    if value is None or value == {}:
        return "–"
    if isinstance(value, float):
        return f"`{value:g}s`"  # a time, which needs its unit in a file
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"
