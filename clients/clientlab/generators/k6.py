"""k6: a JavaScript interpreter for each connection. It runs a script, and writes its summary as a JSON document."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import ClassVar

from clientlab.generators.interfaces import GeneratorLoad, LoadReport

_SCRIPT, _REPORT = "k6.js", "k6.json"
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
        metrics = json.loads((folder / _REPORT).read_text(encoding="utf-8"))["metrics"]
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
        report=json.dumps(str(folder / _REPORT)),
    )
