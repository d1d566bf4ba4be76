"""What a run is measured against: the lab's own upstreams in a testbed, or a server of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from clientlab.results.part import DocumentPart

TestbedName = Literal["local", "compose", "external"]


class Target(DocumentPart):
    """The servers of a run. `url` and `ca_file` are of an external server, which the lab does not start."""

    testbed: Annotated[
        TestbedName,
        Field(description="local: processes of the lab; compose: servers that run already; external: the user's own"),
    ]
    url: Annotated[str | None, Field(description="of the external server")] = None
    ca_file: Annotated[str | None, Field(description="path of the CA to trust; null: each library's own CAs")] = None

    @classmethod
    def external(cls, url: str, ca_file: Path | None) -> Target:
        """The user's own server."""
        return cls(testbed="external", url=url, ca_file=None if ca_file is None else str(ca_file.absolute()))

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.testbed == "external") != (self.url is not None) or (self.url is None and self.ca_file is not None):
            raise ValueError("an external server has a url, and it alone has one or a ca_file")
        return self
