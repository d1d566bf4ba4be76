"""Flame graphs of profiles, and the differences between two of them, as cells with positions in per cent.

A profile's shares are of CPU time per request, or of the memory at its peak (`Quantity`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from clientlab import units
from clientlab.results.profile import Profile

_HEIGHT = 17
_WIDTH = 1200
_LETTER = 6.6
"""Units of a drawing: the height of a row, the width of all, and that of a letter."""

_MOST_DEPTH = 200
_LEAST_CHANGE = 0.02
"""Of the larger amount of both arms: a smaller difference has no colour."""

_SHARED = 0.985
"""An outermost frame with at least this share, and a single frame below it with as much, is left out."""

_TONES = tuple(f"c{place}" for place in (0, 1, 2, 3, 4, 5, 7))
_OTHERS = "c6"
"""Classes of the page's style sheet: of the packages that took most, and grey."""


@dataclass(frozen=True)
class Quantity:
    """What the shares of a profile are shares of. `text`: writes an amount. `of`: stands behind each amount.

    `title`: stands behind the name of an arm. `more`, `less`: what the colours of a difference mean.
    """

    name: str
    text: Callable[[float | None], str]
    of: str = ""
    title: str = ""
    more: str = ""
    less: str = ""


CPU_TIME = Quantity(
    "CPU time per request",
    units.time,
    of=" per request",
    more="takes more time per request",
    less="takes less",
)
MEMORY = Quantity(
    "memory at the peak",
    units.memory,
    title=" (memory at the peak)",
    more="holds more at the peak",
    less="holds less",
)

Path = tuple[tuple[str, str], ...]
"""From the root: name and package of each function."""


@dataclass(frozen=True)
class Cell:
    """A frame: its left end and its width in per cent, and its row. `tone`: class of its colour."""

    left: float
    width: float
    row: int
    name: str
    title: str
    tone: str

    @property
    def x(self) -> str:
        return f"{self.left * _WIDTH / 100:.1f}"

    @property
    def wide(self) -> str:
        return f"{max(self.width * _WIDTH / 100 - 0.6, 0.4):.1f}"

    @property
    def y(self) -> int:
        return self.row * _HEIGHT

    @property
    def text(self) -> str:
        """As much of the name as has room; empty if that is next to nothing."""
        letters = int(self.width * _WIDTH / 100 / _LETTER) - 1
        if letters < 3:
            return ""
        return self.name if len(self.name) <= letters else f"{self.name[: letters - 1]}…"


@dataclass(frozen=True)
class FlameGraph:
    """Cells below each other: callers above what they call. `legend`: tone and what it stands for."""

    title: str
    cells: Sequence[Cell]
    legend: Sequence[tuple[str, str]]
    summary: str
    notes: Sequence[str] = ()
    wide: int = _WIDTH

    @cached_property
    def high(self) -> int:
        return _HEIGHT * (1 + max((cell.row for cell in self.cells), default=0))


def flame(profile: Profile, whole: float | None, quantity: Quantity = CPU_TIME) -> FlameGraph:
    """The flame graph of an arm. `whole`: the amount of which its shares are, if that is known."""
    tree, left_out = _trimmed(_tree(profile))
    packages = list(profile.packages.items())[: len(_TONES)]
    tones = {name: tone for (name, _), tone in zip(packages, _TONES, strict=False)}
    cells = [
        Cell(
            left, 100 * share, len(path) - 1, path[-1][0], _title(path[-1], share, whole, quantity),
            tones.get(path[-1][1], _OTHERS),
        )
        for path, share, left in _placed(tree)
    ]  # fmt: skip
    return FlameGraph(
        f"{profile.arm}{quantity.title}",
        cells,
        [*((tones[name], f"{name} {units.share(_rounded(share))}") for name, share in packages), (_OTHERS, "others")],
        f"Flame graph of {profile.arm}{quantity.title}: {_words(packages)}",
        [f"{left_out} outermost frames that all samples share are left out."] if left_out else [],
    )


def difference(
    before: Profile, after: Profile, wholes: tuple[float, float], quantity: Quantity = CPU_TIME
) -> FlameGraph:
    """The flame graph of `after`, coloured by how its amounts differ from those of `before`.

    `wholes`: the amounts of which the shares of both are.
    """
    text = quantity.text
    old, new = _tree(before), _tree(after)
    trimmed, left_out = _trimmed(new)
    dropped = tuple(_spine(new)[:left_out])
    cells = []
    for path, share, left in _placed(trimmed):
        was, now = old.get((*dropped, *path), 0.0) * wholes[0], share * wholes[1]
        title = f"{path[-1][0]} ({path[-1][1]}): {text(was)} → {text(now)}{quantity.of}"
        cells.append(Cell(left, 100 * share, len(path) - 1, path[-1][0], title, _change(was, now, max(wholes))))
    return FlameGraph(
        f"{after.arm} against {before.arm}{quantity.title}",
        cells,
        [("more", quantity.more), ("less", quantity.less), ("same", "about as much")],
        f"Difference graph: {quantity.name} {text(wholes[0])} → {text(wholes[1])}",
        [f"The widths are those of {after.arm}. What only {before.arm} calls has no cell."],
    )


def _tree(profile: Profile) -> dict[Path, float]:
    """Path → share. Equal paths are one."""
    paths: list[Path] = []
    tree: dict[Path, float] = defaultdict(float)
    for node in profile.flame:
        function = profile.functions[node.function]
        above = paths[node.parent] if node.parent >= 0 else ()
        # What is deeper than a drawing's rows stays in its parent: a path that grew without end would fill the memory.
        path = (*above, (function.name, function.package)) if len(above) < _MOST_DEPTH else above
        paths.append(path)
        if path is not above:
            tree[path] += node.share
    return tree


def _spine(tree: Mapping[Path, float]) -> list[tuple[str, str]]:
    """The outermost functions that almost all samples share, each the only large one below the one before."""
    spine: list[tuple[str, str]] = []
    below: dict[Path, list[Path]] = defaultdict(list)
    for path in tree:
        below[path[:-1]].append(path)
    while True:
        large = [path for path in below[tuple(spine)] if tree[path] >= _SHARED]
        if len(large) != 1:
            return spine
        spine.append(large[0][-1])


def _trimmed(tree: Mapping[Path, float]) -> tuple[dict[Path, float], int]:
    """The tree without the frames that all samples share, and how many these are. The last of them stays."""
    spine = tuple(_spine(tree)[:-1])
    return {path[len(spine) :]: share for path, share in tree.items() if path[: len(spine)] == spine != path}, len(
        spine
    )


def _placed(tree: Mapping[Path, float]) -> Iterable[tuple[Path, float, float]]:
    """Path, share, and the left end in per cent of all, callers first."""
    ends: dict[Path, float] = {(): 0.0}
    lefts: dict[Path, float] = {}
    for path in sorted(tree, key=lambda one: (len(one), one)):
        above = path[:-1]
        if above not in ends:
            continue
        lefts[path] = ends[above]
        ends[above] += 100 * tree[path]
        ends[path] = lefts[path]
        if lefts[path] < 100:
            yield path, min(tree[path], 1 - lefts[path] / 100), lefts[path]


def _title(function: tuple[str, str], share: float, whole: float | None, quantity: Quantity) -> str:
    amount = "" if whole is None else f", {quantity.text(share * whole)}{quantity.of}"
    return f"{function[0]} ({function[1]}): {units.share(_rounded(share))}{amount}"


def _change(was: float, now: float, most: float) -> str:
    if abs(now - was) < _LEAST_CHANGE * most:
        return "same"
    return "more" if now > was else "less"


def _words(packages: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {units.share(_rounded(share))}" for name, share in packages)


def _rounded(share: float) -> float:
    return round(share, 3)
