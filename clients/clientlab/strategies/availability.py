"""Whether a strategy can be measured on this machine, with its settings, and whether its client can do a workload."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from clientlab import settings
from clientlab.errors import FieldError, LabError, UnavailableStrategy
from clientlab.strategies.plugins import client_spec, executor_spec, load
from clientlab.strategies.registry import CLIENTS, EXECUTORS, EXTRA
from clientlab.strategies.resolve import Strategy

if TYPE_CHECKING:
    from clientlab.workload.workload import Workload

MERGED = (
    "urllib3 is overwritten by urllib3-future, which niquests installed; scripts/setup keeps both, and so do: "
    "URLLIB3_NO_OVERRIDE=1 pip install --force-reinstall --no-deps --no-binary urllib3-future urllib3-future, then "
    "pip install --force-reinstall --no-deps urllib3"
)


def unavailable(strategy: Strategy) -> str | None:
    """Return why the strategy can't be measured on this machine and what to do, in one line, or None if it can."""
    client = client_spec(strategy.client)
    if client.program and which(client.program) is None:
        return f"{client.program} is not installed; apt-get install {client.package}"
    for distribution, extra in missing(strategy):
        return f"{distribution} is not installed; pip install 'clientlab[{extra}]'"
    return MERGED if "urllib3" in {client.distribution, *client.needs} and merged() else None


def missing(strategy: Strategy) -> Iterator[tuple[str, str]]:
    """Yield the distributions that the strategy needs and this Python does not have, with the extra that installs each.

    No library is imported to find out. A plug-in needs none: it was imported when its spec was made.
    """
    client, executor = CLIENTS.get(strategy.client), EXECUTORS.get(strategy.executor)
    needed = [] if client is None else [(name, client.extra) for name in (client.distribution, *client.needs)]
    if executor is not None:
        needed.append((executor.distribution, executor.extra))
    if strategy.settings.get("loop") == "uvloop":
        needed.append(("uvloop", EXTRA))
    for distribution, extra in needed:
        if distribution != "python" and find_spec(distribution.replace("-", "_")) is None:
            yield distribution, extra


def merged() -> bool:
    """Return whether urllib3-future's files replaced those of urllib3: requests would be measured with another library.

    The third number of urllib3-future's versions is 900 or more.
    """
    found = find_spec("urllib3")
    if found is None or found.origin is None:
        return False
    version = Path(found.origin).with_name("_version.py")
    text = version.read_text(encoding="utf-8") if version.exists() else ""
    number = re.search(r"""__version__\b.*=\s*["']\d+\.\d+\.(\d+)""", text)
    return number is not None and int(number[1]) >= 900


def settings_of(import_path: str) -> dict[str, str]:
    """Return the settings of a client or executor, name → type: the keyword-only arguments of its class."""
    found = {}
    for name, parameter in inspect.signature(load(import_path)).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            given = parameter.annotation
            is_given = given is not inspect.Parameter.empty
            written = inspect.formatannotation(given) if is_given else type(parameter.default).__name__
            found[name] = written.strip("'")
    return found


def chosen(strategy: Strategy, import_path: str) -> dict[str, Any]:
    """Return those of the strategy's settings that are arguments of the class at `import_path`."""
    names = settings_of(import_path) if strategy.settings else {}
    return {key: value for key, value in strategy.settings.items() if key in names}


_CHOICES = {"loop": ("asyncio", "uvloop"), "start_method": ("fork", "forkserver", "spawn"), "trust": ("lab", "default")}


def check_settings(strategy: Strategy) -> None:
    """Raise UnavailableStrategy if a library is missing, or LabError for a setting that the strategy does not have."""
    if reason := unavailable(strategy):
        raise UnavailableStrategy(strategy.name, reason)
    client, executor = client_spec(strategy.client), executor_spec(strategy.executor)
    try:
        types = {**settings_of(client.import_path), **settings_of(executor.import_path)}
    except ModuleNotFoundError as error:  # a dependency of the library
        reason = f"{error.name} is not installed; pip install 'clientlab[{client.extra}]'"
        raise UnavailableStrategy(strategy.name, reason) from error
    if executor.size:
        types[executor.size] = "int"
    if strategy.policy == "pool" and not client.program:
        types |= {"pool": "int | None" if client.unlimited else "int", "library_defaults": "bool"}
    for key, value in strategy.settings.items():
        if key not in types:
            raise LabError(f"strategy {strategy.name!r} has no setting {key!r}; it has {', '.join(types) or 'none'}")
        written = f"strategy {strategy.name!r}: setting {key}={settings.written(value)}"
        if not settings.fits(value, types[key]):
            raise LabError(f"{written} must be {settings.named(types[key])}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise LabError(f"{written}; write {' or '.join(_CHOICES[key])}")
        least = 0 if key == "pool" and client.unlimited else 1
        if key in {"pool", "processes", "threads", "chunks", executor.size} and value is not None and value < least:
            raise LabError(f"{written}; write {least} or more")


_NOT_IN_ALL_CLIENTS = (
    # field and value of a workload, attribute of clients that can do it, its default, and what others lack
    ("read", "chunks", "stream", None, "reads no body in chunks"),
    ("upload", "stream", "streams_uploads", True, "streams no upload of known length"),
    ("elapsed", True, "timed", None, "does not measure its requests itself"),
)


def check_capabilities(strategy: Strategy, workload: Workload) -> None:
    """Raise FieldError, with a field of the workload, if the strategy's client cannot do the workload."""
    client = load(client_spec(strategy.client).import_path)
    if hasattr(client, "refuses"):
        if refusal := client.refuses(workload):
            field, reason = refusal
            raise FieldError([field], f"strategy {strategy.name!r}: {client.program} {reason}")
        return
    for field, value, attribute, default, lack in _NOT_IN_ALL_CLIENTS:
        if getattr(workload, field) != value:
            continue
        shown = value if isinstance(value, str) else ""
        if executor_spec(strategy.executor).drives_client:
            raise FieldError(
                [field],
                f"strategy {strategy.name!r} sends whole bodies by its executor {strategy.executor}; "
                f"run its client {strategy.client} with another executor",
                value=shown,
            )
        if not getattr(client, attribute, default):
            raise FieldError([field], f"strategy {strategy.name!r} {lack}; requests-session can", value=shown)
