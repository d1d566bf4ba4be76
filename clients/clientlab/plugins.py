"""A user's own clients and executors: classes and functions of a file, and entry points
of installed packages.

`admit` is the only function of the lab that runs such code. It gets the names of the
command line and those of an experiment that the command line names. Names also come
from run files: `strategies` only looks up what was admitted in this process.

A class with the methods `open`, `send` and `close` is a client; one with `open`, `run`
and `close` is an executor. Class attributes set the fields of its spec. A function of a
file is a client that gets a URL.
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
from clientlab.workload.workload import Request, Workload

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clientlab.strategies"  # of entry points


def admit(names: Iterable[str]) -> None:
    """Load the code that names of strategies, clients and executors hold.

    Listed ones need no code.

    Errors are kept: `strategies.client_spec` and `strategies.executor_spec` raise them.
    """
    named = (
        part
        for name in names
        for part in map(make_absolute, split_pair(settings.split(name)[0]))
    )
    admitted = strategies.ADMITTED
    known = CLIENTS.keys() | EXECUTORS.keys() | admitted.keys() | {""}
    parts = [part for part in dict.fromkeys(named) if part not in known]
    points = {} if all(map(file_of, parts)) else _entry_points()
    for part in parts:
        try:
            if path := file_of(part):
                admitted[part] = _load_from_file(path, part)
            else:
                admitted[part] = (
                    _load_from_package(points[part]) if part in points else None
                )
        except PluginError as error:
            admitted[part] = error


def admit_packages() -> None:
    """Load all entry points of the group."""
    admit(_entry_points())


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import (  # noqa: PLC0415 - 20 ms, which a listed strategy does not need
        entry_points,
    )

    return {point.name: point for point in entry_points(group=GROUP)}


def _load_from_package(point: EntryPoint) -> ClientSpec | ExecutorSpec:
    source = point.dist.name if point.dist else point.module
    with _as_plugin_error(
        f"strategy {point.name!r}: {point.value} of {source} can't be loaded"
    ):
        loaded = point.load()
    if not inspect.isclass(loaded):
        raise PluginError(
            f"strategy {point.name!r} of {source}: {point.value} is not a class"
        )
    return _make_spec(loaded, point.name, point.value, source)


def _load_from_file(path: Path, name: str) -> ClientSpec | ExecutorSpec:
    module, attribute = _import_file(path), name.rpartition(":")[2]
    found = getattr(module, attribute, None)
    if callable(found) and not inspect.isclass(found):
        found = _make_function_client(attribute, found)
    if found is None or not inspect.isclass(found):
        own = [
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__
        ]
        usable = [
            key
            for key in own
            if callable(getattr(module, key)) and not key.startswith("_")
        ]
        raise PluginError(
            f"{path} has no class or function {attribute}; it has"
            f" {', '.join(usable) or 'none'}"
        )
    strategies.ADMITTED_CLASSES[name] = found
    return _make_spec(found, name, name, str(path))


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
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if (
        str(path.parent) not in sys.path
    ):  # last on the path: the file can import its neighbours, which hide no library
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
    """Turn any exception of a plug-in's code into a PluginError of two lines: what and
    where, then the exception.
    """
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        line = line_of(error, path) if path else None
        where = f", line {line}" if line else ""
        raise PluginError(f"{what}{where}\n{type(error).__name__}: {error}") from error


def line_of(error: BaseException, path: Path) -> int | None:
    """Return the innermost line of a file in an error's traceback, or None if the file
    is not in it.
    """
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
    description = first_paragraph(inspect.getdoc(cls) or cls.__name__)
    fields: dict[str, Any] = {"import_path": import_path, "description": description}
    methods = {
        method
        for method in ("open", "send", "run", "close")
        if callable(getattr(cls, method, None))
    }

    def read(attribute: str, known: tuple[Any, ...]) -> Any:
        if (value := getattr(cls, attribute, known[0])) not in known:
            raise PluginError(
                f"{_place_of(cls)}\n{attribute} is {value!r}; it must be one of"
                f" {', '.join(known)}"
            )
        return value

    if methods >= {"open", "send", "close"}:
        _check_arguments(cls, "budget", "opened")
        kind: ClientKind = (
            "asyncio" if inspect.iscoroutinefunction(cls.send) else "blocking"
        )
        policy, http = read("policy", get_args(Policy)), read("http", ("1.1", "2"))
        fields |= {
            flag: bool(getattr(cls, flag, False)) for flag in ("native", "url_only")
        }
        fields["formats"] = tuple(getattr(cls, "formats", ()))
        fields["pairs"] = ("workers" if kind == "asyncio" else "threads",)
        return ClientSpec(name, distribution, policy, kind=kind, http=http, **fields)
    if methods >= {"open", "run", "close"}:
        _check_arguments(cls, "context")
        flags = ("needs_count", "unbounded", "threads", "clock_first")
        fields |= {flag: bool(getattr(cls, flag, False)) for flag in flags}
        fields["concurrent"] = bool(getattr(cls, "concurrent", True))
        return ExecutorSpec(
            name,
            read("needs", get_args(ClientKind)),
            distribution=distribution,
            **fields,
        )
    raise PluginError(
        f"{_place_of(cls)}\na client has the methods open, send, close; an executor"
        " open, run, close"
    )


def _check_arguments(code: Any, *names: str) -> None:
    try:
        inspect.signature(code).bind(*names)
    except TypeError as error:
        message = (
            f"it is called with {' and '.join(names)} ({error}); write it with"
            f" ({', '.join(names)})"
        )
        raise PluginError(f"{_place_of(code)}\n{message}") from error
    except ValueError:  # code in C without a signature
        pass


def _place_of(code: Any) -> str:
    name = getattr(code, "__name__", type(code).__name__)
    try:
        return (
            f"{inspect.getsourcefile(code)}, line {inspect.getsourcelines(code)[1]}:"
            f" {name}"
        )
    except (OSError, TypeError):  # the source is not available
        return name


# A function as a client

_BODIES = (bytes, bytearray, memoryview)
_BEYOND_URL = (
    "stream",
    "method",
    "headers",
    "body",
    "payload_size",
    "upload_size",
    "replay",
    "read",
    "elapsed",
    "first_byte",
    "timeout",
)


def _make_function_client(name: str, function: Callable[[str], Any]) -> type:
    import ssl  # noqa: PLC0415 - gevent has to patch it first

    _check_arguments(function, "url")
    awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )
    attributes = {
        "__doc__": inspect.getdoc(function) or f"the function {name}",
        "function": staticmethod(function),
        "policy": getattr(function, "policy", "pool"),
        "errors": ((ssl.SSLError, "tls"), *FunctionClient.errors),
    }
    return type(name, (AsyncFunctionClient if awaited else FunctionClient,), attributes)


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
        """Return the first field of the workload that needs more than a URL, and the
        reason; None if there is none.
        """
        plain = Workload()
        field = next(
            (
                name
                for name in _BEYOND_URL
                if getattr(workload, name) != getattr(plain, name)
            ),
            None,
        )
        return (
            None
            if field is None
            else (field, f"gets nothing else; write a class, or leave out `{field}`")
        )

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
        status = getattr(returned, "status_code", None) or getattr(
            returned, "status", None
        )
        body = getattr(returned, "content", None)
        if not isinstance(body, _BODIES):  # urllib3
            body = getattr(returned, "data", None)
    if isinstance(status, int) and 100 <= status < 600 and isinstance(body, _BODIES):
        return status, body  # type: ignore[return-value]  # the recorder needs its length, and json.loads reads it
    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that nobody awaited it
        raise PluginError(
            "the function returned a coroutine; write 'async def', and await it"
        )
    types = (
        [type(one).__name__ for one in returned]
        if isinstance(returned, tuple)
        else [type(returned).__name__]
    )
    raise PluginError(
        f"the function returned {', '.join(types)}; return your library's response, or"
        " its status and body, an int and bytes: 'return response.status, body'"
    )
