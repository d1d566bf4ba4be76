"""Where a run was measured."""

from __future__ import annotations

import os
import platform
import resource
from importlib.metadata import version

import pytest

from clientlab.results.surroundings import cpu_usable, distributions_of, surroundings


def test_surroundings_are_those_of_this_machine():
    """As the system tells them elsewhere."""
    here = surroundings(["urllib3"], {"flask": "gunicorn"})
    assert (here.host, here.kernel, here.architecture) == (platform.node(), platform.release(), platform.machine())
    assert here.python.endswith(platform.python_version())
    assert here.cpu_count == os.cpu_count()
    assert 0 < here.cpu_usable <= here.cpu_count
    assert here.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert here.open_files_limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert here.load_average >= 0
    assert here.programs == {"flask": "gunicorn"}
    assert here.cpu_model
    assert here.clock.endswith(" s")


def test_versions_are_those_of_the_measured_libraries_and_the_servers():
    """One that is not installed is left out."""
    found = surroundings(["urllib3", "no-such-distribution"], {}).libraries
    assert found["urllib3"] == version("urllib3")
    assert found["gunicorn"] == version("gunicorn")
    assert "no-such-distribution" not in found


def test_the_measured_libraries_are_those_of_the_strategies():
    """Each once; what comes with Python is none."""
    assert distributions_of(["sync", "requests-session", "aiohttp@workers", "http.client"]) == {"requests", "aiohttp"}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is Linux'")
def test_usable_cores_follow_the_affinity():
    """A process pinned to one core has one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert cpu_usable() <= 1
    finally:
        os.sched_setaffinity(0, before)
