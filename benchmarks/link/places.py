"""The server of the link's benchmark, with and without TLS, and links before it."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme

from clientlab import child_processes
from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.link import Link

LOOPBACK = "127.0.0.1"
_VERSIONS = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True)
class Destination:
    """A server: its port, and what a client needs for its TLS."""

    port: int
    context: ssl.SSLContext | None = None

    def behind(self, link: LinkProcess) -> Destination:
        """The same server through a link."""
        return Destination(link.port_of((LOOPBACK, self.port)), self.context)


@contextlib.contextmanager
def servers() -> Iterator[dict[str, Destination]]:
    """By security: plain, TLS 1.2, TLS 1.3."""
    authority = trustme.CA()
    with contextlib.ExitStack() as stack:
        certificate = stack.enter_context(authority.issue_cert(LOOPBACK).private_key_and_cert_chain_pem.tempfile())
        secure = stack.enter_context(server(certificate))
        found = {"plain": Destination(stack.enter_context(server()))}
        for name, version in _VERSIONS.items():
            context = ssl.create_default_context()
            authority.configure_trust(context)
            context.minimum_version = context.maximum_version = version
            found[name] = Destination(secure, context)
        yield found


@contextlib.contextmanager
def server(*certificate: str, host: str = LOOPBACK, prefix: Sequence[str] = ()) -> Iterator[int]:
    """The port of a server of its own process. `prefix`: what its command begins with."""
    command = [*prefix, sys.executable, "-m", "benchmarks.link.server", "--host", host, *certificate]
    process = child_processes.start(command, None, os.environ, stdout=subprocess.PIPE)
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit("the server of the benchmark did not start")
        yield int(line)
    finally:
        child_processes.stop(process, patience=0)
        process.stdout.close()


@contextlib.contextmanager
def link_before(link: Link, *ports: int) -> Iterator[LinkProcess]:
    """A link before servers of this machine."""
    with (
        tempfile.TemporaryDirectory() as logs,
        LinkProcess(link, [(LOOPBACK, port) for port in ports], Path(logs)) as process,
    ):
        yield process
