"""What `clientlab run` asks for: a new run, or one that goes on, and how it is to be measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clientlab.experiments.overrides import Overrides
from clientlab.judging.thresholds import Threshold
from clientlab.results.profile import ProfileKind
from clientlab.results.target import Target


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """A run to begin: of an experiment's file, or without one of the strategies that `overrides` names.

    `experiment`: the name of a bundled one, or a path. `command`: the command line as the run file holds it. `given`:
    names of the fields that the user chose, whose errors are not those of the file. `time_budget`: in seconds.
    `name`: of the run; None: one that tells when it began.
    """

    command: str
    target: Target
    experiment: str | None = None
    quick: bool = False
    overrides: Overrides = field(default_factory=Overrides)
    time_budget: float | None = None
    name: str | None = None
    keep_headers: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """A stored run to go on with, and the values that its file does not hold.

    `testbed`: the one that the user chose; None: that of the run.
    """

    name: str
    headers: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    path: str | None = None
    testbed: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a run is measured, whichever it is.

    `allowed`, `allowed_environments`: code that a document may name (`permission`). `public`: whether load may go to
    the internet. `strict`: how `limits` are judged. `profile`: all that each arm is profiled for behind the rounds.
    `phases`: whether the phases of its requests are recorded there.
    """

    folder: Path
    strategies: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    allowed_environments: tuple[str, ...] = ()
    public: bool = False
    keep_samples: bool = False
    limits: tuple[Threshold, ...] = ()
    strict: bool = False
    require_claims: bool = False
    profile: tuple[ProfileKind, ...] = ()
    phases: bool = False
