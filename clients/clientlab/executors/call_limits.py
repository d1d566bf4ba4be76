"""The limit of a whole call of an asyncio client: its task is cancelled.

Imports neither asyncio nor trio before a limit is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from clientlab.errors import ClientError

CALL_TIMEOUT = "timeout-call"

AsyncSend = Callable[..., Awaitable[Any]]


def limit_call(send: AsyncSend, seconds: float) -> AsyncSend:
    """Return a `send` that raises ClientError after this time.

    It is called in the running loop of asyncio or trio, and chooses its means.
    """
    import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _limit_in_trio(send, seconds)

    async def send_within(*arguments: Any) -> Any:
        try:
            async with asyncio.timeout(seconds) as scope:
                return await send(*arguments)
        except TimeoutError as error:
            if not scope.expired():
                raise  # the library's own
            raise _make_error(seconds) from error

    return send_within


def _limit_in_trio(send: AsyncSend, seconds: float) -> AsyncSend:
    import trio  # noqa: PLC0415 - an extra

    async def send_within(*arguments: Any) -> Any:
        cancelled = None
        with trio.move_on_after(seconds):
            try:
                return await send(*arguments)
            except BaseException as error:  # a group, if it was connecting
                cancelled = error
                raise
        raise _make_error(seconds) from cancelled

    return send_within


def _make_error(seconds: float) -> ClientError:
    return ClientError(CALL_TIMEOUT, f"cancelled after {seconds:g} s")
