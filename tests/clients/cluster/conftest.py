"""A Dask cluster for a test, before one aiohttp upstream."""

from __future__ import annotations

import contextlib

import pytest

from clients.cluster.dask_clusters import Cluster
from running import gunicorn


@pytest.fixture(scope="session")
def upstream():
    with gunicorn("aiohttp", workers="1") as server:
        yield server


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory, upstream):
    """A cluster that tests share, with two workers for any strategy."""
    with contextlib.ExitStack() as stack:
        cluster = Cluster(tmp_path_factory.mktemp("shared"), upstream.port, stack)
        yield cluster, [cluster.worker(), cluster.worker()]


@pytest.fixture
def cluster(tmp_path, upstream):
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path, upstream.port, stack)
