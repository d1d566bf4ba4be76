"""Values of a workload that users write as text, in options, experiment files and run
files.

    TIME        seconds (``0.12``, ``2s``), ``120ms``, ``5us`` or minutes (``1m``)
    DELAY       a constant TIME, or a distribution:
                    uniform:TIME,TIME    from the lowest to the highest
                    normal:TIME,TIME     mean and standard deviation, truncated at 0
                    lognormal:TIME,0.3   median, and sigma of the logarithm
                    exponential:TIME     mean
    RATE        requests per second (``500``, ``500/s``) or per minute (``30/m``)
    STAGES      TIME:RATE,TIME:RATE: from each time on, requests arrive at that
                rate; the first time is 0s
    BANDWIDTH   bits per second in each direction, with a unit: ``20mbit``, ``1gbit``
    STATUSES    ``2xx,404``: classes, single statuses and ranges (``200-299``)

The upstreams have the same grammar of delays; a test compares the two. Measured
processes import this module without pydantic, so the hooks for pydantic call none of
its functions.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, cast, get_args, get_type_hints

from clientlab.errors import FieldError

if TYPE_CHECKING:
    from statistics import NormalDist

# More would overflow a float.
_DIGITS = r"(?:\d{1,12}(?:\.\d{0,18})?|\.\d{1,18})(?:e(?:\d|-\d{1,2}))?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
_PARTS_OF_A_SECOND = {
    "us": 1_000_000,
    "ms": 1000,
    "s": 1,
    "": 1,
}  # to divide by: 9 * 1e-3 is not 0.009
_MASK = (1 << 64) - 1
_LARGEST_SIGMA = 10
_PARAMETERS = {
    "uniform": 2,
    "normal": 2,
    "lognormal": 2,
    "exponential": 1,
}  # of each distribution

_STAGE_FORMS = "'0s:100/s,30s:1000/s'"
LEAST_RATE, MOST_RATE = 1e-6, 1e9  # requests per second
_RATE = re.compile(r"(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(/s|/m|)", re.ASCII)

_STATUSES = re.compile(
    r"([2-5])xx|([2-5]\d\d)(?:-([2-5]\d\d))?", re.ASCII | re.IGNORECASE
)

LINK_PARTS = ("rtt", "bandwidth")  # each can be an axis of an experiment
# Seconds; a geostationary satellite takes 0.6 s, and most clients time out after less
# than this.
_LONGEST_RTT = 10.0
_LEAST_BANDWIDTH, _MOST_BANDWIDTH = 1e3, 1e11  # bits per second
_BITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_BANDWIDTH = re.compile(
    r"(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9}) ?([kmg]?bit)(?:/s)?", re.ASCII | re.IGNORECASE
)


class Written(ABC):
    """A value that `parse` reads from text and `str` writes."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Return the value of a text. Raise ValueError."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, Any]:
        def read(given: object) -> Written:
            return given if isinstance(given, cls) else cls.parse(text_of(given))

        validator = {"type": "no-info", "function": read}
        return {
            "type": "function-plain",
            "function": validator,
            "serialization": {"type": "to-string"},
        }


@dataclass(frozen=True)
class ParsedBy:
    """Mark a number that can also be written as text, which `parse` reads."""

    parse: Callable[[str], float]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        def read(given: object) -> object:
            return (
                self.parse(text_of(given)) if isinstance(given, str | bool) else given
            )

        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": read},
            "schema": handler(source),
        }


@dataclass(frozen=True)
class Exactly:
    """Mark a number or a boolean that must have this very type: ``"20"`` is not a
    number.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {**handler(source), "strict": True}


@dataclass(frozen=True)
class ValueRange:
    """The least and the most that a number can be, both included.

    `meaning` is for the error message.
    """

    least: float
    most: float
    meaning: str


def check_bounds(document: Any) -> None:
    """Raise FieldError for the first field of a dataclass whose number is
    out of range.
    """
    for name, bounds in _bounds_of(type(document)):  # type: ignore[arg-type]  # mypy: classes are hashable
        value = getattr(document, name)
        if isinstance(value, int | float) and not bounds.least <= value <= bounds.most:
            limits = (
                f"{one:,}" if isinstance(one, int) else f"{one:g}"
                for one in (bounds.least, bounds.most)
            )
            shown = f"{value:g}" if isinstance(value, float) else value
            raise FieldError(
                [name], f"{bounds.meaning}; write {' to '.join(limits)}", value=shown
            )


@cache
def _bounds_of(cls: type[Any]) -> list[tuple[str, ValueRange]]:
    found = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        for part in (
            hint,
            *get_args(hint),
        ):  # the parts of a union, as in ``Annotated[int, ValueRange(…)] | None``
            found += [
                (name, one)
                for one in getattr(part, "__metadata__", ())
                if isinstance(one, ValueRange)
            ]
    return found


def text_of(given: object) -> str:
    """Return a value from a file as the user would write it on the command line: 0.12
    becomes ``"0.12"``.
    """
    return str(given).lower() if isinstance(given, bool) else str(given)


def parse_time(text: str) -> float:
    """Parse ``120ms``, ``2s``, ``5us``, ``1m`` or a number of seconds to seconds.

    Raise ValueError.
    """
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a length of time; write 120ms or 2s")
    number, unit = float(found[1]), found[2]
    return number * 60 if unit == "m" else number / _PARTS_OF_A_SECOND[unit]


def find_time_without_unit(text: str) -> str | None:
    """Return the first time without a unit in a delay or a plain time.

    Return None if all have one.
    """
    form, _, values = text.rpartition(":")
    times = values.split(",")[: 1 if form.strip() == "lognormal" else None]
    return next(
        (time.strip() for time in times if _NUMBER.fullmatch(time.strip())), None
    )


@dataclass(frozen=True)
class Delay(Written):
    """A distribution of delays.

    `form`: its name; empty for a constant. `values`: its parameters (times in seconds).
    """

    form: str
    values: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Delay:
        form, colon, rest = text.partition(":")
        if not colon:
            return cls("", (parse_time(text),))
        parts = rest.split(",")
        if len(parts) != _PARAMETERS.get(form):
            forms = (
                "120ms, uniform:50ms,150ms, normal:100ms,10ms, lognormal:100ms,0.3 or"
                " exponential:100ms"
            )
            raise ValueError(f"{text!r} is not a delay; write {forms}")
        if form == "lognormal":
            sigma = parts[1].strip()
            if not _NUMBER.fullmatch(sigma) or float(sigma) > _LARGEST_SIGMA:
                raise ValueError(
                    f"{sigma!r}: sigma must be a number from 0 to {_LARGEST_SIGMA},"
                    " like 0.3"
                )
            delay = cls(form, (parse_time(parts[0]), float(sigma)))
        else:
            delay = cls(form, tuple(map(parse_time, parts)))
        _ = delay.quantile  # raises ValueError if the values do not fit each other
        return delay

    def __str__(self) -> str:
        """Return the delay as `parse` reads it, with all its digits."""
        texts = [write_time(value) for value in self.values]
        if self.form == "lognormal":
            texts[1] = repr(self.values[1])
        return f"{self.form}:{','.join(texts)}" if self.form else texts[0]

    @property
    def quantile(self) -> Callable[[float], float]:
        """The map from a share in (0, 1) to seconds.

        Raise ValueError if the values do not fit each other.
        """
        first, last = self.values[0], self.values[-1]
        if self.form == "uniform":
            if first > last:
                raise ValueError(
                    "uniform: it ends before it starts; write the shorter delay first"
                )
            return lambda share: first + (last - first) * share
        if self.form in {"lognormal", "exponential"} and first <= 0:
            raise ValueError(
                f"{self.form}: the {'median' if self.form == 'lognormal' else 'mean'}"
                " must be above 0"
            )
        if self.form == "exponential":
            return lambda share: -first * math.log1p(-share)
        if not self.form or (self.form == "normal" and last == 0):
            return lambda _: first
        normal = _standard_normal()
        if self.form == "lognormal":
            return lambda share: first * math.exp(last * normal.inv_cdf(share))
        below = normal.cdf(
            -first / last
        )  # the part of the normal curve below zero, which is cut off
        return lambda share: max(
            0.0, first + last * normal.inv_cdf(below + (1 - below) * share)
        )

    @property
    def mean(self) -> float:
        """The mean in seconds; of a distribution, that of a hundred of its
        quantiles.
        """
        return (
            sum(map(self.quantile, ((step + 0.5) / 100 for step in range(100)))) / 100
            if self.form
            else self.values[0]
        )

    def at(self, seed: int) -> Callable[[int], float]:
        """Return a function from the number of a request to its delay in seconds."""
        if not self.form:
            return lambda _: self.values[0]
        quantile = self.quantile
        return lambda number: quantile(draw_share(seed, number))


def write_time(value: float) -> str:
    """Return a time as `parse_time` reads it, in the largest unit that leaves a number
    of at least 1.
    """
    if not value:
        return "0ms"
    unit, parts = (
        ("s", 1)
        if value >= 1
        else ("ms", 1000)
        if value * 1000 >= 1
        else ("us", 1_000_000)
    )
    text = f"{value * parts:.12g}{unit}"
    return text if parse_time(text) == value else repr(value)


@cache
def _standard_normal() -> NormalDist:
    from statistics import (  # noqa: PLC0415 - it imports much, and few trials need it
        NormalDist,
    )

    return NormalDist()


def draw_share(seed: int, number: int, stream: int = 0) -> float:
    """Return a number in (0, 1) that depends on the arguments only: splitmix64 (Steele,
    Lea, Flood, OOPSLA 2014).

    Streams are independent of each other: 0 draws delays, 1 recorded requests, 2 the
    gaps between arrivals.
    """
    state = (
        seed * 0x9E3779B97F4A7C15
        + (number + 1) * 0xBF58476D1CE4E5B9
        + stream * 0x94D049BB133111EB
    ) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((state ^ (state >> 31)) >> 12) + 0.5) / (
        1 << 52
    )  # a float has one bit more: 1 is never reached


@dataclass(frozen=True)
class Stages(Written):
    """Steps of an arrival rate: from each time on (seconds; the first is 0), requests
    arrive at a rate per second.
    """

    steps: tuple[tuple[float, float], ...]

    @classmethod
    def parse(cls, text: str) -> Stages:
        found = []
        for part in text.split(","):
            time, colon, rate = part.partition(":")
            if not colon:
                raise ValueError(
                    f"{part.strip()!r} is not a stage; write {_STAGE_FORMS}"
                )
            found.append((parse_time(time), parse_rate(rate)))
        if found[0][0] or any(
            later <= earlier for (earlier, _), (later, _) in pairwise(found)
        ):
            raise ValueError(
                "the first stage begins at 0s, and each after the one before it; write"
                f" {_STAGE_FORMS}"
            )
        return cls(tuple(found))

    def __str__(self) -> str:
        def plain(
            value: float,
        ) -> str:  # without an exponent, and with as many decimals as a rate can have
            return f"{value:.9f}".rstrip("0").rstrip(".")

        return ",".join(
            f"{plain(begins)}s:{plain(rate)}/s" for begins, rate in self.steps
        )


@dataclass(frozen=True)
class Statuses(Written):
    """Statuses of responses, as ``2xx,404`` or ``200-299``."""

    text: str
    codes: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Statuses:
        codes = set[int]()
        for part in map(str.strip, text.split(",")):
            match = _STATUSES.fullmatch(part)
            if match is None:
                raise ValueError(
                    f"{part!r} is not a status from 200 to 599; write 2xx, 404 or"
                    " 200-299"
                )
            hundred, first, last = match.groups()
            low, high = (
                (f"{hundred}00", f"{hundred}99") if hundred else (first, last or first)
            )
            if low > high:
                raise ValueError(f"{part!r} ends before it begins; write {high}-{low}")
            codes.update(range(int(low), int(high) + 1))
        return cls(text.replace(" ", ""), frozenset(codes))

    def __str__(self) -> str:
        return self.text

    def __contains__(self, status: object) -> bool:
        return status in self.codes


def parse_rate(text: str) -> float:
    """Parse a rate to requests per second. Raise ValueError."""
    found = _RATE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a rate; write 500/s, 500 or 30/m")
    value = float(found[1]) / (60 if found[2] == "/m" else 1)
    if not LEAST_RATE <= value <= MOST_RATE:
        raise ValueError(
            f"{value:g} requests per second; write {LEAST_RATE:g} to {MOST_RATE:g}"
        )
    return value


@dataclass(frozen=True)
class Link:
    """An emulated network between client and route.

    `rtt`: the round-trip time in seconds.

    `bandwidth`: bits per second in each direction; None for no limit. Raise ValueError
    for a value out of range.
    """

    rtt: float
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rtt <= _LONGEST_RTT:
            raise ValueError(
                f"a round-trip time of {self.rtt:g} s; write 0ms to {_LONGEST_RTT:g}s"
            )
        if (
            self.bandwidth is not None
            and not _LEAST_BANDWIDTH <= self.bandwidth <= _MOST_BANDWIDTH
        ):
            raise ValueError(
                f"a bandwidth of {self.bandwidth:g} bit/s; write 1kbit to 100gbit, or"
                " leave it out"
            )

    def __str__(self) -> str:
        """Return ``35 ms`` or ``35 ms, 20 Mbit/s``.

        Different links have different texts.
        """
        rtt = f"{self.rtt * 1000:.12g} ms" if self.rtt < 1 else f"{self.rtt:.12g} s"
        if self.bandwidth is None:
            return rtt
        number, unit = _scale_bandwidth(self.bandwidth)
        return (
            f"{rtt}, {number}"
            f" {unit.replace('bit', 'bit/s').replace('m', 'M').replace('g', 'G')}"
        )


def make_link(rtt: float | None, bandwidth: float | None) -> Link | None:
    """Return the link with these parts. Return None if both are None."""
    return None if rtt is None and bandwidth is None else Link(rtt or 0.0, bandwidth)


def write_link_part(part: str, value: float) -> str:
    """Return a part of a link as options, files and names of arms have it: ``35ms``,
    ``20mbit``.
    """
    return (
        f"{value * 1000:.12g}ms" if part == "rtt" else "".join(_scale_bandwidth(value))
    )


def _scale_bandwidth(bandwidth: float) -> tuple[str, str]:
    unit, bits = next(
        (unit, bits) for unit, bits in reversed(_BITS.items()) if bandwidth >= bits
    )
    return f"{bandwidth / bits:.12g}", unit


def parse_rtt(text: str) -> float:
    """Parse a round-trip time to seconds.

    Raise ValueError, also for a time out of range.
    """
    return Link(parse_time(text)).rtt


def parse_bandwidth(text: str) -> float:
    """Parse ``20mbit`` to bits per second.

    Raise ValueError, also for a rate out of range.
    """
    found = _BANDWIDTH.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{text!r} is not a bandwidth; write 512kbit, 20mbit or 1gbit (bits per"
            " second)"
        )
    return cast("float", Link(0.0, float(found[1]) * _BITS[found[2].lower()]).bandwidth)
