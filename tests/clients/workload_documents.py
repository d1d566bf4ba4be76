"""Workloads as experiment files and run files hold them: their texts are parsed to
values.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from clientlab.workload.workload import Workload

_WORKLOADS = TypeAdapter(Workload)


def workload_of_document(**fields: Any) -> Workload:
    """The workload of these fields. Raises ValidationError."""
    return _WORKLOADS.validate_python(fields)
