"""What `clientlab run` asks for: a new run, or one that goes on, and how it is to be measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clientlab.experiments.overrides import Overrides
from clientlab.judging.thresholds import Threshold
from clientlab.results.target import Target


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """A run to begin: of an experiment's file, or of the strategies that `overrides` names.

    `command`: for the run file. `experiment`: the name of a bundled one, or a path. `name`: of the run; None: one with
    its start time. `given`: names of the fields that the user chose, whose errors are not those of the file.
    """

    command: str
    target: Target
    experiment: str | None = None
    quick: bool = False
    overrides: Overrides = field(default_factory=Overrides)
    name: str | None = None
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """A stored run to finish, with what its file cannot give: code, environments (name → folder), values of headers."""

    name: str
    strategies: tuple[str, ...] = ()
    environments: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a run is measured. `permits_public`: whether load may go to these addresses of the internet.

    `cluster`: address of the scheduler whose workers measure; None: this machine measures.
    """

    folder: Path
    permits_public: Callable[[Sequence[str]], bool]
    keep_samples: bool = False
    limits: tuple[Threshold, ...] = ()
    cluster: str | None = None
