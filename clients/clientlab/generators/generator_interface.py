"""What a load generator is given, and what it reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from clientlab.workload.workload import Request


@dataclass(frozen=True)
class GeneratorLoad:
    """One request that is sent again and again for `seconds`, which are whole, on `connections`, one at a time on each.

    `http`: the version; "2" is over TLS. `ca_file`: PEM file of the CA, for the generators that verify certificates.
    """

    request: Request
    connections: int
    seconds: int
    http: Literal["1.1", "2"] = "1.1"
    ca_file: str | None = None


@dataclass(frozen=True)
class LoadReport:
    """The figures that a generator reports, by its own clock.

    `succeeded`: responses with a status below 400. `failed`: other responses, and requests without one; those that were
    in flight when the time was over are in neither. `seconds`: of the whole load.
    """

    succeeded: int
    failed: int
    seconds: float


class Generator(Protocol):
    """A program that sends a load by itself. `install`: the command line that installs it.

    `version`: the arguments with which it prints its version; empty if it can't. `cores`: CPU cores that it can use as
    the lab starts it; None: all.
    """

    name: ClassVar[str]
    install: ClassVar[str]
    version: ClassVar[tuple[str, ...]]
    cores: ClassVar[int | None]

    def refuses(self, load: GeneratorLoad) -> str | None:
        """Why the program can't send the load; None if it can."""

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        """The command line, which begins with the name of the program. `folder` takes its files."""

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:
        """The report, from what was printed and from the files in `folder`. Raises ValueError or KeyError."""


def header_words(request: Request, without: Collection[str] = ()) -> Iterator[str]:
    """``-H 'Name: value'`` for each header, except for the length of the body, which every generator adds itself.

    `without`: further headers, in lower case.
    """
    for name, value in request.headers.items():
        if name.lower() not in {"content-length", *without}:
            yield from ("-H", f"{name}: {value}")


def body_file(request: Request, folder: Path) -> Path | None:
    """The file with the request's body, which is written now; None without a body."""
    if request.body is None:
        return None
    path = folder / "body"
    path.write_bytes(request.body)
    return path
