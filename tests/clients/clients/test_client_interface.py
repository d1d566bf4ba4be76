"""What clients share: one client per thread, and the TLS context."""

from __future__ import annotations

import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest

from clientlab.clients.client_interface import Budget, PerThread, tls_context
from clientlab.conformance.server import (
    CA_FILE,
    OTHER_CA,
    counting_server,
    server_context,
)
from clientlab.strategies import CLIENTS, list_settings
from clientlab.testbeds.local import ca_bundle
from clientlab.workload.workload import Request
from clients.one_client import outcomes, request_to

TRUSTING = [
    name
    for name, spec in CLIENTS.items()
    if not spec.program and "trust" in list_settings(spec.import_path)
]


class _Shared:
    """A client that notes which threads used it."""

    made: ClassVar[list[_Shared]] = []

    def __init__(self, budget, opened):
        self.budget = budget
        self.opened = opened
        self.threads = set()
        self.closed = False
        self.made.append(self)

    def open(self):
        assert self.budget.connections == 1

    def send(self, request):
        self.threads.add(threading.get_ident())
        return 200, request.url.encode()

    def close(self):
        self.closed = True


class _PerThread(PerThread):
    shared = _Shared


@pytest.mark.parametrize(("connections", "threads"), [(3, 3), (1, 2)])
def test_each_thread_has_its_own_client(connections, threads):
    """As many clients as the budget has connections are made before the first request;
    a further thread makes one.
    """
    _Shared.made.clear()
    client = _PerThread(Budget(connections=connections, timeout=5.0), lambda: None)
    client.open()
    assert len(_Shared.made) == connections
    together = threading.Barrier(threads)
    request = Request("GET", "http://127.0.0.1/", {}, None)

    def send(_: int) -> None:
        client.send(request)
        together.wait()
        assert client.send(request) == (200, b"http://127.0.0.1/")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(send, range(threads)))
    client.close()
    assert [len(one.threads) for one in _Shared.made] == [1] * threads
    for one in _Shared.made:
        assert one.closed


@pytest.mark.real
@pytest.mark.parametrize("name", TRUSTING)
def test_the_librarys_own_context_verifies_the_target_too(name):
    """A server of another CA is an error of kind tls, before a byte is sent; the lab's
    upstream is trusted.
    """
    other = server_context(OTHER_CA)
    sound = server_context(version="h2" if CLIENTS[name].http == "2" else "http/1.1")
    with counting_server(tls=[other, sound]) as server:
        assert outcomes(name, *[request_to(server.url)] * 2, trust="default") == [
            "tls",
            (200, b'{"ok": true}'),
        ]
        assert server.spoken_to == {sound}


def test_the_librarys_own_context_gets_only_the_targets_ca(tmp_path):
    """The bundle of a testbed also holds public CAs.

    Only the lab's context trusts them all.
    """
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(
        ca_bundle(Path(CA_FILE).read_text(encoding="utf-8")), encoding="utf-8"
    )
    of_library = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # empty
    budget = Budget(1, 5.0, str(bundle))
    assert tls_context(budget, "default", lambda: of_library) is of_library
    assert [
        dict(sum(ca["subject"], ()))["commonName"] for ca in of_library.get_ca_certs()
    ] == ["ca"]
    of_lab = tls_context(budget, "lab", lambda: of_library)
    assert of_lab is not of_library
    assert len(of_lab.get_ca_certs()) > 100
    assert (
        tls_context(Budget(1, 5.0), "default", lambda: of_library) is None
    )  # without a CA, the library makes its own
