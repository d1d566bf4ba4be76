"""The stored runs of the findings. Each is read once in a process, and not while tests are collected."""

from __future__ import annotations

from functools import cache

from clientlab.judging.judgement import read_judged
from clientlab.results.document import Run
from findings.page import run_file, stored_names


@cache
def stored_run(name: str) -> Run:
    """The stored run of an experiment, judged."""
    return read_judged(run_file(name))


def stored_runs() -> dict[str, Run]:
    """All those of the page, by experiment."""
    return {name: stored_run(name) for name in stored_names()}
