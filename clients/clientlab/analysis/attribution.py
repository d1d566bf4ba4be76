"""CPU time by package and function, from stacks that recorders saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clientlab.analysis.frame_origin import (
    KERNEL,
    UNKNOWN,
    Wait,
    has_no_symbols,
    is_interpreter,
    origin_of,
    package_of,
    wait_of,
)
from clientlab.analysis.stacks import Frame, Stack

Weights = dict[Stack, float]
"""Stack → samples. They are fractions where samples in system calls were weighted."""

LEAST_NODE = 0.002
"""Share of all samples below which a node of the flame graph is left out."""


@dataclass(frozen=True)
class FunctionShare:
    """`own`: share of all samples in which the function is the leaf. `total`: in which it is on the stack."""

    name: str
    package: str
    own: float
    total: float


@dataclass(frozen=True)
class Node:
    """A frame of the flame graph: place of its parent in the list (-1: none) and of its function, and its share."""

    parent: int
    function: int
    share: float


@dataclass(frozen=True)
class Attribution:
    """Where the CPU time goes, as shares of all samples of threads at work.

    `samples`: of threads at work. `waiting`: samples of threads that only seemed to be at work, as shares of the same.
    `nodes`: parents come first.
    """

    samples: int
    attributed: float
    packages: Mapping[str, float]
    functions: tuple[FunctionShare, ...]
    nodes: tuple[Node, ...]
    waiting: Mapping[Wait, float]


def weighted(stacks: Mapping[Stack, int], kernel_share: float | None) -> tuple[Weights, Counter[Wait]]:
    """The stacks of threads at work, and how many samples were of threads that wait.

    `kernel_share`: the part of the CPU time that the kernel took, by the system's own clock. A recorder pauses the
    process, and on virtual machines a pause often takes effect at the next system call, so samples show too many of
    them. The samples in system calls are weighted so that their share is the clock's.
    """
    waits: Counter[Wait] = Counter()
    groups: dict[bool, Counter[Stack]] = {False: Counter(), True: Counter()}
    blocking = {stack[-1] for stack in stacks if wait_of(stack) is not None and has_no_symbols(stack[-1])}
    for stack, count in stacks.items():
        if (wait := wait_of(stack)) is not None:
            waits[wait] += count
        elif stack and stack[-1] in blocking:  # a function of the C library without a name, in which others wait
            waits["blocked"] += count
        else:
            groups[origin_of(stack) == KERNEL][stack] += count
    outside, inside = groups[False], groups[True]
    whole = outside.total() + inside.total()
    if kernel_share is None or not outside or not inside:
        return {stack: float(count) for group in groups.values() for stack, count in group.items()}, waits
    shares = ((outside, 1 - kernel_share), (inside, kernel_share))
    return {
        stack: count * share * whole / group.total() for group, share in shares for stack, count in group.items()
    }, waits


def with_native_leaves(python: Mapping[Stack, int], native: Mapping[Stack, int], kernel_share: float | None) -> Weights:
    """Stacks of Python functions, each with the native leaves that another recorder saw below its function.

    So a function has the share that the first recorder saw, and the second one only divides it: into the interpreter,
    libraries and the kernel. `kernel_share`: as in `weighted`. By it, a part of each function is the kernel's.
    """
    below: dict[Frame, Counter[Stack]] = defaultdict(Counter)
    for stack, count in native.items():
        place = next((place for place in range(len(stack) - 1, -1, -1) if stack[place].is_python), None)
        if place is not None and wait_of(stack) is None:
            below[stack[place]][stack[place:]] += count
    divided = {frame: _Leaves.of(leaves) for frame, leaves in below.items()}
    odds = _odds(python, divided, kernel_share)
    weights: Weights = defaultdict(float)
    for stack, count in python.items():
        leaves = divided.get(stack[-1]) if stack else None
        if leaves is None:
            weights[stack] += count
            continue
        for leaf, share in leaves.shares(odds):
            weights[(*stack[:-1], *leaf)] += count * share
    return dict(weights)


@dataclass(frozen=True)
class _Leaves:
    """The native leaves of a Python function, the kernel's apart from others, and the kernel's share of the samples."""

    inside: Counter[Stack]
    outside: Counter[Stack]

    @classmethod
    def of(cls, leaves: Mapping[Stack, int]) -> _Leaves:
        found = cls(Counter(), Counter())
        for leaf, count in leaves.items():
            (found.inside if origin_of(leaf) == KERNEL else found.outside)[leaf] += count
        return found

    def kernel(self, odds: float) -> float:
        """The kernel's share, with its samples counted `odds` times."""
        inside = odds * self.inside.total()
        whole = inside + self.outside.total()
        return inside / whole if whole else 1.0

    def shares(self, odds: float) -> Iterator[tuple[Stack, float]]:
        """Each leaf and its share of the function."""
        kernel = self.kernel(odds)
        for group, share in ((self.inside, kernel), (self.outside, 1 - kernel)):
            for leaf, count in group.items():
                yield leaf, share * count / group.total()


def _odds(python: Mapping[Stack, int], divided: Mapping[Frame, _Leaves], kernel_share: float | None) -> float:
    """How often to count the kernel's samples of each function, so that the kernel has its share of all."""
    if kernel_share is None:
        return 1.0
    counts: Counter[Frame] = Counter()
    for stack, count in python.items():
        if stack and stack[-1] in divided:
            counts[stack[-1]] += count
    wanted, low, high = kernel_share * sum(python.values()), 1e-4, 1e4
    for _ in range(50):
        middle = (low * high) ** 0.5
        found = sum(count * divided[frame].kernel(middle) for frame, count in counts.items())
        low, high = (low, middle) if found > wanted else (middle, high)
    return float((low * high) ** 0.5)


def attributed(weights: Weights, waits: Mapping[Wait, float] | None = None) -> Attribution:
    """The shares of packages and functions, and the flame graph. Raises ValueError without samples."""
    whole = sum(weights.values())
    if whole <= 0:
        raise ValueError("no sample of a thread at work")
    packages: Counter[str] = Counter()
    own: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    tree: Counter[tuple[tuple[str, str], ...]] = Counter()
    for stack, weight in weights.items():
        origin = origin_of(stack)
        path = tuple(named(stack))
        packages[origin] += weight  # type: ignore[assignment]
        for function in set(path):
            total[function] += weight  # type: ignore[assignment]
        if path:
            own[path[-1]] += weight  # type: ignore[assignment]
        for depth in range(1, len(path) + 1):
            tree[path[:depth]] += weight  # type: ignore[assignment]
    functions, nodes = _flame({path: weight / whole for path, weight in tree.items()}, own, total, whole)
    return Attribution(
        samples=round(whole),
        attributed=1 - packages.pop(UNKNOWN, 0) / whole,
        packages={name: weight / whole for name, weight in packages.most_common()},
        functions=functions,
        nodes=nodes,
        waiting={wait: count / whole for wait, count in (waits or {}).items()},
    )


def named(stack: Stack) -> Iterator[tuple[str, str]]:
    """Name and package of each function on the stack. Frames of the interpreter are left out: they work for others."""
    for place, frame in enumerate(stack):
        if not is_interpreter(frame):
            package = origin_of(stack[: place + 1]) if place == len(stack) - 1 else package_of(frame)
            yield (frame.name, package or UNKNOWN)


def _flame(
    tree: Mapping[tuple[tuple[str, str], ...], float],
    own: Mapping[tuple[str, str], float],
    total: Mapping[tuple[str, str], float],
    whole: float,
) -> tuple[tuple[FunctionShare, ...], tuple[Node, ...]]:
    """The functions by their own time, and the nodes of the flame graph that are large enough to be seen."""
    kept = sorted((path for path, share in tree.items() if share >= LEAST_NODE), key=lambda path: (len(path), path))
    used = {path[-1] for path in kept}
    order = sorted(used, key=lambda function: (-own.get(function, 0), -total[function], function))
    functions = tuple(
        FunctionShare(*function, own.get(function, 0.0) / whole, min(1.0, total[function] / whole))
        for function in order
    )
    index = {function: place for place, function in enumerate(order)}
    places = {path: place for place, path in enumerate(kept)}
    nodes = tuple(Node(places.get(path[:-1], -1), index[path[-1]], min(1.0, tree[path])) for path in kept)
    return functions, nodes
