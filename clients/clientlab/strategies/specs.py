"""The specs of clients and executors, listed or made from a user's classes. A listed one imports no library.

A class with the methods `open`, `send` and `close` is a client; one with `open`, `run` and `close` is an executor.
Class attributes set the fields of its spec, and all have defaults: `policy`, `http` and `native` of a client; `needs`,
`needs_count`, `concurrent`, `unbounded`, `threads` and `clock_first` of an executor.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from clientlab.errors import PluginError

ClientKind = Literal["blocking", "asyncio", "program"]
"""What calls a client. A program sends all requests itself: it is a load generator, not a library."""
Policy = Literal["per call", "pool", "per thread"]

EXTRA = "all"
"""The extra of pyproject.toml with every library that the lab measures, except for those with an extra of their own."""


def _quirk(description: str, default: Any) -> Any:
    """A field with the sentence that `clientlab list clients` shows about it."""
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class Quirks:
    """What a library does unlike all others, where its client cannot prevent that.

    Conformance checks and tests permit exactly these differences. `resends_after` and `fault_kinds` name faults of
    conformance/faults.py.
    """

    opens_ahead: bool = _quirk("may open one more connection while a used one returns to its pool", default=False)
    closes_after_head: bool = _quirk("closes its connection after each HEAD", default=False)
    resends_after: tuple[str, ...] = _quirk("sends the request again after the fault", default=())
    fault_kinds: tuple[tuple[str, str], ...] = _quirk("reports the fault as another kind of error", default=())
    one_request_per_connection: bool = _quirk("sends one request at a time per HTTP/2 connection", default=False)
    resumes_tls: bool = _quirk("resumes a TLS session on its next connection", default=False)
    keep_alive_header: bool = _quirk("sends `Connection: keep-alive`, 24 bytes more per request", default=False)
    uncounted: bool = _quirk("hides its connections, which are unknown (–)", default=False)
    searches_pool: bool = _quirk("searches its whole pool for each request: CPU time grows with `-c`", default=False)
    own_chunk_size: int | None = _quirk("ignores `chunk_size`; bytes of its largest chunk", default=None)
    late_in_bodies: float = _quirk("seconds after the time limit until it notices silence in a body", default=0.0)


@dataclass(frozen=True)
class ClientSpec:
    """One library with one policy: who owns a connection, and for how long."""

    name: str
    import_path: str  # module:Class
    kind: ClientKind
    distribution: str  # the run file has its version; "python": the standard library
    policy: Policy
    description: str
    http: Literal["1.1", "2"] = "1.1"  # the only version that it speaks; "2": over TLS only
    streams: int | None = None  # HTTP/2: the most requests at once on a connection, if the library has a limit
    executors: tuple[str, ...] = ()  # its listed strategies, beside the one that sends one request after the other
    only: tuple[str, ...] = ()  # the executors that it goes with, that of its bare name first; empty: all of its kind
    on_uvloop: tuple[str, ...] = ()  # executors of its listed strategies on uvloop's event loop
    needs: tuple[str, ...] = ()  # further distributions
    extra: str = EXTRA  # the extra of pyproject.toml that installs it
    program: str = ""  # the program that it starts, if it is no library
    package: str = ""  # the system package with the program
    unlimited: bool = False  # its pool can be without a limit
    native: bool = False  # its library works outside the GIL: each thread can use a core
    own_threads: bool = False  # a native library with threads of its own
    url_only: bool = False  # a function that gets a URL, with no method, header, body or CA of the lab's
    quirks: Quirks = Quirks()


@dataclass(frozen=True)
class ExecutorSpec:
    """One way to run many requests. `needs` is the kind of client that it runs."""

    name: str
    import_path: str  # module:Class
    needs: ClientKind
    description: str
    needs_count: bool = False  # starts all requests at once, so their number must be known
    concurrent: bool = True  # has more than one request in flight
    unbounded: bool = False  # has all requests in flight, whatever the concurrency
    pool_bound: bool = False  # only the client's pool limits the requests in flight
    threads: bool = False  # each request in flight has a thread
    clock_first: bool = False  # the clock of a request starts before a connection of the pool is free
    size: str = ""  # the setting that replaces ``-c`` for its strategies
    only: tuple[str, ...] = ()  # the clients that it runs; empty: all of its kind
    policy: Policy | None = None  # of connections; None: the client's
    drives_client: bool = False  # sends with the client's handles: whole bodies, timed by the lab only
    distribution: str = "python"  # it needs this one, and the run file has its version
    extra: str = EXTRA  # the extra of pyproject.toml that installs it


_CLIENT = ("open", "send", "close")
_EXECUTOR = ("open", "run", "close")


def is_executor(cls: type) -> bool:
    """Whether a class has the methods of an executor, and lacks one of a client's."""
    return not _missing(cls, _EXECUTOR) and bool(_missing(cls, _CLIENT))


def client_of(name: str, import_path: str, cls: type, distribution: str) -> ClientSpec:
    """The spec of a class that is a client. Raises PluginError for a class that is none."""
    _check_methods(cls, _CLIENT, "a client")
    _check_arguments(cls, "budget", "opened")
    kind: ClientKind = "asyncio" if inspect.iscoroutinefunction(getattr(cls, "send")) else "blocking"  # noqa: B009
    policy = _one_of(cls, "policy", "pool", get_args(Policy))
    http = _one_of(cls, "http", "1.1", ("1.1", "2"))
    native, url_only = (bool(getattr(cls, flag, False)) for flag in ("native", "url_only"))
    return ClientSpec(
        name, import_path, kind, distribution, policy, _first_line(cls), http, native=native, url_only=url_only
    )


def executor_of(name: str, import_path: str, cls: type, distribution: str) -> ExecutorSpec:
    """The spec of a class that is an executor. Raises PluginError for a class that is none."""
    _check_methods(cls, _EXECUTOR, "an executor")
    _check_arguments(cls, "context")
    return ExecutorSpec(
        name,
        import_path,
        needs=_one_of(cls, "needs", "blocking", get_args(ClientKind)),
        description=_first_line(cls),
        needs_count=bool(getattr(cls, "needs_count", False)),
        concurrent=bool(getattr(cls, "concurrent", True)),
        unbounded=bool(getattr(cls, "unbounded", False)),
        threads=bool(getattr(cls, "threads", False)),
        clock_first=bool(getattr(cls, "clock_first", False)),
        distribution=distribution,
    )


def _missing(cls: type, methods: tuple[str, ...]) -> list[str]:
    return [name for name in methods if not callable(getattr(cls, name, None))]


def _check_methods(cls: type, methods: tuple[str, ...], what: str) -> None:
    if missing := _missing(cls, methods):
        raise PluginError(f"{_location(cls)}\nit lacks {', '.join(missing)}: {what} has {', '.join(methods)}")


def _check_arguments(cls: type, *given: str) -> None:
    """Raises PluginError for a class that the lab cannot make an object of."""
    try:
        inspect.signature(cls).bind(*given)
    except TypeError as error:
        message = f"it is called with {' and '.join(given)} ({error}); write 'def __init__(self, {', '.join(given)})'"
        raise PluginError(f"{_location(cls)}\n{message}") from error
    except ValueError:  # a class in C without a signature
        pass


def _one_of(cls: type, attribute: str, default: str, known: tuple[Any, ...]) -> Any:
    value = getattr(cls, attribute, default)
    if value not in known:
        raise PluginError(f"{_location(cls)}\n{attribute} is {value!r}; it must be one of {', '.join(known)}")
    return value


def _location(cls: type) -> str:
    """The class with its file and line."""
    try:
        return f"{inspect.getsourcefile(cls)}, line {inspect.getsourcelines(cls)[1]}: class {cls.__name__}"
    except (OSError, TypeError):  # the source is not available
        return f"class {cls.__module__}.{cls.__name__}"


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or cls.__name__).splitlines()[0]
