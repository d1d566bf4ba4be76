"""Secrets that tests plant, servers whose faults make clients print them, and where they are found."""

from __future__ import annotations

import base64
import contextlib
import json
from urllib.parse import unquote_plus

from clientlab.conformance.server import Reset, counting_server, ok

PLANTED = {
    "query": "Pl4ntedQuery+Tok",
    "parameter": "Pl4nted.Parameter",
    "recorded header": "Pl4nted-Recorded-Header",
    "recorded cookie": "Pl4nted-Cookie",
    "bearer": "Pl4nted.Bearer/Token=",
    "api key": "Pl4nted_Api_Key",
    "password": "Pl4ntedPassword",
}
"""Where a secret is planted → the secret. No text of the lab holds ``Pl4nted`` by chance."""

QUERY = f"token={PLANTED['query']}&q={PLANTED['parameter']}"
BASIC = base64.b64encode(f"user:{PLANTED['password']}".encode()).decode()
HEADERS = {"Authorization": f"Bearer {PLANTED['bearer']}", "X-Api-Key": PLANTED["api key"]}
"""Of the option --header."""
RECORDED = {
    "X-Auth-Token": PLANTED["recorded header"], "Cookie": f"sid={PLANTED['recorded cookie']}",
    "Proxy-Authorization": f"Basic {BASIC}",
}  # fmt: skip

FAULTS = {
    "closes": lambda _: None,
    "resets": lambda _: Reset(),
}


@contextlib.contextmanager
def misbehaving(fault):
    """The port of a server with that fault. The first request, which is the probe of a run, gets a sound answer."""

    def answer(seen):
        return ok() if len(server.seen) == 1 else FAULTS[fault](seen)

    with counting_server(answer) as server:
        yield server.port


def requests_by_replay(folder, url):
    """Options for recorded requests with secrets; the HAR file is ``requests.har`` in the folder."""
    headers = [{"name": name, "value": value} for name, value in RECORDED.items()]
    entry = {"request": {"method": "GET", "url": f"https://recorded.test/search?{QUERY}", "headers": headers}}
    (folder / "requests.har").write_text(json.dumps({"log": {"entries": [entry] * 4}}), encoding="utf-8")
    return ["--url", url, "--replay", str(folder / "requests.har"), *_header_options()]


def requests_by_url(url):
    """Options for a URL and headers with secrets. Of its query, the names of parameters decide."""
    return ["--url", f"{url}/search?token={PLANTED['query']}", *_header_options()]


def _header_options():
    return [word for name, value in HEADERS.items() for word in ("--header", f"{name}: {value}")]


def places_of_secrets(folder, texts):
    """Where a planted secret is, as it was planted or decoded: files below the folder, and texts by name."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found |= {name: text.encode() for name, text in texts.items()}
    forms = {**PLANTED, "decoded query": unquote_plus(PLANTED["query"]), "basic": BASIC}
    return [
        f"{what} in {name}: {content[max(0, at - 40) : at + 60]!r}"
        for name, content in found.items()
        for what, secret in forms.items()
        if (at := content.find(secret.encode())) >= 0
    ]
