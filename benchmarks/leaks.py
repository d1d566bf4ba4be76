"""Every listed client with secrets in URL, headers and recorded requests, against a server that misbehaves.

A secret that any file or output of the lab holds is a leak. Arms that the machine cannot run are left out by name.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote_plus

from benchmarks.figures import BenchmarkRow
from clientlab.conformance.h2_proxy import h2_proxy
from clientlab.conformance.server import Last, Reset, Seen, ServerAnswer, counting_server, ok
from clientlab.conformance.tls import CA_FILE
from clientlab.strategies import CLIENTS, STRATEGIES, client_spec, unavailable

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

_AWAY = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def _echo(seen: Seen) -> bytes:
    """What the server got, where a status line should be."""
    return f"{seen.target} {' '.join(seen.headers.values())} is\r\nnot HTTP\r\n\r\n".encode()


FAULTS: dict[str, Callable[[Seen], ServerAnswer]] = {
    "closes": lambda _: None,
    "resets": lambda _: Reset(),
    "echoes": lambda seen: Last(_echo(seen)),
    "truncates": lambda _: Last(ok()[:-5]),
    "breaks-chunks": lambda seen: Last(_CHUNKED + _echo(seen)),
    "redirects": lambda seen: _AWAY % seen.target.encode(),
}


def rows() -> Iterator[BenchmarkRow]:
    """How many secrets were found, of all that were planted."""
    names = [name for name in CLIENTS if not unavailable(STRATEGIES[name])]
    if left_out := sorted(set(CLIENTS) - set(names)):
        print(f"leaks: left out, not installed: {', '.join(left_out)}", file=sys.stderr)
    found = [leak for fault in FAULTS for run in _runs(names) for leak in run(fault)]
    for leak in found:
        print(f"leaks: {leak}", file=sys.stderr)
    about = f"{len(names)} clients, {len(FAULTS)} faults, {len(PLANTED)} secrets in each trial: places with a secret"
    yield BenchmarkRow(about, len(found), len(found), len(found), "one pass", "<= 0", not found, "")


def _runs(names: Sequence[str]) -> Iterator[Callable[[str], list[str]]]:
    """Functions from a fault to the leaks of a run. Programs send no recorded requests."""
    speaks_2 = [name for name in names if client_spec(name).http == "2"]
    programs = [name for name in names if client_spec(name).program]
    libraries = [name for name in names if name not in {*speaks_2, *programs}]
    yield lambda fault: _leaks_of(libraries, fault, replayed=True)
    yield lambda fault: _leaks_of([*libraries, *programs], fault, replayed=False)
    yield lambda fault: _leaks_of(speaks_2, fault, replayed=True, http2=True)
    yield lambda fault: _leaks_of(speaks_2, fault, replayed=False, http2=True)


def _leaks_of(strategies: Sequence[str], fault: str, *, replayed: bool, http2: bool = False) -> list[str]:
    """The places of secrets after a run against that fault. Raises RuntimeError for a run that measured nothing."""
    if not strategies:
        return []
    with misbehaving(fault) as port, tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, url = Path(name), f"http://127.0.0.1:{port}"
        words = [word for one in strategies for word in ("-t", one)]
        if http2:
            url = stack.enter_context(h2_proxy(port)).url
            words += ["--ca-file", CA_FILE]
        words += requests_by_replay(folder, url) if replayed else requests_by_url(url)
        said = _called("run", *words, "-n", "4", "--rounds", "1", "--timeout", "5s", "--keep-samples", *_files(folder))
        if not any((folder / "results").glob("*/run.json")):
            raise RuntimeError(f"nothing was measured against {fault!r}: {said}")
        said += _called("report", "last", "--csv", str(folder / "run.csv"), "--markdown", str(folder / "run.md"),
                        "--out", str(folder / "results"))  # fmt: skip
        (folder / "requests.har").unlink(missing_ok=True)
        how = "recorded requests" if replayed else "URL and headers"
        return [f"{fault}, {how}: {place}" for place in places_of_secrets(folder, {"output": said})]


def _files(folder: Path) -> list[str]:
    return ["--out", str(folder / "results"), "--html", str(folder / "run.html"), "--junit", str(folder / "run.xml")]


def _called(*words: str) -> str:
    """All that the command prints."""
    ended = subprocess.run([sys.executable, "-m", "clientlab", *words], capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


@contextlib.contextmanager
def misbehaving(fault: str) -> Iterator[int]:
    """The port of a server with that fault. The first request, which is the probe of a run, gets a sound answer."""

    def answer(seen: Seen) -> ServerAnswer:
        return ok() if len(server.seen) == 1 else FAULTS[fault](seen)

    with counting_server(answer) as server:
        yield server.port


def requests_by_replay(folder: Path, url: str) -> list[str]:
    """Options for recorded requests with secrets; the HAR file is ``requests.har`` in the folder."""
    headers = [{"name": name, "value": value} for name, value in RECORDED.items()]
    entry = {"request": {"method": "GET", "url": f"https://recorded.test/search?{QUERY}", "headers": headers}}
    (folder / "requests.har").write_text(json.dumps({"log": {"entries": [entry] * 4}}), encoding="utf-8")
    return ["--url", url, "--replay", str(folder / "requests.har"), *_header_options()]


def requests_by_url(url: str) -> list[str]:
    """Options for a URL and headers with secrets. Of its query, the names of parameters decide."""
    return ["--url", f"{url}/search?token={PLANTED['query']}", *_header_options()]


def _header_options() -> list[str]:
    return [word for name, value in HEADERS.items() for word in ("--header", f"{name}: {value}")]


def places_of_secrets(folder: Path, texts: Mapping[str, str]) -> list[str]:
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
