"""The worker while it waits: asks the lab for a turn, shows its page, starts the process that measures.

Started by ``clientlab work`` in its own place, as ``python -m clientlab.work.waiting SETTINGS``. Most of a
worker's life is waiting, and there may be forty of them: it imports the standard library and little else.
What a turn needs is imported by the turn's own process, and gone with it.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from clientlab import children
from clientlab.errors import LabError
from clientlab.work.lab import Lab, Refused
from clientlab.work.pages import Pages
from clientlab.work.token import TOKEN

POLL_TIMEOUT = 40.0
"""Longer than the lab lets anybody wait for a turn."""

_PAGE = b"""# HELP clientlab_worker_waiting 1 while the worker waits for its turn.
# TYPE clientlab_worker_waiting gauge
clientlab_worker_waiting 1
"""


class Ended(Exception):
    """SIGTERM or SIGINT."""


@dataclass(frozen=True)
class Settings:
    """How a worker was asked to work. `linger`: seconds to wait for the last scrape of a trial.

    `scraped`: somebody reads the page, even where nobody has yet.
    """

    lab: str
    strategies: tuple[str, ...]
    host: str
    port: int
    linger: float
    scraped: bool


def main(words: list[str]) -> int:
    """Work until told to end."""
    given = json.loads(words[1])
    settings = Settings(**{**given, "strategies": tuple(given["strategies"])})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    lab = Lab(settings.lab, os.environ.get(TOKEN, ""))
    try:
        lab.split()
        with _listening(settings) as listener:
            _Worker(settings, lab, listener).work()
    except Ended:
        return 0
    except (LabError, Refused) as error:
        say(str(error))
        return LabError.exit_code
    return 0


class _Worker:
    def __init__(self, settings: Settings, lab: Lab, listener: socket.socket) -> None:
        self._settings = settings
        self._lab = lab
        self._listener = listener
        self._name = secrets.token_hex(8)
        self._scraped = settings.scraped
        self._folder: str | None = None
        self._pages: Pages | None = Pages(listener, lambda: _PAGE)

    def work(self) -> None:
        """Ask for turns and take them. Raises Ended, Refused or WrongToken."""
        port = self._listener.getsockname()[1]
        say(f"worker {self._name} of {', '.join(self._settings.strategies)}; page at port {port}")
        asking = {
            "worker": self._name,
            "host": socket.gethostname()[:64],
            "strategies": list(self._settings.strategies),
        }
        while True:
            turn = self._lab.insist("/api/turns", asking, POLL_TIMEOUT, lambda error: say(f"the lab is away: {error}"))
            if turn is not None:
                self._take(turn)

    def _take(self, turn: dict[str, Any]) -> None:
        """Do one turn in a process of its own, which has the page until it ends."""
        order = {
            "turn": turn,
            "worker": self._name,
            "lab": {"url": self._lab.url, "token": self._lab.token},
            "linger": self._settings.linger,
            "scraped": self._scraped or (self._pages is not None and self._pages.scrapes > 0),
        }
        self._scraped = self._settings.scraped  # or until somebody reads the page again
        process, marks, words = self._start()
        try:
            with os.fdopen(words, "w", encoding="utf-8") as orders, os.fdopen(marks, encoding="utf-8") as told:
                orders.write(json.dumps(order))
                orders.close()
                for mark in told:
                    self._marked(mark.strip())
            code = process.wait()
        except BrokenPipeError:
            code = process.wait()
        finally:
            # As long as the last scrape may take, where this ends because of a signal.
            children.stop(process, self._settings.linger + 1)
            self._clear()
        self._pages = self._pages or Pages(self._listener, lambda: _PAGE)
        if code == LabError.exit_code:
            raise LabError("the lab refused this worker's token in its turn")
        if code:
            say(f"the process of a turn ended with code {code}; the lab gives the trial once more")

    def _start(self) -> tuple[subprocess.Popen[bytes], int, int]:
        """The turn's process, where its marks are read, and where its order is written."""
        marks, theirs = os.pipe()
        words, orders = os.pipe()
        inherited = [self._listener.fileno(), theirs]
        command = [sys.executable, "-m", "clientlab.work.turn", *map(str, inherited)]
        environment = {name: value for name, value in os.environ.items() if name != TOKEN}
        process = children.start(command, None, environment, inherited, words=words)
        os.close(theirs)
        os.close(words)
        return process, marks, orders

    def _clear(self) -> None:
        """Remove the files of a turn whose process was killed before it could."""
        folder, self._folder = self._folder, None
        if folder is not None and os.path.isdir(folder):  # noqa: PTH112 - pathlib is memory of a waiting worker
            import shutil  # noqa: PLC0415 - as above

            shutil.rmtree(folder)

    def _marked(self, mark: str) -> None:
        """`folder`: where its files are. `serving`: the turn's process has the page. `scraped`: somebody reads it."""
        if mark.startswith("folder "):
            self._folder = mark.removeprefix("folder ")
        elif mark == "serving" and self._pages is not None:
            self._scraped = self._scraped or self._pages.scrapes > 0
            self._pages.stop()
            self._pages = None
        elif mark == "scraped":
            self._scraped = True


def _listening(settings: Settings) -> socket.socket:
    """The socket of the page. Raises LabError."""
    try:
        return socket.create_server((settings.host, settings.port), backlog=16)
    except OSError as error:
        where = f"--host {settings.host} --port {settings.port}"
        raise LabError(f"{where}: {error.strerror or error}; name another or stop what listens there") from error


def say(line: str) -> None:
    """A line for the log."""
    print(f"clientlab work: {' '.join(line.split())}", file=sys.stderr, flush=True)  # noqa: T201


def _end(_number: int, _frame: FrameType | None) -> None:
    raise Ended


if __name__ == "__main__":
    sys.exit(main(sys.argv))
