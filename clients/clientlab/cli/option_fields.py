"""Options of a command as the annotated fields of one frozen dataclass, which click fills in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import Field, fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

_Options = TypeVar("_Options")


class Option:
    """A command-line option. What its field's type and default do not say, `attributes` say, as of `click.option`."""

    def __init__(self, names: str, text: str, **attributes: Any) -> None:
        self.names = names.split()
        self.attributes = {"help": text, **attributes}


def option_names(options: type[Any]) -> dict[str, str]:
    """Field → its option, of a dataclass."""
    annotations = {name: hint.__metadata__[0] for name, hint in _hints(options).items()}
    return {name: found.names[0] for name, found in annotations.items() if isinstance(found, Option)}


def takes(options: type[_Options]) -> Callable[[Callable[[_Options], int]], Callable[..., int]]:
    """Decorator below `click.command`: the command gets its arguments and options as one value of the dataclass."""

    def decorate(command: Callable[[_Options], int]) -> Callable[..., int]:
        @functools.wraps(command)
        def parsed(**arguments: Any) -> int:
            return command(options(**arguments))

        decorated: Callable[..., int] = parsed
        hints = _hints(options)
        for one in reversed(fields(options)):  # type: ignore[arg-type]  # mypy: a dataclass
            decorated = _decorator(one, hints[one.name])(decorated)
        return decorated

    return decorate


def _hints(options: type[Any]) -> dict[str, Any]:
    return get_type_hints(options, include_extras=True)


def _decorator(one: Field[Any], annotated: Any) -> Callable[..., Any]:
    """The click decorator of a field."""
    hint, option = get_args(annotated)
    if not isinstance(option, Option):
        found: Callable[..., Any] = option
        return found
    default = {"default": one.default} if one.default else {}
    return click.option(*option.names, one.name, **{**default, **_inferred(hint), **option.attributes})


def _inferred(hint: Any) -> dict[str, Any]:
    """Attributes of `click.option` that follow from a field's type."""
    types = [hint] if get_origin(hint) in {Literal, tuple} else [one for one in get_args(hint) if one is not NoneType]
    base = types[0] if types else hint
    if base is bool:
        return {"is_flag": True}
    if base is int:
        return {"type": int}
    if get_origin(base) is tuple:
        return {"multiple": True}
    return {"type": click.Choice(get_args(base))} if get_origin(base) is Literal else {}
