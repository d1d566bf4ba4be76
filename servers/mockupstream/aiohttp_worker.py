"""The worker class with which gunicorn serves aiohttp."""

from __future__ import annotations

from aiohttp.worker import GunicornUVLoopWebWorker


class UpstreamWorker(GunicornUVLoopWebWorker):
    """aiohttp's uvloop worker with the configured backlog.

    asyncio listens once more on the socket it is given, with a backlog of 128 of its own: a burst of more connections
    would lose some, which then connect a second later.
    """

    def notify(self) -> None:
        """Tell the master that the worker lives, as it does each second from when it serves; and set the backlog."""
        super().notify()
        for listener in self.sockets:
            listener.listen(self.cfg.backlog)
