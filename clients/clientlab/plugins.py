"""A user's own clients and executors, from files and from installed packages.

`admit` is the only function of the lab that runs such code. It gets the names of the
command line and those of an experiment that the command line names. Names also come
from run files: `strategies` only looks up what was admitted in this process.

A file has classes and functions, a package has entry points. A class with the methods
`open`, `send` and `close` is a client; one with `open`, `run` and `close` is an
executor. Class attributes set the fields of its spec. A function of a file is a client
that gets a URL.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from clientlab import settings, strategies
from clientlab.clients.client_interface import (
    Client,
    ClientKind,
    ClientSpec,
    Policy,
    StatusAndBody,
)
from clientlab.errors import ErrorTable, PluginError
from clientlab.executors.executor_interface import ExecutorSpec
from clientlab.strategies import CLIENTS, EXECUTORS, file_of, make_absolute, split_pair
from clientlab.text import first_paragraph
from clientlab.workload.workload import (
    DONE_BY_LAB,
    Request,
    Workload,
    first_beyond,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clientlab.strategies"  # of entry points


def admit(names: Iterable[str]) -> None:
    """Load the code that names of strategies, clients and executors hold.

    Listed ones need no code. Errors are kept: `strategies.client_spec` and
    `strategies.executor_spec` raise them.
    """
    admitted = strategies.ADMITTED
    known = CLIENTS.keys() | EXECUTORS.keys() | admitted.keys() | {""}
    unknown: list[str] = []
    for name in names:
        plain, _ = settings.split(name)
        for part in map(make_absolute, split_pair(plain)):
            if part not in known and part not in unknown:
                unknown.append(part)
    points = {} if all(map(file_of, unknown)) else _entry_points()
    for part in unknown:
        path = file_of(part)
        try:
            if path is not None:
                admitted[part] = _load_from_file(path, part)
            elif part in points:
                admitted[part] = _load_from_package(points[part])
            else:
                admitted[part] = None
        except PluginError as error:
            admitted[part] = error


def admit_packages() -> None:
    """Load all entry points of the group."""
    admit(_entry_points())


def _entry_points() -> dict[str, EntryPoint]:
    # 20 ms, which a listed strategy does not need.
    from importlib import metadata  # noqa: PLC0415

    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def _load_from_package(point: EntryPoint) -> ClientSpec | ExecutorSpec:
    source = point.dist.name if point.dist else point.module
    failed = f"strategy {point.name!r}: {point.value} of {source} can't be loaded"
    with _as_plugin_error(failed):
        loaded = point.load()
    if not inspect.isclass(loaded):
        raise PluginError(
            f"strategy {point.name!r} of {source}: {point.value} is not a class"
        )
    return _make_spec(loaded, point.name, point.value, source)


def _load_from_file(path: Path, name: str) -> ClientSpec | ExecutorSpec:
    module = _import_file(path)
    attribute = name.rpartition(":")[2]
    member = getattr(module, attribute, None)
    if callable(member) and not inspect.isclass(member):
        member = _make_function_client(attribute, member)
    if not inspect.isclass(member):
        usable = [
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__
            and callable(value)
            and not key.startswith("_")
        ]
        raise PluginError(
            f"{path} has no class or function {attribute}; it has"
            f" {', '.join(usable) or 'none'}"
        )
    strategies.ADMITTED_CLASSES[name] = member
    return _make_spec(member, name, name, str(path))


def _import_file(path: Path) -> ModuleType:
    """Import a file, under a module name that no library has."""
    name = "clientlab_user" + re.sub(r"\W", "_", str(path))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise PluginError(
            f"there is no file {path}; write the path of a Python file, and :CLASS"
            " behind it"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Last on the path: the file can import its neighbours, which hide no library.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        with _as_plugin_error(f"{path} can't be imported", path):
            spec.loader.exec_module(module)
    except PluginError:
        del sys.modules[name]
        raise
    return module


@contextlib.contextmanager
def _as_plugin_error(what: str, path: Path | None = None) -> Iterator[None]:
    """Turn any exception of a plug-in's code into a PluginError of two lines.

    They hold what and where, and the exception.
    """
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        line = line_of(error, path) if path else None
        where = f"{what}, line {line}" if line else what
        raise PluginError(f"{where}\n{type(error).__name__}: {error}") from error


def line_of(error: BaseException, path: Path) -> int | None:
    """Return the innermost line of a file in an error's traceback, or None."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return lines[-1] if lines else None


def _make_spec(
    cls: Any, name: str, import_path: str, distribution: str
) -> ClientSpec | ExecutorSpec:
    methods = {
        method
        for method in ("open", "send", "run", "close")
        if callable(getattr(cls, method, None))
    }
    fields: dict[str, Any] = {
        "name": name,
        "distribution": distribution,
        "import_path": import_path,
        "description": first_paragraph(inspect.getdoc(cls) or cls.__name__),
    }
    if methods >= {"open", "send", "close"}:
        _check_arguments(cls, "budget", "opened")
        kind: ClientKind = "blocking"
        executor = "threads"
        if inspect.iscoroutinefunction(cls.send):
            kind = "asyncio"
            executor = "workers"
        return ClientSpec(
            policy=_read_choice(cls, "policy", get_args(Policy)),
            http=_read_choice(cls, "http", ("1.1", "2")),
            kind=kind,
            native=bool(getattr(cls, "native", False)),
            url_only=bool(getattr(cls, "url_only", False)),
            formats=tuple(getattr(cls, "formats", ())),
            pairs=(executor,),
            **fields,
        )
    if methods >= {"open", "run", "close"}:
        _check_arguments(cls, "context")
        for flag in ("needs_count", "unbounded", "threads", "clock_first"):
            fields[flag] = bool(getattr(cls, flag, False))
        return ExecutorSpec(
            needs=_read_choice(cls, "needs", get_args(ClientKind)),
            concurrent=bool(getattr(cls, "concurrent", True)),
            **fields,
        )
    raise PluginError(
        f"{_place_of(cls)}\na client has the methods open, send, close; an executor"
        " open, run, close"
    )


def _read_choice(cls: Any, attribute: str, known: tuple[Any, ...]) -> Any:
    """Return a class attribute, by default the first of the known values."""
    value = getattr(cls, attribute, known[0])
    if value not in known:
        raise PluginError(
            f"{_place_of(cls)}\n{attribute} is {value!r}; it must be one of"
            f" {', '.join(known)}"
        )
    return value


def _check_arguments(code: Any, *names: str) -> None:
    try:
        inspect.signature(code).bind(*names)
    except TypeError as error:
        raise PluginError(
            f"{_place_of(code)}\nit is called with {' and '.join(names)} ({error});"
            f" write it with ({', '.join(names)})"
        ) from error
    except ValueError:  # code in C without a signature
        pass


def _place_of(code: Any) -> str:
    name = getattr(code, "__name__", type(code).__name__)
    try:
        line = inspect.getsourcelines(code)[1]
        return f"{inspect.getsourcefile(code)}, line {line}: {name}"
    except (OSError, TypeError):  # the source is not available
        return name


# A function as a client

_BODIES = (bytes, bytearray, memoryview)


def _make_function_client(name: str, function: Callable[[str], Any]) -> type:
    import ssl  # noqa: PLC0415 - gevent has to patch it first

    _check_arguments(function, "url")
    base = FunctionClient
    if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        base = AsyncFunctionClient
    attributes = {
        "__doc__": inspect.getdoc(function) or f"the function {name}",
        "function": staticmethod(function),
        "policy": getattr(function, "policy", "pool"),
        "errors": ((ssl.SSLError, "tls"), *FunctionClient.errors),
    }
    return type(name, (base,), attributes)


class FunctionClient(Client):
    """A blocking function of a URL: `def fetch(url)`.

    Pool, time limits and CAs are its own.

    The function returns a response that holds its status and its whole body, or these
    two as a tuple. Both are required: without the status, an error page would count as
    success; without the body, nobody would know whether it was read. The lab does not
    know the library behind the function, and so not its exceptions.
    """

    url_only: ClassVar[bool] = True
    program: ClassVar[str] = "a function of a URL"
    errors: ClassVar[ErrorTable] = (
        (socket.gaierror, "connect"),
        (ConnectionRefusedError, "connect"),
        (ConnectionError, "reset"),
        (TimeoutError, "timeout"),
    )
    function: ClassVar[Any]

    @staticmethod
    def refuses(workload: Workload) -> tuple[str, str] | None:
        """Return the first field that needs more than a URL, with a reason, or None."""
        name = first_beyond(workload, DONE_BY_LAB)
        if name is None:
            return None
        return name, f"gets nothing else; write a class, or leave out `{name}`"

    def send(self, request: Request) -> StatusAndBody:
        return status_and_body(self.function(request.url))


class AsyncFunctionClient(FunctionClient):
    """An asyncio function of a URL: `async def fetch(url)`."""

    async def open(self) -> None: ...  # type: ignore[override]

    async def send(self, request: Request) -> StatusAndBody:  # type: ignore[override]
        return status_and_body(await self.function(request.url))

    async def close(self) -> None: ...  # type: ignore[override]


def status_and_body(returned: Any) -> StatusAndBody:
    """Return status and whole body of what a function returned.

    Raises PluginError if one is missing.
    """
    if isinstance(returned, tuple) and len(returned) == 2:
        status, body = returned
    else:
        status = getattr(returned, "status_code", None)
        if not status:
            status = getattr(returned, "status", None)
        body = getattr(returned, "content", None)
        if not isinstance(body, _BODIES):  # urllib3
            body = getattr(returned, "data", None)
    if isinstance(status, int) and 100 <= status < 600 and isinstance(body, _BODIES):
        # The recorder needs its length, and json.loads reads it.
        return status, body  # type: ignore[return-value]
    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that nobody awaited it
        raise PluginError(
            "the function returned a coroutine; write 'async def', and await it"
        )
    parts = returned if isinstance(returned, tuple) else [returned]
    types = ", ".join(type(part).__name__ for part in parts)
    raise PluginError(
        f"the function returned {types}; return your library's response, or its status"
        " and body, an int and bytes: 'return response.status, body'"
    )
