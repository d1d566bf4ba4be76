"""`?trust=default`: the TLS context is the one that the library makes for its users, and trusts the target's CA too."""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi
import pytest

from clientlab.clients.client_interface import Budget
from clientlab.clients.tls_context import trusting
from clientlab.conformance.server import CA_FILE, OTHER_CA, counting_server, server_context
from clientlab.strategies import CLIENTS, settings_of
from clientlab.testbeds.local import ca_bundle
from clients.one_client import outcomes, request_to

TRUSTING = [name for name, spec in CLIENTS.items() if not spec.program and "trust" in settings_of(spec.import_path)]


@pytest.mark.real
@pytest.mark.parametrize("name", TRUSTING)
def test_the_librarys_own_trust_verifies_the_target_too(name):
    """A server of another CA is an error of kind tls, before a byte is sent; the lab's upstream is trusted."""
    other, sound = server_context(OTHER_CA), server_context(version="h2" if CLIENTS[name].http == "2" else "http/1.1")
    with counting_server(tls=[other, sound]) as server:
        assert outcomes(name, *[request_to(server.url)] * 2, trust="default") == ["tls", (200, b'{"ok": true}')]
        assert server.spoken_to == {sound}


@pytest.mark.parametrize("trial_has", ["the lab's certifi", "another certifi"])
def test_the_librarys_context_gets_the_targets_ca_alone(trial_has, tmp_path, monkeypatch):
    """Of a bundle as testbeds write it, whatever the trial's environment holds. By default the context is the lab's."""
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(ca_bundle(Path(CA_FILE).read_text(encoding="utf-8")), encoding="utf-8")
    if trial_has == "another certifi":
        monkeypatch.setattr(certifi, "contents", lambda: Path(CA_FILE).read_text(encoding="utf-8"))
    of_library = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # empty
    budget = Budget(1, 5.0, str(bundle))
    assert trusting(budget, "default", lambda: of_library) is of_library
    assert [dict(sum(ca["subject"], ()))["commonName"] for ca in of_library.get_ca_certs()] == ["ca"]
    of_lab = trusting(budget, "lab", lambda: of_library)
    assert of_lab is not of_library
    assert len(of_lab.get_ca_certs()) > 100
    assert trusting(Budget(1, 5.0), "default", lambda: of_library) is None  # without a CA, the library makes its own
