"""gevent: what is patched, where, and what is measured then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clientlab.conformance.server import counting_server
from clientlab.workload.workload import Workload
from clients.measured import measure

STRATEGY = "urllib3@gevent"


@pytest.mark.real
def test_it_patches_before_the_client_is_imported_without_a_warning(monkeypatch):
    """A warning, as gevent gives where it comes too late, would fail the trial."""
    monkeypatch.setenv("PYTHONWARNINGS", "error::Warning:gevent,error::Warning:clientlab")
    with counting_server(hold=0.02) as server:
        measured = measure(STRATEGY, Workload(requests=20, concurrency=5, warmup=2), server.url)
        assert server.most_in_flight == 5
    assert measured.samples.errors == {}


@pytest.mark.real
def test_the_trials_process_imports_no_ssl_before_it_is_patched():
    code = (
        "import sys; from clientlab import strategies; import clientlab.measuring.trial_process;"
        "strategies.load(strategies.EXECUTORS['gevent'].import_path); print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "gevent" in modules
    assert not {"ssl", "asyncio", "requests", "urllib3"} & set(modules)
