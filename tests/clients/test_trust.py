"""`?trust=default`: the TLS context is the one that the library makes for its users, and trusts the target's CA too."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import certifi
import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.clients.tls_context import trusting
from clientlab.conformance.h2_proxy import h2_proxy
from clientlab.conformance.server import counting_server
from clientlab.conformance.tls import CA_FILE, OTHER_CA, SOUND, server_context, tls_relay
from clientlab.testbeds.local import ca_bundle
from clientlab.workload.workload import Workload
from clients.ahead import begun_ahead
from clients.each_library import one_of_each_library
from clients.measured import measure

CLIENTS = [
    name
    for name, spec in strategies.CLIENTS.items()
    if not spec.program and "trust" in strategies.settings_of(spec.import_path)
]


@pytest.fixture(scope="module")
def plain():
    """The port of a server without TLS, for each version of HTTP."""
    with counting_server() as server, h2_proxy(server.port) as proxy:
        yield {"1.1": server.port, "2": proxy.plain}


@pytest.fixture(scope="module")
def trusted(request, plain):
    """Errors of two requests, to a server of another CA and to a trusted one, and the bytes that each has received."""

    def trial(client: str) -> tuple[dict[str, int], list[int]]:
        version = strategies.CLIENTS[client].http
        sound = server_context(SOUND, "h2" if version == "2" else "http/1.1")
        with tls_relay(plain[version], [server_context(OTHER_CA), sound]) as relay:
            workload = Workload(requests=2, warmup=0)
            measured = measure(f"{client}?trust=default", workload, relay.url, ca_file=CA_FILE)
            return measured.samples.errors, relay.passed

    yield from begun_ahead(request, "client", trial)


@pytest.mark.slow
@pytest.mark.parametrize("client", one_of_each_library(CLIENTS))
def test_the_librarys_own_trust_verifies_the_target_too(client, trusted):
    """A server of another CA is an error of kind tls, before a byte is sent; the lab's upstream is trusted."""
    errors, (to_other, to_sound) = trusted(client)
    assert errors == {"tls": 1}
    assert to_other == 0 < to_sound


@pytest.mark.parametrize("trial_has", ["the lab's certifi", "another certifi", "no certifi"])
def test_the_librarys_context_gets_the_targets_ca_alone(trial_has, tmp_path, monkeypatch):
    """Of a bundle as testbeds write it, whatever the trial's environment holds. By default the context is the lab's."""
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(ca_bundle(Path(CA_FILE).read_text(encoding="utf-8")), encoding="utf-8")
    if trial_has == "another certifi":
        monkeypatch.setattr(certifi, "contents", lambda: Path(CA_FILE).read_text(encoding="utf-8"))
    if trial_has == "no certifi":
        monkeypatch.setitem(sys.modules, "certifi", None)
    of_library = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # empty
    budget = Budget(1, 5.0, str(bundle))
    assert trusting(budget, "default", lambda: of_library) is of_library
    assert [dict(sum(ca["subject"], ()))["commonName"] for ca in of_library.get_ca_certs()] == ["ca"]
    of_lab = trusting(budget, "lab", lambda: of_library)
    assert of_lab is not of_library
    assert len(of_lab.get_ca_certs()) > 100
    assert trusting(Budget(1, 5.0), "default", lambda: of_library) is None  # without a CA, the library makes its own
