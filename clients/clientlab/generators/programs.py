"""The list of generators, and how one is run: once, for a bounded time, as a child process."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from clientlab import child_processes
from clientlab.generators.commands import K6, Ab, H2load, Hey, Oha, Wrk
from clientlab.generators.generator_interface import Generator, GeneratorLoad, LoadReport
from clientlab.measuring.trial_handle import PROXY_VARIABLES
from clientlab.measuring.usage import children_cpu_seconds

FAST: tuple[Generator, ...] = (Wrk(), H2load(), Oha(), Ab(), Hey())
"""Those that measure ceilings, the fastest first."""

GENERATORS = (*FAST, K6())
"""All. k6 runs JavaScript for each request, and is slower than strategies of the lab."""

_PATIENCE = 15.0
"""Seconds that a generator may take beyond its load, to start and to write its report."""
_VERSION_PATIENCE = 10.0
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class GeneratorFailed(Exception):
    """The generator did not send its load, or its report can't be read. The reason is one line."""


@dataclass(frozen=True)
class Driven:
    """What a generator reported, and the CPU seconds of its processes, from their start to their end."""

    report: LoadReport
    cpu_seconds: float


def fastest(load: GeneratorLoad) -> Generator | None:
    """The first that is installed and can send the load; None if none is."""
    return next((one for one in FAST if which(one.name) and one.refuses(load) is None), None)


def drive(generator: Generator, load: GeneratorLoad, folder: Path, cpus: Collection[int] = ()) -> Driven:
    """Send the load with an installed generator. `folder` is new, and takes its files. Raises GeneratorFailed.

    `cpus`: the only ones that it may use; without any, those of this process.
    """
    command, log = generator.command(load, folder), folder / "generator.log"
    before = children_cpu_seconds()
    process = child_processes.start(command, log, _environment(load), cpus=cpus)
    try:
        process.wait(load.seconds + _PATIENCE)
    except subprocess.TimeoutExpired as error:
        limit = load.seconds + _PATIENCE
        raise GeneratorFailed(f"{generator.name} did not end within {limit:g} s") from error
    finally:
        child_processes.stop(process, patience=0)
    if process.returncode:
        raise GeneratorFailed(f"{generator.name} {child_processes.how_it_ended(process, log)}")
    spent = children_cpu_seconds() - before
    try:
        return Driven(generator.report(log.read_text(encoding="utf-8", errors="replace"), folder, load), spent)
    except (ValueError, KeyError, OSError) as error:
        raise GeneratorFailed(f"the report of {generator.name} can't be read: {error!r}") from error


def version_of(generator: Generator) -> str | None:
    """The number of its version, ``4.1.0``; None if the program prints none."""
    if not generator.version:
        return None
    try:
        ended = subprocess.run(
            [generator.name, *generator.version], capture_output=True, text=True, timeout=_VERSION_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(ended.stdout or ended.stderr)
    return None if found is None else found[0]


def _environment(load: GeneratorLoad) -> dict[str, str]:
    """Without the proxies of the environment. Programs in Go read the CA's file from a variable."""
    found = {name: value for name, value in child_processes.variables().items() if name.lower() not in PROXY_VARIABLES}
    return found if load.ca_file is None else {**found, "SSL_CERT_FILE": load.ca_file}
