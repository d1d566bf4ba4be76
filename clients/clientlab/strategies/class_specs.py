"""Specs of clients and executors that are not listed, from their classes.

A class with the methods `open`, `send` and `close` is a client; one with `open`, `run` and `close` is an executor.
Class attributes set the fields of its spec, and all have defaults: `policy`, `http` and `native` of a client; `needs`,
`needs_count`, `concurrent`, `unbounded`, `threads` and `clock_first` of an executor.
"""

from __future__ import annotations

import inspect
from typing import Any, get_args

from clientlab.errors import PluginError
from clientlab.strategies.specs import ClientKind, ClientSpec, ExecutorSpec, Policy

_CLIENT = ("open", "send", "close")
_EXECUTOR = ("open", "run", "close")


def is_executor(cls: type) -> bool:
    """Whether a class has the methods of an executor, and lacks one of a client's."""
    return not _missing(cls, _EXECUTOR) and bool(_missing(cls, _CLIENT))


def client_of(name: str, import_path: str, cls: type, distribution: str) -> ClientSpec:
    """The spec of a class that is a client. Raises PluginError for a class that is none."""
    _check_methods(cls, _CLIENT, "a client")
    kind: ClientKind = "asyncio" if inspect.iscoroutinefunction(getattr(cls, "send")) else "blocking"  # noqa: B009
    policy = _one_of(cls, "policy", "pool", get_args(Policy))
    http = _one_of(cls, "http", "1.1", ("1.1", "2"))
    native = bool(getattr(cls, "native", False))
    return ClientSpec(name, import_path, kind, distribution, policy, _first_line(cls), http, native=native)


def executor_of(name: str, import_path: str, cls: type, distribution: str) -> ExecutorSpec:
    """The spec of a class that is an executor. Raises PluginError for a class that is none."""
    _check_methods(cls, _EXECUTOR, "an executor")
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
