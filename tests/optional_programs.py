"""Programs that only some tests need: without one, these tests are skipped and say why. In CI they fail."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = os.environ.get("CI") == "true"
"""Whether all optional programs have to be there, so that a skipped test hides nothing."""


def leave_out(reason: str) -> NoReturn:
    """Skip the test that calls this, or fail it in CI."""
    (pytest.fail if REQUIRED else pytest.skip)(reason)
    raise AssertionError("both raise")
