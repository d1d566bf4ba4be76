"""Python imports this module at its start: it traces how the description of a request passes through the lab.

In the lab's own process and in the trial's process it writes a JSON file into the folder of TRACE_FOLDER:

- `stacks`: the lab's functions on the call stack, outermost first, when the context leaves the lab's process, when
  the first `Request` is made, and when the first record is written.
- `takers`: functions that were called with a `Request`.
- `makers`: function, its caller, and the names of the data types that it returned.
- `types`: function → names of the data types among its arguments and return values.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections import deque
from pathlib import Path

TRIAL_PROCESS = "clientlab.measuring.trial_process"


def main_module() -> str:
    arguments = sys.orig_argv
    return arguments[arguments.index("-m") + 1] if "-m" in arguments else ""


def data_types(value: object) -> list[str]:
    """Names of the lab's data types of a value, or of the items of nested collections."""
    if isinstance(value, (list, tuple, dict, deque)):
        items = value.values() if isinstance(value, dict) else value
        return list(dict.fromkeys(kind for item in items for kind in data_types(item)))
    kind = type(value)
    is_data = dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields")
    return [kind.__name__] if is_data and kind.__module__.startswith("clientlab") else []


class Tracer:
    """A profile function for `sys.setprofile`. `last`: the moment after which it writes the trace and ends."""

    def __init__(self, last: str) -> None:
        self.last = last
        self.stacks: dict[str, list[str]] = {}
        self.takers: list[str] = []
        self.makers: list[tuple[str, str, list[str]]] = []
        self.types: dict[str, list[str]] = {}

    def __call__(self, frame, event, argument) -> None:
        if event == "c_call":
            if moment := self._moment(frame, argument):
                self._keep_stack(moment, frame)
            return
        name = self._name(frame)
        if name is None:
            return
        if event == "call":
            code = frame.f_code
            arguments = [
                frame.f_locals.get(one) for one in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            ]
            found = [kind for value in arguments for kind in data_types(value)]
            self._add_types(name, found)
            if code.co_name == "__init__" and found[:1] == ["Request"]:
                self._keep_stack("first request", frame.f_back)
            elif "Request" in found and name not in self.takers:
                self.takers.append(name)
        elif event == "return" and not frame.f_code.co_name.startswith("<") and (found := data_types(argument)):
            self._add_types(name, found)
            is_check = argument is frame.f_locals.get("self")  # as pydantic's validators of a whole model
            if not is_check and (caller := self._caller(frame, name)) is not None:
                self.makers.append((name, caller, found))

    def _moment(self, frame, function) -> str | None:
        if getattr(function, "__name__", "") == "dumps" and self._name(frame) is not None:
            return "context leaves"
        owner = getattr(function, "__self__", None)
        is_record = getattr(function, "__name__", "") == "pack_into" and getattr(owner, "format", "") == "<ddQHBB"
        return "first record" if is_record else None

    def _keep_stack(self, moment: str, frame) -> None:
        if moment in self.stacks:
            return
        stack = []
        while frame is not None:
            if (name := self._name(frame)) is not None and name not in stack:
                stack.append(name)
            frame = frame.f_back
        self.stacks[moment] = stack[::-1]
        if moment == self.last:
            sys.setprofile(None)
            path = Path(os.environ["TRACE_FOLDER"]) / f"{main_module()}.json"
            path.write_text(json.dumps(vars(self)), encoding="utf-8")

    def _add_types(self, name: str, found: list[str]) -> None:
        known = self.types.setdefault(name, [])
        known += [kind for kind in found if kind not in known]

    def _caller(self, frame, name: str) -> str | None:
        while (frame := frame.f_back) is not None:
            if (caller := self._name(frame)) not in {None, name}:
                return caller
        return None

    def _name(self, frame) -> str | None:
        """Module and function, without `clientlab.`; a lambda or a comprehension has the name of its function."""
        module = frame.f_globals.get("__name__") or ""
        if module == "__main__":
            module = main_module()
        function = frame.f_code.co_qualname.partition(".<locals>")[0]
        if not module.startswith("clientlab.") or "<" in function:
            return None
        return f"{module.removeprefix('clientlab.')}.{function}"


if "TRACE_FOLDER" in os.environ and main_module() in {"clientlab", TRIAL_PROCESS}:
    sys.setprofile(Tracer("first record" if main_module() == TRIAL_PROCESS else "context leaves"))
