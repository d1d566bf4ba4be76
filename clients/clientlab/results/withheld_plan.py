"""The plan of a run as its file holds it: with `…` in place of secrets, which only the process that measures knows."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clientlab import redaction
from clientlab.errors import FieldError
from clientlab.redaction import MARK
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.workload.request_line import check_request_line
from clientlab.workload.withheld import lacking_headers, lacks_query, withheld
from clientlab.workload.workload import NUMBER_FIELD, Workload


def _header_line(line: str, kept: Collection[str] = ()) -> str:
    """``Name: value`` as files hold it."""
    name, colon, _ = line.partition(":")
    return f"{name}: {MARK}" if colon and redaction.is_secret(name.strip(), kept) else line


_SHOWN_BY = {"--header": _header_line, "--url": redaction.path, "--path": redaction.path}
"""Option of the command line whose value may be a secret → the function that makes the value as files hold it."""


def withheld_plan(plan: Plan, kept: Collection[str] = ()) -> Plan:
    """The plan as the run file holds it. `kept`: names of headers and query parameters whose values stay."""
    return plan.model_copy(
        update={
            "workloads": {name: withheld(workload, kept) for name, workload in plan.workloads.items()},
            "environments": {name: _without_credentials(spec) for name, spec in plan.environments.items()},
        }
    )


def withheld_command(words: Sequence[str], kept: Collection[str] = ()) -> str:
    """A command line as the run file holds it."""
    found, option = [], ""
    for word in words:
        name, equals, value = word.partition("=")
        if option in _SHOWN_BY:
            found.append(_SHOWN_BY[option](word, kept))
        elif equals and name in _SHOWN_BY:
            found.append(f"{name}={_SHOWN_BY[name](value, kept)}")
        else:
            found.append(word)
        option = "" if option in _SHOWN_BY else word
    return shlex.join(found)


def check_kept(plan: Plan, kept: Collection[str]) -> None:
    """Raises FieldError for a name that no workload has, or whose value would be kept without it."""
    for name in kept:
        if all(
            withheld(workload, set(kept) - {name}) == withheld(workload, kept) for workload in plan.workloads.values()
        ):
            message = "no header or parameter of the query has this name and is withheld; leave it out"
            raise FieldError(["keep_headers"], message, value=repr(name))


@dataclass(frozen=True)
class Lacking:
    """A value that a plan from a file lacks. `name`: of the header; or path or requirement, as the file has it."""

    kind: Literal["header", "query", "requirement"]
    name: str

    def __str__(self) -> str:
        what = {"header": "the value of header", "query": "the query of", "requirement": "the credentials of"}
        return f"{what[self.kind]} {self.name!r}"


def lacking(plan: Plan) -> Lacking | None:
    """The first value that a plan from a file lacks; None where it is whole."""
    for workload in plan.workloads.values():
        for name in lacking_headers(workload):
            return Lacking("header", name)
        if lacks_query(workload):
            return Lacking("query", workload.path)
    requirements = (one for spec in plan.environments.values() for one in spec.requirements if MARK in one)
    return next((Lacking("requirement", one) for one in requirements), None)


def completed(plan: Plan, headers: Mapping[str, str], path: str | None) -> Plan:
    """The stored plan with the values that it lacks. `path`: with its query; None: none is given.

    Raises FieldError for a value that the plan does not lack.
    """
    given = {name.lower(): value for name, value in headers.items()}
    withheld_names = {name.lower() for one in plan.workloads.values() for name in lacking_headers(one)}
    for name in headers:
        if name.lower() not in withheld_names:
            raise FieldError(["headers"], "the run goes on as it was planned; leave it out", value=repr(name))
    if path is not None and not any(_fits(one, path) for one in plan.workloads.values()):
        message = "the run does not lack this query; write the address that the run has, or leave it out"
        raise FieldError(["url"], message, value=repr(redaction.path(path)))
    workloads = {name: _completed(one, given, path) for name, one in plan.workloads.items()}
    for one in workloads.values():
        if not lacks_query(one) and not lacking_headers(one):
            check_request_line(one.method, one.path.replace(NUMBER_FIELD, ""), one.headers)
    return plan.model_copy(update={"workloads": workloads})


def _completed(workload: Workload, given: Mapping[str, str], path: str | None) -> Workload:
    headers = {
        name: given.get(name.lower(), value) if value == MARK else value for name, value in workload.headers.items()
    }
    return replace(workload, headers=headers, path=path if path and _fits(workload, path) else workload.path)


def _fits(workload: Workload, path: str) -> bool:
    """Whether the path is that of the workload, with values in place of the withheld ones."""
    stored, given = workload.path.split("&"), path.split("&")
    return lacks_query(workload) and len(stored) == len(given) and all(map(_is_value_of, stored, given))


def _is_value_of(stored: str, given: str) -> bool:
    before, mark, _ = stored.partition(MARK)
    return given.startswith(before) if mark else given == stored


def _without_credentials(spec: EnvironmentSpec) -> EnvironmentSpec:
    return spec.model_copy(update={"requirements": list(map(redaction.path, spec.requirements))})
