"""Virtual environments for `scripts/bench environments`: by uv alone, by the lab, and one whose library is slowed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.figures import BenchmarkRow, at_most
from clientlab.results.plan import EnvironmentSpec
from clientlab.running.environments import built

REQUIREMENTS = [f"{name}=={version(name)}" for name in ("requests", "urllib3", "certifi", "idna", "charset-normalizer")]
"""All that requests needs, in the versions of this Python."""

SET_UPS, LIMIT = 7, 1.1

_SLOWER = """

import time


def _send_later(self, request, _send=Session.send, **keywords):
    until = time.perf_counter() + {seconds!r}
    while time.perf_counter() < until:
        pass
    return _send(self, request, **keywords)


Session.send = _send_later
"""


def install(folder: Path, options: Sequence[str] = ()) -> Path:
    """A new virtual environment of this Python with `REQUIREMENTS`, by uv alone. `options`: of `uv pip install`.

    Raises SystemExit with what uv reports.
    """
    _uv("venv", "--no-project", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--python", str(folder / "bin" / "python"), *options, *REQUIREMENTS)
    return folder


class SlowedLibrary:
    """An environment whose requests.Session spends more CPU time on each request than the released one."""

    def __init__(self, folder: Path) -> None:
        # The other environments, and uv's cache, hold the same files by hard links.
        self.folder = install(folder, ["--link-mode=copy"])
        (self._module,) = self.folder.glob("lib/python*/site-packages/requests/sessions.py")
        self._released = self._module.read_text(encoding="utf-8")

    def slow_down(self, seconds: float) -> None:
        """Let each request cost so many seconds of CPU time besides its own."""
        self._module.write_text(self._released + _SLOWER.format(seconds=seconds), encoding="utf-8")


def set_up_rows() -> Iterator[BenchmarkRow]:
    """An environment that the lab has uv build, and over the same commands without the lab. uv has all files."""
    took, ratios, cache = [], [], _uv("cache", "dir")
    for number in range(SET_UPS):
        with tempfile.TemporaryDirectory() as name:
            ways = (partial(_built_by_the_lab, name, cache), partial(install, Path(name, "uv"), ["--compile-bytecode"]))
            seconds = {way: _seconds(ways[way]) for way in ((0, 1) if number % 2 else (1, 0))}
        took.append(seconds[0])
        ratios.append(seconds[0] / seconds[1])
    about = f"set-up of an environment with {len(REQUIREMENTS)} packages"
    spread = f"range of {SET_UPS}"
    yield BenchmarkRow(about, median(took), min(took), max(took), spread, "none", met=True, unit="s")
    yield at_most(f"{about}, over uv's own", ratios, LIMIT)


def _built_by_the_lab(empty: str, cache: str) -> None:
    """`empty`: where the lab keeps its environments. `cache`: that of uv, which would be below `empty` too."""
    own = {"XDG_CACHE_HOME": empty, "UV_CACHE_DIR": cache}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        with built("second", EnvironmentSpec(requirements=REQUIREMENTS)):
            pass
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _uv(*words: str) -> str:
    """What uv prints. Raises SystemExit with what it reports."""
    command = [str(Path(sys.executable).with_name("uv")), *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"uv: exit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout.strip()
