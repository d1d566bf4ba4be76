"""A trial in the lab, as `clientlab run` has them, for figures that are read off it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from clientlab import strategies
from clientlab.analysis import samples
from clientlab.measuring.connections import Address
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial import Outcome, run_trial
from clientlab.workload import Workload


@dataclass(frozen=True)
class Site:
    """Where an upstream is reached; `ca_file` with TLS."""

    url: str
    ca_file: str | None = None


def bench_on(site: Site, strategy: str, workload: Workload, folder: str) -> TrialBench:
    """What a trial there needs; `folder` takes its samples."""
    address = Address(urlsplit(site.url).port or 80)
    return TrialBench(strategies.find(strategy), workload, site.url, folder, address, site.ca_file)


def outcome_of(strategy: str, site: Site, workload: Workload) -> Outcome:
    """One trial in the lab. Raises SystemExit where a request failed: that is another workload."""
    with tempfile.TemporaryDirectory() as folder:
        bench = bench_on(site, strategy, workload, folder)
        outcome = run_trial(bench, samples.Tail(Path(folder)).finished, _nothing, _nothing)
        expect_no_errors(folder, outcome.began)
    return outcome


def expect_no_errors(folder: str, began: float) -> None:
    """Raises SystemExit where a request of the trial failed that `began` then."""
    if errors := samples.read(Path(folder), began).errors:
        raise SystemExit(f"requests failed: {errors}")


def _nothing() -> None:
    """Nothing is read off the servers."""
