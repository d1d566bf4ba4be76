"""A headless Chromium for tests that open pages: the system's own, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from optional_programs import leave_out


@contextmanager
def headless_chromium() -> Iterator[Browser]:
    """Run the browser. Without one, the test is skipped, or fails in CI."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        leave_out("no Chromium on this machine, so no browser opened the page; apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])  # CI's user is root
        yield browser
        browser.close()
