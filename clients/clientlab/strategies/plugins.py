"""Clients and executors from elsewhere: classes of a user's file, and entry points of packages.

`open`, `send` and `close` make a client, `open`, `run` and `close` an executor. What a row of the lists
says of it, a class says by attributes, all of which have defaults: `policy` and `http` of a client; `needs`,
`counted`, `many` and `unbounded` of an executor.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from clientlab.errors import PluginError
from clientlab.strategies import user_file
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.rows import ClientRow, ExecutorRow, Kind, Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clientlab.strategies"

_CLIENT = ("open", "send", "close")
_EXECUTOR = ("open", "run", "close")


def client_row(name: str) -> ClientRow:
    """The row of a client: listed, of a package, or a class of a user's file. Raises KeyError, PluginError."""
    if name in CLIENTS:
        return CLIENTS[name]
    if user_file.is_place(name):
        place = user_file.absolute(name)
        return _client(place, place, user_file.load(place), str(user_file.file_of(place)))
    return installed().clients[name]


def executor_row(name: str) -> ExecutorRow:
    """The same for an executor."""
    if name in EXECUTORS:
        return EXECUTORS[name]
    if user_file.is_place(name):
        place = user_file.absolute(name)
        return _executor(place, place, user_file.load(place), str(user_file.file_of(place)))
    return installed().executors[name]


def is_executor(cls: type) -> bool:
    """Whether a class has the shape of an executor, and not of a client."""
    return not _missing(cls, _EXECUTOR) and bool(_missing(cls, _CLIENT))


@dataclass
class Installed:
    """What packages bring by entry points of the group, by name.

    `sources`: the distribution that each comes from. `others`: what is neither class nor row. `faults`:
    what is wrong with those that can't be loaded; the others are there all the same.
    """

    clients: dict[str, ClientRow] = field(default_factory=dict)
    executors: dict[str, ExecutorRow] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    faults: dict[str, PluginError] = field(default_factory=dict)

    def add(self, point: EntryPoint) -> None:
        """Take one in. Raises PluginError."""
        source = point.dist.name if point.dist else point.module
        with user_file.telling(f"strategy {point.name!r}: {point.value} of {source} can't be loaded"):
            found = point.load()
        if inspect.isclass(found):
            found = _row_of_class(point, found, source)
        name = getattr(found, "name", point.name)
        if name in CLIENTS or name in EXECUTORS or name in self.sources:
            raise PluginError(f"strategy {name!r} of {source}: the name is taken; the package is to choose another")
        self.sources[name] = source
        if isinstance(found, ClientRow):
            self.clients[name] = found
        elif isinstance(found, ExecutorRow):
            self.executors[name] = found
        else:
            self.others[name] = found


@cache
def installed() -> Installed:
    """All entry points of the group, loaded once."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 15 ms, of no use to a listed strategy's trial

    found = Installed()
    for point in entry_points(group=GROUP):
        try:
            found.add(point)
        except PluginError as error:
            found.faults[point.name] = error
    return found


def _row_of_class(point: EntryPoint, cls: type, source: str) -> ClientRow | ExecutorRow:
    if is_executor(cls):
        return _executor(point.name, point.value, cls, source)
    return _client(point.name, point.value, cls, source)


def _client(name: str, place: str, cls: type, distribution: str) -> ClientRow:
    _shaped(cls, _CLIENT, "a client")
    kind: Kind = "asyncio" if inspect.iscoroutinefunction(getattr(cls, "send")) else "blocking"  # noqa: B009
    policy = _one_of(cls, "policy", "pool", get_args(Policy))
    http = _one_of(cls, "http", "1.1", ("1.1", "2"))
    return ClientRow(name, place, kind, distribution, policy, _first_line(cls), http)


def _executor(name: str, place: str, cls: type, distribution: str) -> ExecutorRow:
    _shaped(cls, _EXECUTOR, "an executor")
    return ExecutorRow(
        name,
        place,
        needs=_one_of(cls, "needs", "blocking", get_args(Kind)),
        says=_first_line(cls),
        counted=bool(getattr(cls, "counted", False)),
        many=bool(getattr(cls, "many", True)),
        unbounded=bool(getattr(cls, "unbounded", False)),
        distribution=distribution,
    )


def _missing(cls: type, methods: tuple[str, ...]) -> list[str]:
    return [name for name in methods if not callable(getattr(cls, name, None))]


def _shaped(cls: type, methods: tuple[str, ...], what: str) -> None:
    if missing := _missing(cls, methods):
        raise PluginError(f"{_where(cls)}\nit lacks {', '.join(missing)}: {what} has {', '.join(methods)}")


def _one_of(cls: type, word: str, default: str, known: tuple[Any, ...]) -> Any:
    value = getattr(cls, word, default)
    if value not in known:
        raise PluginError(f"{_where(cls)}\n{word} is {value!r}; it is to be one of {', '.join(known)}")
    return value


def _where(cls: type) -> str:
    """The class with its file and line."""
    try:
        return f"{inspect.getsourcefile(cls)}, line {inspect.getsourcelines(cls)[1]}: class {cls.__name__}"
    except (OSError, TypeError):  # its source is not there
        return f"class {cls.__module__}.{cls.__name__}"


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or cls.__name__).splitlines()[0]
