"""The listed clients, executors and strategies, and how a name finds one.

A client or an executor is listed by the decorator `@ClientSpec(...)` or
`@ExecutorSpec(...)` above its class. Lists and reports need all these entries, even if
a library is missing, so no module is imported: a regular expression finds the
decorators in the source, and their text is evaluated. A test runs the modules, and
compares the entries of the decorators that were called with those found here.

Only `load` and the functions that check settings import an HTTP library. No function
runs a user's code: see `plugins`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

from clientlab import settings
from clientlab.clients import client_interface
from clientlab.clients.client_interface import EXTRA, Policy
from clientlab.clients.client_interface import ClientSpec as ClientSpec
from clientlab.clients.retrying import (
    AROUND,
    RETRY_EXTRA,
    RETRY_SETTINGS,
    WAYS,
    Retry,
    read_retry,
)
from clientlab.errors import FieldError, LabError, PluginError, UnavailableStrategy
from clientlab.executors import executor_interface
from clientlab.executors.executor_interface import ExecutorSpec as ExecutorSpec
from clientlab.text import first_paragraph, suggest_nearest
from clientlab.workload.workload import Workload, value_of

DEFAULT_CONCURRENCY = 32

# A decorator, the class below it, and its docstring.
_ENTRY = re.compile(
    r"^@(?P<entry>(?:Client|Executor)Spec\(.*?)"
    r"^class (?P<name>\w+).*?\n"
    r'    """(?P<docstring>.*?)"""',
    re.MULTILINE | re.DOTALL,
)


def _read_entries(package: str) -> dict[str, Any]:
    """Return the entries of a package by name.

    Their arguments are literals or names of the two interface modules.
    """
    names = {**vars(client_interface), **vars(executor_interface)}
    specs = {}
    for file in sorted(Path(__file__).with_name(package).glob("*.py")):
        for entry in _ENTRY.finditer(file.read_text(encoding="utf-8")):
            # An import of the module evaluates it too.
            spec = eval(entry["entry"], names)  # noqa: S307
            place = f"clientlab.{package}.{file.stem}:{entry['name']}"
            description = first_paragraph(entry["docstring"]).removesuffix(".")
            specs[spec.name] = replace(spec, import_path=place, description=description)
    return specs


CLIENTS: dict[str, ClientSpec] = _read_entries("clients")
EXECUTORS: dict[str, ExecutorSpec] = _read_entries("executors")
ADMITTED: dict[str, ClientSpec | ExecutorSpec | PluginError | None] = {}
"""Name of a file's code or of an entry point → its spec, its error, or None.

`plugins.admit` fills it.
"""
ADMITTED_CLASSES: dict[str, Any] = {}  # import path → the class of an admitted file


@dataclass(frozen=True)
class Strategy:
    """A named pair of client and executor with its settings: what is compared.

    `concurrency`: used if the user gives none. `settings`: keyword arguments of its
    executor or client; the executor's `size`; ``pool``: the connections that the client
    may hold, in place of one for each request in flight (0 or None: no limit);
    ``library_defaults``: the library's own limits. `source`: ``ecosystem``, ``trap``,
    ``file`` or the name of the package. A trap has its mistake in `wrong`, and the
    strategy without it in `mended_by`.
    """

    name: str
    client: str
    executor: str
    concurrency: int = DEFAULT_CONCURRENCY
    source: str = "ecosystem"
    settings: Mapping[str, Any] = field(default_factory=dict)
    wrong: str = ""
    mended_by: str = ""

    @property
    def policy(self) -> Policy:
        """Who owns a connection, and for how long: the executor's policy if it has one,
        else the client's.
        """
        return executor_spec(self.executor).policy or client_spec(self.client).policy

    def in_flight(self, asked: int | None, requests: int | None = None) -> int:
        """Return the number of requests in flight.

        It is `asked`, or if None the strategy's default concurrency. The setting of the
        executor's size overrides both. A serial executor has 1, an unbounded one all
        `requests`.
        """
        spec = executor_spec(self.executor)
        if not spec.concurrent:
            return 1
        has_no_pool = spec.pool_bound and not self.settings.get("pool", 1)
        if requests is not None and (spec.unbounded or has_no_pool):
            return requests
        if spec.size in self.settings:
            return int(self.settings[spec.size])
        return self.concurrency if asked is None else asked


_ALONE = {"blocking": "serial", "asyncio": "await", "program": "program"}


def _run_alone(client: ClientSpec, name: str, source: str = "ecosystem") -> Strategy:
    """Return the strategy of a client without a named executor.

    It sends one request after the other if the client can.
    """
    executor = client.only[0] if client.only else _ALONE[client.kind]
    concurrency = DEFAULT_CONCURRENCY if EXECUTORS[executor].concurrent else 1
    return Strategy(name, client.name, executor, concurrency, source)


def _combine() -> Iterator[Strategy]:
    """Yield each client alone and with its executors, and some with uvloop."""
    for client in CLIENTS.values():
        yield _run_alone(client, client.name)
    for client in CLIENTS.values():
        for executor in client.pairs:
            yield Strategy(f"{client.name}@{executor}", client.name, executor)
    for name, executor in (
        ("aiohttp", "workers"),
        ("aiohttp", "semaphore"),
        ("httpx-async", "workers"),
    ):
        strategy = f"{name}-uvloop@{executor}"
        yield Strategy(strategy, name, executor, settings={"loop": "uvloop"})


_LISTED = (
    # The experiment six-strategies, with the names and the numbers of its article.
    Strategy("sync", "requests", "serial", 1),
    Strategy("sync_threads", "requests", "thread-pool", 100),
    Strategy("sync_multiprocess", "requests", "processes", 10),
    Strategy("async_threads", "requests", "sync_to_async", 100),
    Strategy("async_with_async_client", "aiohttp", "gather", 100),
    # aiohttp's own limit of 100 in each of six processes, and up to 5 requests for the
    # remainder.
    Strategy("async_multiprocess_with_async_client", "aiohttp", "async-processes", 605),
    *_combine(),
    Strategy(
        "trap-blocking-in-coroutine",
        "requests-session",
        "blocking-coroutines",
        1,
        "trap",
        wrong=(
            "a blocking call stops the event loop: coroutines around it run one after"
            " the other"
        ),
        mended_by="requests-session@sync_to_async",
    ),
    Strategy(
        "trap-thread-sensitive",
        "requests-session",
        "sync_to_async-sensitive",
        1,
        "trap",
        wrong=(
            "sync_to_async sends all calls to one thread without thread_sensitive=False"
        ),
        mended_by="requests-session@sync_to_async",
    ),
    Strategy(
        "trap-session-per-request",
        "aiohttp-per-call",
        "workers",
        source="trap",
        wrong="a session for each request keeps no connection",
        mended_by="aiohttp@workers",
    ),
    Strategy(
        "trap-client-per-request",
        "httpx",
        "threads",
        source="trap",
        wrong=(
            "httpx.get builds a client and its TLS context for each request, even for"
            " plain HTTP"
        ),
        mended_by="httpx-client@threads",
    ),
    Strategy(
        "trap-small-pool",
        "requests-session",
        "threads",
        source="trap",
        settings={"pool": 1},
        wrong=(
            "a pool smaller than its threads throws connections away and opens them"
            " again"
        ),
        mended_by="requests-session@threads",
    ),
    Strategy(
        "trap-gather-everything",
        "aiohttp",
        "unbounded",
        source="trap",
        wrong=(
            "all requests at once: each pays for a connection, and all of them for each"
            " other"
        ),
        mended_by="aiohttp@semaphore",
    ),
)
STRATEGIES = {strategy.name: strategy for strategy in _LISTED}
"""The listed ones. `find` also finds any other pair that fits."""

# Names

_IN_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")
_PAIR = re.compile(r"(?P<client>[^@/]*|.+?\.py:\w+)(?:@(?P<executor>.+))?")


def file_of(name: str) -> Path | None:
    """Return the file of ``path/to/file.py:NAME``, or None for any other name."""
    match = _IN_FILE.fullmatch(name)
    return None if match is None else Path(match["file"])


def make_absolute(name: str) -> str:
    """Return ``path/to/file.py:NAME`` with an absolute path, or another name as is.

    Processes in other folders get it.
    """
    match = _IN_FILE.fullmatch(name)
    if match is None:
        return name
    return f"{Path(match['file']).resolve()}:{match['name']}"


def split_pair(name: str) -> tuple[str, str]:
    """Split ``client@executor``; the executor may be empty.

    The path of a file may hold an @ after its first slash.
    """
    match = _PAIR.fullmatch(name)
    if match is None:
        return name, ""
    return match["client"], match["executor"] or ""


def client_spec(name: str) -> ClientSpec:
    """Return the spec of a client: listed or admitted. Raises KeyError, LabError."""
    if name in CLIENTS:
        return CLIENTS[name]
    spec = _admitted_spec(name)
    if isinstance(spec, ExecutorSpec):
        client = {"blocking": "requests-session", "asyncio": "aiohttp"}[spec.needs]
        raise PluginError(
            f"strategy {name!r} is an executor, and runs a client; write"
            f" {client}@{name}"
        )
    return spec


def executor_spec(name: str) -> ExecutorSpec:
    """Return the spec of an executor: listed or admitted. Raises KeyError, LabError."""
    if name in EXECUTORS:
        return EXECUTORS[name]
    spec = _admitted_spec(name)
    if isinstance(spec, ClientSpec):
        raise PluginError(
            f"{name!r} is a client, not an executor; an executor has open, run, close"
        )
    return spec


def _admitted_spec(name: str) -> ClientSpec | ExecutorSpec:
    key = make_absolute(name)
    if key not in ADMITTED and file_of(name) is not None:
        raise LabError(
            f"strategy {name!r} is code of a file, which runs only if the command line"
            f" names it; add -t '{name}'"
        )
    spec = ADMITTED.get(key)
    if spec is None:
        raise KeyError(name)
    if isinstance(spec, PluginError):
        raise spec
    return spec


def of_packages() -> list[ClientSpec | ExecutorSpec | PluginError]:
    """Return what installed packages brought and was admitted."""
    return [
        spec
        for name, spec in ADMITTED.items()
        if spec is not None and file_of(name) is None
    ]


def strategies_of_packages() -> list[Strategy]:
    """Return the clients of admitted packages, each alone.

    Their `source` is the package.
    """
    return [
        _run_alone(spec, spec.name, spec.distribution)
        for spec in of_packages()
        if isinstance(spec, ClientSpec)
    ]


def find(name: str) -> Strategy:
    """Return the strategy of that name, or any fitting ``client@executor``.

    Both may have settings, ``NAME?pool=10``, which `check_settings` checks. A strategy
    of a file or of a package is found if `plugins.admit` was given its name. Raises
    LabError with the nearest names.
    """
    plain, given = settings.split(name)
    strategy = STRATEGIES.get(plain) or _find_unlisted(plain)
    if plain == name:
        return strategy
    return replace(strategy, name=name, settings={**strategy.settings, **given})


def _find_unlisted(name: str) -> Strategy:
    client_name, executor_name = split_pair(name)
    listed = [*STRATEGIES.values(), *strategies_of_packages()]
    names = [strategy.name for strategy in listed]
    with contextlib.suppress(KeyError):  # the error below names the nearest strategies
        client = client_spec(client_name)
        if not executor_name:
            source = "file" if file_of(name) else client.distribution
            return _run_alone(client, name, source)
        fitting = [
            executor
            for executor in client.only or EXECUTORS
            if EXECUTORS[executor].runs(client)
        ]
        names = [f"{client_name}@{executor}" for executor in fitting]
        executor = executor_spec(executor_name)
        if executor.runs(client):
            return Strategy(name, client.name, executor.name)
        goes_with = f"{client.name} goes with {', '.join(fitting)}"
        if client.kind == executor.needs and not executor.only:
            raise LabError(f"strategy {name!r}: {goes_with} only")
        runs = f"{executor.needs} clients"
        if executor.only:
            runs = f"only {', '.join(executor.only)}"
        raise LabError(f"strategy {name!r}: {executor.name} runs {runs}; {goes_with}")
    of_kind = _find_clients_of_kind(client_name, executor_name)
    if name.endswith(".py") or (":" in name and file_of(client_name) is None):
        hint = "; a function of yours is mine.py:fetch"
    elif of_kind:
        hint = f"; write {', '.join(of_kind)}"
    else:
        hint = suggest_nearest(name, names)
    if not {client_name, executor_name} & ADMITTED.keys():
        hint += f"; if a package has it, add -t {name}"
    raise LabError(
        f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'"
    )


def _find_clients_of_kind(client_name: str, kind: str) -> list[str]:
    """Return up to three strategies with the same library, if `kind` is one of clients.

    People write ``httpx@asyncio``, and mean ``httpx-async@workers``.
    """
    named = CLIENTS.get(client_name)
    if named is None or not kind:
        return []
    return [
        f"{client.name}@{client.pairs[0]}"
        for client in CLIENTS.values()
        if client.distribution == named.distribution
        and client.kind.startswith(kind)
        and client.pairs
    ][:3]


def suggest_concurrent(strategy: Strategy) -> str | None:
    """Return a strategy of the same client with several requests in flight.

    Return None if the client's entry names no executor.
    """
    if strategy.mended_by:
        return strategy.mended_by
    name = strategy.client
    pairs = client_spec(name).pairs
    if not pairs:
        return None
    if file_of(name):  # as the user wrote it, and not with an absolute path
        plain, _ = settings.split(strategy.name)
        name, _ = split_pair(plain)
    return f"{name}@{pairs[0]}"


# Availability and settings

URLLIB3_REPLACED = (
    "urllib3 is overwritten by urllib3-future, which niquests installed; scripts/setup"
    " keeps both, and so do: URLLIB3_NO_OVERRIDE=1 pip install --force-reinstall"
    " --no-deps --no-binary urllib3-future urllib3-future, then pip install"
    " --force-reinstall --no-deps urllib3"
)


def unavailable(strategy: Strategy) -> str | None:
    """Return why this machine can't measure the strategy and what to do, or None."""
    client = client_spec(strategy.client)
    if client.program and which(client.program) is None:
        return f"{client.program} is not installed; apt-get install {client.package}"
    for distribution, extra in list_missing(strategy):
        return f"{distribution} is not installed; pip install 'clientlab[{extra}]'"
    if "urllib3" in {client.distribution, *client.needs} and is_urllib3_replaced():
        return URLLIB3_REPLACED
    return None


def list_missing(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """Yield the missing distributions that the strategy needs.

    Each has the extra that installs it.
    """
    client = CLIENTS.get(strategy.client)
    executor = EXECUTORS.get(strategy.executor)
    needed = []
    if client is not None:
        names = (client.distribution, *client.needs)
        needed += [(name, client.extra) for name in names]
    if executor is not None:
        needed.append((executor.distribution, executor.extra))
    if strategy.settings.get("loop") == "uvloop":
        needed.append(("uvloop", EXTRA))
    if client is not None and (distribution := retry_distribution(strategy)):
        needed.append((distribution, RETRY_EXTRA))
    for distribution, extra in needed:
        module = distribution.replace("-", "_")
        if distribution != "python" and find_spec(module) is None:
            yield distribution, extra


def retry_distribution(strategy: Strategy) -> str:
    """Return the distribution that brings the strategy's retries, if one does."""
    way = strategy.settings.get("retry")
    if way == "own":
        way = client_spec(strategy.client).own_retries
    return WAYS[way].distribution if way in WAYS else ""


def list_imports(strategy: Strategy) -> list[str]:
    """Return the modules that a script with this strategy imports.

    It sends one request after the other.
    """
    client = CLIENTS[strategy.client]
    library = client.name if client.distribution == "python" else client.distribution
    names = [library, *client.needs]
    if client.kind == "asyncio":
        names.append("asyncio")
    if strategy.settings.get("loop") == "uvloop":
        names.append("uvloop")
    return [name.replace("-", "_") for name in names]


def is_urllib3_replaced() -> bool:
    """Return whether urllib3-future has replaced the files of urllib3.

    Its versions are X.Y.9ZZ.
    """
    spec = find_spec("urllib3")
    if spec is None or spec.origin is None:
        return False
    version = Path(spec.origin).with_name("_version.py")
    text = version.read_text(encoding="utf-8") if version.exists() else ""
    return re.search(r"""__version__\b.*=\s*["']\d+\.\d+\.9\d\d""", text) is not None


def load(import_path: str) -> Any:
    """Return the class that a spec names, ``module:Class``. Imports its library."""
    cls = ADMITTED_CLASSES.get(import_path)
    if cls is None:
        module, _, name = import_path.partition(":")
        cls = getattr(importlib.import_module(module), name)
    if hasattr(cls, "import_library"):  # its module does not import the library
        cls.import_library()
    return cls


def list_settings(import_path: str) -> dict[str, str]:
    """Return the settings of a client or executor, name → type.

    They are the keyword-only arguments of its class.
    """
    types = {}
    for name, parameter in inspect.signature(load(import_path)).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if parameter.annotation is inspect.Parameter.empty:
                text = type(parameter.default).__name__
            else:
                text = inspect.formatannotation(parameter.annotation)
            types[name] = text.strip("'")
    return types


def select_settings(strategy: Strategy, import_path: str) -> dict[str, Any]:
    """Return the strategy's settings that are arguments of the class at a path."""
    names = list_settings(import_path) if strategy.settings else {}
    return {key: value for key, value in strategy.settings.items() if key in names}


def retry_of(strategy: Strategy) -> Retry | None:
    """Return the strategy's retries, or None.

    Raise LabError for settings of retries that are not possible.
    """
    client = client_spec(strategy.client)
    executor = executor_spec(strategy.executor)
    given = _select_retry_settings(strategy)
    named = f"strategy {strategy.name!r}"
    if given and (client.program or executor.drives_client):
        raise LabError(
            f"{named}: {executor.name} sends requests itself, and retries none; leave"
            f" out {', '.join(given)}"
        )
    try:
        return read_retry(given, client.own_retries)
    except ValueError as error:
        raise LabError(f"{named}: {error}") from error


def without_retries(strategy: Strategy) -> Strategy:
    """Return the strategy without the settings that `retry_of` reads."""
    given = _select_retry_settings(strategy)
    kept = {key: value for key, value in strategy.settings.items() if key not in given}
    return replace(strategy, settings=kept)


def _select_retry_settings(strategy: Strategy) -> dict[str, Any]:
    given = {
        key: value for key, value in strategy.settings.items() if key in RETRY_SETTINGS
    }
    for spec in (client_spec(strategy.client), executor_spec(strategy.executor)):
        for key in select_settings(strategy, spec.import_path):
            given.pop(key, None)  # the class has a setting of this name
    return given


_CHOICES = {
    "loop": ("asyncio", "uvloop"),
    "start_method": ("fork", "forkserver", "spawn"),
    "trust": ("lab", "default"),
}


def _list_types(strategy: Strategy) -> dict[str, str]:
    """Return the strategy's possible settings, name → type.

    Raise UnavailableStrategy if a library is missing.
    """
    client = client_spec(strategy.client)
    executor = executor_spec(strategy.executor)
    try:
        types = list_settings(client.import_path)
        types |= list_settings(executor.import_path)
    except ModuleNotFoundError as error:  # a dependency of the library
        reason = (
            f"{error.name} is not installed; pip install 'clientlab[{client.extra}]'"
        )
        raise UnavailableStrategy(strategy.name, reason) from error
    if executor.size:
        types[executor.size] = "int"
    if strategy.policy == "pool" and not client.program:
        types["pool"] = "int | None" if client.unlimited else "int"
        types["library_defaults"] = "bool"
    for key, kind in RETRY_SETTINGS.items():
        types.setdefault(key, kind.annotation)
    return types


def check_settings(strategy: Strategy) -> None:
    """Raise LabError for a setting that the strategy does not have.

    Raise UnavailableStrategy if a library is missing.
    """
    if reason := unavailable(strategy):
        raise UnavailableStrategy(strategy.name, reason)
    client = client_spec(strategy.client)
    types = _list_types(strategy)
    size = executor_spec(strategy.executor).size
    numbers = {"pool", "processes", "threads", "chunks", size}
    for key, value in strategy.settings.items():
        if key not in types:
            raise LabError(
                f"strategy {strategy.name!r} has no setting {key!r}; it has"
                f" {', '.join(types) or 'none'}"
            )
        written = (
            f"strategy {strategy.name!r}: setting {key}={settings.write_setting(value)}"
        )
        if not settings.fits(value, types[key]):
            raise LabError(f"{written} must be {settings.describe_type(types[key])}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise LabError(f"{written}; write {' or '.join(_CHOICES[key])}")
        least = 0 if key == "pool" and client.unlimited else 1
        if key in numbers and value is not None and value < least:
            raise LabError(f"{written}; write {least} or more")
    retry_of(strategy)


def check_capabilities(strategy: Strategy, workload: Workload) -> None:
    """Raise FieldError, with a field of the workload, if the client cannot do it."""
    named = f"strategy {strategy.name!r}"
    spec = client_spec(strategy.client)
    client = load(spec.import_path)
    starts_cold = strategy.client in CLIENTS and strategy.executor in {
        "serial",
        "await",
    }
    if workload.cold and not starts_cold:
        raise FieldError(
            ["cold"],
            f"{named}: only a client that the lab lists, without an executor, starts"
            " cold, such as requests or aiohttp",
        )
    if hasattr(client, "refuses"):
        refusal = client.refuses(workload)
        if refusal:
            key, reason = refusal
            raise FieldError([key], f"{named}: {client.program} {reason}")
        return
    stream = workload.stream
    if spec.formats and (stream is None or stream.format not in spec.formats):
        raise FieldError(
            ["stream"],
            f"{named} reads streams of {' or '.join(spec.formats)} only; name one of"
            " them",
            value="" if stream is None else stream.format,
        )
    retry = retry_of(strategy)
    around = retry.way if retry is not None and retry.way in AROUND else ""
    drives_client = executor_spec(strategy.executor).drives_client
    for key, is_able, lack in _list_asked(workload, client):
        if around and key != "upload":
            raise FieldError([key], f"{named}: {around} retries only whole responses")
        if is_able and not drives_client:
            continue
        advice = "requests-session can"
        if is_able:
            advice = f"run {strategy.client} with another executor"
        value = value_of(workload, key)
        raise FieldError(
            [key], f"{named} {lack}; {advice}", value="" if value is True else value
        )


def _list_asked(workload: Workload, client: Any) -> Iterator[tuple[str, bool, str]]:
    """Yield fields that not all clients can do, whether this one can, and the lack."""
    streams = hasattr(client, "stream")
    reads_no_parts = "does not read a body as it arrives"
    if workload.reading.read == "chunks":
        yield "read", streams, "reads no body in chunks"
    if workload.request.upload == "stream":
        is_able = getattr(client, "streams_uploads", True)
        yield "upload", is_able, "streams no upload of known length"
    if workload.reading.elapsed:
        is_able = hasattr(client, "timed")
        yield "elapsed", is_able, "does not measure its requests itself"
    if workload.reading.first_byte:
        yield "first_byte", streams, reads_no_parts
    if workload.stream:
        yield "stream", streams or hasattr(client, "events"), reads_no_parts
