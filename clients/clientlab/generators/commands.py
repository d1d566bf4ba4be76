"""The command line of each load generator, and how its report is read.

ApacheBench as a generator for a length of time. As a strategy, which sends a number of requests, it is a client.

hey: goroutines, one for each connection. It sends a `User-Agent` of its own.

Its summary is text; its CSV has a row for each request.

k6: a JavaScript interpreter for each connection. It runs a script, and writes its summary as a JSON document.

oha: asyncio of Rust (tokio, hyper). Its report is a JSON document.

wrk: event loops in C. Without a script in Lua, it sends GET only.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import ClassVar

from clientlab.clients.apache_bench import ApacheBench, figure_of
from clientlab.clients.client_interface import Budget
from clientlab.generators.generator_interface import GeneratorLoad, LoadReport, body_file, header_words

_MOST_PER_SECOND = 100_000
"""ab allocates a record for each request that it may send, and sends fewer than this in a second."""


class Ab:
    """`ab` with kept connections, over HTTP/1.0, in one thread."""

    name: ClassVar[str] = "ab"
    install: ClassVar[str] = "apt-get install apache2-utils"
    version: ClassVar[tuple[str, ...]] = ("-V",)
    cores: ClassVar[int | None] = 1

    def refuses(self, load: GeneratorLoad) -> str | None:
        if load.http == "2":
            return "speaks HTTP/1.0 only"
        methods = {"POST", "PUT"} if load.request.body is not None else {load.request.method}
        return None if load.request.method in methods else "sends a body with POST and PUT only"

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        client = ApacheBench(Budget(load.connections, timeout=30.0), lambda: None)
        most = load.seconds * _MOST_PER_SECOND
        program, *words = client.command(load.request, most, load.connections, folder)
        return [program, "-t", str(load.seconds), *words]  # -t sets a number of requests, which -n behind it replaces

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - all of it is printed
        ended, seconds = int(figure_of(printed, "Complete requests") or 0), figure_of(printed, "Time taken for tests")
        failed = int(figure_of(printed, "Failed requests") or 0) + int(figure_of(printed, "Non-2xx responses") or 0)
        return LoadReport(max(0, ended - failed), failed, float(seconds))


_FINISHED = re.compile(r"^finished in ([\d.]+)(us|ms|s|m), ([\d.]+) req/s", re.MULTILINE)
_REQUESTS = re.compile(r"(\d+) done, (\d+) succeeded, (\d+) failed")
_H2LOAD_STATUSES = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", re.MULTILINE)


class H2load:
    """`h2load` with one thread, so that it takes one core at most, and one stream on each connection."""

    name: ClassVar[str] = "h2load"
    install: ClassVar[str] = "apt-get install nghttp2-client"
    version: ClassVar[tuple[str, ...]] = ("--version",)
    cores: ClassVar[int | None] = 1

    def refuses(self, load: GeneratorLoad) -> str | None:
        method = "GET" if load.request.body is None else "POST"
        return None if load.request.method == method else "sends GET, and POST with a body, only"

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        words = ["h2load", "-D", str(load.seconds), "-c", str(load.connections), "-t", "1", "-m", "1"]
        words += ["--h1"] if load.http == "1.1" else []
        if path := body_file(load.request, folder):
            words += ["-d", str(path)]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - all of it is printed
        finished, requests = _FINISHED.search(printed), _REQUESTS.search(printed)
        statuses = _H2LOAD_STATUSES.search(printed)
        if finished is None or requests is None or statuses is None:
            raise ValueError("its output has no number of requests")
        *good, refused, broken = map(int, statuses.groups())
        failed = max(refused + broken, int(requests[3]))  # the latter are those without a response as well
        rate = float(finished[3])
        return LoadReport(sum(good), failed, int(requests[1]) / rate if rate else float(load.seconds))


_TOTAL = re.compile(r"^\s*Total:\s+([\d.]+) secs", re.MULTILINE)
_STATUS = re.compile(r"^\s*\[(\d{3})\]\s+(\d+) responses", re.MULTILINE)
_ERROR = re.compile(r"^\s*\[(\d+)\]\s", re.MULTILINE)
_REFUSED = 400


class Hey:
    """`hey` on all cores, as it is by default."""

    name: ClassVar[str] = "hey"
    install: ClassVar[str] = "apt-get install hey"
    version: ClassVar[tuple[str, ...]] = ()
    cores: ClassVar[int | None] = None

    def refuses(self, load: GeneratorLoad) -> str | None:
        return "is measured over HTTP/1.1 only" if load.http == "2" else None

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        words = ["hey", "-z", f"{load.seconds}s", "-c", str(load.connections), "-m", load.request.method]
        words += ["-disable-compression", "-disable-redirects"]
        if path := body_file(load.request, folder):
            words += ["-D", str(path)]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - all of it is printed
        total = _TOTAL.search(printed)
        if total is None:
            raise ValueError("its output has no total, so no request got a response")
        statuses = [(int(status), int(count)) for status, count in _STATUS.findall(printed)]
        refused = sum(count for status, count in statuses if status >= _REFUSED)
        lost = sum(map(int, _ERROR.findall(printed.partition("Error distribution:")[2])))
        return LoadReport(sum(count for _, count in statuses) - refused, refused + lost, float(total[1]))


_SCRIPT, _K6_REPORT = "k6.js", "k6.json"
_TEXT = """\
import http from 'k6/http';
import encoding from 'k6/encoding';
const body = {body};
const params = {{ headers: {headers}, redirects: 0 }};
export const options = {{ discardResponseBodies: true }};
export default function () {{ http.request({method}, {url}, body, params); }}
export function handleSummary(data) {{ return {{ {report}: JSON.stringify(data) }}; }}
"""


class K6:
    """`k6` on all cores, with a virtual user for each connection. Nothing is reported to its makers."""

    name: ClassVar[str] = "k6"
    install: ClassVar[str] = "go install go.k6.io/k6@v1.8.1"
    version: ClassVar[tuple[str, ...]] = ("version",)
    cores: ClassVar[int | None] = None

    def refuses(self, load: GeneratorLoad) -> str | None:
        if load.http == "1.1" and load.request.url.startswith("https:"):
            return "speaks HTTP/2 where TLS offers it"
        return None

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        script = folder / _SCRIPT
        script.write_text(_script(load, folder), encoding="utf-8")
        words = ["k6", "run", "--quiet", "--no-usage-report", "--address", "", "--no-color"]
        return [*words, "--vus", str(load.connections), "--duration", f"{load.seconds}s", str(script)]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - its report is a file
        metrics = json.loads((folder / _K6_REPORT).read_text(encoding="utf-8"))["metrics"]
        sent, failed = metrics["http_reqs"]["values"], metrics["http_req_failed"]["values"]["passes"]
        if not sent["count"]:
            raise ValueError("it sent no request")
        return LoadReport(sent["count"] - failed, failed, sent["count"] / sent["rate"])


def _script(load: GeneratorLoad, folder: Path) -> str:
    request = load.request
    encoded = None if request.body is None else base64.b64encode(request.body).decode()
    return _TEXT.format(
        body="null" if encoded is None else f"encoding.b64decode({json.dumps(encoded)})",
        headers=json.dumps(request.headers),
        method=json.dumps(request.method),
        url=json.dumps(request.url),
        report=json.dumps(str(folder / _K6_REPORT)),
    )


_OHA_REPORT = "oha.json"
_STOPPED = "aborted due to deadline"


class Oha:
    """`oha` on all cores, as it is by default."""

    name: ClassVar[str] = "oha"
    install: ClassVar[str] = "cargo install oha"
    version: ClassVar[tuple[str, ...]] = ("--version",)
    cores: ClassVar[int | None] = None

    def refuses(self, load: GeneratorLoad) -> str | None:  # noqa: ARG002 - it sends every load
        return None

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        words = ["oha", "--no-tui", "-z", f"{load.seconds}s", "-c", str(load.connections), "-m", load.request.method]
        words += ["--output-format", "json", "--output", str(folder / _OHA_REPORT), "--redirect", "0"]
        words += ["--disable-compression", "--http-version", load.http]
        if load.ca_file is not None:
            words += ["--cacert", load.ca_file]
        if path := body_file(load.request, folder):
            words += ["-D", str(path)]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - its report is a file
        found = json.loads((folder / _OHA_REPORT).read_text(encoding="utf-8"))
        statuses = {int(status): count for status, count in found["statusCodeDistribution"].items()}
        refused = sum(count for status, count in statuses.items() if status >= _REFUSED)
        lost = sum(count for kind, count in found["errorDistribution"].items() if kind != _STOPPED)
        return LoadReport(sum(statuses.values()) - refused, refused + lost, found["summary"]["total"])


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_DONE = re.compile(r"^\s*(\d+) requests in ([\d.]+)(us|ms|s|m),", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)", re.MULTILINE)
_ERRORS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_WRK_STATUSES = re.compile(r"Non-2xx or 3xx responses: (\d+)")


class Wrk:
    """`wrk` with one thread, so that it takes one core at most."""

    name: ClassVar[str] = "wrk"
    install: ClassVar[str] = "apt-get install wrk"
    version: ClassVar[tuple[str, ...]] = ("-v",)
    cores: ClassVar[int | None] = 1

    def refuses(self, load: GeneratorLoad) -> str | None:
        if load.http == "2":
            return "speaks HTTP/1.1 only"
        return None if load.request.method == "GET" and load.request.body is None else "sends GET only"

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:  # noqa: ARG002 - it writes no file
        words = ["wrk", "-t1", f"-c{load.connections}", f"-d{load.seconds}s"]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - as above
        done, rate = _DONE.search(printed), _RATE.search(printed)
        if done is None or rate is None:
            raise ValueError("its output has no number of requests")
        responses, socket_errors = int(done[1]), _ERRORS.search(printed)
        lost = sum(map(int, socket_errors.groups())) if socket_errors else 0
        refused = int(found[1]) if (found := _WRK_STATUSES.search(printed)) else 0
        # The printed seconds have two digits behind the point; the rate has more.
        seconds = responses / float(rate[1]) if responses else float(done[2]) * _UNITS[done[3]]
        return LoadReport(responses - refused, refused + lost, seconds)
