"""A lab service and its workers as processes for tests, and a scraper that stands for Prometheus."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from clientlab.results.document import Run
from clientlab.results.store import Store
from running import eventually

TOKEN = "a token of tests"  # noqa: S105 - as it says


@dataclass
class Program:
    """A process of the lab, and what it has said so far."""

    process: subprocess.Popen
    log: Path
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        return self.log.read_text()

    def await_port(self, pattern: str) -> None:
        """Wait for the port in its log. The process may end directly afterwards."""

        def found() -> bool:
            over = self.process.poll() is not None  # before the log is read: an ended process has written its last line
            match = re.search(pattern, self.said)
            assert match or not over, self.said
            self.port = int(match[1]) if match else 0
            return self.port > 0

        eventually(found, f"it says {pattern}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Labs:
    """What a test starts; all of it is ended with it."""

    folder: Path
    upstream_port: int
    stack: contextlib.ExitStack
    count: int = 0

    @property
    def store(self) -> Store:
        return Store(self.folder / "results")

    def environment(self) -> dict[str, str]:
        address = f"127.0.0.1:{self.upstream_port}"
        own = {"CLIENTLAB_TOKEN": TOKEN, "AIOHTTP_ADDRESS": address, "FLASK_ADDRESS": address}
        return {**os.environ, **own, "TMPDIR": str(self.folder)}

    def serve(self, experiment: str, *words: str, port: int = 0) -> Program:
        """A lab service that carries out an experiment, given as TOML."""
        file = self.folder / "small.toml"
        file.write_text(experiment)
        asked = ["serve", "--experiment", str(file), "--port", str(port), "--out", str(self.store.folder), *words]
        lab = self.start(asked)
        lab.await_port(r"Running on http://127.0.0.1:(\d+)")
        return lab

    def work(self, lab: Program, *strategies: str) -> Program:
        """A worker of a lab for strategies."""
        named = [word for name in strategies for word in ("-t", name)]
        worker = self.start(["work", *named, "--lab", lab.url, "--port", "0"])
        worker.await_port(r"metrics at port (\d+)")
        return worker

    def start(self, words: list[str]) -> Program:
        """The command `clientlab` with these words."""
        self.count += 1
        log = self.folder / f"{self.count}-{words[0]}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "clientlab", *words],
                stdout=output, stderr=output, env=self.environment(),
            )  # fmt: skip
        self.stack.callback(_ended, process)
        return Program(process, log)

    def run(self) -> Run:
        """The one run, as its file is now."""
        return self.store.read("last")

    def await_end(self, lab: Program) -> Run:
        """The run when it has ended."""

        def ended() -> bool:
            assert lab.process.poll() is None, lab.said
            return bool(self.store.names()) and self.run().status != "running"

        eventually(ended, "the run ends", patience=60)
        return self.run()


def experiment(strategies: list[str], rounds: int = 1, **workload: object) -> str:
    """A small experiment as TOML, whose trials have the same order in each run."""
    lines = [f"{name} = {value!r}" for name, value in ({"warmup": 2, "timeout": "5s"} | workload).items()]
    head = f'question = "?"\nstrategies = {strategies}\nrounds = {rounds}\nseed = 1\n'
    return head + "[workloads.small]\n" + "\n".join(lines)


def requests_at(upstream) -> float:
    """How many requests the upstream has answered."""
    return sum(value for name, value in upstream.metrics().items() if name.startswith("mockupstream_requests_total"))


def get(url: str) -> str:
    """The text of a page."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def state(lab: Program) -> dict:
    """What the lab does now."""
    return json.loads(get(f"{lab.url}/api/state"))


@dataclass
class Scraper:
    """Scrapes pages again and again, and keeps the last value of each sample: (name, labels) → value."""

    urls: list[str]
    values: dict[tuple[str, frozenset], float] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self):
        self.thread = threading.Thread(target=self.go_on)
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        self.thread.join()

    def go_on(self) -> None:
        while not self.over.wait(0.1):
            for url in self.urls:
                with contextlib.suppress(urllib.error.URLError, OSError, http.client.HTTPException):
                    self.take(get(f"{url}/metrics"), instance=url)

    def take(self, text: str, **target: str) -> None:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.values[sample.name, frozenset((sample.labels | target).items())] = sample.value

    def of(self, name: str, **labels: str) -> float:
        """The sum over all samples of a name with these labels."""
        wanted = set(labels.items())
        return sum(value for (found, has), value in self.values.items() if found == name and wanted <= has)


def _ended(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
