"""gunicorn's configuration of the aiohttp upstream without its hook for faults: the same code, less what looks for one.

The statements and conditions that ask whether a request has a fault are cut from the source, and the functions are
compiled anew.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from typing import Any

from mockupstream import aiohttp_app, behaviour, contract, gunicorn_config
from mockupstream.gunicorn_config import *  # noqa: F403 - the configuration itself

globals().update({name: value for name, value in vars(gunicorn_config).items() if not name.startswith("_")})

_HOOKED: tuple[tuple[Any, str], ...] = (
    (contract.Contract, "reply"),
    (contract.Contract, "settled"),
    (behaviour.BehaviourReader, "_read"),
    (aiohttp_app._AiohttpUpstream, "_serve"),  # noqa: SLF001 - there is no other way around it
)


_WHOLE = ("'fault' in parameters", "not behaviour.attempt_faults")
"""Conditions that ask for faults alone."""


class _Cut(ast.NodeTransformer):
    """Takes out what asks for a fault. `cut`: how much."""

    def __init__(self) -> None:
        self.cut = 0

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if _about_faults(node.test):
            self.cut += 1
            return None
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        kept = [part for part in node.values if not _about_faults(part)]
        self.cut += len(node.values) - len(kept)
        node.values = kept
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if _about_faults(node.test):
            self.cut += 1
            return node.orelse
        return self.generic_visit(node)


def _about_faults(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return "behaviour.fault(" in text or text.endswith(".fault is not None") or text in _WHOLE


def cut() -> None:
    """Take the hook out of this process's upstream. Raises SystemExit where a function has no hook."""
    for owner, name in _HOOKED:
        function = getattr(owner, name)
        cutter = _Cut()
        tree = cutter.visit(ast.parse(textwrap.dedent(inspect.getsource(function))))
        space: dict[str, Any] = {}
        exec(  # noqa: S102 - the upstream's own source
            compile(ast.fix_missing_locations(tree), inspect.getsourcefile(function) or "", "exec"),
            vars(sys.modules[function.__module__]),
            space,
        )
        if not cutter.cut:
            raise SystemExit(f"{name} has no hook for faults any more; take it off the list")
        setattr(owner, name, space[name])


cut()
