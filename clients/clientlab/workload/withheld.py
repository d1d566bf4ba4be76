"""Values that a trial sends and no file holds: secrets in a workload's headers and query, and in recorded requests."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from clientlab import redaction
from clientlab.errors import FieldError
from clientlab.redaction import MARK, TextFilter
from clientlab.workload import replay
from clientlab.workload.workload import Workload


def withheld(workload: Workload, kept: Collection[str] = ()) -> Workload:
    """The workload as files hold it. `kept`: names of headers and query parameters whose values stay."""
    return replace(
        workload, headers=redaction.headers(workload.headers, kept), path=redaction.path(workload.path, kept)
    )


def lacking_headers(workload: Workload) -> list[str]:
    """Names of the headers whose values were withheld."""
    return [name for name, value in workload.headers.items() if value == MARK]


def lacks_query(workload: Workload) -> bool:
    """Whether values of the query were withheld."""
    return MARK in workload.path


def check_whole(workload: Workload) -> None:
    """Raises FieldError where a value was withheld: `…` must never be sent."""
    for name in lacking_headers(workload):
        raise FieldError(["headers"], "no file holds its value; write it again", value=f"'{name}: {MARK}'")
    if lacks_query(workload):
        raise FieldError(["path"], "no file holds its query; write it again", value=repr(workload.path))


def text_filter(workload: Workload) -> TextFilter:
    """The filter of error texts of the workload's trials, with the secrets of its headers, query and recorded requests.

    Without the file of recorded requests, their secrets are unknown; queries are left out all the same.
    """
    return TextFilter(_secrets_of(workload))


def own_filter(workload: Workload) -> TextFilter:
    """The filter without the secrets of recorded requests, whose file may take seconds to read."""
    return TextFilter(_own_secrets_of(workload))


def _secrets_of(workload: Workload) -> Iterator[str]:
    yield from _own_secrets_of(workload)
    if workload.replay is None:
        return
    try:
        recorded = replay.read(workload.replay, workload.replay_sha256)
    except FieldError:  # the file is gone, or another one: the trial has failed by that
        return
    for request in recorded.requests:
        yield from redaction.secrets_of_headers(request.headers)
        yield from redaction.secrets_of_path(request.path)


def _own_secrets_of(workload: Workload) -> Iterator[str]:
    yield from redaction.secrets_of_headers(workload.headers)
    yield from redaction.secrets_of_path(workload.path)
