"""A trial in the lab, as `clientlab run` has them, for figures that are read off it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from urllib.parse import urlsplit

from clientlab import strategies
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.measurement import measure
from clientlab.measuring.outcome import Outcome
from clientlab.samples.log_reader import Samples
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class Site:
    """Where an upstream is reached; `ca_file` with TLS."""

    url: str
    ca_file: str | None = None


def context_on(site: Site, strategy: str, workload: Workload, folder: str) -> TrialContext:
    """What a trial there needs; `folder` takes its samples."""
    address = PeerAddress(urlsplit(site.url).port or 80)
    return TrialContext(strategies.find(strategy), workload, site.url, folder, address, site.ca_file)


def outcome_of(strategy: str, site: Site, workload: Workload) -> Outcome:
    """One trial in the lab. Raises SystemExit where a request failed: that is another workload."""
    with tempfile.TemporaryDirectory() as folder:
        measurement = measure(context_on(site, strategy, workload, folder))
    expect_no_errors(measurement.samples)
    return measurement.outcome


def expect_no_errors(samples: Samples) -> None:
    """Raises SystemExit where a request failed."""
    if samples.errors:
        raise SystemExit(f"requests failed: {samples.errors}")
