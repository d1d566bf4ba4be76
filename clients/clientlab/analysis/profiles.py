"""Which code takes the CPU: a profile of py-spy, summed up by package and function.

The profile is in speedscope's format:
https://www.speedscope.app/file-format-schema.json
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from clientlab.results.explanation import FunctionShare

MOST_FUNCTIONS = 10
_MOST = 0.5
_NEARLY_ALL = 0.7
_COMPREHENSION = re.compile(
    r"(?:\.<locals>)?\.<(?:list|set|dict)comp>|\.<locals>\.<genexpr>"
)
_SITE_PACKAGES = re.compile(r"(?:site|dist)-packages/([\w.-]+)")
_STANDARD = re.compile(r"lib/python3\.\d+t?/(?:lib-dynload/)?(\w+)")
_LIBRARY = re.compile(r"(?:^|/)([\w+-]+?)(?:-[0-9a-f]{8})?\.(?:so|dylib)\b")
_LAB = "clientlab"


class Frame(NamedTuple):
    """A function on a stack."""

    name: str
    package: str


class Stack(NamedTuple):
    """Functions from the outermost to the innermost, and how many samples had it."""

    frames: tuple[Frame, ...]
    samples: int


def read_profile(path: Path) -> list[Stack]:
    """Return the stacks of a profile. Raise ValueError if it is not one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        frames = list(map(_read_frame, document["shared"]["frames"]))
        counts = Counter[tuple[Frame, ...]]()
        for thread in document["profiles"]:
            weights = thread["weights"]
            unit = min(weights, default=1.0) or 1.0
            for places, weight in zip(thread["samples"], weights, strict=True):
                stack = _below_the_lab([frames[place] for place in places])
                counts[stack] += round(weight / unit)
    except (KeyError, TypeError, OSError) as error:
        raise ValueError(f"{path}: not a profile ({error})") from error
    return [Stack(stack, count) for stack, count in counts.items() if stack]


def _below_the_lab(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return what the lab called, or the lab's innermost function if it called nothing.

    A stack begins with the process, and then has the lab's executor.
    """
    places = [place for place, frame in enumerate(frames) if frame.package == _LAB]
    if places:
        last = places[-1]
        return tuple(frames[last + 1 :]) or (frames[last],)
    return tuple(frame for frame in frames if not frame.name.startswith("process "))


def _read_frame(frame: dict[str, Any]) -> Frame:
    name = _COMPREHENSION.sub("", frame["name"])
    return Frame(name, find_package(frame.get("file") or ""))


def find_package(file: str) -> str:
    """Return the package of a source file.

    For other files, return the module of the standard library, or the name of a shared
    library.
    """
    for pattern in (_SITE_PACKAGES, _STANDARD, _LIBRARY):
        found = pattern.search(file)
        if found:
            return found[1].partition(".")[0]
    if f"/{_LAB}/" in file:
        return _LAB
    if file.startswith("<frozen ") or file == sys.executable:
        return "python"
    return Path(file).stem or "unknown"


def shares_by_package(stacks: Sequence[Stack]) -> dict[str, float]:
    """Return the share of samples whose innermost function is in each package."""
    counts = Counter[str]()
    for stack in stacks:
        counts[stack.frames[-1].package] += stack.samples
    return {name: count / counts.total() for name, count in counts.most_common()}


def shares_by_function(stacks: Sequence[Stack]) -> dict[Frame, FunctionShare]:
    """Return the shares of each function, that with the largest total first."""
    own = Counter[Frame]()
    total = Counter[Frame]()
    for stack in stacks:
        own[stack.frames[-1]] += stack.samples
        for frame in set(stack.frames):  # a recursive function counts once
            total[frame] += stack.samples
    whole = own.total()
    return {
        frame: FunctionShare(
            name=frame.name,
            package=frame.package,
            own=own[frame] / whole,
            total=count / whole,
        )
        for frame, count in total.most_common()
    }


def find_main_function(stacks: Sequence[Stack]) -> Frame | None:
    """Return the function that takes most of the time itself, wherever it is called.

    If there is none, return the function at which most samples end or part ways: one on
    the heaviest path that holds most samples. Return None if no function holds most of
    them, or if that one only calls others, as each step of a request does.
    """
    functions = shares_by_function(stacks)
    for frame, function in functions.items():
        if function.own >= _MOST:
            return frame
    root = build_tree(stacks)
    node = root
    main = None
    most = 0
    while node.children:
        node = node.heaviest_first()[0]
        if node.samples < _MOST * root.samples:
            break
        calls = [child.samples for child in node.children.values()]
        parting = node.samples - max(calls, default=0)
        if parting > most:
            main = node.frame
            most = parting
    outermost = max(functions, key=lambda frame: functions[frame].total, default=None)
    if main is None or outermost is None:
        return None
    beneath = [stack for stack in stacks if main in stack.frames]
    in_own_package = shares_by_package(beneath).get(main.package, 0.0)
    is_inner = main.package != outermost.package
    holds_nearly_all = is_inner and functions[main].total >= _NEARLY_ALL
    return main if in_own_package >= _MOST or holds_nearly_all else None


@dataclass
class Node:
    """A function in the tree of calls."""

    frame: Frame | None = None
    samples: int = 0
    children: dict[Frame, Node] = field(default_factory=dict)

    def heaviest_first(self) -> list[Node]:
        """Return its children."""
        return sorted(self.children.values(), key=lambda child: -child.samples)


def build_tree(stacks: Iterable[Stack]) -> Node:
    """Return the root of the tree of calls, which stands for no function."""
    root = Node()
    for stack in stacks:
        node = root
        node.samples += stack.samples
        for frame in stack.frames:
            node = node.children.setdefault(frame, Node(frame))
            node.samples += stack.samples
    return root


# Flame graph

_WIDTH, _ROW = 1200.0, 18
_SMALLEST = 0.5  # pixels
_COLOURS = ("#f6b26b", "#f9cb9c", "#ffd966", "#ffe599", "#ea9999", "#f4cccc")


def draw_flame_graph(stacks: Sequence[Stack], title: str) -> str:
    """Return an SVG with a box for each function, above that of its caller.

    The width of a box is its share of the samples, and a tooltip names the function.
    """
    root = build_tree(stacks)
    scale = _WIDTH / max(root.samples, 1)
    boxes = list(_list_boxes(root, 0.0, 0, scale))
    depth = max((box.depth for box in boxes), default=0)
    height = _ROW * (depth + 3)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}"'
        f' height="{height}" font-family="sans-serif" font-size="11">'
    )
    parts = [
        head,
        f'<text x="4" y="14" font-weight="bold">{html.escape(title)}</text>',
    ]
    parts += [_draw_box(box, height) for box in boxes]
    return "\n".join([*parts, "</svg>\n"])


class _Box(NamedTuple):
    """A function in the flame graph. Its place and width are in pixels."""

    frame: Frame
    x: float
    width: float
    depth: int


def _list_boxes(node: Node, x: float, depth: int, scale: float) -> Iterator[_Box]:
    """Yield the boxes of all descendants. `scale`: pixels per sample."""
    for child in node.heaviest_first():
        width = child.samples * scale
        if width < _SMALLEST or child.frame is None:
            continue
        yield _Box(child.frame, x, width, depth)
        yield from _list_boxes(child, x, depth + 1, scale)
        x += width


def _draw_box(box: _Box, height: int) -> str:
    y = height - _ROW * (box.depth + 1)
    label = f"{box.frame.name} ({box.frame.package})"
    tooltip = html.escape(f"{label}: {box.width / _WIDTH:.1%}")
    shown = ""
    if box.width > 30:
        characters = int(box.width / 6.5)
        shown = html.escape(label[:characters])
    number = sum(map(ord, box.frame.package))
    colour = _COLOURS[number % len(_COLOURS)]
    return (
        f"<g><title>{tooltip}</title>"
        f'<rect x="{box.x:.1f}" y="{y}" width="{box.width:.1f}" height="{_ROW - 1}"'
        f' fill="{colour}"/>'
        f'<text x="{box.x + 3:.1f}" y="{y + 12}">{shown}</text></g>'
    )
