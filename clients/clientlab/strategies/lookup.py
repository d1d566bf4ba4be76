"""Finding a strategy by its name, with the settings written behind it, and loading its classes."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
from dataclasses import replace
from typing import Any

from clientlab import settings
from clientlab.errors import LabError
from clientlab.strategies import foreign, user_file
from clientlab.strategies.availability import unavailable
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.pairs import STRATEGIES, Strategy
from clientlab.strategies.plugins import client_row, executor_row
from clientlab.strategies.rows import ClientRow, ExecutorRow

_CHOICES = {"loop": ("asyncio", "uvloop"), "start_method": ("fork", "forkserver", "spawn")}
_COUNTS = ("pool", "processes", "chunks", "pool_connections", "num_pools")


def find(name: str) -> Strategy:
    """The strategy of that name, or any fitting ``client@executor``, with settings: ``NAME?pool=10``.

    Raises LabError with the nearest names. Settings are checked by `check_settings`.
    """
    plain, given = settings.split(name)
    strategy = _plain(plain)
    if plain == name:
        return strategy
    return replace(strategy, name=name, settings={**strategy.settings, **given})


def _plain(name: str) -> Strategy:
    if name in STRATEGIES:
        return STRATEGIES[name]
    client, executor = foreign.parts(name)
    if not executor:
        found = foreign.alone(name)
        if found is not None:
            return found
    else:
        with contextlib.suppress(KeyError):  # told below
            return _paired(name, client_row(client), executor_row(executor))
    near = difflib.get_close_matches(name, [*STRATEGIES, *foreign.of_packages()], n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise LabError(f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'")


def settings_of(place: str) -> dict[str, str]:
    """Names and types of the settings of a client or executor: its keyword-only arguments, as annotated."""
    parameters = inspect.signature(load(place)).parameters.values()
    return {p.name: _kind_of(p) for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _kind_of(parameter: inspect.Parameter) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        return type(parameter.default).__name__
    return inspect.formatannotation(parameter.annotation).strip("'")


def check_settings(strategy: Strategy) -> None:
    """Raises LabError for a library that is missing, or a setting that the strategy does not have."""
    if reason := unavailable(strategy):
        raise LabError(f"strategy {strategy.name!r} is unavailable: {reason}")
    known = _known(strategy)
    for key, value in strategy.settings.items():
        if key not in known:
            raise LabError(f"strategy {strategy.name!r} has no setting {key!r}; it has {', '.join(known) or 'none'}")
        written = f"strategy {strategy.name!r}: setting {key}={settings.written(value)}"
        if not settings.fits(value, known[key]):
            raise LabError(f"{written} is to be of type {settings.named(known[key])}")
        if advice := _advice(strategy, key, value):
            raise LabError(f"{written}; write {advice}")


def _advice(strategy: Strategy, key: str, value: Any) -> str | None:
    """What to write instead of a value that can't be."""
    if key in _CHOICES:
        return None if value in _CHOICES[key] else " or ".join(_CHOICES[key])
    if value is None or key not in {*_COUNTS, executor_row(strategy.executor).size}:
        return None
    least = 0 if key == "pool" and client_row(strategy.client).unlimited else 1
    return None if value >= least else f"{least} or more"


def _known(strategy: Strategy) -> dict[str, str]:
    """Name and type of every setting that the strategy has. Raises LabError for a library that is missing."""
    client, executor = client_row(strategy.client), executor_row(strategy.executor)
    try:
        known = {**settings_of(client.place), **settings_of(executor.place)}
    except ModuleNotFoundError as error:  # what a library needs in its turn
        raise LabError(
            f"strategy {strategy.name!r} is unavailable: {error.name} is not installed; "
            f"pip install 'clientlab[{client.extra}]'"
        ) from error
    if executor.size:
        known[executor.size] = "int"
    if strategy.policy == "pool" and not client.program:
        known |= {"pool": "int | None" if client.unlimited else "int", "library_defaults": "bool"}
    return known


def chosen(strategy: Strategy, place: str) -> dict[str, Any]:
    """Those of the strategy's settings that the class at `place` takes."""
    names = settings_of(place) if strategy.settings else {}
    return {key: value for key, value in strategy.settings.items() if key in names}


def _paired(name: str, client: ClientRow, executor: ExecutorRow) -> Strategy:
    if _goes_with(client, executor):
        return Strategy(name, client.name, executor.name)
    fitting = [row.name for row in EXECUTORS.values() if _goes_with(client, row)]
    if executor.only:
        raise LabError(
            f"strategy {name!r}: {executor.name} runs only {', '.join(executor.only)}; "
            f"{client.name} goes with {', '.join(fitting)}"
        )
    raise LabError(
        f"strategy {name!r}: {client.name} is a client of kind {client.kind} and {executor.name} runs "
        f"{executor.needs} ones; it goes with {', '.join(fitting)}"
    )


def _goes_with(client: ClientRow, executor: ExecutorRow) -> bool:
    return client.kind == executor.needs and (not executor.only or client.name in executor.only)


def load(place: str) -> Any:
    """The class at ``module:class`` or ``path/to/file.py:class``; imports its library."""
    if user_file.is_place(place):
        return user_file.load(place)
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
