"""The numbers of run documents and of shard reports. Their models refuse infinity and NaN."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Seconds = float
Count = Annotated[int, Field(ge=0)]
