"""Types of the options that describe a link."""

from __future__ import annotations

from collections.abc import Callable

import click

from clientlab.workload.link import bandwidth_of, rtt_of


class LinkPartType(click.ParamType[tuple[str, ...]]):
    """Round-trip times or bandwidths of links, as an experiment has them: 35ms, or an axis: 1ms,20ms,100ms."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        texts = tuple(part.strip() for part in str(value).split(","))
        try:
            found = list(map(self._parse, texts))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if len(set(found)) < len(found):
            self.fail(f"{value!r} has one value twice; write each once.", param, ctx)
        return texts


ROUND_TRIPS = LinkPartType("time", rtt_of)
BANDWIDTHS = LinkPartType("bandwidth", bandwidth_of)
