"""Finding a strategy by its name, with the settings written behind it, and loading its classes."""

from __future__ import annotations

import difflib
import importlib
import inspect
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from clientlab.errors import LabError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.pairs import STRATEGIES, Strategy
from clientlab.strategies.rows import ClientRow, ExecutorRow


def find(name: str) -> Strategy:
    """The strategy of that name, or any fitting ``client@executor``, with settings: ``NAME?pool=10``.

    Raises LabError with the nearest names. Settings are checked by `check_settings`.
    """
    plain, question, query = name.partition("?")
    strategy = _plain(plain)
    if not question:
        return strategy
    given = {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}
    return replace(strategy, name=name, settings={**strategy.settings, **given})


def _plain(name: str) -> Strategy:
    if name in STRATEGIES:
        return STRATEGIES[name]
    client, at, executor = name.partition("@")
    if at and client in CLIENTS and executor in EXECUTORS:
        return _paired(name, CLIENTS[client], EXECUTORS[executor])
    near = difflib.get_close_matches(name, STRATEGIES, n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    raise LabError(f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'")


def _value(text: str) -> bool | int | float | str:
    """A setting as written: true, false, a whole number, a number, or a word."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def settings_of(place: str) -> dict[str, Any]:
    """Names and defaults of the settings of a client or executor: its keyword-only arguments."""
    parameters = inspect.signature(load(place)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_settings(strategy: Strategy) -> None:
    """Raises LabError for a library that is missing, or a setting that the strategy does not have."""
    try:
        client = settings_of(CLIENTS[strategy.client].place)
        executor = settings_of(EXECUTORS[strategy.executor].place)
    except ModuleNotFoundError as error:
        raise LabError(
            f"strategy {strategy.name!r} is unavailable: {error.name} is not installed; "
            "pip install 'clientlab[clients]'"
        ) from error
    known: dict[str, Any] = {**client, **executor}
    if CLIENTS[strategy.client].policy == "pool":
        known["pool"] = 1
    for key, value in strategy.settings.items():
        if key not in known:
            raise LabError(f"strategy {strategy.name!r} has no setting {key!r}; it has {', '.join(known) or 'none'}")
        if not _fits(value, known[key]):
            kind = type(known[key]).__name__
            raise LabError(f"strategy {strategy.name!r}: setting {key}={value} is to be of type {kind}")
    if strategy.settings.get("pool", 1) < 1:
        raise LabError(f"strategy {strategy.name!r}: setting pool={strategy.settings['pool']}; write 1 or more")


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def chosen(strategy: Strategy, place: str) -> dict[str, Any]:
    """Those of the strategy's settings that the class at `place` takes."""
    names = settings_of(place) if strategy.settings else {}
    return {key: value for key, value in strategy.settings.items() if key in names}


def _paired(name: str, client: ClientRow, executor: ExecutorRow) -> Strategy:
    if client.kind != executor.needs:
        fitting = [row.name for row in EXECUTORS.values() if row.needs == client.kind]
        raise LabError(
            f"strategy {name!r}: {client.name} is a client of kind {client.kind} and {executor.name} runs "
            f"{executor.needs} ones; it goes with {', '.join(fitting)}"
        )
    return Strategy(name, client.name, executor.name)


def load(place: str) -> Any:
    """The class at ``module:class``; imports its library."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
