"""Find a strategy by its name, check the settings in the name, and load the classes of the strategy.

Names come from documents too. `find` runs neither a file nor an entry point: see `clientlab.strategies.known`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from dataclasses import replace
from typing import Any

from clientlab import settings
from clientlab.errors import LabError, PluginError, UnavailableStrategy
from clientlab.nearest import nearest
from clientlab.strategies.availability import unavailable
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import ADMITTED, class_of, client_spec, executor_spec, file_of, packages, pair_of
from clientlab.strategies.pairs import STRATEGIES, Strategy, alone
from clientlab.strategies.specs import ClientSpec, ExecutorSpec, is_executor

_CHOICES = {
    "loop": ("asyncio", "uvloop"),
    "start_method": ("fork", "forkserver", "spawn"),
    "trust": ("lab", "default"),
}
_COUNTS = ("pool", "processes", "threads", "chunks")


def find(name: str) -> Strategy:
    """The strategy of that name, or any fitting ``client@executor``; both with settings: ``NAME?pool=10``.

    Nothing is loaded: a strategy of a file or of a package is found if `plugins.admit` was given its name. Raises
    LabError with the nearest names. `check_settings` checks the settings.
    """
    plain, given = settings.split(name)
    strategy = STRATEGIES.get(plain) or _unlisted(plain)
    if plain == name:
        return strategy
    return replace(strategy, name=name, settings={**strategy.settings, **given})


def _unlisted(name: str) -> Strategy:
    """A strategy of any client and executor, of a user's file, or of an installed package. Raises LabError."""
    client, executor = pair_of(name, CLIENTS.keys() | packages().clients.keys())
    if not executor:
        found = _of_plugin(name)
        if found is not None:
            return found
    else:
        with contextlib.suppress(KeyError):  # the error below names the nearest strategies
            return _paired(name, client_spec(client), executor_spec(executor))
    if name.endswith(".py"):
        raise LabError(f"strategy {name!r} is a file; write {name}:fetch, with the name of its function or class")
    own = ":" in name and file_of(client) is None
    hint = "; a function of yours is mine.py:fetch" if own else _nearest_of(name, client, executor)
    of_package = "" if ADMITTED.packages else f"; if it is of an installed package, add -t {name}"
    raise LabError(f"strategy {name!r} is unknown{hint}; see 'clientlab list strategies'{of_package}")


def _nearest_of(name: str, client: str, executor: str) -> str:
    """The nearest names: of a client that is known, those with other executors."""
    if executor:
        with contextlib.suppress(KeyError):
            spec = client_spec(client)
            fitting = (one.name for one in EXECUTORS.values() if _goes_with(spec, one))
            return nearest(name, [f"{client}@{executor}" for executor in fitting])
    return nearest(name, [*STRATEGIES, *of_packages()])


def _of_plugin(name: str) -> Strategy | None:
    """The strategy of a user's file or of an installed package; None if there is none. Raises PluginError."""
    if file_of(name) is not None:
        if is_executor(class_of(name)):
            client = {"blocking": "requests-session", "asyncio": "aiohttp"}[executor_spec(name).needs]
            raise PluginError(f"strategy {name!r} is an executor, and runs a client; write {client}@{name}")
        return alone(client_spec(name), name, "file")
    if name in packages().faults:
        raise packages().faults[name]
    return of_packages().get(name)


def of_packages() -> dict[str, Strategy]:
    """The admitted strategies of installed packages, and each of their clients alone. Their `source` is the package."""
    found = packages()
    strategies = {name: alone(spec, name, found.sources[name]) for name, spec in found.clients.items()}
    for name, other in found.others.items():
        if isinstance(other, Strategy) and name not in STRATEGIES:
            strategies[name] = replace(other, source=found.sources[name])
    return strategies


def faults() -> list[PluginError]:
    """The errors of entry points that give no strategy, client or executor."""
    found = packages()
    usable = of_packages()
    strange = [
        PluginError(f"strategy {name!r} of {found.sources[name]}: neither a class, a spec nor a strategy of a new name")
        for name in found.others
        if name not in usable
    ]
    return [*found.faults.values(), *strange]


def with_several(strategy: Strategy) -> str | None:
    """A name of the same client with several requests in flight; None if no listed strategy has it."""
    if strategy.mended_by:
        return strategy.mended_by
    usual = {"blocking": "threads", "asyncio": "workers"}
    client = client_spec(strategy.client)
    name = client.name if client.name in CLIENTS else pair_of(settings.split(strategy.name)[0], packages().clients)[0]
    fitting = client.executors if client.name in CLIENTS else tuple(usual.values())
    executors = (*usual.values(), *fitting)
    found = (one for one in executors if one in fitting and _goes_with(client, EXECUTORS[one]))
    executor = next(found, None)
    return None if executor is None else f"{name}@{executor}"


def settings_of(import_path: str) -> dict[str, str]:
    """The settings of a client or executor, name → type: the keyword-only arguments of its class, as annotated."""
    parameters = inspect.signature(load(import_path)).parameters.values()
    return {p.name: _type_of(p) for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _type_of(parameter: inspect.Parameter) -> str:
    if parameter.annotation is inspect.Parameter.empty:
        return type(parameter.default).__name__
    return inspect.formatannotation(parameter.annotation).strip("'")


def check_settings(strategy: Strategy) -> None:
    """Raises UnavailableStrategy if a library is missing, or LabError for a setting that the strategy lacks."""
    if reason := unavailable(strategy):
        raise UnavailableStrategy(strategy.name, reason)
    known = _known(strategy)
    for key, value in strategy.settings.items():
        if key not in known:
            raise LabError(f"strategy {strategy.name!r} has no setting {key!r}; it has {', '.join(known) or 'none'}")
        written = f"strategy {strategy.name!r}: setting {key}={settings.written(value)}"
        if not settings.fits(value, known[key]):
            raise LabError(f"{written} is to be {settings.named(known[key])}")
        if advice := _advice(strategy, key, value):
            raise LabError(f"{written}; write {advice}")


def _advice(strategy: Strategy, key: str, value: Any) -> str | None:
    """The valid values of the setting, if `value` is none of them."""
    if key in _CHOICES:
        return None if value in _CHOICES[key] else " or ".join(_CHOICES[key])
    if value is None or key not in {*_COUNTS, executor_spec(strategy.executor).size}:
        return None
    least = 0 if key == "pool" and client_spec(strategy.client).unlimited else 1
    return None if value >= least else f"{least} or more"


def _known(strategy: Strategy) -> dict[str, str]:
    """Name → type of every setting of the strategy. Raises UnavailableStrategy if a library is missing."""
    client, executor = client_spec(strategy.client), executor_spec(strategy.executor)
    try:
        known = {**settings_of(client.import_path), **settings_of(executor.import_path)}
    except ModuleNotFoundError as error:  # a dependency of the library
        reason = f"{error.name} is not installed; pip install 'clientlab[{client.extra}]'"
        raise UnavailableStrategy(strategy.name, reason) from error
    if executor.size:
        known[executor.size] = "int"
    if strategy.policy == "pool" and not client.program:
        known |= {"pool": "int | None" if client.unlimited else "int", "library_defaults": "bool"}
    return known


def chosen(strategy: Strategy, import_path: str) -> dict[str, Any]:
    """Those of the strategy's settings that are arguments of the class at `import_path`."""
    names = settings_of(import_path) if strategy.settings else {}
    return {key: value for key, value in strategy.settings.items() if key in names}


def _paired(name: str, client: ClientSpec, executor: ExecutorSpec) -> Strategy:
    if _goes_with(client, executor):
        return Strategy(name, client.name, executor.name)
    fitting = [spec.name for spec in EXECUTORS.values() if _goes_with(client, spec)]
    if client.only and client.kind == executor.needs:
        raise LabError(f"strategy {name!r}: {client.name} goes with {', '.join(fitting)} only")
    if executor.only:
        raise LabError(
            f"strategy {name!r}: {executor.name} runs only {', '.join(executor.only)}; "
            f"{client.name} goes with {', '.join(fitting)}"
        )
    raise LabError(
        f"strategy {name!r}: {client.name} is a client of kind {client.kind} and {executor.name} runs "
        f"{executor.needs} ones; it goes with {', '.join(fitting)}"
    )


def _goes_with(client: ClientSpec, executor: ExecutorSpec) -> bool:
    fits = (not executor.only or client.name in executor.only) and (not client.only or executor.name in client.only)
    return client.kind == executor.needs and fits


def load(import_path: str) -> Any:
    """The class that a spec names: ``module:Class``, or that of an admitted file. Imports its library.

    Raises LabError.
    """
    if file_of(import_path) is not None:
        return class_of(import_path)
    module, _, name = import_path.partition(":")
    return getattr(importlib.import_module(module), name)
