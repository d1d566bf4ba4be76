"""A client of a user's file that leaks: 1 KiB for each request, and a file descriptor for every fiftieth."""

from __future__ import annotations

import itertools
import os

from clientlab.clients.urllib3_pool import Urllib3Pool

BYTES, REQUESTS_PER_FILE = 1024, 50


class Leaky(Urllib3Pool):
    """It keeps what it should have let go."""

    def __init__(self, budget, opened):
        super().__init__(budget, opened)
        self.kept, self.files, self.count = [], [], itertools.count()

    def send(self, request):
        self.kept.append(os.urandom(BYTES))
        if next(self.count) % REQUESTS_PER_FILE == 0:
            self.files.append(os.open(os.devnull, os.O_RDONLY))
        return super().send(request)
